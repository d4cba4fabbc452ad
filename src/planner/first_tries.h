// FirstTries: the plans that an expert would try first.
//
// Contiguous stages of layers on 1, 2, ... devices, with shares by work, by
// speed or by memory, in either direction, and with weight gradients on
// separate devices. Searches begin with the best of them. Made once per
// problem, then read-only. List scheduling over all devices is one of the rules
// of ListScheduler instead.

#ifndef BERTH_PLANNER_FIRST_TRIES_H_
#define BERTH_PLANNER_FIRST_TRIES_H_

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <numeric>
#include <string>
#include <vector>

#include "base/infinity.h"
#include "planner/budget.h"
#include "planner/device_schedule.h"
#include "planner/layer_keys.h"
#include "planner/step_units.h"

namespace berth {

// Layers in stages, one device each.
struct StageCut {
  std::vector<int32_t> on;      // per stage: its device
  std::vector<int32_t> beside;  // and that of its weight gradients; or empty
  std::vector<int32_t> ends;    // and the place after its last layer
  DeviceScheduler::First order = DeviceScheduler::First::kPath;
};

class FirstTries {
 public:
  // `with_order`: sequences matter, so one split into stages may be tried in
  // several orders.
  FirstTries(const StepUnits& units, bool with_order)
      : units_(units),
        p_(units.problem),
        with_order_(with_order),
        speed_(speeds_of(p_)) {
    if (!units.ordered || units.num_ops == 0 || p_.num_devices() < 2) return;
    for (int32_t d = 0; d < p_.num_devices(); ++d) {
      if (speed_[d] >= kLeastSpeed) fastest_.push_back(d);
    }
    std::ranges::stable_sort(fastest_, std::greater(),
                             [&](int32_t d) { return speed_[d]; });
    if (fastest_.empty()) return;  // the sums of times overflow
    add_layers();
    add_tries();
  }

  int count() const { return static_cast<int>(tries_.size()); }

  // "4 stages, by speed".
  std::string name(int number) const {
    const Try& t = tries_[number];
    std::string text =
        fmt::format("{} stage{}", t.stages, t.stages > 1 ? "s" : "");
    if (t.share == Share::kSpeed) text += " by speed";
    if (t.share == Share::kMemory) text += " by memory";
    if (t.reversed) text += ", reversed";
    if (t.beside) text += ", weight gradients on other devices";
    if (t.order == DeviceScheduler::First::kProgram) text += ", in file order";
    return text;
  }

  // Returns a device per node, as groups and masks allow.
  std::vector<int32_t> devices(const StageCut& cut) const {
    std::vector<int32_t> of_unit(units_.num_units, -1);
    size_t stage = 0;
    for (size_t k = 0; k < by_layer_.size(); ++k) {
      while (static_cast<size_t>(cut.ends[stage]) <= k) ++stage;
      const int32_t u = by_layer_[k];
      const bool beside = !cut.beside.empty() && is_of_weight_[u];
      of_unit[u] = allowed_near(u, beside ? cut.beside[stage] : cut.on[stage]);
    }
    units_.place_rest(of_unit, fastest_[0]);
    std::vector<int32_t> device(p_.num_ops());
    for (int32_t i = 0; i < p_.num_ops(); ++i)
      device[i] = of_unit[units_.unit[i]];
    return device;
  }

  StageCut cut(int number) const { return cut(tries_[number]); }

  // Moves a border, swaps two stages, or takes the other order.
  void vary(StageCut& cut, StreamRandom& random) const {
    using First = DeviceScheduler::First;
    const uint32_t stages = cut.on.size();
    const uint32_t kind = random.below(10);
    if (kind == 0 || stages < 2) {
      cut.order = cut.order == First::kPath ? First::kProgram : First::kPath;
      return;
    }
    if (kind == 1) {
      std::swap(cut.on[random.below(stages)], cut.on[random.below(stages)]);
      return;
    }
    // Far at times, a layer or so at others.
    const uint32_t border = random.below(stages - 1);
    const int32_t least = border > 0 ? cut.ends[border - 1] : 0;
    const int32_t most = cut.ends[border + 1];
    const int32_t far = std::max((most - least) >> random.below(8), 1);
    const auto by = static_cast<int32_t>(random.below(2 * far + 1)) - far;
    cut.ends[border] = std::clamp(cut.ends[border] + by, least, most);
  }

