// Auto placement: prices ops on trial plans, one per class of devices, and asks
// the planner. Its answer is compiled on trial beside the rules' own plan, and
// the faster one wins.

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <memory>
#include <utility>

#include "base/diagnostics.h"
#include "base/infinity.h"
#include "berth/errors.h"
#include "device/device_manager.h"
#include "device/virtual_clock.h"
#include "exec/measure_costs.h"
#include "function/planner_plugin.h"
#include "function/trial_compile.h"
#include "function/without_branches.h"
#include "graph/body.h"
#include "op/dispatcher.h"
#include "passes/pipeline.h"
#include "planner/plan_order.h"
#include "planner/planner.h"
#include "planner/problem_of_graph.h"
#include "tensor/variable_state.h"

namespace berth {

namespace {

// Larger graphs are compiled on trial only to price their ops.
constexpr int32_t kMostCompared = 5000;
constexpr int kMostReplans = 3;
constexpr const char* kCoarse = "layers kept together";
// How much better than a simple plan a plan must be to be worth it. Core sets
// that wait for each other do worse than predicted when other work wants the
// cores: hence a share, plus a time for each value that one set waits for.
constexpr double kWorth = 0.01, kWorthOfCores = 0.1, kWaitUs = 5;

constexpr double kFetchBytesPerUs = 8e3;

// How many moves suit a graph: well under a second for a few hundred ops.
int64_t default_moves(int32_t ops) {
  return std::clamp<int64_t>(40'000'000 / std::max(ops, 1), 20'000, 200'000);
}

class AutoPlacer {
 public:
  AutoPlacer(Graph& graph, const PlaceOptions& places,
             const AutoPlacing& options)
      : graph_(graph), places_(places), options_(options) {
    for (const Node& n : graph.nodes) names_.push_back(n.name);
  }

  AutoPlaced run() {
    // Throws what the rules throw. It is also a candidate of the planner.
    Graph copy = graph_;
    const Placement by_rules = place(copy, places_);
    find_movable();
    find_costs();
    others_ = used_by_others();
    std::vector<int64_t> reserve = others_;
    PlanProblem problem = make_problem(reserve);
    PlanAnswer answer = plan(problem, reserve);
    if (answer.status == PlanStatus::kInfeasible) {
      throw errors::ResourceExhausted(fmt::format(
          "function \"{}\": no placement keeps all limits: {}; raise a limit, "
          "add a device or make the batch smaller",
          graph_.name, answer.conflict.text));
    }
    if (answer.status == PlanStatus::kNothingFound) {
      report_once(graph_.name,
                  {"plan-not-found", debugging::Severity::kWarning,
                   fmt::format("function \"{}\": {}; the rules place it",
                               graph_.name, certificate(problem, answer)),
                   t_state.site});
      return {};
    }
    const Bound proved = answer.bound;  // with the limits as they are
    Choice choice, last;
    for (int k = 0; k <= kMostReplans; ++k) {
      last = choose(problem, answer, reserve, choice);
      const auto over = overshoot(problem, last, reserve);
      if (over.empty()) break;
      for (size_t d = 0; d < over.size(); ++d) reserve[d] += over[d];
      PlanProblem tighter = make_problem(reserve);
      PlanAnswer again = plan(tighter, reserve);
      if (again.status != PlanStatus::kPlanned) break;
      problem = std::move(tighter);
      answer = std::move(again);
    }
    // None fits: the executor will report it.
    if (choice.plan.device.empty()) choice = std::move(last);
    answer.bound = proved;
    AutoPlaced result;
    result.costs = apply(problem, choice.plan);
    result.planned = true;
    result.certificate = sentence(problem, answer, choice);
    note_fallbacks(by_rules, result);
    return result;
  }

 private:
  struct Choice {
    PlacePlan plan;
    std::string source;
    double planned = 0;       // predicted by the planner's model
    double predicted_us = 0;  // of the compiled plan; 0: none
    std::unique_ptr<CompiledTrial> trial;
  };

  TrialOptions trial_options(bool in_order) const {
    return {options_.optimize, options_.slices, in_order, options_.how.measure};
  }

  // Finds the variables that may move: their device was not requested, and no
  // other plan has their address.
  void find_movable() {
    for (int32_t i = 0; i < graph_.size(); ++i) {
      const Node& n = graph_[i];
      if (!n.variable.defined()) continue;
      handles_.push_back(i);
      const VariableState& v = variable_state(n.variable);
      if ((!v.asked || !options_.how.keep_scopes) && can_move(v)) {
        movable_.push_back(i);
      }
    }
  }

