#include "place/device_table.h"

#include <fmt/format.h>

#include <algorithm>

#include "berth/errors.h"
#include "device/composite.h"
#include "device/parse_among.h"

namespace berth {

std::string short_device(DeviceId device) {
  const DeviceName& n = device.name();
  std::string s = n.type.value_or("?") + ":" + std::to_string(n.id.value_or(0));
  if (n.job.value_or("localhost") == "localhost" && n.task.value_or(0) == 0) {
    return s;
  }
  return fmt::format("{}:{}/{}", n.job.value_or("localhost"),
                     n.task.value_or(0), s);
}

namespace {

DeviceName complete(const PlaceDevice& d) {
  const DeviceName local = {"localhost", 0, 0, {}, {}};
  DeviceName name = d.name.name().merged_over(local);
  if (name.type && !name.id) name.id = 0;
  if (name.is_complete()) return name;
  throw errors::InvalidArgument(
      fmt::format("place: device \"{}\" has no type; expected a full name like "
                  "\"/job:localhost/replica:0/task:0/device:GPU:0\"",
                  d.name.text()));
}

// Without priorities the order is TensorFlow's: GPU, CPU, then all others
// alike. Nothing runs on a composite device itself.
size_t type_rank(const std::string& type,
                 const std::vector<std::string>& order) {
  if (type == kCompositeType) return order.size() + 3;
  const auto at = std::find(order.begin(), order.end(), type);
  if (at != order.end()) return static_cast<size_t>(at - order.begin());
  return order.size() + (type == "GPU" ? 0 : type == "CPU" ? 1 : 2);
}

bool same_task(const DeviceName& a, const DeviceName& b) {
  return a.job == b.job && a.replica == b.replica && a.task == b.task;
}

template <class T>
bool part_agrees(const std::optional<T>& a, const std::optional<T>& b) {
  return !a || !b || *a == *b;
}

bool tasks_agree(const DeviceName& a, const DeviceName& b) {
  return part_agrees(a.job, b.job) && part_agrees(a.replica, b.replica) &&
         part_agrees(a.task, b.task);
}

template <class T>
void take(std::optional<T>& a, const std::optional<T>& b) {
  if (b) a = b;
}

}  // namespace

DeviceTable::DeviceTable(const PlaceOptions& options) {
  if (options.devices.empty()) {
    throw errors::InvalidArgument(
        "place: the list of devices is empty; expected at least one");
  }
  if (options.devices.size() > static_cast<size_t>(kMaxPlaceDevices)) {
    throw errors::InvalidArgument(
        fmt::format("place: {} devices were listed; expected at most {}",
                    options.devices.size(), kMaxPlaceDevices));
  }
  for (const PlaceDevice& d : options.devices) {
    DeviceName name = complete(d);
    const DeviceId id = name.str();
    devices_.push_back(
        {std::move(name), id, &d, static_cast<int32_t>(devices_.size()), 0});
  }
  if (options.policy == PlacePolicy::kTensorFlow) {
    DeviceName local = devices_[0].name;
    for (const Entry& e : devices_) {
      if (e.name.job == "localhost") local = {"localhost", 0, 0, {}, {}};
    }
    if (!options.local.empty()) {
      local = options.local.name().merged_over({{}, 0, 0, {}, {}});
    }
    const auto before = [&](const Entry& a, const Entry& b) {
      const size_t ra = type_rank(*a.name.type, options.type_order);
      const size_t rb = type_rank(*b.name.type, options.type_order);
      if (ra != rb) return ra < rb;
      const bool la = same_task(a.name, local), lb = same_task(b.name, local);
      return la != lb ? la : a.id.text() < b.id.text();
    };
    std::stable_sort(devices_.begin(), devices_.end(), before);
  }
  std::unordered_map<std::string, int32_t> types;
  for (int32_t d = 0; d < size(); ++d) {
    Entry& e = devices_[d];
    if (!by_name_.emplace(e.id, d).second) {
      throw errors::InvalidArgument(
          fmt::format("place: device \"{}\" is listed twice", e.id.text()));
    }
    e.type = types.try_emplace(*e.name.type, num_types_).first->second;
    num_types_ = static_cast<int32_t>(types.size());
    all_ |= device_bit(d);
    if (e.name.type->starts_with("XLA_")) compilers_ |= device_bit(d);
    if (*e.name.type == kCompositeType) composites_ |= device_bit(d);
    if (*e.name.type != "CPU") continue;
    if (hosts_ == 0) host_ = d;
    hosts_ |= device_bit(d);
  }
  add({});
}

int32_t DeviceTable::find(DeviceId full) const {
  const auto it = by_name_.find(full);
  return it == by_name_.end() ? -1 : it->second;
}

int32_t DeviceTable::find_given(const PlaceDevice* given) const {
  for (int32_t d = 0; d < size(); ++d) {
    if (devices_[d].given == given) return d;
  }
  return -1;
}

std::string DeviceTable::list() const {
  std::string s;
  for (const Entry& d : devices_) {
    s += (s.empty() ? "" : ", ") + short_device(d.id);
  }
  return s;
}

std::string DeviceTable::list(DeviceSet devices) const {
  std::string s;
  for (int32_t d = 0; d < size(); ++d) {
    if (!devices.has(d)) continue;
    s += (s.empty() ? "" : " ") + short_device(devices_[d].id);
  }
  return s;
}

DeviceSet DeviceTable::as_given(DeviceSet devices) const {
  DeviceSet given = 0;
  for (; devices; devices.drop_first()) {
    given |= device_bit(devices_[devices.first()].position);
  }
  return given;
}

DeviceTable::NameId DeviceTable::add(const DeviceName& name) {
  const auto [it, fresh] =
      by_str_.try_emplace(name.str(), static_cast<NameId>(names_.size()));
  if (!fresh) return it->second;
  DeviceSet fits = 0;
  for (int32_t d = 0; d < size(); ++d) {
    if (name.matches(devices_[d].name)) fits |= device_bit(d);
  }
  names_.push_back(name);
  masks_.push_back(fits);
  return it->second;
}

DeviceTable::NameId DeviceTable::only(DeviceSet device) {
  return parse(devices_[device.first()].id);
}

// A malformed name is told the devices of this table.
const DeviceName& DeviceTable::name_of_text(DeviceId text) const {
  try {
    return text.name();
  } catch (const errors::InvalidArgument&) {
    parse_among(text.text(), list());
    throw;
  }
}

DeviceTable::NameId DeviceTable::parse(DeviceId text) {
  if (text.empty()) return kAny;
  if (const auto it = by_text_.find(text); it != by_text_.end()) {
    return it->second;
  }
  const NameId id = add(name_of_text(text));
  by_text_.emplace(text, id);
  return id;
}

bool DeviceTable::compatible(NameId a, NameId b) const {
  if (a == b || a == kAny || b == kAny) return true;
  const DeviceName &x = names_[a], &y = names_[b];
  return tasks_agree(x, y) && part_agrees(x.type, y.type) &&
         part_agrees(x.id, y.id);
}

template <class Fn>
DeviceTable::NameId DeviceTable::once(int what, NameId a, NameId b, Fn&& fn) {
  const uint64_t key = static_cast<uint64_t>(what) << 62 |
                       static_cast<uint64_t>(a) << 31 |
                       static_cast<uint64_t>(b);
  if (const auto it = pairs_.find(key); it != pairs_.end()) return it->second;
  const NameId made = fn(names_[a], names_[b]);
  pairs_.emplace(key, made);
  return made;
}

DeviceTable::NameId DeviceTable::merge(NameId a, NameId b) {
  return specialise(a, b);
}

DeviceTable::NameId DeviceTable::merge_soft(NameId a, NameId b) {
  if (a == b || b == kAny) return a;
  if (a == kAny) return b;
  return once(0, a, b, [&](DeviceName x, const DeviceName& y) {
    if (!tasks_agree(x, y)) return -1;
    take(x.job, y.job);
    take(x.replica, y.replica);
    take(x.task, y.task);
    if (!part_agrees(x.type, y.type)) {
      x.type.reset();
      x.id.reset();
    } else {
      take(x.type, y.type);
      if (part_agrees(x.id, y.id)) {
        take(x.id, y.id);
      } else {
        x.id.reset();
      }
    }
    return add(x);
  });
}

DeviceTable::NameId DeviceTable::specialise(NameId a, NameId base) {
  if (a == base || base == kAny) return a;
  if (a == kAny) return base;
  return once(1, a, base, [&](DeviceName x, const DeviceName& y) {
    if (!part_agrees(x.type, y.type)) x.id.reset();
    take(x.job, y.job);
    take(x.replica, y.replica);
    take(x.task, y.task);
    take(x.type, y.type);
    take(x.id, y.id);
    return add(x);
  });
}

DeviceTable::NameId DeviceTable::relax(NameId a, NameId keep) {
  return once(2, a, keep, [&](DeviceName x, const DeviceName& y) {
    if (!y.type) x.type.reset();
    if (!y.id) x.id.reset();
    return add(x);
  });
}

}  // namespace berth
