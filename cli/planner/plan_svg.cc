#include "cli/planner/plan_svg.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "cli/planner/svg_chart.h"
#include "planner/plan_view.h"
#include "planner/units.h"

namespace berth {

namespace {

constexpr const char* kPalette[] = {"#8fb3dc", "#f0b27a", "#93c79a", "#c5a5d6",
                                    "#e39aa0", "#8ccfd0", "#d8c37a", "#b0b7c3"};
// From the first to the last: forward, backward.
constexpr const char* kLight[] = {"#d9e6f5", "#fbe3c8"};
constexpr const char* kDark[] = {"#2f67a8", "#c0651a"};
constexpr size_t kMostColours = std::size(kPalette);

// "dense_1/MatMul" and "dense_1" belong to "dense_1".
std::string prefix_of(const std::string& name) {
  return name.substr(0, name.find('/'));
}

std::string last_part(const std::string& name) {
  return name.substr(name.rfind('/') + 1);
}

// A colour per op: by layer while there are few, else from light to dark along
// the graph, forward in blue and backward in orange.
class Colours {
 public:
  Colours(const PlanProblem& p, const std::vector<int32_t>& order)
      : fill_(p.names.size(), "#cccccc") {
    std::vector<std::string> layers;
    std::map<std::string, size_t> number;
    bool slashes = false;
    for (const int32_t i : order) {
      slashes |= p.names[i].find('/') != std::string::npos;
      const std::string layer = prefix_of(p.names[i]);
      if (number.emplace(layer, layers.size()).second) layers.push_back(layer);
    }
    if (layers.size() <= kMostColours && (slashes || order.size() > 1)) {
      for (const int32_t i : order) {
        fill_[i] = kPalette[number[prefix_of(p.names[i])]];
      }
      for (size_t k = 0; k < layers.size(); ++k) {
        const std::string what = slashes ? "ops of " : "op ";
        keys_.push_back({kPalette[k], what + layers[k].substr(0, 24)});
      }
      return;
    }
    shade(p, order);
  }

  const std::string& of(int32_t op) const { return fill_[op]; }
  const std::vector<Chart::Key>& keys() const { return keys_; }

 private:
  void shade(const PlanProblem& p, const std::vector<int32_t>& order) {
    double count[2] = {0, 0}, seen[2] = {0, 0};
    for (const int32_t i : order) ++count[p.backward[i] != 0];
    for (const int32_t i : order) {
      const size_t b = p.backward[i] != 0;
      fill_[i] = mix(kLight[b], kDark[b], seen[b]++ / std::max(count[b], 1.));
    }
    for (const size_t b : {0, 1}) {
      if (count[b] == 0) continue;
      const std::string what = b              ? "ops of the backward pass"
                               : count[1] > 0 ? "ops of the forward pass"
                                              : "ops";
      keys_.push_back({.fill = kLight[b],
                       .text = what + ", from the first to the last",
                       .fill_end = kDark[b]});
    }
  }

  std::vector<std::string> fill_;
  std::vector<Chart::Key> keys_;
};

// One chart of one plan.
class Picture {
 public:
  Picture(const PlanProblem& p, const PlanAnswer& a)
      : p_(p), a_(a), order_(order_of_ops(p)), colours_(p, order_) {}

  std::string run() {
    set_axis();
    set_title();
    add_lanes();
    switch (p_.model) {
      case PlanModel::kStep:
        add_step();
        break;
      case PlanModel::kLoad:
        add_loads();
        break;
      case PlanModel::kPipeline:
        add_tasks();
        break;
    }
    add_marks();
    return draw_svg(c_);
  }

 private:
  void set_axis() {
    const double most = a_.value;
    const bool load = p_.model == PlanModel::kLoad;
    c_.axis = load ? "load per step" : "time";
    if (p_.time_unit != "us") return;
    const char* unit = most >= 2e6 ? "s" : most >= 2e3 ? "ms" : "us";
    c_.scale = most >= 2e6 ? 1e-6 : most >= 2e3 ? 1e-3 : 1;
    c_.axis += fmt::format(", {}", unit);
  }

