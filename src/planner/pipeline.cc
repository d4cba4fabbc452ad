#include "planner/pipeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "berth/errors.h"
#include "planner/loads.h"
#include "simulate/timing_tables.h"

namespace berth {

namespace {

using Role = MicroBatchRole;

// Nodes of unrolled steps: more would need too much time and memory.
constexpr int64_t kMostCopies = 8'000'000;

// Calls fn(node) for what a node reads and waits for.
template <class Fn>
void for_each_before(const SimulatedGraph& g, int32_t node, const Fn& fn) {
  for (const int32_t v : g.reads[node]) fn(g.producer[v]);
  for (const int32_t c : g.controls[node]) fn(c);
}

}  // namespace

std::vector<MicroBatchRole> roles_of(const PlanProblem& p) {
  std::vector<Role> role(p.num_ops(), Role::kEach);
  for (const int32_t i : topological_order(p.graph)) {
    const bool once = !p.once.empty() && p.once[i];
    bool each = false, step = false;
    for_each_before(p.graph, i, [&](int32_t b) {
      each |= role[b] == Role::kEach;
      step |= role[b] == Role::kStep;
    });
    role[i] = step || (once && each) ? Role::kStep
              : once                 ? Role::kShared
                                     : Role::kEach;
  }
  return role;
}

PipelineShape::PipelineShape(const PlanProblem& p, const PlacePlan& plan)
    : role(roles_of(p)), part(static_cast<size_t>(p.num_ops()), -1) {
  const int32_t n = p.num_ops();
  const auto stage_of = [&](int32_t i) {
    return plan.stage.empty() ? 0 : plan.stage[i];
  };
  if (!plan.stage.empty() && plan.stage.size() != part.size()) {
    wrong = fmt::format("stages of {} ops; expected {}", plan.stage.size(), n);
    return;
  }
  const auto has_part = [&](int32_t i) {
    return p.takes_time(i) && role[i] == Role::kEach;
  };
  for (int32_t i = 0; i < n; ++i) {
    if (!has_part(i)) continue;
    const int32_t s = std::max(stage_of(i), -1 - stage_of(i));
    num_stages = std::max(num_stages, s + 1);
    if (s <= n) continue;
    wrong = fmt::format("\"{}\" is in stage {}; expected at most {}",
                        p.names[i], s, n);
    return;
  }
  const int32_t parts = 2 * num_stages;
  lanes.lane.assign(num_stages, -1);
  lanes.any.assign(parts, 0);
  std::vector<std::vector<int32_t>> rows(parts);
  for (const int32_t i : topological_order(p.graph)) {
    if (role[i] != Role::kEach) continue;
    int32_t latest = -1;
    for_each_before(p.graph, i,
                    [&](int32_t b) { latest = std::max(latest, part[b]); });
    part[i] = latest;
    if (!has_part(i)) continue;
    const int32_t s = stage_of(i);
    part[i] = s >= 0 ? s : parts + s;
    lanes.any[part[i]] = 1;
    if (part[i] >= latest || !wrong.empty()) continue;
    wrong = fmt::format(
        "\"{}\" in stage {} waits for an op that comes later on the way "
        "through the stages",
        p.names[i], s >= 0 ? s : -1 - s);
  }
  if (!wrong.empty()) return;
  for (int32_t i = n - 1; i >= 0; --i) {
    if (!has_part(i)) continue;
    lanes.lane[std::min(part[i], parts - 1 - part[i])] = plan.device[i];
  }
  for (const int32_t i : plan.sequence) {
    if (has_part(i)) rows[part[i]].push_back(i);
  }
  ops = Rows<int32_t>(rows);
  const int32_t m = p.pipeline.micro_batches;
  // Twice the time in which a pipeline fills.
  if (p.pipeline.stash_weights) steps = 2 * ((2 * num_stages + m - 1) / m + 1);
  if (static_cast<int64_t>(n) * m * steps > kMostCopies) {
    throw errors::InvalidArgument(fmt::format(
        "plan \"{}\": {} ops in {} micro-batches of {} step{}; expected at "
        "most {} together",
        p.name, n, m, steps, steps == 1 ? "" : "s", kMostCopies));
  }
  tasks = task_order(lanes, m * steps, plan.order);
  if (tasks.empty() && std::ranges::find(lanes.any, 1) != lanes.any.end()) {
    wrong = fmt::format(
        "the tasks of {} stages wait for each other in the order \"{}\"; "
        "micro-batches must be a multiple of the devices",
        num_stages, order_name(plan.order));
  }
}

namespace {

class Unroller {
 public:
  Unroller(const PlanProblem& p, const PlacePlan& plan, const PipelineShape& s)
      : p_(p),
        g_(p.graph),
        plan_(plan),
        s_(s),
        micro_batches_(p.pipeline.micro_batches) {}

