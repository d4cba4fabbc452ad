// DeviceTable: the devices to place on, and partial names of them as numbers.
//
// Devices are numbered in order of preference; a DeviceSet is a set of them. A
// partial device name gets a number when it is first seen; facts about names
// are computed once per number or pair. One thread.

#ifndef BERTH_PLACE_DEVICE_TABLE_H_
#define BERTH_PLACE_DEVICE_TABLE_H_

#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "device/device_id.h"
#include "place/place.h"

namespace berth {

// Returns "GPU:1", or for devices of other jobs "worker:1/GPU:1".
std::string short_device(DeviceId device);

class DeviceTable {
 public:
  using NameId = int32_t;
  static constexpr NameId kAny = 0;  // the empty name

  struct Entry {
    DeviceName name;
    DeviceId id;  // the full name
    const PlaceDevice* given;
    int32_t position;  // in the caller's list
    int32_t type;      // index of the device type
  };

  // Throws errors::InvalidArgument for a list that is empty or too long, and
  // for names that are malformed or repeated.
  explicit DeviceTable(const PlaceOptions& options);

  int32_t size() const { return static_cast<int32_t>(devices_.size()); }
  const Entry& operator[](int32_t d) const { return devices_[d]; }
  DeviceSet all() const { return all_; }
  int32_t num_types() const { return num_types_; }
  int32_t host() const { return host_; }  // first CPU, else device 0
  DeviceSet compilers() const { return compilers_; }  // types "XLA_..."
  DeviceSet composites() const { return composites_; }
  DeviceSet hosts() const { return hosts_; }  // all CPUs
  int32_t find(DeviceId full) const;          // -1: none
  int32_t find_given(const PlaceDevice* given) const;
  std::string list() const;                     // "GPU:0, CPU:0"
  std::string list(DeviceSet devices) const;    // short names
  DeviceSet as_given(DeviceSet devices) const;  // in the caller's order

  // Throws errors::InvalidArgument for a malformed name.
  NameId parse(DeviceId text);
  const DeviceName& name(NameId n) const { return names_[n]; }
  // The full name of a single device.
  NameId only(DeviceSet device);
  DeviceSet mask(NameId n) const { return masks_[n]; }
  bool compatible(NameId a, NameId b) const;
  // Merges the parts of two compatible names.
  NameId merge(NameId a, NameId b);
  // Merges the parts of both, dropping type and id where these differ; -1: job,
  // replica or task differ (MergeDevNames with allow_soft_placement).
  NameId merge_soft(NameId a, NameId b);
  // Name `a` with the parts that `base` has (EnsureSpecification).
  NameId specialise(NameId a, NameId base);
  // Name `a` without type and id, except those that `keep` has.
  NameId relax(NameId a, NameId keep);

 private:
  NameId add(const DeviceName& name);
  const DeviceName& name_of_text(DeviceId text) const;
  template <class Fn>
  NameId once(int what, NameId a, NameId b, Fn&& fn);

  std::vector<Entry> devices_;
  std::unordered_map<DeviceId, int32_t> by_name_;
  DeviceSet all_ = 0, hosts_ = 0, compilers_ = 0, composites_ = 0;
  int32_t host_ = 0, num_types_ = 0;
  std::vector<DeviceName> names_;
  std::vector<DeviceSet> masks_;
  std::unordered_map<DeviceId, NameId> by_text_;
  std::unordered_map<std::string, NameId> by_str_;
  std::unordered_map<uint64_t, NameId> pairs_;
};

}  // namespace berth

#endif  // BERTH_PLACE_DEVICE_TABLE_H_
