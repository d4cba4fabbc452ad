// Kernels of _AllReduceStart and _AllReduceEnd: sums between cards by NCCL.
//
// Start marks where its stream has the value and meets the Starts of the other
// devices, which the same thread launches; the last one hands the sum to
// NcclSums. It runs on streams of its own, beside what the devices compute. End
// lets its stream wait for it.

#ifndef BERTH_BACKENDS_CUDA_NCCL_KERNELS_H_
#define BERTH_BACKENDS_CUDA_NCCL_KERNELS_H_

#include "backends/cuda/cuda_card.h"
#include "op/kernel.h"

namespace berth::cuda {

// Adds them for a card, when there is NCCL. `card` lives as long as the table.
void add_nccl_kernels(CudaCard& card, KernelTable& table);

}  // namespace berth::cuda

#endif  // BERTH_BACKENDS_CUDA_NCCL_KERNELS_H_
