// PeakBytes: the most bytes that are live at once on each device, once all
// start and end times are known.
//
// The rules are the simulator's (simulate.h): a buffer needs its bytes from its
// start up to, but not at, its end. Internal to the module; one thread per
// object, which allocates only when constructed.

#ifndef BERTH_SIMULATE_PEAK_BYTES_H_
#define BERTH_SIMULATE_PEAK_BYTES_H_

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <span>
#include <vector>

#include "base/infinity.h"
#include "simulate/copy_route.h"
#include "simulate/pair_slots.h"
#include "simulate/simulate.h"

namespace berth {

// Returns the maximum number of copies in any plan.
inline size_t max_copies(const SimulatedGraph& graph, const Machine& machine) {
  const size_t others = std::max<size_t>(machine.devices.size(), 1) - 1;
  size_t copies = 0;
  for (int32_t v = 0; v < graph.readers.size(); ++v) {
    copies += std::min(graph.readers[v].size(), others);
  }
  return copies;
}

class PeakBytes {
 public:
  // `order`: topological; it must outlive this.
  PeakBytes(const SimulatedGraph& graph, const CostTable& costs,
            std::span<const int32_t> order)
      : graph_(graph),
        costs_(costs),
        order_(order),
        buffers_(graph.producer.size() + max_copies(graph, costs)),
        buffer_of_(graph.producer.size(), -1),
        pairs_(graph, costs.devices.size()),
        seen_(costs.devices.size()),
        live_(costs.devices.size()),
        peak_(costs.devices.size()),
        result_(costs.devices.size()) {
    copy_at_.assign(pairs_.size(), -1);
    changes_.reserve(2 * (buffers_.size() + graph.kind.size()));
    sorted_.reserve(changes_.capacity());
    slice_at_.reserve(changes_.capacity());
  }

  // Returns bytes per device, valid until the next call. Bytes beyond 2^53 are
  // rounded.
  std::span<const int64_t> compute(const PlacePlan& plan,
                                   std::span<const TimeSpan> spans,
                                   std::span<const StepEvent> events) {
    reset();
    auto next = static_cast<int32_t>(graph_.producer.size());
    for (const StepEvent& e : events) {
      if (e.to < 0) continue;
      const auto bytes = static_cast<double>(costs_.bytes.item(e.number));
      buffers_[next] = {e.to, bytes, e.start_us, e.start_us};
      copy_at(e.number, e.to) = next++;
    }
    for (const int32_t i : order_) {
      const TimeSpan& span = spans[static_cast<size_t>(i)];
      const int32_t on = plan.device[i];
      if (graph_.kind[i] == Kind::kSource) add_source(plan, i);
      if (graph_.kind[i] == Kind::kOp) add_op(plan, span, i);
      for (const int32_t v : graph_.reads[i]) {
        use(buffer_at(plan, v, on), span.end_us);
      }
      for (const int32_t v : graph_.values[i]) {
        if (graph_.alias_of[i] >= 0) {
          buffer_of_[v] = buffer_at(plan, graph_.alias_of[i], on);
        }
        if (graph_.lives_on[v]) use(buffer_of_[v], kInfinity);
      }
    }
    for (const StepEvent& e : events) {
      if (e.to >= 0) use(buffer_of_[e.number], e.end_us);
    }
    for (const int32_t i : order_) {
      if (graph_.kind[i] != Kind::kOp) continue;
      for (const int32_t v : graph_.values[i]) add(buffers_[v]);
    }
    for (const StepEvent& e : events) {
      if (e.to < 0) continue;
      add(buffers_[copy_at(e.number, e.to)]);
      copy_at(e.number, e.to) = -1;
    }
    sweep();
    return result_;
  }

 private:
  using Kind = SimulatedGraph::Kind;

  static int64_t whole(double bytes) {
    constexpr double kMost = 9e18;
    return static_cast<int64_t>(std::clamp(bytes, 0.0, kMost));
  }

  struct Buffer {
    int32_t device = 0;
    double bytes = 0;
    double start = 0, end = 0;
  };
  struct Change {
    double us;
    double bytes;  // below 0: freed
    int32_t device;
  };

  void reset() {
    if (pairs_.is_full()) {
      pairs_.clear();
      copy_at_.clear();
    }
    changes_.clear();
    std::fill(live_.begin(), live_.end(), 0.0);
    std::fill(buffer_of_.begin(), buffer_of_.end(), -1);
  }