  std::string time(double t) const { return time_text(t, p_.time_unit); }

  void set_title() {
    c_.title = fmt::format(
        "{}: {} {} on {} device{}", p_.name,
        p_.model == PlanModel::kLoad ? "busiest device" : "planned step",
        time(a_.value), p_.num_devices(), p_.num_devices() == 1 ? "" : "s");
    if (a_.bound.value <= 0) {
      c_.subtitle = "nothing was proved about better plans";
    } else if (a_.gap() < 1e-6) {
      c_.subtitle = "with these costs, links and limits no plan is better";
    } else {
      c_.subtitle = fmt::format(
          "with these costs, links and limits no plan is under {}: {}",
          time(a_.bound.value), gap_text(a_.gap()));
    }
  }

  void add_lanes() {
    for (int32_t d = 0; d < p_.num_devices(); ++d) {
      const DeviceUse& use = a_.evaluation.devices[d];
      std::string note =
          a_.value > 0 ? fmt::format("{:.0f} % busy", 100 * use.busy / a_.value)
                       : "";
      const bool sized =
          p_.time_unit == "us" || p_.costs.devices[d].memory_limit > 0;
      if (use.bytes > 0 && sized) {
        note += ", " + size_text(use.bytes);
        any_size_ = true;
      }
      compute_.push_back(c_.lanes.size());
      c_.lanes.push_back({short_name(p_, d), note});
      copies_.push_back(compute_.back());
      if (copies_apart(d)) {
        copies_.back() = c_.lanes.size();
        c_.lanes.push_back({"copies in", "", true});
      }
    }
  }

  // Returns whether a separate engine makes copies, and there are some.
  bool copies_apart(int32_t d) const {
    const CopyRule rule = p_.costs.devices[d].copies;
    const bool apart = rule == CopyRule::kOverlap || rule == CopyRule::kFree;
    if (p_.model == PlanModel::kLoad) {
      return p_.touch_us.empty() && rule == CopyRule::kOverlap;
    }
    return p_.model == PlanModel::kStep && apart && p_.num_devices() > 1;
  }

  std::string tip(const std::string& what, double begin, double end) const {
    return fmt::format("{}: {} to {} ({})", what, time(begin), time(end),
                       time(end - begin));
  }

  void add_op(size_t lane, int32_t op, double begin, double end,
              bool outlined) {
    const std::string& name = p_.names[op];
    c_.boxes.push_back({lane, begin, end, last_part(name),
                        tip(name, begin, end), colours_.of(op), false,
                        outlined});
  }
  void add_transfer(size_t lane, const std::string& what, double begin,
                    double end, bool outlined) {
    c_.boxes.push_back(
        {lane, begin, end, "", tip(what, begin, end), "", true, outlined});
    any_transfer_ = true;
  }

  std::string transfer_text(int32_t value, int32_t from, int32_t to) const {
    return fmt::format("{} from {} to {}", value_name(p_, value),
                       short_name(p_, from), short_name(p_, to));
  }

  void add_step() {
    const Simulation& s = a_.evaluation.simulation;
    if (s.end_us.size() != p_.names.size()) return;
    std::set<int32_t> ops, moves;
    for (const CriticalItem& c : critical_path(p_, a_.plan, a_.evaluation)) {
      (c.op >= 0 ? ops : moves).insert(c.op >= 0 ? c.op : c.transfer);
    }
    for (const int32_t i : a_.plan.sequence) {
      add_op(compute_[a_.plan.device[i]], i, s.start_us[i], s.end_us[i],
             ops.count(i) > 0);
    }
    const auto all = transfers_of(p_, a_.plan, a_.evaluation);
    for (size_t t = 0; t < all.size(); ++t) {
      if (all[t].end <= all[t].start) continue;
      add_transfer(copies_[all[t].to],
                   transfer_text(all[t].value, all[t].from, all[t].to),
                   all[t].start, all[t].end,
                   moves.count(static_cast<int32_t>(t)) > 0);
    }
    if (!ops.empty()) outline_key_ = true;
  }

