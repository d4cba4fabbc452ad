// Times cuBLASLt's kernels for a product on the card.

#ifndef BERTH_BACKENDS_CUDA_LT_TIMING_H_
#define BERTH_BACKENDS_CUDA_LT_TIMING_H_

#include "backends/cuda/cuda_card.h"
#include "backends/cuda/lt_problem.h"

namespace berth::cuda {

// Returns the number of the fastest of these kernels, the first of equal ones;
// -1: the card lacks the memory, or none of them runs. Uses a stream and memory
// of its own and waits. Throws what the driver reports.
int fastest(CudaCard& card, const LtProblem& problem, cublasLtHandle_t handle,
            const cublasLtMatmulHeuristicResult_t* kernels, int count);

}  // namespace berth::cuda

#endif  // BERTH_BACKENDS_CUDA_LT_TIMING_H_