  // Bytes in use on devices with a limit, excluding the variables of this
  // graph.
  std::vector<int64_t> used_by_others() const {
    std::vector<int64_t> used(costs_.devices.size(), 0);
    for (size_t d = 0; d < used.size(); ++d) {
      if (costs_.devices[d].memory_limit <= 0) continue;
      Device& device = DeviceManager::get().lookup(
          DeviceName::parse(costs_.devices[d].name));
      for (Stream* s : {&device.compute_stream(), &device.copy_stream()}) {
        finish(s->record());  // frees what has ended
      }
      used[d] = static_cast<int64_t>(device.allocator().info().current_bytes);
      for (const int32_t h : handles_) {
        const VariableState& v = variable_state(graph_[h].variable);
        if (v.device == &device) used[d] -= v.size_bytes();
      }
      used[d] = std::max<int64_t>(used[d], 0);
    }
    return used;
  }

  // Cores that read what others wrote fetch it into their caches: nothing is
  // copied, but the fetch takes time (docs/benchmarks.md, "Core sets").
  void price_fetches() {
    const auto is_cpu = [&](int32_t d) {
      return costs_.class_of(d).type == "CPU";
    };
    for (int32_t a = 0; a < std::ssize(costs_.devices); ++a) {
      for (int32_t b = 0; b < std::ssize(costs_.devices); ++b) {
        if (a == b || !is_cpu(a) || !is_cpu(b)) continue;
        double& rate = costs_.link_of(a, b).bytes_per_us;
        rate = std::min(rate, kFetchBytesPerUs);
      }
    }
  }

  void find_costs() {
    costs_ = kept_costs(graph_);
    price_fetches();
    GraphProblemOptions free;
    free.keep_scopes = false;
    free.movable = handles_;
    const PlanProblem anywhere = problem_of(graph_, places_, costs_, free);
    double fastest = kInfinity;
    for (const DeviceSet& of_class : devices_of_classes(anywhere)) {
      if (!of_class) continue;
      const int32_t d = of_class.first();
      const int32_t c = costs_.devices[d].device_class;
      try {
        CompiledTrial trial(graph_, ids_all_on(anywhere, d), places_,
                            trial_options(false));
        trial.put_times(c, costs_);
        const double us = sum_of_times(c);
        if (us >= fastest) continue;
        fastest = us;
        order_ = trial.order();
      } catch (const errors::Error&) {
        // It cannot be compiled this way: price each op by itself.
      }
    }
  }

  double sum_of_times(int32_t device_class) const {
    double sum = 0;
    for (size_t i = 0; i < graph_.nodes.size(); ++i) {
      sum += costs_.times[i * costs_.classes.size() + device_class].us;
    }
    return sum;
  }

  // Puts everything on one device, as far as the masks allow.
  std::vector<DeviceId> ids_all_on(const PlanProblem& p, int32_t on) const {
    std::vector<DeviceId> device;
    for (const int32_t d : all_on(p, allowed_of_groups(p), on)) {
      device.emplace_back(p.costs.devices[d].name);
    }
    return device;
  }

  // Searches among fewer decisions first; the result is a start.
  PlanAnswer plan(PlanProblem& p, const std::vector<int64_t>& reserve) const {
    PlannerOptions o = planner_options();
    o.moves /= 2;
    o.seconds /= 2;
    o.prove = false;
    PlanAnswer coarse = plan_placement(make_problem(reserve, true), o);
    if (coarse.status == PlanStatus::kPlanned) {
      p.candidates.push_back({kCoarse, std::move(coarse.plan)});
    }
    o.prove = true;
    return plan_placement(p, o);
  }

  PlanProblem make_problem(const std::vector<int64_t>& reserve,
                           bool coarse = false) const {
    GraphProblemOptions o;
    o.coarse = coarse;
    o.model = options_.how.objective == placement::Throughput
                  ? PlanModel::kLoad
                  : PlanModel::kStep;
    o.keep_scopes = options_.how.keep_scopes;
    o.movable = movable_;
    o.contracts = options_.contracts;
    o.order = order_;
    for (const std::string& name : options_.argument_on) {
      o.arguments_on.push_back(costs_.find(name));
    }
    CostTable costs = costs_;
    for (size_t d = 0; d < reserve.size(); ++d) {
      int64_t& limit = costs.devices[d].memory_limit;
      if (reserve[d] > 0) limit = std::max<int64_t>(limit - reserve[d], 1);
    }
    return problem_of(graph_, places_, std::move(costs), o);
  }

  PlannerOptions planner_options() const {
    PlannerOptions o;
    const placement::Effort& effort = options_.how.effort;
    o.seed = options_.how.seed;
    if (effort.seconds > 0) {
      o.seconds = effort.seconds;
    } else {
      o.moves = effort.moves > 0 ? effort.moves : default_moves(graph_.size());
    }
    return o;
  }

