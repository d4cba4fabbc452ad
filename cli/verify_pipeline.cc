// The rules of pipelines (simulate/pipeline_steps.h) again, as plainly as
// possible: all micro-batches as one step.

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>

#include "cli/verify_rules.h"

namespace berth::cli {

namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

struct Task {
  int32_t stage, micro;
  bool backward;
  auto operator<=>(const Task&) const = default;
};

std::vector<int32_t> before(const SimulatedGraph& g, int32_t i) {
  std::vector<int32_t> all(g.controls[i].begin(), g.controls[i].end());
  for (const int32_t v : g.reads[i]) all.push_back(g.producer[v]);
  return all;
}

// `once`: one per step, before the micro-batches or `after` them.
void find_roles(const PlanProblem& p, std::vector<bool>& once,
                std::vector<bool>& after) {
  once.assign(p.names.size(), false);
  after = once;
  for (const int32_t i : in_order(p.graph)) {
    once[i] = !p.once.empty() && p.once[i] != 0;
    bool of_micro = false;
    for (const int32_t b : before(p.graph, i)) {
      after[i] = after[i] || after[b];
      of_micro = of_micro || !once[b];
    }
    after[i] = after[i] || (once[i] && of_micro);
    once[i] = once[i] || after[i];
  }
}

class PipelineAgain {
 public:
  PipelineAgain(const PlanProblem& p, const PlacePlan& plan)
      : p_(p),
        plan_(plan),
        g_(p.graph),
        nodes_(in_order(p.graph)),
        m_(p.pipeline.micro_batches) {
    find_roles(p, once_, after_);
  }

  Recomputed run() {
    Recomputed r;
    r.value = kNever;
    r.bytes.assign(p_.costs.devices.size(), 0);
    if (plan_.stage.size() != p_.names.size()) return r;
    if (!find_stages() || !find_order()) return r;
    copy_graph();
    hold();
    add_sequence();
    return recompute(all_, all_plan_);
  }

 private:
  bool in_task(int32_t i) const { return p_.takes_time(i) && !once_[i]; }
  Task task_of(int32_t i, int32_t micro) const {
    return {plan_.stage[i].stage, micro, plan_.stage[i].backward};
  }
  int32_t place(const Task& t) const {  // on the way there and back
    return t.backward ? 2 * stages_ - 1 - t.stage : t.stage;
  }

  // Returns false if an op waits for what comes later on the way.
  bool find_stages() {
    for (const int32_t i : nodes_) {
      if (in_task(i)) stages_ = std::max(stages_, task_of(i, 0).stage + 1);
    }
    lane_.assign(static_cast<size_t>(stages_), -1);
    std::vector<int32_t> reached(p_.names.size(), -1);
    for (const int32_t i : nodes_) {
      if (once_[i]) continue;
      for (const int32_t b : before(g_, i)) {
        reached[i] = std::max(reached[i], reached[b]);
      }
      if (!in_task(i)) continue;
      const int32_t now = place(task_of(i, 0));
      if (now < reached[i]) return false;
      reached[i] = now;
    }
    for (int32_t i = 0; i < p_.num_ops(); ++i) {
      if (!in_task(i)) continue;
      int32_t& lane = lane_[task_of(i, 0).stage];
      if (lane < 0) lane = plan_.device[i];
      there_.insert(place(task_of(i, 0)));
    }
    results_ = std::move(reached);
    return true;
  }

