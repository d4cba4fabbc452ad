// device: selects where the ops of a block run (tf.device).
//
// Scopes nest: the outer scope fills in what the inner one leaves open. They
// carry over into traced functions, cond and while bodies. Guards may close in
// any order. Each thread has its own.

#ifndef BERTH_DEVICE_H_
#define BERTH_DEVICE_H_

#include <memory>
#include <string_view>
#include <utility>

#include "berth/site.h"

namespace berth {

struct DeviceScope;

// device(no_device) ignores the outer scopes: ops are placed as if there were
// none (tf.device(None)). device("") keeps them.
struct NoDevice {};
inline constexpr NoDevice no_device{};

class [[nodiscard]] DeviceGuard {
 public:
  DeviceGuard(std::string_view name, Site site);
  DeviceGuard(NoDevice, Site site);
  ~DeviceGuard();
  DeviceGuard(const DeviceGuard&) = delete;
  DeviceGuard& operator=(const DeviceGuard&) = delete;

 private:
  std::unique_ptr<DeviceScope> scope_;
};

// Opens a scope until the guard ends: auto on = berth::device("/GPU:0"); Throws
// errors::InvalidArgument for a malformed name. If no device has the name,
// config::set_soft_device_placement decides at each op.
[[nodiscard]] inline DeviceGuard device(std::string_view name,
                                        Site site = Site::here()) {
  return DeviceGuard(name, site);
}

[[nodiscard]] inline DeviceGuard device(NoDevice none,
                                        Site site = Site::here()) {
  return DeviceGuard(none, site);
}

// Runs `fn` in a scope and returns its result.
template <class Fn>
decltype(auto) with_device(std::string_view name, Fn&& fn,
                           Site site = Site::here()) {
  static_assert(std::is_invocable_v<Fn>,
                "with_device(name, fn): fn is called without arguments");
  if constexpr (std::is_invocable_v<Fn>) {
    const DeviceGuard on(name, site);
    return std::forward<Fn>(fn)();
  }
}

}  // namespace berth

#endif  // BERTH_DEVICE_H_