 private:
  // Devices slower than this share of the fastest get no stage.
  static constexpr double kLeastSpeed = 0.05;

  // The numbers of stages to try: the first and the last ones first.
  static std::vector<int32_t> stage_counts(int32_t devices) {
    std::vector<int32_t> counts;
    for (int32_t k = devices; k > 1; k = k > 4 ? k / 2 : k - 1) {
      counts.push_back(k);
    }
    for (int32_t k = 6; k < devices; k *= 2) counts.push_back(k);
    counts.push_back(1);
    return counts;
  }

  // The end of each part: consecutive items, parts in these proportions. Items
  // without a size begin no part.
  static std::vector<int32_t> cut_in_shares(const std::vector<double>& sizes,
                                            const std::vector<double>& shares) {
    const double total = std::accumulate(sizes.begin(), sizes.end(), 0.0);
    const double whole = std::accumulate(shares.begin(), shares.end(), 0.0);
    std::vector<int32_t> ends;
    double given = 0, end = total * shares[0] / whole;
    for (size_t at = 0; at < sizes.size(); ++at) {
      while (ends.size() + 1 < shares.size() && sizes[at] > 0 &&
             given + sizes[at] / 2 > end) {
        ends.push_back(at);
        end += total * shares[ends.size()] / whole;
      }
      given += sizes[at];
    }
    ends.resize(shares.size(), static_cast<int32_t>(sizes.size()));
    return ends;
  }

  enum class Share : uint8_t { kWork, kSpeed, kMemory };  // of each stage
  struct Try {
    int32_t stages;
    Share share;
    bool beside;  // weight gradients on as many further devices
    bool reversed;
    bool fastest_first;
    DeviceScheduler::First order = DeviceScheduler::First::kPath;
  };

  StageCut cut(const Try& t) const {
    StageCut cut;
    cut.order = t.order;
    std::vector<int32_t>& on = cut.on;
    on = fastest_;
    if (!t.fastest_first) std::ranges::sort(on);
    if (t.beside) {
      cut.beside.assign(on.begin() + t.stages, on.begin() + 2 * t.stages);
    }
    on.resize(t.stages);
    if (t.reversed) std::ranges::reverse(on);
    // The first unit of a layer has the size of all: none is cut in two.
    std::vector<double> sizes(layer_.size(), 0), shares;
    for (size_t k = 0, first = 0; k < layer_.size(); ++k) {
      const int32_t u = by_layer_[k];
      if (layer_[k] != layer_[first]) first = k;
      if (t.beside && is_of_weight_[u]) continue;
      sizes[first] += t.share == Share::kMemory ? bytes_[u] : work_[u];
    }
    for (const int32_t d : on) {
      const double limit = p_.costs.devices[d].memory_limit;
      shares.push_back(t.share == Share::kSpeed                 ? speed_[d]
                       : t.share == Share::kMemory && limit > 0 ? limit
                                                                : 1);
    }
    cut.ends = cut_in_shares(sizes, shares);
    return cut;
  }

