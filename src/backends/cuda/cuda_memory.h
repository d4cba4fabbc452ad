// Memory for allocators: on a card, and on the host for its copies.

#ifndef BERTH_BACKENDS_CUDA_CUDA_MEMORY_H_
#define BERTH_BACKENDS_CUDA_CUDA_MEMORY_H_

#include <memory>

#include "backends/cuda/cuda_card.h"
#include "device/allocator.h"

namespace berth::cuda {

// `card` must outlive them. A reservation is null when memory is used up, and
// throws for other errors of the driver.
std::unique_ptr<MemorySource> device_memory_source(CudaCard& card);
std::unique_ptr<MemorySource> pinned_memory_source(CudaCard& card);

}  // namespace berth::cuda

#endif  // BERTH_BACKENDS_CUDA_CUDA_MEMORY_H_
