#include "backends/opencl/cl_kernel_order.h"

#include <cstdio>
#include <unordered_map>

#include "base/immortal.h"

namespace berth::opencl {

namespace {

constexpr int kCountsRight = 7;  // the first major version of PoCL

// Returns "OpenCL 3.0 PoCL 3.1+debian ...".
std::string platform_version(cl_device_id device) {
  cl_platform_id platform = nullptr;
  char text[256] = {};
  clGetDeviceInfo(device, CL_DEVICE_PLATFORM, sizeof(platform), &platform,
                  nullptr);
  clGetPlatformInfo(platform, CL_PLATFORM_VERSION, sizeof(text) - 1, text,
                    nullptr);
  return text;
}

bool needs_order(cl_device_id device) {
  const std::string text = platform_version(device);
  const size_t at = text.find("PoCL ");
  int major = 0;
  return at != text.npos &&
         std::sscanf(text.c_str() + at, "PoCL %d", &major) == 1 &&
         major < kCountsRight;
}

}  // namespace

KernelOrder* order_of(cl_device_id device, const std::string& kernel) {
  struct Orders {
    std::mutex mutex;
    std::unordered_map<std::string, KernelOrder> of;  // its addresses stay
  };
  static auto& orders = immortal<Orders>();
  if (!needs_order(device)) return nullptr;
  const std::lock_guard lock(orders.mutex);
  return &orders.of[kernel];
}

}  // namespace berth::opencl
