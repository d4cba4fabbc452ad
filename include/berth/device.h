// device: says where the ops of a block run (tf.device).
//
// Scopes nest: parts that the inner one leaves open come from the outer one.
// They travel into traced functions. Each thread has its own.

#ifndef BERTH_DEVICE_H_
#define BERTH_DEVICE_H_

#include <memory>
#include <string_view>
#include <utility>

#include "berth/site.h"

namespace berth {

struct DeviceScope;

class [[nodiscard]] DeviceGuard {
 public:
  DeviceGuard(std::string_view name, Site site);
  ~DeviceGuard();
  DeviceGuard(const DeviceGuard&) = delete;
  DeviceGuard& operator=(const DeviceGuard&) = delete;

 private:
  std::unique_ptr<DeviceScope> scope_;
};

// Opens a scope until the guard ends: auto on = berth::device("/GPU:0");
// Throws errors::InvalidArgument for a malformed name.
[[nodiscard]] inline DeviceGuard device(std::string_view name,
                                        Site site = Site::here()) {
  return DeviceGuard(name, site);
}

// Runs `fn` in a scope and returns what it returns.
template <class Fn>
decltype(auto) with_device(std::string_view name, Fn&& fn,
                           Site site = Site::here()) {
  const DeviceGuard on(name, site);
  return std::forward<Fn>(fn)();
}

}  // namespace berth

#endif  // BERTH_DEVICE_H_
