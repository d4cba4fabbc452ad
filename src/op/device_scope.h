// DeviceScope: one open berth::device(...) on a thread.
//
// Scopes form an intrusive list and may close in any order; an inner scope's
// parts win over those of the scopes that were open when it opened.

#ifndef BERTH_OP_DEVICE_SCOPE_H_
#define BERTH_OP_DEVICE_SCOPE_H_

#include <cstdint>

#include "base/where.h"
#include "berth/errors.h"
#include "berth/site.h"
#include "device/device.h"

namespace berth {

struct DeviceScope {
  DeviceName name;           // merged over the outer scopes
  Device* device = nullptr;  // first match; null: none
  const DeviceScope* outer = nullptr;
  Site site = {};
  uint64_t serial = 0;  // order of opening in the process
};

// Opens and closes a scope on the calling thread.
void push_scope(DeviceScope* scope, DeviceName name, Site site);
void pop_scope(DeviceScope* scope);

// The serial that the next scope will get at least.
uint64_t next_scope_serial();

// Returns the device of the innermost scope, null when none is open. Throws
// errors::InvalidArgument, naming `what`, when no device matches the scope.
Device* scope_device(const std::string& what);

// Puts ops on `device` until the end of the block; null: leaves all as it is.
class OnDevice {
 public:
  explicit OnDevice(Device* device);
  ~OnDevice();
  OnDevice(const OnDevice&) = delete;
  OnDevice& operator=(const OnDevice&) = delete;

 private:
  DeviceScope scope_;
  bool open_ = false;
};

// " (layer \"dense_1\", model.cc:41)" for the call being made, or "".
std::string where_text();

// Throws the caught `e` again, with the place at its end unless its message
// names it already.
[[noreturn]] void raise_with_place(const errors::Error& e, const char* layer,
                                   Site site);

}  // namespace berth

#endif  // BERTH_OP_DEVICE_SCOPE_H_
