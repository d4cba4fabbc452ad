#include "device/device_id.h"

#include <mutex>
#include <unordered_map>

#include "base/immortal.h"
#include "berth/errors.h"

namespace berth {

DeviceId::DeviceId(std::string_view text) {
  struct Table {
    std::mutex mutex;
    // Entries never move: the nodes of the map stay where they are.
    std::unordered_map<std::string, Entry> entries;
  };
  static Table& table = immortal<Table>();
  if (text.empty()) return;
  const std::lock_guard lock(table.mutex);
  const auto [it, fresh] = table.entries.try_emplace(std::string(text));
  if (fresh) {
    it->second.text = text;
    try {
      it->second.name = DeviceName::parse(text);
    } catch (const errors::InvalidArgument&) {
      // name() throws it again.
    }
  }
  entry_ = &it->second;
}

const std::string& DeviceId::text() const {
  static const std::string& empty = immortal<std::string>();
  return entry_ != nullptr ? entry_->text : empty;
}

const DeviceName& DeviceId::unnamed() const {
  static const DeviceName& empty = immortal<DeviceName>();
  if (entry_ != nullptr) DeviceName::parse(entry_->text);  // throws
  return empty;
}

}  // namespace berth