  void add_layers() {
    const LayerKeys keys = layer_keys(units_, LayerOrder::kFolded);
    folds_ = std::ranges::count(keys.backward, 1) > 0;
    std::vector<double> key(units_.num_units, kInfinity);
    work_.assign(key.size(), 0);
    bytes_ = units_.held_bytes;
    is_of_weight_.assign(key.size(), 1);
    for (int32_t u = 0; u < units_.num_units; ++u) {
      if (units_.ops[u].empty()) continue;
      by_layer_.push_back(u);
      for (const int32_t i : units_.ops[u]) {
        key[u] = std::min(key[u], keys.key[i]);
        is_of_weight_[u] &= keys.of_weight[i];
        const double us = p_.costs.time(i, fastest_[0]).us;
        if (std::isfinite(us)) work_[u] += us;
        // What gradients give is not kept for long; a load keeps no values.
        if (keys.backward[i] || !with_order_) continue;
        for (const int64_t b : p_.costs.bytes[i]) bytes_[u] += b;
      }
    }
    std::ranges::stable_sort(by_layer_, {}, [&](int32_t u) { return key[u]; });
    for (const int32_t u : by_layer_) layer_.push_back(key[u]);
  }

  void add_tries() {
    using First = DeviceScheduler::First;
    const int32_t devices = fastest_.size();
    const bool mixed = speed_[fastest_[0]] != speed_[fastest_.back()];
    std::vector<Share> shares = {Share::kWork};
    if (mixed) shares.insert(shares.begin(), Share::kSpeed);
    // For a load only what is held throughout counts, which often fits anyway.
    if (units_.limited) {
      shares.insert(with_order_ ? shares.begin() : shares.end(),
                    Share::kMemory);
    }
    const std::vector<int32_t> counts = stage_counts(devices);
    const auto add = [&](Try t) {
      for (const int32_t k : counts) {
        t.stages = k;
        if (k == 1 && !t.beside) continue;  // a candidate anyway
        if (t.beside && 2 * k > devices) continue;
        tries_.push_back(t);
        if (!with_order_) continue;
        tries_.push_back(t);
        tries_.back().order = First::kProgram;
      }
    };
    for (const Share share : shares) {
      add({0, share, false, false, true});
      if (folds_ && share != Share::kMemory) add({0, share, true, false, true});
      if (mixed) add({0, share, false, false, false});
      if (mixed) add({0, share, false, true, false});
      if (share == shares[0]) add({0, share, false, true, true});
    }
    // There may be no time for all: of loads, all kinds of many stages first;
    // else the plain kinds of many stages, and last what hardly keeps limits
    // or, without limits, the file's order: it only saves memory.
    const auto rank = [&](const Try& t) {
      return std::ranges::find(counts, t.stages) - counts.begin();
    };
    const bool tight = units_.limited && with_order_;
    std::vector<std::pair<int, Try>> keyed;
    for (const Try& t : tries_) {
      const bool plain = !t.beside && !t.reversed && t.fastest_first;
      const bool by_program = t.order == First::kProgram;
      const bool late = tight ? t.share != Share::kMemory : by_program;
      const int key = 8 * late + 4 * !plain + 2 * (rank(t) > 2) + by_program;
      keyed.emplace_back(with_order_ ? key : rank(t), t);
    }
    std::ranges::stable_sort(keyed, {}, &std::pair<int, Try>::first);
    std::ranges::transform(keyed, tries_.begin(), &std::pair<int, Try>::second);
  }

  // The device, or the first one that is allowed.
  int32_t allowed_near(int32_t unit, int32_t device) const {
    const DeviceSet& allowed = units_.allowed[unit];
    if (allowed.has(device)) return device;
    for (const int32_t d : fastest_) {
      if (allowed.has(d)) return d;
    }
    return allowed.first();
  }

  const StepUnits& units_;
  const PlanProblem& p_;
  const bool with_order_;
  std::vector<double> speed_;          // per device, the fastest 1
  std::vector<int32_t> fastest_;       // devices worth a stage, fastest first
  std::vector<double> work_, bytes_;   // per unit
  std::vector<uint8_t> is_of_weight_;  // per unit: gradients of weights alone
  std::vector<int32_t> by_layer_;      // units with ops
  std::vector<double> layer_;          // and the layer of each
  bool folds_ = false;                 // layers have gradients
  std::vector<Try> tries_;
};

}  // namespace berth

#endif  // BERTH_PLANNER_FIRST_TRIES_H_
