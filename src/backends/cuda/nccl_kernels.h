// Kernels of _AllReduceStart and _AllReduceEnd: sums between cards by NCCL.
//
// Start marks the point where its stream has the value and meets the Starts of
// the other devices, which the same thread launches; the last one gives the sum
// to NcclSums. It runs on separate streams, concurrently with the devices'
// computation. End makes its stream wait for it.

#ifndef BERTH_BACKENDS_CUDA_NCCL_KERNELS_H_
#define BERTH_BACKENDS_CUDA_NCCL_KERNELS_H_

#include "backends/cuda/cuda_card.h"
#include "op/kernel.h"

namespace berth::cuda {

// Adds them for a card if NCCL is available. `card` must outlive the table.
void add_nccl_kernels(CudaCard& card, KernelTable& table);

}  // namespace berth::cuda

#endif  // BERTH_BACKENDS_CUDA_NCCL_KERNELS_H_