  // Returns false if tasks wait for each other.
  bool find_order() {
    std::vector<int32_t> lanes;  // devices by their first stage
    for (const int32_t d : lane_) {
      if (d >= 0 && std::ranges::find(lanes, d) == lanes.end()) {
        lanes.push_back(d);
      }
    }
    std::map<int32_t, std::vector<Task>> todo;
    const auto count = static_cast<int32_t>(lanes.size());
    for (int32_t k = 0; k < count; ++k) {
      std::vector<int32_t> mine;
      for (int32_t s = 0; s < stages_; ++s) {
        if (lane_[s] == lanes[k]) mine.push_back(s);
      }
      const auto v = static_cast<int32_t>(mine.size());
      const int32_t group = v > 1 ? count : m_;
      std::vector<Task> forward, backward;
      for (int32_t begin = 0; begin < m_; begin += group) {
        for (int32_t c = 0; c < v; ++c) {
          for (int32_t m = begin; m < std::min(m_, begin + group); ++m) {
            const Task f{mine[c], m, false}, b{mine[v - 1 - c], m, true};
            if (there_.contains(place(f))) forward.push_back(f);
            if (there_.contains(place(b))) backward.push_back(b);
          }
        }
      }
      size_t first = static_cast<size_t>(
          v > 1 ? 2 * (count - 1 - k) + (v - 1) * count : count - 1 - k);
      if (plan_.order == PipelineOrder::kGPipe) first = forward.size();
      std::vector<Task>& list = todo[lanes[k]];
      auto b = backward.begin();
      for (size_t f = 0; f < forward.size(); ++f) {
        list.push_back(forward[f]);
        if (f >= first && b != backward.end()) list.push_back(*b++);
      }
      list.insert(list.end(), b, backward.end());
    }
    return by_rounds(todo);
  }

  bool by_rounds(std::map<int32_t, std::vector<Task>>& todo) {
    size_t left = 0;
    for (auto& [device, list] : todo) {
      left += list.size();
      std::ranges::reverse(list);
    }
    std::set<std::pair<int32_t, int32_t>> done;  // place, micro-batch
    while (order_.size() < left) {
      std::vector<Task> round;
      for (auto& [device, list] : todo) {
        if (list.empty()) continue;
        const Task t = list.back();
        auto at = there_.find(place(t));
        if (at != there_.begin() && !done.contains({*--at, t.micro})) continue;
        round.push_back(t);
        list.pop_back();
      }
      if (round.empty()) return false;
      for (const Task& t : round) done.emplace(place(t), t.micro);
      order_.insert(order_.end(), round.begin(), round.end());
    }
    return true;
  }

  int32_t copies(int32_t i) const { return once_[i] ? 1 : m_; }
  // The copies of b that copy c of node i needs; the last one is read.
  std::vector<int32_t> needed(int32_t i, int32_t c, int32_t b) const {
    if (once_[b]) return {0};
    if (!once_[i]) return {c};
    std::vector<int32_t> all;
    for (int32_t m = 0; m < m_; ++m) all.push_back(m);
    return all;
  }

  void copy_graph() {
    all_.name = p_.name;
    static_cast<Machine&>(all_.costs) = p_.costs;
    std::vector<int32_t> first_value;
    int32_t nodes = 0, values = 0;
    for (int32_t i = 0; i < p_.num_ops(); ++i) {
      first_.push_back(nodes);
      first_value.push_back(values);
      nodes += copies(i);
      values += copies(i) * static_cast<int32_t>(g_.values[i].size());
    }
    const auto value = [&](int32_t v, int32_t c) {
      const int32_t i = g_.producer[v];
      const auto outs = static_cast<int32_t>(g_.values[i].size());
      return first_value[i] + c * outs + (v - g_.values[i][0]);
    };
    SimulatedGraph& g = all_.graph;
    for (int32_t i = 0; i < p_.num_ops(); ++i) {
      for (int32_t c = 0; c < copies(i); ++c) {
        std::set<int32_t> reads, controls;
        for (const int32_t v : g_.reads[i]) {
          std::vector<int32_t> all = needed(i, c, g_.producer[v]);
          reads.insert(value(v, all.back()));
          if (v == g_.alias_of[i]) g.alias_of.push_back(value(v, all.back()));
          all.pop_back();
          for (const int32_t k : all) {
            controls.insert(first_[g_.producer[v]] + k);
          }
        }
        if (g_.alias_of[i] < 0) g.alias_of.push_back(-1);
        for (const int32_t b : g_.controls[i]) {
          for (const int32_t k : needed(i, c, b)) {
            controls.insert(first_[b] + k);
          }
        }
        g.kind.push_back(g_.kind[i]);
        g.reads.add(std::vector<int32_t>(reads.begin(), reads.end()));
        g.controls.add(std::vector<int32_t>(controls.begin(), controls.end()));
        std::vector<int32_t> mine;
        for (const int32_t v : g_.values[i]) {
          mine.push_back(value(v, c));
          g.producer.push_back(first_[i] + c);
          g.everywhere.push_back(g_.everywhere[v]);
          const bool sum = summed_result(i) && c + 1 < copies(i);
          g.lives_on.push_back(g_.lives_on[v] && !sum);
        }
        g.values.add(mine);
        g.variable_bytes.push_back(g_.variable_bytes[i]);
        all_.names.push_back(p_.names[i]);
        all_.costs.bytes.add(p_.costs.bytes[i]);
        const size_t classes = p_.costs.classes.size();
        for (size_t k = i * classes; k < (i + 1) * classes; ++k) {
          all_.costs.times.push_back(p_.costs.times[k]);
          if (p_.costs.workspace.empty()) continue;
          all_.costs.workspace.push_back(p_.costs.workspace[k]);
        }
        all_plan_.device.push_back(plan_.device[i]);
        all_.resident_bytes.push_back(0);
      }
    }
    g.finish();
  }

