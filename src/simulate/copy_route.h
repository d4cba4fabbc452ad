// What a copy keeps busy, and so when it runs: the one place that knows.
//
// Resources of a machine are numbered: d computes on device d, devices + d is
// its copy engine; shared links come after them. Pure.

#ifndef BERTH_SIMULATE_COPY_ROUTE_H_
#define BERTH_SIMULATE_COPY_ROUTE_H_

#include <algorithm>
#include <cstdint>
#include <vector>

#include "place/costs.h"

namespace berth {

// When something runs; what takes no time starts and ends at once.
struct TimeSpan {
  double start_us = 0, end_us = 0;
};

// What a plan's order has between its ops: a copy of a value, or (to = -1) an
// alias.
struct StepEvent {
  int32_t number;    // of the value, or of the alias node
  int32_t to;        // device
  int32_t position;  // in the sequence, before the op there
  double start_us, end_us;
};

// What a copy occupies, for its whole time.
class CopyRoute {
 public:
  CopyRoute() = default;
  // Devices and engines only.
  CopyRoute(const Machine& m, int32_t from, int32_t to)
      : CopyRoute(m.devices[from].copies, m.devices[to].copies,
                  static_cast<int32_t>(m.devices.size()), from, to) {}

  bool empty() const { return count_ == 0; }
  // Returns a route without one resource.
  CopyRoute without(int32_t resource) const {
    CopyRoute rest;
    for (const int32_t n : *this) {
      if (n != resource) rest.occupy(n);
    }
    return rest;
  }

  const int32_t* begin() const { return occupies_; }
  const int32_t* end() const { return occupies_ + count_; }

  // Runs a copy as soon as its value is there and all of these are free.
  TimeSpan run(double ready, double us, double* free) const {
    double start = ready;
    for (const int32_t n : *this) start = std::max(start, free[n]);
    for (const int32_t n : *this) free[n] = start + us;
    return {start, start + us};
  }

 private:
  friend class CopyRoutes;
  CopyRoute(CopyRule at_home, CopyRule there, int32_t devices, int32_t from,
            int32_t to) {
    if (from == to || there == CopyRule::kFree) return;
    occupy(there == CopyRule::kOverlap ? devices + to : to);
    if (at_home == CopyRule::kBoth) occupy(from);
  }
  void occupy(int32_t resource) { occupies_[count_++] = resource; }

  int32_t occupies_[2 + SharedLinks::kMost] = {};
  int32_t count_ = 0;
};

// The routes between all devices of a machine.
class CopyRoutes {
 public:
  CopyRoutes() = default;
  explicit CopyRoutes(const Machine& machine)
      : links_(machine, static_cast<int32_t>(2 * machine.devices.size())) {
    for (const DeviceCost& d : machine.devices) copies_.push_back(d.copies);
    if (copies_.size() > kMostInTable) return;
    const auto devices = static_cast<int32_t>(copies_.size());
    for (int32_t from = 0; from < devices; ++from) {
      for (int32_t to = 0; to < devices; ++to) table_.push_back(make(from, to));
    }
  }

  CopyRoute between(int32_t from, int32_t to) const {
    return table_.empty() ? make(from, to)
                          : table_[static_cast<size_t>(from) * copies_.size() +
                                   static_cast<size_t>(to)];
  }
  size_t num_resources() const { return static_cast<size_t>(links_.end); }
  const LinkNumbers& links() const { return links_; }

 private:
  // With thousands of devices a table of pairs would not pay.
  static constexpr size_t kMostInTable = 128;

  CopyRoute make(int32_t from, int32_t to) const {
    CopyRoute route(copies_[from], copies_[to], copies_.size(), from, to);
    if (route.empty()) return route;
    for (const int32_t n : links_.between(from, to)) route.occupy(n);
    return route;
  }

  std::vector<CopyRule> copies_;  // per device
  LinkNumbers links_;
  std::vector<CopyRoute> table_;  // [from * devices + to]; empty: too many
};

// Whether copies to such a device come right after the op whose value they
// bring, not right before what needs it.
inline bool comes_early(CopyRule rule) {
  return rule == CopyRule::kOverlap || rule == CopyRule::kFree;
}

}  // namespace berth

#endif  // BERTH_SIMULATE_COPY_ROUTE_H_
