// DeviceId: a device name as graphs hold it, interned.
//
// Every text has one entry, which lives as long as the process and knows what
// the text says: two ids are compared by address, and no name is parsed twice.
// Text becomes an id where a person or a file gives it, and text again where
// one reads it. A value of one pointer; thread-safe.

#ifndef BERTH_DEVICE_DEVICE_ID_H_
#define BERTH_DEVICE_DEVICE_ID_H_

#include <compare>
#include <functional>
#include <optional>
#include <ostream>
#include <string>
#include <string_view>

#include "device/device_name.h"

namespace berth {

class DeviceId {
 public:
  DeviceId() = default;  // "": nobody named a device
  // Looks `text` up under a lock: keep the id, not the text. Any text has an
  // id; one that is not a device name throws when its parts are asked for.
  DeviceId(std::string_view text);                                  // NOLINT
  DeviceId(const std::string& text) : DeviceId(view(text)) {}       // NOLINT
  DeviceId(const char* text) : DeviceId(std::string_view(text)) {}  // NOLINT

  const std::string& text() const;
  bool empty() const { return entry_ == nullptr; }
  void clear() { entry_ = nullptr; }

  // What the text says. Throws errors::InvalidArgument as DeviceName::parse.
  const DeviceName& name() const {
    return entry_ != nullptr && entry_->name ? *entry_->name : unnamed();
  }
  // True for a name that says it is a CPU. Throws as name() does.
  bool is_cpu() const { return name().type == "CPU"; }

  bool operator==(const DeviceId&) const = default;
  // As their texts, so that what is sorted is so in every run.
  auto operator<=>(const DeviceId& o) const {
    return *this == o ? std::strong_ordering::equal : text() <=> o.text();
  }
  friend std::ostream& operator<<(std::ostream& out, DeviceId id) {
    return out << id.text();
  }

 private:
  friend std::hash<DeviceId>;
  struct Entry {
    std::string text;
    std::optional<DeviceName> name;  // none: the text is malformed
  };
  static std::string_view view(const std::string& text) { return text; }
  const DeviceName& unnamed() const;  // the empty name; malformed: throws

  const Entry* entry_ = nullptr;  // of the empty text none
};

}  // namespace berth

template <>
struct std::hash<berth::DeviceId> {
  size_t operator()(berth::DeviceId id) const noexcept {
    return std::hash<const void*>()(id.entry_);
  }
};

#endif  // BERTH_DEVICE_DEVICE_ID_H_
