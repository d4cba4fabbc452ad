// DeviceScope: one open berth::device(...) on a thread.
//
// Scopes form an intrusive list and may close in any order; an inner scope's
// parts win over those of the scopes that were open when it opened. One thread.

#ifndef BERTH_OP_DEVICE_SCOPE_H_
#define BERTH_OP_DEVICE_SCOPE_H_

#include <cstdint>

#include "base/where.h"
#include "berth/errors.h"
#include "berth/site.h"
#include "device/device.h"

namespace berth {

// Who opened a scope.
enum class ScopeKind : uint8_t {
  kUser,    // berth::device()
  kLayer,   // a layer, with what was recorded when it was made
  kEngine,  // a choice of the engine's own: soft, whatever the policy
};

struct DeviceScope {
  DeviceName name;           // merged over the outer scopes
  Device* device = nullptr;  // first match; null: none
  ScopeKind kind = ScopeKind::kUser;
  const DeviceScope* outer = nullptr;
  Site site = {};
  uint64_t serial = 0;  // order of opening in the process
};

// Opens and closes a scope on the calling thread; with `forget` the outer ones
// do not count.
void push_scope(DeviceScope* scope, DeviceName name, Site site,
                bool forget = false);
void pop_scope(DeviceScope* scope);

// The serial that the next scope will get at least.
uint64_t next_scope_serial();

// True when what the innermost scope asks for may be done elsewhere.
bool soft_placement_here();

// Returns the device of the innermost scope, null when none is open. When no
// device matches the scope: with soft placement the first device of the same
// task, reported as a fallback of `what`; else throws errors::InvalidArgument,
// naming `what`.
Device* scope_device(const std::string& what);

// Reports, as policy and repetition allow, that `what` runs on `device` though
// the innermost scope asks for another: diagnostic "fallback", once per `what`
// and `reason`. `bytes` move per call because of it.
void report_fallback(const std::string& what, const std::string& reason,
                     const Device& device, int64_t bytes);

// Puts ops on `device` until the end of the block; null: leaves all as it is.
// kUser: as if asked for, so that policy error holds.
class OnDevice {
 public:
  explicit OnDevice(Device* device, ScopeKind kind = ScopeKind::kEngine);
  ~OnDevice();
  OnDevice(const OnDevice&) = delete;
  OnDevice& operator=(const OnDevice&) = delete;

 private:
  DeviceScope scope_;
  bool open_ = false;
};

// Closes the caller's device scopes until the end of the block.
class NoDeviceScope {
 public:
  NoDeviceScope();
  ~NoDeviceScope();
  NoDeviceScope(const NoDeviceScope&) = delete;
  NoDeviceScope& operator=(const NoDeviceScope&) = delete;

 private:
  const DeviceScope* const scope_;
  Device* const device_;
};

// " (layer \"dense_1\", model.cc:41)" for the call being made, or "".
std::string where_text();

// Throws the caught `e` again, with the place at its end unless its message
// names it already.
[[noreturn]] void raise_with_place(const errors::Error& e, const char* layer,
                                   Site site);

}  // namespace berth

#endif  // BERTH_OP_DEVICE_SCOPE_H_