  bool summed_result(int32_t i) const {
    return !once_[i] && results_[i] >= stages_;
  }

  // What devices hold throughout, at first copies of nodes there.
  void hold() {
    std::set<int32_t> sums;
    for (int32_t i = 0; i < p_.num_ops(); ++i) {
      for (const int32_t v : g_.reads[i]) {
        const int32_t root = renamed(g_, v);
        const int32_t from = g_.producer[root];
        if (after_[i] && !once_[from]) sums.insert(root);
      }
      for (const int32_t v : g_.values[i]) {
        if (summed_result(i) && g_.lives_on[v]) sums.insert(renamed(g_, v));
      }
    }
    for (int32_t i = 0; i < p_.num_ops(); ++i) {
      all_.resident_bytes[first_[i]] = p_.resident_bytes[i];
    }
    for (const int32_t v : sums) {
      if (m_ == 1) continue;
      all_.resident_bytes[first_[g_.producer[v]]] += p_.costs.bytes.item(v);
    }
  }

  void add_sequence() {
    const auto add = [&](bool after) {
      for (const int32_t i : plan_.sequence) {
        if (!once_[i] || after_[i] != after) continue;
        all_plan_.sequence.push_back(first_[i]);
      }
    };
    add(false);
    std::map<Task, std::vector<int32_t>> ops;  // of micro-batch 0
    for (const int32_t i : plan_.sequence) {
      if (!once_[i]) ops[task_of(i, 0)].push_back(i);
    }
    for (const Task& t : order_) {
      for (const int32_t i : ops[{t.stage, 0, t.backward}]) {
        all_plan_.sequence.push_back(first_[i] + t.micro);
      }
    }
    add(true);
  }

  const PlanProblem& p_;
  const PlacePlan& plan_;
  const SimulatedGraph& g_;
  const std::vector<int32_t> nodes_;
  const int32_t m_;
  std::vector<bool> after_, once_;
  int32_t stages_ = 1;
  std::vector<int32_t> lane_, results_, first_;
  std::set<int32_t> there_;  // places with ops
  std::vector<Task> order_;
  PlanProblem all_;
  PlacePlan all_plan_;
};

}  // namespace

Recomputed recompute_pipeline(const PlanProblem& p, const PlacePlan& plan) {
  PlacePlan with_stages = plan;
  if (plan.stage.empty()) with_stages.stage.assign(p.names.size(), {});
  return PipelineAgain(p, with_stages).run();
}

PlanProblem loads_again(const PlanProblem& problem) {
  PlanProblem p = problem;
  p.model = PlanModel::kLoad;
  const SimulatedGraph& g = problem.graph;
  std::vector<bool> once, after;
  find_roles(p, once, after);
  const int64_t m = p.pipeline.micro_batches;
  std::vector<std::vector<int64_t>> bytes(p.names.size());
  for (int32_t i = 0; i < p.num_ops(); ++i) {
    for (const int32_t v : g.values[i]) {
      bool many = !once[i];
      for (const int32_t r : g.readers[v]) many = many && !once[r];
      const int64_t one = p.costs.bytes.item(v);
      bytes[i].push_back(!many                          ? one
                         : one > (int64_t{1} << 60) / m ? int64_t{1} << 60
                                                        : one * m);
    }
    const size_t classes = p.costs.classes.size();
    for (size_t k = i * classes; !once[i] && k < (i + 1) * classes; ++k) {
      p.costs.times[k].us *= static_cast<double>(m);
    }
  }
  p.costs.bytes = Rows<int64_t>(bytes);
  return p;
}

}  // namespace berth::cli