  // Returns the planner's answer, or the plan of the rules when it is as fast
  // once compiled. `fitting` keeps the fastest so far of the plans that keep
  // the memory limits exactly.
  Choice choose(const PlanProblem& p, const PlanAnswer& answer,
                const std::vector<int64_t>& reserve, Choice& fitting) const {
    Choice best =
        compiled(p, settled_order(p, answer.plan, answer.value), answer.source);
    best.planned = answer.value;
    const double worth = worth_of(p, best);
    keep_fitting(p, best, reserve, 0, fitting);
    if (graph_.size() > kMostCompared) return best;
    for (const PlanCandidate& c : simple_plans(p)) {
      const Evaluation e = evaluate(p, c.plan);
      if (!e.violations.empty() || c.name == answer.source) continue;
      Choice other = compiled(p, c.plan, c.name);
      if (other.predicted_us <= 0) continue;
      other.planned = e.value;
      keep_fitting(p, other, reserve, worth, fitting);
      if (other.predicted_us < best.predicted_us * (1 + worth)) {
        best = std::move(other);
      }
    }
    return best;
  }

  // Keeps the choice, without its trial, if it fits and is faster.
  void keep_fitting(const PlanProblem& p, const Choice& c,
                    const std::vector<int64_t>& reserve, double worth,
                    Choice& fitting) const {
    if (!overshoot(p, c, reserve).empty()) return;
    if (!fitting.plan.device.empty() &&
        c.predicted_us >= fitting.predicted_us * (1 + worth)) {
      return;
    }
    fitting.plan = c.plan;
    fitting.source = c.source;
    fitting.planned = c.planned;
    fitting.predicted_us = c.predicted_us;
  }

  // The share by which a simple plan may be slower than this one.
  static double worth_of(const PlanProblem& p, const Choice& c) {
    DeviceSet cpus = 0;
    for (int32_t d = 0; d < p.num_devices(); ++d) {
      if (p.costs.class_of(d).type == "CPU") cpus |= device_bit(d);
    }
    int waits = 0;
    const SimulatedGraph& g = p.graph;
    for (int32_t v = 0; v < static_cast<int32_t>(g.producer.size()); ++v) {
      const int32_t home = c.plan.device[g.producer[v]];
      if (g.everywhere[v] || !p.takes_time(g.producer[v])) continue;
      DeviceSet readers = 0;
      for (const int32_t r : g.readers[v]) {
        readers |= device_bit(c.plan.device[r]);
      }
      if (cpus & device_bit(home)) {
        waits += (readers & cpus & ~device_bit(home)).count();
      }
    }
    if (waits == 0 || !(c.predicted_us > 0)) return kWorth;
    return kWorthOfCores + waits * kWaitUs / c.predicted_us;
  }

  // The scopes as written, layers kept together, and for each class of devices
  // the best single one.
  std::vector<PlanCandidate> simple_plans(const PlanProblem& p) const {
    std::vector<PlanCandidate> plans = {p.candidates[0]};
    if (p.candidates.back().name == kCoarse) {
      plans.push_back(p.candidates.back());
    }
    const std::vector<DeviceSet> allowed = allowed_of_groups(p);
    std::map<int32_t, std::pair<double, PlanCandidate>> one;  // per class
    for (int32_t d = 0; d < p.num_devices(); ++d) {
      const DeviceCost& device = p.costs.devices[static_cast<size_t>(d)];
      PlanCandidate c = {
          "one device, " + device.name,
          {all_on(p, allowed, d), p.candidates[0].plan.sequence}};
      const Evaluation e = evaluate(p, c.plan);
      if (!e.violations.empty()) continue;
      const auto [at, fresh] =
          one.try_emplace(device.device_class, e.value, std::move(c));
      if (!fresh && e.value < at->second.first) {
        at->second = {e.value, std::move(c)};
      }
    }
    for (auto& [device_class, best] : one) {
      plans.push_back(std::move(best.second));
    }
    return plans;
  }

  Choice compiled(const PlanProblem& p, PlacePlan plan,
                  const std::string& source) const {
    Choice c;
    c.source = source;
    c.plan = std::move(plan);
    if (graph_.size() > kMostCompared) return c;
    Graph g = graph_;
    apply_plan(g, p, c.plan);
    std::vector<DeviceId> device;
    for (const Node& n : g.nodes) device.push_back(n.assigned);
    try {
      c.trial = std::make_unique<CompiledTrial>(g, device, places_,
                                                trial_options(true));
      c.predicted_us = c.trial->predicted_us();
    } catch (const errors::Error&) {
      // Leave it out. If it cannot be compiled, the user will get the error.
    }
    return c;
  }

