#include "place/planner/window_steps.h"

#include <algorithm>
#include <tuple>
#include <unordered_map>

#include "base/infinity.h"

namespace berth {

namespace {

using Kind = SimulatedGraph::Kind;

// Extracts one window. Its nodes are all ops and come in this order: values
// that exist before it, on an extra device behind each real one; one op per
// device that keeps it busy until it is free; the window's ops; one per device
// that ends with the last of them; and what is waited for, on a third row of
// devices, each as long as from one latest time to the next.
class Cutter {
 public:
  Cutter(const StepUnits& units, const Decoder& kept, const PlacePlan& plan,
         const std::vector<double>& latest, int32_t begin, int32_t end)
      : units_(units),
        whole_(units.problem),
        g_(units.problem.graph),
        kept_(kept),
        plan_(plan),
        latest_(latest),
        begin_(begin),
        end_(end),
        devices_(units.problem.num_devices()) {
    for (int32_t k = begin; k < end; ++k) {
      position_.emplace(plan.sequence[k], k);
    }
  }

  StepWindow cut() {
    w_.begin = begin_, w_.end = end_;
    add_machine();
    find_times();
    add_releases();
    add_ops();
    add_dues();
    finish();
    return std::move(w_);
  }

 private:
  // What exists, or must exist, at a time: a value, or the end of a node (value
  // -1). Nodes are those of the whole plan if it exists, else those here.
  struct Event {
    double at;
    int32_t device, value, node;
  };

  int32_t op_at(int32_t k) const { return plan_.sequence[k]; }
  int32_t here(int32_t op) const {  // -1: outside
    const auto it = position_.find(op);
    return it == position_.end() ? -1 : w_.first + it->second - begin_;
  }

  void add_machine() {
    CostTable& c = w_.problem.costs;
    c.classes = whole_.costs.classes;
    c.classes.push_back({.name = "rest", .type = "rest"});
    const auto rest = static_cast<int32_t>(c.classes.size()) - 1;
    c.devices = whole_.costs.devices;
    for (DeviceCost& d : c.devices) d.memory_limit = 0, d.bus = -1;
    for (int32_t d = 0; d < 2 * devices_; ++d) {
      c.devices.push_back({"rest", rest, 0, CopyRule::kFree, -1});
    }
    const LinkCost none = {0, kInfinity, -1};
    for (int32_t from = 0; from < 3 * devices_; ++from) {
      for (int32_t to = 0; to < 3 * devices_; ++to) {
        const int32_t a = from % devices_, b = to % devices_;
        c.links.push_back(a == b ? none : whole_.costs.link(a, b));
      }
    }
  }

  void find_times() {
    double start = kInfinity, end = 0;
    for (int32_t k = begin_; k < end_; ++k) {
      start = std::min(start, kept_.start_us(op_at(k)));
      end = std::max(end, kept_.end_us(op_at(k)));
    }
    w_.span_us = end - start;
    free_.assign(devices_, 0);
    int32_t missing = devices_;
    std::vector<uint8_t> seen(free_.size(), 0);
    for (int32_t k = begin_ - 1; k >= 0 && missing > 0; --k) {
      const int32_t d = plan_.device[op_at(k)];
      if (seen[d]) continue;
      seen[d] = 1, --missing;
      free_[d] = kept_.end_us(op_at(k));
    }
    for (int32_t k = begin_; k < end_; ++k) find_releases(op_at(k));
    // What ended long before does not matter.
    double copy = 0;
    for (const Event& r : releases_) {
      for (int32_t d = 0; r.value >= 0 && d < devices_; ++d) {
        if (d == r.device) continue;
        copy = std::max(copy, kept_.copy_us(r.value, r.device, d));
      }
    }
    origin_us_ = std::max(start - w_.span_us / 2 - copy, 0.0);
  }

  void find_releases(int32_t op) {
    for (const int32_t v : g_.reads[op]) {
      const int32_t from = g_.producer[v];
      if (here(from) >= 0 || value_here_.count(v)) continue;
      if (!whole_.takes_time(from) && units_.unit[from] == units_.unit[op]) {
        continue;  // a source that goes with it
      }
      value_here_.emplace(v, -1);
      releases_.push_back({kept_.end_us(from), plan_.device[from], v, from});
    }
    for (const int32_t c : g_.controls[op]) {
      if (here(c) >= 0 || end_here_.count(c)) continue;
      end_here_.emplace(c, -1);
      releases_.push_back({kept_.end_us(c), plan_.device[c], -1, c});
    }
  }

