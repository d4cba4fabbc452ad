// Finds rows and lanes.

#include "profiler/layout.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <tuple>
#include <utility>

#include "device/virtual_clock.h"

namespace berth::profiler {

namespace {

int64_t ns_of(double us) {
  constexpr double kMost = 9e15;  // 285 years
  return us > -kMost && us < kMost ? std::llround(us * 1000) : 0;
}

// The events that are open in a lane, the outermost first.
using Open = std::vector<std::pair<int64_t, int32_t>>;  // end, place

// The first lane where an event of these times nests or follows.
size_t lane_for(std::vector<Open>* lanes, int64_t begin, int64_t end) {
  for (size_t k = 0; k < lanes->size(); ++k) {
    Open& open = (*lanes)[k];
    while (!open.empty() && open.back().first <= begin) open.pop_back();
    if (open.empty() || end <= open.back().first) return k;
  }
  lanes->emplace_back();
  return lanes->size() - 1;
}

}  // namespace

Layout::Layout(const std::vector<TimelineEvent>& events)
    : row(events.size()),
      lane(events.size(), -1),
      within(events.size(), -1),
      begin_ns(events.size()),
      end_ns(events.size()),
      order(events.size()) {
  std::map<std::tuple<std::string_view, std::string_view, bool>, int32_t> ids;
  for (size_t k = 0; k < events.size(); ++k) {
    const TimelineEvent& e = events[k];
    const auto [it, is_new] =
        ids.emplace(std::tuple(std::string_view(e.track),
                               std::string_view(e.task), e.simulated),
                    static_cast<int32_t>(rows.size()));
    if (is_new) {
      const bool simulated = e.simulated || on_virtual_clock(e.track);
      rows.push_back({e.task, e.track, simulated});
    }
    row[k] = it->second;
    rows[it->second].has_memory |= is_memory(e);
    begin_ns[k] = ns_of(e.begin_us);
    end_ns[k] = std::max(begin_ns[k], ns_of(e.end_us));
  }
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
    return begin_ns[a] != begin_ns[b] ? begin_ns[a] < begin_ns[b]
                                      : end_ns[a] > end_ns[b];
  });
  std::vector<std::vector<Open>> lanes(rows.size());
  for (const int32_t k : order) {
    if (is_memory(events[k])) continue;
    std::vector<Open>& here = lanes[row[k]];
    const size_t at = lane_for(&here, begin_ns[k], end_ns[k]);
    lane[k] = static_cast<int32_t>(at);
    if (!here[at].empty()) within[k] = here[at].back().second;
    here[at].emplace_back(end_ns[k], k);
  }
  for (size_t r = 0; r < rows.size(); ++r) {
    rows[r].lanes = static_cast<int32_t>(lanes[r].size());
  }
}

}  // namespace berth::profiler
