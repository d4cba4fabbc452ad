#include "backends/opencl/cl_kernel_order.h"

#include <cstdio>
#include <unordered_map>

#include "base/immortal.h"

namespace berth::opencl {

namespace {

constexpr int kCountsRight = 7;  // the first major version of PoCL

}  // namespace

bool needs_order(const std::string& version) {
  // "OpenCL 3.0 PoCL 3.1+debian ..."
  const size_t at = version.find("PoCL ");
  int major = 0;
  return at != version.npos &&
         std::sscanf(version.c_str() + at, "PoCL %d", &major) == 1 &&
         major < kCountsRight;
}

KernelOrder& order_of(const std::string& kernel) {
  struct Orders {
    std::mutex mutex;
    std::unordered_map<std::string, KernelOrder> of;  // its addresses stay
  };
  static auto& orders = immortal<Orders>();
  const std::lock_guard lock(orders.mutex);
  return orders.of[kernel];
}

}  // namespace berth::opencl