  void add_releases() {
    std::ranges::sort(releases_, {}, [](const Event& e) {
      return std::tie(e.at, e.node, e.value);
    });
    std::vector<double> there(free_.size(), 0);
    for (const Event& r : releases_) {
      const double at = std::max(r.at - origin_us_, 0.0);
      const int32_t n =
          add_rest(at - there[r.device], devices_ + r.device, {}, {});
      there[r.device] = at;
      if (r.value < 0) {
        end_here_[r.node] = n;
      } else {
        value_here_[r.value] = add_value(n, r.value);
      }
    }
    for (int32_t d = 0; d < devices_; ++d) {
      add_rest(std::max(free_[d] - origin_us_, 0.0), d, {}, {});
    }
    w_.first = num_nodes_;
  }

  void add_ops() {
    const size_t classes = whole_.costs.classes.size();
    std::unordered_map<int32_t, int32_t> seen;  // per unit: ops in here
    for (int32_t k = begin_; k < end_; ++k) ++seen[units_.unit[op_at(k)]];
    std::unordered_map<int32_t, int32_t> group;
    for (int32_t k = begin_; k < end_; ++k) {
      const int32_t op = op_at(k), unit = units_.unit[op];
      std::vector<int32_t> reads, controls;
      for (const int32_t v : g_.reads[op]) {
        const auto it = value_here_.find(v);
        if (it != value_here_.end()) reads.push_back(it->second);
      }
      for (const int32_t c : g_.controls[op]) {
        controls.push_back(here(c) >= 0 ? here(c) : end_here_.at(c));
      }
      // Units that are only partly here stay where they are.
      const bool whole =
          seen[unit] == static_cast<int32_t>(units_.ops[unit].size());
      const DeviceSet mask =
          whole ? units_.allowed[unit] : device_bit(plan_.device[op]);
      const auto [it, added] = group.emplace(unit, w_.problem.num_groups);
      const int32_t n =
          add_node(plan_.device[op], mask, reads, controls, it->second);
      for (size_t c = 0; c < classes; ++c) {
        w_.problem.costs.times.push_back(
            whole_.costs.times[static_cast<size_t>(op) * classes + c]);
      }
      w_.problem.costs.times.push_back({});
      for (const int32_t v : g_.values[op]) value_here_[v] = add_value(n, v);
    }
  }

  void find_dues() {
    const double step = kept_.step_us();
    std::unordered_map<int32_t, double> at;
    for (int32_t k = begin_; k < end_; ++k) {
      const int32_t op = op_at(k);
      bool last = true;
      for (const int32_t v : g_.values[op]) {
        at.clear();
        for (const int32_t r : g_.readers[v]) {
          last = false;
          if (here(r) >= 0) continue;
          double& due = at.emplace(plan_.device[r], kInfinity).first->second;
          due = std::min(due, latest_[r]);
        }
        for (int32_t d = 0; d < devices_; ++d) {
          const auto it = at.find(d);
          if (it != at.end()) due(it->second, d, value_here_[v], op);
        }
      }
      for (const int32_t f : g_.followers[op]) {
        last = false;
        if (here(f) < 0) due(latest_[f], 0, -1, op);
      }
      if (last) due(step, 0, -1, op);
    }
  }
  // Leaves out what has plenty of time.
  void due(double at, int32_t device, int32_t value, int32_t op) {
    if (at > kept_.end_us(op) + 3 * w_.span_us && at < kept_.step_us()) return;
    dues_.push_back({at, device, value, here(op)});
  }

  void add_dues() {
    find_dues();
    std::vector<uint8_t> seen(free_.size(), 0);
    int32_t missing = devices_;
    for (int32_t k = end_; k < units_.num_ops && missing > 0; ++k) {
      const int32_t d = plan_.device[op_at(k)];
      if (seen[d]) continue;
      seen[d] = 1, --missing;
      const int32_t n = add_rest(0, d, {}, {});
      dues_.push_back({latest_[op_at(k)], d, -1, n});
    }
    std::ranges::sort(dues_, {}, [](const Event& e) {
      return std::tie(e.device, e.at, e.node, e.value);
    });
    for (size_t i = 0; i < dues_.size(); ++i) {
      const Event& d = dues_[i];
      const bool more = i + 1 < dues_.size() && dues_[i + 1].device == d.device;
      const double until = more ? dues_[i + 1].at : kept_.step_us();
      std::vector<int32_t> reads, controls;
      (d.value >= 0 ? reads : controls)
          .push_back(d.value >= 0 ? d.value : d.node);
      add_rest(std::max(until - d.at, 0.0), 2 * devices_ + d.device, reads,
               controls);
    }
  }

  // --- Nodes.

  int32_t add_rest(double us, int32_t device, const std::vector<int32_t>& reads,
                   const std::vector<int32_t>& controls) {
    const int32_t n = add_node(device, device_bit(device), reads, controls,
                               w_.problem.num_groups);
    for (size_t c = 0; c < w_.problem.costs.classes.size(); ++c) {
      w_.problem.costs.times.push_back({us, 0, CostOrigin::kDeclared});
    }
    return n;
  }

