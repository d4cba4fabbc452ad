// Kernels that eager calls prepared, kept per thread.
//
// Bounded; the whole cache is dropped when it is full. One thread.

#ifndef BERTH_EAGER_KERNEL_CACHE_H_
#define BERTH_EAGER_KERNEL_CACHE_H_

#include <memory>

#include "device/device.h"
#include "op/kernel.h"

namespace berth {

// Returns the kernel for a call on `device`; def is null when none fits.
std::shared_ptr<const BoundKernel> cached_kernel(const Device& device,
                                                 const PrepareArgs& args);

// How many parts an op is split into on a device outside plans.
int default_slices(Device& device);

}  // namespace berth

#endif  // BERTH_EAGER_KERNEL_CACHE_H_
