// KernelOrder: the order of one kernel's launches from different queues.
//
// PoCL before 7.0 (Debian 12 has 3.1) notes the end of a launch at the first
// entry of its cache that has the kernel and the group size, whatever the grid:
// with three queues it aborts the process. There, a launch of a kernel begins
// after the last one from another queue. Other kernels do not wait.

#ifndef BERTH_BACKENDS_OPENCL_CL_KERNEL_ORDER_H_
#define BERTH_BACKENDS_OPENCL_CL_KERNEL_ORDER_H_

#include <mutex>
#include <string>

#include "backends/opencl/cl_error.h"

namespace berth::opencl {

struct KernelOrder {
  std::mutex mutex;
  cl_event last = nullptr;  // owned
  const void* queue = nullptr;
};

// Returns whether a platform of that CL_PLATFORM_VERSION is such a PoCL.
bool needs_order(const std::string& version);

// Returns the order of all kernels with that name in the process. Lives until
// the process ends.
KernelOrder& order_of(const std::string& kernel);

}  // namespace berth::opencl

#endif  // BERTH_BACKENDS_OPENCL_CL_KERNEL_ORDER_H_