  int32_t add_node(int32_t device, DeviceSet allowed,
                   const std::vector<int32_t>& reads,
                   const std::vector<int32_t>& controls, int32_t group) {
    SimulatedGraph& g = w_.problem.graph;
    g.kind.push_back(Kind::kOp);
    g.reads.add(reads);
    g.controls.add(controls);
    g.alias_of.push_back(-1);
    g.variable_bytes.push_back(0);
    values_.emplace_back();
    w_.problem.allowed.push_back(allowed);
    w_.problem.group.push_back(group);
    w_.problem.num_groups = std::max(w_.problem.num_groups, group + 1);
    w_.plan.device.push_back(device);
    w_.plan.sequence.push_back(num_nodes_);
    return num_nodes_++;
  }

  int32_t add_value(int32_t node, int32_t value) {
    SimulatedGraph& g = w_.problem.graph;
    const int32_t number = g.producer.size();
    g.producer.push_back(node);
    g.everywhere.push_back(g_.everywhere[value]);
    g.lives_on.push_back(0);
    values_[node].push_back(number);
    bytes_.push_back(whole_.costs.bytes.item(value));
    return number;
  }

  void finish() {
    PlanProblem& p = w_.problem;
    const size_t n = num_nodes_;
    p.graph.values = Rows<int32_t>(values_);
    for (const std::vector<int32_t>& row : values_) {
      std::vector<int64_t> bytes;
      for (const int32_t v : row) bytes.push_back(bytes_[v]);
      p.costs.bytes.add(bytes);
    }
    p.costs.workspace.assign(p.costs.times.size(), 0);
    p.resident_bytes.assign(n, 0);
    p.graph.finish();
  }

  const StepUnits& units_;
  const PlanProblem& whole_;
  const SimulatedGraph& g_;
  const Decoder& kept_;
  const PlacePlan& plan_;
  const std::vector<double>& latest_;
  int32_t begin_, end_, devices_;
  std::unordered_map<int32_t, int32_t> position_;    // of ops in here
  std::unordered_map<int32_t, int32_t> value_here_;  // its index here
  std::unordered_map<int32_t, int32_t> end_here_;    // of controls
  std::vector<double> free_;                         // per device
  double origin_us_ = 0;
  std::vector<Event> releases_, dues_;
  std::vector<std::vector<int32_t>> values_;  // per node here
  std::vector<int64_t> bytes_;                // per value here
  int32_t num_nodes_ = 0;
  StepWindow w_;
};

}  // namespace

bool has_windows(const StepUnits& units) {
  const SimulatedGraph& g = units.problem.graph;
  return units.ordered && !units.limited && units.problem.num_devices() <= 21 &&
         std::none_of(g.kind.begin(), g.kind.end(), [](Kind k) {
           return k == Kind::kAlias || k == Kind::kTransfer;
         });
}

std::vector<double> latest_starts(const StepUnits& units, const Decoder& kept,
                                  const PlacePlan& plan) {
  const SimulatedGraph& g = units.problem.graph;
  std::vector<double> latest(plan.device.size(), kept.step_us());
  std::vector<double> free(units.problem.costs.devices.size(), kept.step_us());
  for (auto it = plan.sequence.rbegin(); it != plan.sequence.rend(); ++it) {
    const int32_t op = *it, on = plan.device[op];
    double end = free[on];
    for (const int32_t v : g.values[op]) {
      for (const int32_t r : g.readers[v]) {
        end = std::min(end, latest[r] - kept.copy_us(v, on, plan.device[r]));
      }
    }
    for (const int32_t f : g.followers[op]) end = std::min(end, latest[f]);
    free[on] = latest[op] = end - units.problem.costs.time(op, on).us;
  }
  return latest;
}

StepWindow cut_window(const StepUnits& units, const Decoder& kept,
                      const PlacePlan& plan, const std::vector<double>& latest,
                      int32_t begin, int32_t end) {
  return Cutter(units, kept, plan, latest, begin, end).cut();
}

void put_back(const StepUnits& units, const StepWindow& w,
              const PlacePlan& part, PlacePlan& whole) {
  const std::vector<int32_t> ops(whole.sequence.begin() + w.begin,
                                 whole.sequence.begin() + w.end);
  for (int32_t k = w.begin; k < w.end; ++k) {
    const int32_t n = part.sequence[w.first + k - w.begin];
    const int32_t op = ops[n - w.first];
    whole.sequence[k] = op;
    for (const int32_t i : units.nodes[units.unit[op]]) {
      whole.device[i] = part.device[n];
    }
  }
}

}  // namespace berth