  // Adds bars: work, op by op, then transfers, value by value.
  void add_loads() {
    std::vector<double> at(c_.lanes.size(), 0);
    for (const int32_t i : order_) {
      const int32_t d = a_.plan.device[i];
      double& begin = at[compute_[d]];
      const double us = p_.costs.time(i, d).us;
      add_op(compute_[d], i, begin, begin + us, false);
      begin += us;
    }
    const auto pay = [&](size_t lane, const PlannedTransfer& t) {
      const double begin = at[lane];
      if (t.time <= 0) return;
      add_transfer(lane, transfer_text(t.value, t.from, t.to), begin,
                   begin + t.time, false);
      at[lane] += t.time;
    };
    int32_t sent = -1;  // its sender pays once per value
    for (const PlannedTransfer& t : transfers_of(p_, a_.plan, a_.evaluation)) {
      if (p_.touch_us.empty()) {
        const auto rule = [&](int32_t d) { return p_.costs.devices[d].copies; };
        if (rule(t.to) == CopyRule::kFree) continue;
        pay(copies_[t.to], t);
        if (rule(t.from) == CopyRule::kBoth) pay(compute_[t.from], t);
        continue;
      }
      if (t.value != sent && !p_.free_of_touch[t.from])
        pay(compute_[t.from], t);
      if (!p_.free_of_touch[t.to]) pay(compute_[t.to], t);
      sent = t.value;
    }
  }

  // Adds a box per stage and micro-batch, darker from micro-batch to
  // micro-batch. Steps that overlap: the first of them.
  void add_tasks() {
    const double m = p_.pipeline.micro_batches;
    const bool chunks = a_.plan.order == PipelineOrder::kInterleaved;
    const double end = a_.value * (p_.pipeline.stash_weights ? 3 : 1 + 1e-9);
    for (const TaskTime& t : a_.evaluation.tasks) {
      if (t.end > end) continue;
      const StageUse& stage = a_.evaluation.stages[t.stage];
      const std::string name = fmt::format("{} of micro-batch {}, stage {}",
                                           t.backward ? "backward" : "forward",
                                           t.micro_batch, t.stage);
      const double share = m > 1 ? std::fmod(t.micro_batch, m) / (m - 1) : 0;
      c_.boxes.push_back({compute_[stage.device], t.start, t.end,
                          chunks ? fmt::format("{}.{}", t.stage, t.micro_batch)
                                 : std::to_string(t.micro_batch),
                          tip(name, t.start, t.end),
                          mix(kLight[t.backward], kDark[t.backward], share)});
    }
  }

  void add_marks() {
    if (a_.bound.value > 0) {
      c_.marks.push_back(
          {a_.bound.value, "no plan is under " + time(a_.bound.value), true});
    }
    c_.marks.push_back({a_.value, "this plan: " + time(a_.value), false});
    if (p_.model == PlanModel::kPipeline) {
      c_.keys = {{.fill = kLight[0],
                  .text = "forward, by micro-batch",
                  .fill_end = kDark[0]},
                 {.fill = kLight[1],
                  .text = "backward, by micro-batch",
                  .fill_end = kDark[1]}};
    } else {
      c_.keys = colours_.keys();
    }
    if (any_size_) {
      c_.keys.push_back({"",
                         "below a device: share of the time that it is busy, "
                         "memory at its peak"});
    }
    if (any_transfer_)
      c_.keys.push_back({"", "transfers between devices", true});
    if (outline_key_) {
      c_.keys.push_back({"#ffffff",
                         "critical path: what makes the step as long as it is",
                         false, true});
    }
  }

  const PlanProblem& p_;
  const PlanAnswer& a_;
  std::vector<int32_t> order_;
  Colours colours_;
  Chart c_;
  std::vector<size_t> compute_, copies_;  // per device: lanes
  bool any_transfer_ = false, outline_key_ = false, any_size_ = false;
};

}  // namespace

std::string plan_svg(const PlanProblem& p, const PlanAnswer& a) {
  return Picture(p, a).run();
}

}  // namespace berth