  UnrolledSteps run() {
    number_copies();
    static_cast<Machine&>(out_.costs) = p_.costs;
    out_.costs.error = p_.costs.error;
    for (int32_t i = 0; i < p_.num_ops(); ++i) {
      for (int32_t c = 0; c < copies(i); ++c) add(i, c);
    }
    out_.graph.finish();
    add_sequence();
    return std::move(out_);
  }

 private:
  int32_t copies(int32_t i) const {
    return s_.role[i] == Role::kShared ? 1
           : s_.role[i] == Role::kStep ? s_.steps
                                       : s_.steps * micro_batches_;
  }

  void number_copies() {
    int32_t nodes = 0, values = 0;
    for (int32_t i = 0; i < p_.num_ops(); ++i) {
      out_.first.push_back(nodes);
      first_value_.push_back(values);
      nodes += copies(i);
      values += copies(i) * static_cast<int32_t>(g_.values[i].size());
    }
  }

  // The copy of `before` that copy c of a node reads or waits for.
  int32_t copy_for(int32_t node, int32_t c, int32_t before) const {
    if (s_.role[before] == Role::kShared) return 0;
    if (s_.role[before] == s_.role[node]) return c;
    return (c + 1) * micro_batches_ - 1;  // after a step
  }
  int32_t value_of(int32_t v, int32_t copy) const {
    const int32_t i = g_.producer[v];
    return first_value_[i] + copy * static_cast<int32_t>(g_.values[i].size()) +
           v - g_.values.begin_of(i);
  }

  void add(int32_t i, int32_t c) {
    SimulatedGraph& g = out_.graph;
    g.kind.push_back(g_.kind[i]);
    g.variable_bytes.push_back(g_.variable_bytes[i]);
    const int32_t alias = g_.alias_of[i];
    g.alias_of.push_back(
        alias < 0 ? -1 : value_of(alias, copy_for(i, c, g_.producer[alias])));
    row_.clear(), controls_.clear();
    for (const int32_t v : g_.reads[i]) {
      const int32_t b = g_.producer[v];
      row_.push_back(value_of(v, copy_for(i, c, b)));
      wait_for_others(i, c, b);
    }
    for (const int32_t b : g_.controls[i]) {
      controls_.push_back(out_.first[b] + copy_for(i, c, b));
      wait_for_others(i, c, b);
    }
    std::ranges::sort(row_);
    sort_unique(controls_);
    g.reads.add(row_);
    g.controls.add(controls_);
    add_values(i, c);
    const size_t classes = p_.costs.classes.size();
    const int64_t at = static_cast<size_t>(i) * classes;
    const auto copy = [&](const auto& from, auto& to) {
      if (from.empty()) return;
      to.insert(to.end(), from.begin() + at,
                from.begin() + at + static_cast<int64_t>(classes));
    };
    copy(p_.costs.times, out_.costs.times);
    copy(p_.costs.workspace, out_.costs.workspace);
    if (!p_.costs.bus_bytes.empty()) {
      out_.costs.bus_bytes.push_back(p_.costs.bus_bytes[i]);
    }
    out_.plan.device.push_back(plan_.device[i]);
  }

  // After a step: the micro-batches before the last one.
  void wait_for_others(int32_t i, int32_t c, int32_t b) {
    if (s_.role[i] != Role::kStep || s_.role[b] != Role::kEach) return;
    for (int32_t m = 0; m + 1 < micro_batches_; ++m) {
      controls_.push_back(out_.first[b] + c * micro_batches_ + m);
    }
  }

  void add_values(int32_t i, int32_t c) {
    SimulatedGraph& g = out_.graph;
    const auto node = static_cast<int32_t>(g.kind.size()) - 1;
    row_.clear();
    for (const int32_t v : g_.values[i]) {
      row_.push_back(g.producer.size());
      g.producer.push_back(node);
      g.everywhere.push_back(g_.everywhere[v]);
      // Results of backward ops are summed.
      const bool summed =
          s_.role[i] == Role::kEach && s_.part[i] >= s_.num_stages;
      g.lives_on.push_back(g_.lives_on[v] && (!summed || c + 1 == copies(i)));
    }
    g.values.add(row_);
    out_.costs.bytes.add(p_.costs.bytes[i]);
  }