  // Bytes by which the exact memory plan exceeds limits that the simulator
  // kept, by device; empty: none.
  std::vector<int64_t> overshoot(const PlanProblem& p, const Choice& choice,
                                 const std::vector<int64_t>& reserve) const {
    std::vector<int64_t> over(costs_.devices.size(), 0);
    bool any = false;
    for (size_t d = 0; choice.trial && d < over.size(); ++d) {
      const int64_t limit = p.costs.devices[d].memory_limit;
      if (limit <= 0) continue;
      over[d] =
          std::max<int64_t>(choice.trial->peak_bytes(costs_.devices[d].name) -
                                (limit + reserve[d] - others_[d]),
                            0);
      any = any || over[d] > 0;
    }
    return any ? over : std::vector<int64_t>{};
  }

  CostTable apply(const PlanProblem& p, const PlacePlan& plan) {
    CostTable costs = apply_plan(graph_, p, plan);
    // What has no room yet waits on the host until the others have moved.
    std::vector<const Node*> waiting;
    for (const Node& n : graph_.nodes) {
      if (!n.variable.defined()) continue;
      try {
        move(n, DeviceManager::get().lookup(n.assigned.name()));
      } catch (const errors::ResourceExhausted&) {
        move(n, DeviceManager::get().host());
        waiting.push_back(&n);
      }
    }
    for (const Node* n : waiting) {
      move(*n, DeviceManager::get().lookup(n->assigned.name()));
    }
    return costs;
  }

  void move(const Node& n, Device& on) const {
    if (move_variable(n.variable, on)) return;
    throw errors::FailedPrecondition(fmt::format(
        "function \"{}\": variable \"{}\" was to move to {}, and is used by "
        "another plan since; call it again",
        graph_.name, variable_state(n.variable).name, n.assigned.text()));
  }

  std::string sentence(const PlanProblem& p, PlanAnswer answer,
                       const Choice& choice) const {
    answer.value = choice.planned;
    std::string text = certificate(p, answer);
    if (choice.predicted_us > 0) {
      text += fmt::format("; compiled, a step is predicted to take {:.4g} ms",
                          choice.predicted_us / 1e3);
    }
    if (choice.source != "search") text += " (" + choice.source + ")";
    Clocks clocks;
    for (const PlaceDevice& d : places_.devices) clocks.add(d.name.text());
    if (clocks.virtual_time)
      text += "; times of simulated devices are simulated";
    return text;
  }

  // Requests that no device can satisfy are fallbacks under the planner too.
  void note_fallbacks(const Placement& by_rules, AutoPlaced& result) const {
    for (PlaceFallback f : by_rules.fallbacks) {
      const auto it =
          std::ranges::find(graph_.nodes, names_[f.node], &Node::name);
      f.node = static_cast<int32_t>(it - graph_.nodes.begin());
      if (!f.requested.name().matches(it->assigned.name())) {
        result.fallbacks.push_back(std::move(f));
      }
    }
  }

  Graph& graph_;
  const PlaceOptions& places_;
  const AutoPlacing& options_;
  std::vector<std::string> names_;          // of nodes, in their original order
  std::vector<int32_t> handles_, movable_;  // nodes
  CostTable costs_;
  std::vector<int64_t> others_;  // bytes in use by others, by device
  std::vector<int32_t> order_;   // as the executor would run them on one device
};

// Whether the variables, their gradients and what a branch makes of these may
// be too much for a device. A branch takes all its operands to one device, and
// has its memory beside the plan's: its updates then go apart.
bool is_tight(const Graph& graph, const PlaceOptions& places) {
  size_t bytes = 0, limit = std::numeric_limits<size_t>::max();
  for (const Tensor& v : variables_of(graph)) {
    bytes += 4 * variable_state(v).size_bytes();
  }
  for (const PlaceDevice& d : places.devices) {
    Device& device = DeviceManager::get().lookup(d.name.name());
    const size_t most = device.allocator().info().limit_bytes;
    if (most > 0) limit = std::min(limit, most);
  }
  return bytes > limit;
}

// As auto_place(), of two devices or more.
AutoPlaced plan_and_place(Graph& graph, const PlaceOptions& places,
                          const AutoPlacing& options) {
  const DispatchGuard outside(nullptr);
  if (is_tight(graph, places)) {
    without_branches(graph, [](const Node&) { return true; });
    run_device_free_passes(graph);
  }
  return AutoPlacer(graph, places, options).run();
}

}  // namespace

}  // namespace berth

// The symbol that libberth looks for.
extern "C" {
__attribute__((visibility(
    "default"))) extern const berth::PlannerPlugin berth_planner_plugin;
const berth::PlannerPlugin berth_planner_plugin = {BERTH_BUILD_ID,
                                                   berth::plan_and_place};
}
