#include "simulate/pipeline_steps.h"

#include <fmt/format.h>

#include <algorithm>

#include "berth/errors.h"
#include "simulate/timing_tables.h"

namespace berth {

namespace {

using Role = MicroBatchRole;

// Nodes of an unrolled step: more would need too much time and memory.
constexpr int64_t kMostCopies = 8'000'000;

// Divides a plan into tasks; every stage returns what is wrong, or "".
class ShapeMaker {
 public:
  ShapeMaker(const StepModel& p, const PlacePlan& plan, PipelineShape& shape)
      : p_(p), plan_(plan), s_(shape) {
    s_.role = roles_of(p);
    s_.part.assign(static_cast<size_t>(p.num_ops()), -1);
  }

  std::string run() {
    std::string wrong = count_stages();
    if (wrong.empty()) wrong = find_parts();
    if (!wrong.empty()) return wrong;
    find_lanes();
    return order_tasks();
  }

 private:
  bool has_part(int32_t i) const {
    return p_.takes_time(i) && s_.role[i] == Role::kEach;
  }
  OpStage stage_of(int32_t i) const {
    return plan_.stage.empty() ? OpStage() : plan_.stage[i];
  }
  int32_t num_parts() const { return 2 * s_.num_stages; }

  std::string count_stages() {
    const int32_t n = p_.num_ops();
    if (!plan_.stage.empty() && plan_.stage.size() != s_.part.size()) {
      return fmt::format("stages of {} ops; expected {}", plan_.stage.size(),
                         n);
    }
    for (int32_t i = 0; i < n; ++i) {
      if (!has_part(i)) continue;
      const int32_t stage = stage_of(i).stage;
      s_.num_stages = std::max(s_.num_stages, stage + 1);
      if (stage <= n) continue;
      return fmt::format("\"{}\" is in stage {}; expected at most {}",
                         p_.names[i], stage, n);
    }
    return "";
  }

  // A node without a stage belongs to the latest part that it waits for.
  std::string find_parts() {
    s_.lanes.any.assign(num_parts(), 0);
    for (const int32_t i : topological_order(p_.graph)) {
      if (s_.role[i] != Role::kEach) continue;
      int32_t latest = -1;
      for_each_before(p_.graph, i, [&](int32_t b) {
        latest = std::max(latest, s_.part[b]);
      });
      s_.part[i] = latest;
      if (!has_part(i)) continue;
      const auto [stage, backward] = stage_of(i);
      s_.part[i] = backward ? num_parts() - 1 - stage : stage;
      s_.lanes.any[s_.part[i]] = 1;
      if (s_.part[i] >= latest) continue;
      return fmt::format(
          "\"{}\" in stage {} waits for an op that comes later on the way "
          "through the stages",
          p_.names[i], stage);
    }
    return "";
  }

  void find_lanes() {
    s_.lanes.lane.assign(s_.num_stages, -1);
    for (int32_t i = p_.num_ops() - 1; i >= 0; --i) {
      if (has_part(i)) s_.lanes.lane[stage_of(i).stage] = plan_.device[i];
    }
    std::vector<std::vector<int32_t>> ops(num_parts());
    for (const int32_t i : plan_.sequence) {
      if (has_part(i)) ops[s_.part[i]].push_back(i);
    }
    s_.ops = Rows<int32_t>(ops);
  }

  std::string order_tasks() {
    const int32_t m = p_.pipeline.micro_batches, n = p_.num_ops();
    if (static_cast<int64_t>(n) * m > kMostCopies) {
      throw errors::InvalidArgument(fmt::format(
          "plan \"{}\": {} ops in {} micro-batches; expected at most {} "
          "together",
          p_.name, n, m, kMostCopies));
    }
    s_.tasks = task_order(s_.lanes, m, plan_.order);
    if (!s_.tasks.empty() || std::ranges::count(s_.lanes.any, 1) == 0) {
      return "";
    }
    return fmt::format(
        "the tasks of {} stages wait for each other in the order \"{}\"; "
        "micro-batches must be a multiple of the devices",
        s_.num_stages, order_name(plan_.order));
  }

  const StepModel& p_;
  const PlacePlan& plan_;
  PipelineShape& s_;
};

class Unroller {
 public:
  Unroller(const StepModel& p, const PlacePlan& plan, const PipelineShape& s)
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
    return s_.role[i] == Role::kEach ? micro_batches_ : 1;
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
    if (s_.role[before] != Role::kEach) return 0;
    return s_.role[node] == Role::kEach ? c : micro_batches_ - 1;
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
      wait_for_others(i, b);
    }
    for (const int32_t b : g_.controls[i]) {
      controls_.push_back(out_.first[b] + copy_for(i, c, b));
      wait_for_others(i, b);
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
      to.insert(to.end(), from.begin() + at, from.begin() + at + classes);
    };
    copy(p_.costs.times, out_.costs.times);
    copy(p_.costs.workspace, out_.costs.workspace);
    if (!p_.costs.bus_bytes.empty()) {
      out_.costs.bus_bytes.push_back(p_.costs.bus_bytes[i]);
    }
    out_.plan.device.push_back(plan_.device[i]);
  }

  // After a step: the micro-batches before the last one.
  void wait_for_others(int32_t i, int32_t b) {
    if (s_.role[i] != Role::kStep || s_.role[b] != Role::kEach) return;
    for (int32_t m = 0; m + 1 < micro_batches_; ++m) {
      controls_.push_back(out_.first[b] + m);
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
    const auto add_all = [&](Role role) {
      for (const int32_t i : plan_.sequence) {
        if (s_.role[i] == role) sequence.push_back(out_.first[i]);
      }
    };
    add_all(Role::kShared);
    for (const PipelineTask& t : s_.tasks) {
      for (const int32_t i : s_.ops[t.part]) {
        sequence.push_back(out_.first[i] + t.micro_batch);
      }
    }
    add_all(Role::kStep);
  }

  const StepModel& p_;
  const SimulatedGraph& g_;
  const PlacePlan& plan_;
  const PipelineShape& s_;
  const int32_t micro_batches_;
  std::vector<int32_t> first_value_, row_, controls_;
  UnrolledSteps out_;
};

}  // namespace

std::vector<MicroBatchRole> roles_of(const StepModel& p) {
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

UnrolledSteps unroll(const StepModel& p, const PlacePlan& plan,
                     const PipelineShape& shape) {
  return Unroller(p, plan, shape).run();
}

std::string find_shape(const StepModel& step, const PlacePlan& plan,
                       PipelineShape& shape) {
  return ShapeMaker(step, plan, shape).run();
}

}  // namespace berth
