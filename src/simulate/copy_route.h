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

// What a copy occupies, for its whole time.
class CopyRoute {
 public:
  CopyRoute() = default;
  // Devices and engines only.
  CopyRoute(const Machine& m, int32_t from, int32_t to) {
    const CopyRule rule = m.devices[to].copies;
    if (from == to || rule == CopyRule::kFree) return;
    const auto devices = static_cast<int32_t>(m.devices.size());
    occupy(rule == CopyRule::kOverlap ? devices + to : to);
    if (m.devices[from].copies == CopyRule::kBoth) occupy(from);
  }
  // `links` are numbered from 2 * devices.
  CopyRoute(const Machine& m, const LinkNumbers& links, int32_t from,
            int32_t to)
      : CopyRoute(m, from, to) {
    if (empty()) return;
    for (const int32_t n : links.between(from, to)) occupy(n);
  }

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
  void occupy(int32_t resource) { occupies_[count_++] = resource; }

  int32_t occupies_[2 + SharedLinks::kMost] = {};
  int32_t count_ = 0;
};

// The routes between all devices of a machine, which must outlive them.
class CopyRoutes {
 public:
  CopyRoutes() = default;
  explicit CopyRoutes(const Machine& machine)
      : machine_(&machine),
        links_(machine, static_cast<int32_t>(2 * machine.devices.size())) {
    const auto devices = static_cast<int32_t>(machine.devices.size());
    if (devices > kMostInTable) return;
    for (int32_t from = 0; from < devices; ++from) {
      for (int32_t to = 0; to < devices; ++to) {
        table_.emplace_back(machine, links_, from, to);
      }
    }
  }

  CopyRoute between(int32_t from, int32_t to) const {
    return table_.empty()
               ? CopyRoute(*machine_, links_, from, to)
               : table_[static_cast<size_t>(from) * machine_->devices.size() +
                        static_cast<size_t>(to)];
  }
  size_t num_resources() const { return static_cast<size_t>(links_.end); }
  const LinkNumbers& links() const { return links_; }

 private:
  // With thousands of devices a table of pairs would not pay.
  static constexpr int32_t kMostInTable = 128;

  const Machine* machine_ = nullptr;
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
