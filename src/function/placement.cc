// Reports, explanations and contracts of a compiled function.

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>

#include "base/percent_text.h"
#include "berth/errors.h"
#include "device/device_manager.h"
#include "device/virtual_clock.h"
#include "exec/measure_plan.h"
#include "exec/report.h"
#include "function/explain_costs.h"
#include "function/graph_callable.h"
#include "graph/body.h"
#include "place/cost_store.h"
#include "place/explain.h"
#include "place/verdicts.h"
#include "simulate/simulate.h"
#include "tensor/tensor_impl.h"

namespace berth {

PlaceOptions real_devices() {
  PlaceOptions options;
  DeviceManager& m = DeviceManager::get();
  options.devices.push_back(
      {m.default_device().str(), &m.default_device().kernels()});
  for (const Device* d : m.devices()) {
    if (d != &m.default_device()) {
      options.devices.push_back({d->str(), &d->kernels()});
    }
  }
  options.soft = config::soft_device_placement();
  return options;
}

namespace {

std::string function_text(const std::string& name) {
  return fmt::format("function \"{}\"", name);
}

// Calls fn(path, node) for the nodes of a graph and of the bodies in it; path
// is "While/body/" or "".
template <class Fn>
void for_each_node(const Graph& graph, const std::string& path, Fn&& fn) {
  for (const Node& n : graph.nodes) {
    fn(path, n);
    Node copy = n;
    rewrite_bodies(copy, [&](const std::string& role, Graph& body) {
      for_each_node(body, path + n.name + "/" + role + "/", fn);
      return false;
    });
  }
}

// A node of a placed graph or of a body in it.
struct FoundOp {
  const PlacedGraph* in = nullptr;
  int32_t node = -1;
};

bool computes(const Node& n) {
  return n.op->kind() == OpKind::kCompute || n.op->kind() == OpKind::kControl;
}

FoundOp find(const PlacedGraph& placed, const std::string& name) {
  const std::string prefix = placed.path.empty() ? "" : placed.path + "/";
  if (const int32_t at = placed.find(name); at >= 0) return {&placed, at};
  if (!prefix.empty() && name.starts_with(prefix)) {
    const int32_t at = placed.find(name.substr(prefix.size()));
    if (at >= 0) return {&placed, at};
  }
  for (const PlacedGraph& body : placed.bodies) {
    if (const FoundOp f = find(body, name); f.in) return f;
  }
  return {};
}

// The first computing op under a layer or name.
FoundOp find_under(const PlacedGraph& placed, const std::string& name) {
  const Graph& g = placed.graph;
  for (int32_t i = 0; i < g.size(); ++i) {
    if (!computes(g[i])) continue;
    const bool lies = names_op(name, g[i].name) ||
                      std::any_of(g[i].sources.begin(), g[i].sources.end(),
                                  [&](const NodeSource& s) {
                                    return names_op(name, s.name);
                                  });
    if (lies) return {&placed, i};
  }
  for (const PlacedGraph& body : placed.bodies) {
    if (const FoundOp f = find_under(body, name); f.in) return f;
  }
  return {};
}

// Copies that the engine adds to a placed step (a report has rows for them)
// belong to the op whose value they copy.
FoundOp find_copied(const PlacedGraph& placed, const Graph& compiled,
                    const std::string& path, const std::string& name) {
  FoundOp found;
  for (const Node& n : compiled.nodes) {
    if (path + n.name == name) {
      const Node* at = &n;
      while (!found.in && !at->inputs.empty()) {
        at = &compiled[at->inputs[0].node];
        found = find(placed, path + at->name);
      }
      return found;
    }
    Node copy = n;
    rewrite_bodies(copy, [&](const std::string& role, Graph& body) {
      if (!found.in) {
        found =
            find_copied(placed, body, path + n.name + "/" + role + "/", name);
      }
      return false;
    });
    if (found.in) return found;
  }
  return found;
}

// Says what became of an op that was traced under the name: another one has its
// value now. "" when it is there itself.
std::string became(const Graph& traced, const std::string& name,
                   const Node& now) {
  std::string text;
  for_each_node(traced, "", [&](const std::string& path, const Node& n) {
    if (n.name != name && path + n.name != name) return;
    const bool same = now.name == n.name ||
                      (!now.sources.empty() && now.sources[0].name == n.name);
    if (same && n.op == now.op) return;
    text = fmt::format(
        "{} \"{}\" is not in the compiled step: it was {} {} \"{}\"",
        n.op->name(), name,
        now.op->name() == "Const" ? "computed in advance, as" : "folded into",
        now.op->name(), now.name);
  });
  return text;
}

void add_names(const PlacedGraph& placed, std::vector<std::string>& names) {
  const std::string prefix = placed.path.empty() ? "" : placed.path + "/";
  for (const Node& n : placed.graph.nodes) names.push_back(prefix + n.name);
  for (const PlacedGraph& body : placed.bodies) add_names(body, names);
}

}  // namespace

namespace {

// Fills in the simulator's estimates for the compiled step.
void add_estimates(Plan& plan, placement::Report& report) {
  try {
    const PlanPrediction p = predict_plan(plan, false);
    report.estimated_step_us = p.step_us;
    for (placement::DeviceRow& d : report.devices) {
      const int32_t at = p.costs.costs.find(d.device);
      if (at >= 0) {
        d.estimated_busy_us = p.simulation.busy_us[static_cast<size_t>(at)];
      }
    }
  } catch (const errors::Error&) {
    // No estimate: a report of what ran must not fail because of it.
  }
}

// The cost model's errors are errors of wall time.
bool runs_on_virtual_clock(const placement::Report& report) {
  return std::any_of(report.devices.begin(), report.devices.end(),
                     [](const auto& d) { return on_virtual_clock(d.device); });
}

}  // namespace

// Records the error of the estimate, in the calibration file if there is one.
// Simulated devices say nothing about this machine.
void GraphCallable::record(Compiled& c, const placement::Report& report) {
  if (c.parts) return;  // its time includes that of other tasks
  if (runs_on_virtual_clock(report)) return;
  std::lock_guard lock(c.mutex);
  if (report.measured_step_us <= 0 || report.estimated_step_us <= 0 ||
      report.measured_step_us == c.recorded_us) {
    return;
  }
  c.recorded_us = report.measured_step_us;
  CostStore& store = CostStore::get();
  store.record_prediction(report.estimated_step_us, report.measured_step_us);
  std::error_code ignored;
  if (std::filesystem::exists(store.path(), ignored)) store.save();
}

StepWork GraphCallable::work(Compiled& c, std::span<const Tensor* const> next,
                             const std::vector<int64_t>* since) {
  if (!c.parts) return work_of(*c.plan, c.placed, next, since);
  std::vector<const Tensor*> near;
  if (!next.empty()) near = c.parts->near_args(next);
  StepWork work = work_of(*c.plan, c.placed, near, since);
  c.parts->add_to(work, *c.plan, next);
  return work;
}

placement::Report GraphCallable::report(Compiled& c) const {
  placement::Report report = work(c).report;
  add_estimates(*c.plan, report);
  const Device* read_from = c.read_from;
  report.verdicts = verdicts_of(
      report, {c.runs - 1, c.read, read_from ? read_from->short_name() : ""});
  record(c, report);
  if (!c.certificate.empty()) {
    report.plan = c.certificate;
    const double e = CostStore::get().error();
    if (e >= 0 && !runs_on_virtual_clock(report)) {
      report.plan +=
          "; on its last runs the cost model was off by " + percent_text(e);
    }
  }
  return report;
}

std::shared_ptr<GraphCallable> GraphCallable::used_variant() {
  std::lock_guard lock(mutex_);
  return plans_.empty() ? taped_ : nullptr;
}

bool GraphCallable::has_run() const {
  std::shared_ptr<GraphCallable> taped;
  {
    std::lock_guard lock(mutex_);
    if (!plans_.empty()) return true;
    taped = taped_;
  }
  return taped && taped->has_run();
}

placement::Report GraphCallable::placement() {
  if (const auto taped = used_variant()) return taped->placement();
  return report(*last());
}

std::vector<placement::Report> GraphCallable::placements() {
  std::list<std::shared_ptr<Compiled>> plans;
  std::shared_ptr<GraphCallable> taped;
  {
    std::lock_guard lock(mutex_);
    plans = plans_;
    taped = taped_;
  }
  std::vector<placement::Report> reports;
  for (const auto& c : plans) reports.push_back(report(*c));
  const std::shared_ptr<GraphCallable> variants[] = {
      taped, backward_ ? backward_->function : nullptr};
  for (const auto& variant : variants) {
    if (!variant) continue;
    for (placement::Report& r : variant->placements()) {
      reports.push_back(std::move(r));
    }
  }
  return reports;
}

placement::Explanation GraphCallable::explain(const std::string& op) {
  if (const auto taped = used_variant()) return taped->explain(op);
  const auto c = last();
  FoundOp found = find(c->placed, op);
  if (!found.in) found = find_under(c->placed, op);
  if (!found.in) found = find_copied(c->placed, c->plan->graph(), "", op);
  if (!found.in) fail_not_found(*c, op);
  const PlaceOptions options = real_devices();
  const Graph& graph = found.in->graph;
  const SimulatedGraph simulated(graph);
  const bool planned = !c->certificate.empty() && found.in == &c->placed;
  const CostTable costs = planned ? c->planned_costs : costs_of(graph, true);
  const PlacePlan plan = plan_of(graph, costs, planned);
  const PriceFn price = [&](int32_t node, int32_t device) {
    const int32_t to = costs.find(options.devices[device].name.text());
    return to < 0 ? Price{}
                  : price_move(simulated, costs, plan, {&node, 1}, to);
  };
  placement::Explanation e =
      explain_placement(graph, found.in->placement, options, found.node, price);
  if (std::string text = became(traced_, op, graph[found.node]);
      !text.empty()) {
    e.chain.insert(e.chain.begin(),
                   {std::move(text), asked_at(graph[found.node])});
  }
  const auto& all = options.devices;
  const bool simulates = std::any_of(
      all.begin(), all.end(),
      [](const PlaceDevice& d) { return on_virtual_clock(d.name.text()); });
  if (!simulates) e.estimate_error = costs.error;
  return e;
}

void GraphCallable::fail_not_found(const Compiled& c,
                                   const std::string& op) const {
  bool was_traced = false;
  for_each_node(traced_, "", [&](const std::string& path, const Node& n) {
    was_traced |= names_op(op, n.name) || names_op(op, path + n.name);
  });
  if (was_traced) {
    throw errors::NotFound(fmt::format(
        "{}: nothing is left of \"{}\" in the compiled step: it was folded or "
        "nobody reads it",
        function_text(name()), op));
  }
  std::vector<std::string> names;
  add_names(c.placed, names);
  std::string nearest;
  for (const std::string& n : nearest_names(op, names)) {
    nearest += (nearest.empty() ? "\"" : ", \"") + n + "\"";
  }
  throw errors::NotFound(fmt::format("{} has no op \"{}\"; the nearest are {}",
                                     function_text(name()), op, nearest));
}

void GraphCallable::check_contract_names() const {
  std::vector<std::string> all;
  std::map<std::shared_ptr<placement::ScopeState>, std::vector<std::string>>
      by_scope;
  for_each_node(traced_, "", [&](const std::string& path, const Node& n) {
    if (n.op->kind() == OpKind::kArgument) return;
    all.push_back(path + n.name);
    if (!path.empty()) all.push_back(n.name);
    if (n.sources.empty()) return;
    const ContractChain* at = n.sources[0].contracts.get();
    for (; at != nullptr; at = at->outer.get()) {
      by_scope[at->scope].push_back(n.name);
      by_scope[at->scope].push_back(path + n.name);
    }
  });
  const std::string what = function_text(name());
  for (const ParsedContract& c : contracts_) check_names(c, {}, what, all);
  for (const auto& [scope, names] : by_scope) {
    check_names(scope->parsed, scope->site, what, names);
  }
}

void GraphCallable::note_contracts(Compiled& c) const {
  bool limits = false;
  for (const ParsedContract& p : contracts_) limits |= !p.transfers.empty();
  c.has_contracts = !contracts_.empty();
  for_each_node(c.placed.graph, "", [&](const std::string&, const Node& n) {
    for (const NodeSource& s : n.sources) {
      for (auto* at = s.contracts.get(); at; at = at->outer.get()) {
        c.has_contracts = true;
        limits |= !at->scope->parsed.transfers.empty();
      }
    }
  });
  if (!limits || c.placed.bodies.empty()) return;
  for (const StepWork::Edge& e : work(c).edges) c.counts_turns |= e.nested;
}

void GraphCallable::check_work(const StepWork& work) const {
  const std::string what = function_text(name());
  for (const ParsedContract& c : contracts_) check_contract(c, {}, what, work);
  check_scopes(what, work);
}

// The plan is fixed, so one check per source of the arguments is enough.
void GraphCallable::check_before(Compiled& c,
                                 std::span<const Tensor* const> in) const {
  std::lock_guard lock(c.mutex);
  const auto same = [&] {
    for (size_t i = 0; i < in.size(); ++i) {
      if (c.checked[i] != in[i]->impl()->block->device) return false;
    }
    return true;
  };
  if (c.checked_once && same()) return;
  check_work(work(c, in));
  c.checked_once = true;
  c.checked.clear();
  for (const Tensor* t : in) c.checked.push_back(t->impl()->block->device);
}

// The number of iterations of loops is known only now.
void GraphCallable::check_after(Compiled& c, std::span<const Tensor* const> in,
                                const std::vector<int64_t>& bodies) const {
  check_work(work(c, in, &bodies));
}

// Blocks around the call: they accumulate bytes over calls.
void GraphCallable::check_open(Compiled& c, std::span<const Tensor* const> in,
                               const ContractChain* open) const {
  const StepWork work = GraphCallable::work(c, in);
  const std::string what = function_text(name());
  std::vector<std::string> names;
  for (const placement::OpRow& op : work.report.ops) {
    names.push_back(op.op);
    names.insert(names.end(), op.sources.begin(), op.sources.end());
  }
  for (; open != nullptr; open = open->outer.get()) {
    placement::ScopeState& s = *open->scope;
    std::lock_guard lock(s.mutex);
    for (size_t i = 0; i < s.met.size(); ++i) {
      const std::string& op = s.parsed.contract.ops[i].op;
      for (const std::string& n : names) {
        if (names_op(op, n)) s.met[i] = true;
      }
    }
    ParsedContract left = s.parsed;
    std::vector<int64_t> sent = s.sent;
    for (size_t i = 0; i < sent.size(); ++i) {
      placement::TransferLimit& limit = left.contract.transfers[i];
      const int64_t more = work.report.transfer_bytes(limit.from, limit.to);
      limit.bytes = std::max<int64_t>(0, limit.bytes - sent[i]);
      sent[i] += more;
    }
    check_contract(left, s.site, what, work);
    s.sent = std::move(sent);
    s.moved_bytes += work.report.transfer_bytes();
  }
}

void GraphCallable::run_checked(Compiled& c, std::span<const Tensor* const> in,
                                std::span<Tensor> out,
                                const ContractChainRef& open) const {
  if (c.has_contracts) check_before(c, in);
  if (open) check_open(c, in, open.get());
  if (!c.has_contracts || !c.counts_turns) return c.run(in, out);
  const std::vector<int64_t> before = body_runs(*c.plan);
  c.run(in, out);
  check_after(c, in, before);
}

}  // namespace berth