  void add_sequence() {
    std::vector<int32_t>& sequence = out_.plan.sequence;
    const int32_t parts = 2 * s_.num_stages;
    int64_t per_step = 0;
    for (int32_t p = 0; p < parts; ++p) per_step += s_.lanes.any[p];
    per_step *= micro_batches_;
    std::vector<int64_t> left(s_.steps, per_step);
    for (const int32_t i : plan_.sequence) {
      if (s_.role[i] == Role::kShared) sequence.push_back(out_.first[i]);
    }
    const auto end_step = [&](int32_t step) {
      for (const int32_t i : plan_.sequence) {
        if (s_.role[i] == Role::kStep) sequence.push_back(out_.first[i] + step);
      }
    };
    for (const PipelineTask& t : s_.tasks) {
      for (const int32_t i : s_.ops[t.part]) {
        sequence.push_back(out_.first[i] + t.micro_batch);
      }
      const int32_t step = t.micro_batch / micro_batches_;
      if (--left[step] == 0) end_step(step);
    }
    if (per_step == 0) {
      for (int32_t r = 0; r < s_.steps; ++r) end_step(r);
    }
  }

  const PlanProblem& p_;
  const SimulatedGraph& g_;
  const PlacePlan& plan_;
  const PipelineShape& s_;
  const int32_t micro_batches_;
  std::vector<int32_t> first_value_, row_, controls_;
  UnrolledSteps out_;
};

}  // namespace

UnrolledSteps unroll(const PlanProblem& p, const PlacePlan& plan,
                     const PipelineShape& shape) {
  return Unroller(p, plan, shape).run();
}

std::vector<DeviceUse> held_for_pipeline(const PlanProblem& p,
                                         const PlacePlan& plan,
                                         const PipelineShape& shape) {
  const SimulatedGraph& g = p.graph;
  std::vector<DeviceUse> held(p.costs.devices.size());
  const int32_t m = p.pipeline.micro_batches;
  std::vector<int32_t> flying(held.size(), 0);
  const std::vector<int32_t> most = most_in_flight(shape.tasks, shape.lanes);
  for (size_t s = 0; s < most.size(); ++s) {
    if (shape.lanes.lane[s] >= 0) flying[shape.lanes.lane[s]] += most[s];
  }
  // Shared values that micro-batches read.
  const std::vector<int32_t> renamed = renamed_values(g);
  std::vector<uint8_t> read(p.num_ops(), 0);
  std::set<int32_t> summed;
  for (int32_t i = 0; i < p.num_ops(); ++i) {
    for (const int32_t v : g.reads[i]) {
      const int32_t root = renamed[v], from = g.producer[root];
      if (shape.role[i] == Role::kEach) read[from] = 1;
      if (shape.role[i] == Role::kStep && shape.role[from] == Role::kEach) {
        summed.insert(root);
      }
    }
    if (shape.part[i] < shape.num_stages) continue;
    for (const int32_t v : g.values[i]) {
      if (g.lives_on[v]) summed.insert(renamed[v]);
    }
  }
  for (int32_t i = 0; i < p.num_ops(); ++i) {
    const int32_t d = plan.device[i];
    double versions = 1;
    if (p.pipeline.stash_weights && flying[d] > 0 &&
        (read[i] || p.takes_time(i))) {
      versions += std::max((flying[d] - 1 + m - 1) / m, 0);
    }
    held[d].weights += versions * (p.resident_bytes[i] +
                                   static_cast<double>(g.variable_bytes[i]));
  }
  for (const int32_t v : summed) {
    if (m > 1) {
      held[plan.device[g.producer[v]]].gradients += p.costs.bytes.item(v);
    }
  }
  return held;
}

PlanProblem loads_of_step(const PlanProblem& problem) {
  PlanProblem p = problem;
  p.model = PlanModel::kLoad;
  p.candidates.clear();
  const std::vector<Role> role = roles_of(problem);
  const double m = problem.pipeline.micro_batches;
  const size_t classes = p.costs.classes.size();
  Rows<int64_t> bytes;
  std::vector<int64_t> row;
  for (int32_t i = 0; i < p.num_ops(); ++i) {
    row.assign(p.costs.bytes[i].begin(), p.costs.bytes[i].end());
    // What is read after the step is sent once.
    for (size_t k = 0; k < row.size() && role[i] == Role::kEach; ++k) {
      const auto readers =
          p.graph.readers[p.graph.values.begin_of(i) + static_cast<int32_t>(k)];
      if (std::ranges::all_of(
              readers, [&](int32_t r) { return role[r] == Role::kEach; })) {
        row[k] = static_cast<int64_t>(
            std::min(static_cast<double>(row[k]) * m, 0x1p60));
      }
    }
    bytes.add(row);
    if (role[i] != Role::kEach) continue;
    for (size_t c = 0; c < classes; ++c) {
      p.costs.times[static_cast<size_t>(i) * classes + c].us *= m;
    }
  }
  p.costs.bytes = std::move(bytes);
  return p;
}

}  // namespace berth