  // Held throughout, with one copy per reading device.
  void add_source(const PlacePlan& plan, int32_t node) {
    const int32_t home = plan.device[node];
    live_[home] += static_cast<double>(graph_.variable_bytes[node]);
    for (const int32_t v : graph_.values[node]) {
      const auto bytes = static_cast<double>(costs_.bytes.item(v));
      live_[home] += bytes;
      if (!graph_.everywhere[v]) continue;
      for (const int32_t r : graph_.readers[v]) {
        const int32_t to = plan.device[r];
        if (to == home || seen_[to]) continue;
        seen_[to] = 1;
        live_[to] += bytes;
      }
      for (const int32_t r : graph_.readers[v]) seen_[plan.device[r]] = 0;
    }
  }

  void add_op(const PlacePlan& plan, const TimeSpan& span, int32_t node) {
    const int32_t on = plan.device[node];
    for (const int32_t v : graph_.values[node]) {
      const auto bytes = static_cast<double>(costs_.bytes.item(v));
      buffers_[v] = {on, bytes, span.start_us, span.end_us};
      buffer_of_[v] = v;
    }
    if (costs_.workspace.empty()) return;
    const size_t at = static_cast<size_t>(node) * costs_.classes.size() +
                      static_cast<size_t>(costs_.devices[on].device_class);
    add({on, static_cast<double>(costs_.workspace[at]), span.start_us,
         span.end_us});
  }

  int32_t& copy_at(int32_t value, int32_t device) {
    const size_t slot = pairs_.slot(value, device);
    if (slot == copy_at_.size()) copy_at_.push_back(-1);
    return copy_at_[slot];
  }

  int32_t buffer_at(const PlacePlan& plan, int32_t value, int32_t device) {
    if (plan.device[graph_.producer[value]] == device) return buffer_of_[value];
    return graph_.everywhere[value] ? -1 : copy_at(value, device);
  }

  void use(int32_t buffer, double until) {
    if (buffer < 0) return;
    buffers_[buffer].end = std::max(buffers_[buffer].end, until);
  }

  void add(const Buffer& b) {
    if (b.bytes <= 0 || !(b.end > b.start)) return;
    changes_.push_back({b.start, b.bytes, b.device});
    if (b.end < kInfinity) changes_.push_back({b.end, -b.bytes, b.device});
  }

  // At any instant, buffers that end free before those that begin allocate.
  // Changes are spread over time: equal slices of it hold few each, so sorting
  // within slices takes O(n) mostly, and O(n log n) at worst.
  void sort() {
    double latest = 0;
    for (const Change& c : changes_) latest = std::max(latest, c.us);
    const size_t slices = changes_.size();
    const double per_us = static_cast<double>(slices) / latest;
    const auto slice = [&](const Change& c) {
      return std::min(static_cast<size_t>(c.us * per_us), slices - 1);
    };
    const bool spread = latest > 0 && latest < kInfinity && per_us < kInfinity;
    slice_at_.assign(slices, 0);
    for (const Change& c : changes_) ++slice_at_[spread ? slice(c) : 0];
    std::inclusive_scan(slice_at_.begin(), slice_at_.end(), slice_at_.begin());
    sorted_.resize(slices);
    for (const Change& c : changes_) {
      sorted_[--slice_at_[spread ? slice(c) : 0]] = c;
    }
    // Now each holds where its slice begins.
    for (size_t s = 0; s < slices; ++s) {
      const auto from = slice_at_[s];
      const auto until = s + 1 < slices ? slice_at_[s + 1] : slices;
      if (until - from < 2) continue;
      std::sort(sorted_.begin() + static_cast<ptrdiff_t>(from),
                sorted_.begin() + until, [](const Change& a, const Change& b) {
                  return a.us != b.us ? a.us < b.us : a.bytes < b.bytes;
                });
    }
  }

  void sweep() {
    sort();
    peak_ = live_;
    for (const Change& c : sorted_) {
      live_[c.device] += c.bytes;
      peak_[c.device] = std::max(peak_[c.device], live_[c.device]);
    }
    std::transform(peak_.begin(), peak_.end(), result_.begin(), whole);
  }

  const SimulatedGraph& graph_;
  const CostTable& costs_;
  std::span<const int32_t> order_;
  std::vector<Buffer> buffers_;     // values at home, by index; then copies
  std::vector<int32_t> buffer_of_;  // per value, at home; -1: held throughout
  std::vector<int32_t> copy_at_;    // per pair: buffer; -1: none
  PairSlots pairs_;
  std::vector<uint8_t> seen_;  // per device
  std::vector<Change> changes_, sorted_;
  std::vector<size_t> slice_at_;
  std::vector<double> live_, peak_;  // per device
  std::vector<int64_t> result_;
};

}  // namespace berth

#endif  // BERTH_SIMULATE_PEAK_BYTES_H_
