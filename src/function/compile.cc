#include "function/compile.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "base/diagnostics.h"
#include "berth/config.h"
#include "berth/debugging.h"
#include "collective/lower.h"
#include "device/device_manager.h"
#include "exec/deadline.h"
#include "exec/plan_impl.h"
#include "function/auto_place.h"
#include "function/fit_memory.h"
#include "function/graph_rewrite.h"
#include "function/lint_graph.h"
#include "function/place_bodies.h"
#include "function/state_homes.h"
#include "graph/body.h"
#include "op/dispatcher.h"
#include "passes/fuse.h"
#include "passes/fuse_products.h"
#include "passes/lower.h"
#include "passes/merge_updates.h"
#include "passes/pipeline.h"
#include "place/schedule.h"

namespace berth {

namespace {

// Replaces symbols by numbers in shapes and lists of attributes, also in
// bodies, whose arguments take theirs from the operands.
void put_symbols(Graph& g, const std::function<int64_t(int64_t)>& value_of) {
  for (Node& n : g.nodes) {
    if (n.attrs.get() == nullptr || n.op->kind() == OpKind::kArgument) continue;
    rewrite_bodies(n, [&](const std::string&, Graph& body) {
      put_symbols(body, value_of);
      return true;
    });
    auto pairs = n.attrs.get()->pairs();
    bool changed = false;
    for (auto& [name, value] : pairs) {
      if (auto* shape = std::get_if<Shape>(&value)) {
        for (int d = 0; d < shape->rank(); ++d) {
          changed |= (*shape)[d] < kUnknownDim;
          (*shape)[d] = value_of((*shape)[d]);
        }
      } else if (auto* list = std::get_if<std::vector<int64_t>>(&value)) {
        for (int64_t& d : *list) {
          const int64_t v = d < kUnknownDim ? value_of(d) : d;
          changed |= v != d;
          d = v;
        }
      }
    }
    if (changed) n.attrs = AttrsRef(std::move(pairs));
  }
}

// Sets the shapes of the arguments; returns true if there were symbols.
bool put_shapes(Graph& g, const std::vector<Shape>& shapes) {
  // The value of each symbol of the signature in this call.
  std::vector<std::pair<int64_t, int64_t>> symbols;
  for (size_t i = 0; i < shapes.size(); ++i) {
    Node& arg = g[g.args[i]];
    const Shape& declared = arg.outputs[0].shape;
    for (int d = 0; d < declared.rank(); ++d) {
      if (declared[d] < 0) symbols.push_back({declared[d], shapes[i][d]});
    }
    arg.attrs = AttrsRef({{"index", static_cast<int64_t>(i)},
                          {"dtype", arg.outputs[0].dtype},
                          {"shape", shapes[i]}});
  }
  if (symbols.empty()) return false;
  put_symbols(g, [&](int64_t d) {
    for (const auto& [symbol, value] : symbols) {
      if (symbol == d) return value;
    }
    return d;
  });
  g.infer();
  return true;
}

bool has_replicas(const Graph& g) {
  return std::any_of(g.nodes.begin(), g.nodes.end(), [](const Node& n) {
    bool has = n.replica >= 0;
    visit_bodies(n, [&](const std::string&, const Graph& body) {
      has = has || has_replicas(body);
    });
    return has;
  });
}

// Bodies have their own replicas: steps in a loop.
void lower_all_collectives(Graph& g, double timeout_seconds) {
  for (Node& n : g.nodes) {
    rewrite_bodies(n, [&](const std::string&, Graph& body) {
      if (!has_replicas(body)) return false;
      lower_all_collectives(body, timeout_seconds);
      return true;
    });
  }
  lower_collectives(g, timeout_seconds);
}

bool computes_on_cpu_and_others(const Graph& placed) {
  bool cpu = false, others = false;
  for (const Node& n : placed.nodes) {
    if (n.op->kind() != OpKind::kCompute) continue;
    const bool here = n.assigned.is_cpu();
    cpu = cpu || here;
    others = others || !here;
  }
  return cpu && others;
}

// Uses the rules, unless the policy asks for the planner.
AutoPlaced plan_places(const placement::Policy& policy, const CompileJob& job,
                       Graph& g, const PlaceOptions& devices, bool replicas,
                       int slices) {
  if (!policy.is_auto()) return {};
  if (!replicas) {
    return auto_place(g, devices,
                      {policy.plan(), job.contracts, job.argument_on,
                       job.options.optimize, slices});
  }
  // A strategy has already assigned each replica its part.
  const std::string& name = job.graph.name;
  report_once(name, {"plan-under-strategy", debugging::Severity::kLint,
                     fmt::format("function \"{}\": its strategy places it; the "
                                 "placement policy \"auto\" does not apply",
                                 name),
                     t_state.site});
  return {};
}

// Notes what the planner decided, where the rules noted only given devices.
void note_planned(AutoPlaced planned, const PlaceOptions& devices,
                  CompiledGraph& c) {
  c.certificate = std::move(planned.certificate);
  c.planned_costs = std::move(planned.costs);
  Placement& placement = c.placed.placement;
  for (PlaceReason& r : placement.reasons) {
    if (r.rule == PlaceRule::kAssigned) r.rule = PlaceRule::kPlanned;
  }
  placement.fallbacks = std::move(planned.fallbacks);
  report_fallbacks(c.placed.graph, placement, devices.soft);
  berth::report(
      {"planned", debugging::Severity::kInfo,
       fmt::format("function \"{}\": {}", c.placed.graph.name, c.certificate),
       t_state.site});
}

// Settings shared by a graph and all bodies in it.
struct How {
  const PlaceOptions& devices;
  bool optimize;
  bool on_trial;
};

Placement place_and_report(Graph& graph, const How& how) {
  const PlaceOptions& devices = how.devices;
  Placement placement = place(graph, devices);
  if (how.on_trial) return placement;
  report_fallbacks(graph, placement, devices.soft);
  report_notes(graph, placement, devices.soft);
  if (debugging::get_log_device_placement()) log_placement(graph);
  lint_graph(graph, devices);
  return placement;
}

// A body of a node; its arguments and results are on `device`.
struct BodyPlace {
  DeviceId device;
  size_t num_vars = 0;
};

// Places and lowers a graph with known shapes and splits it between devices;
// treats its bodies in the same way.
void place_and_cut(Graph& graph, const BodyPlace* body, const How& how,
                   PlacedGraph& placed) {
  if (body) request_arguments(graph, body->device);
  placed.placement = place_and_report(graph, how);
  placed.graph = graph;
  for (Node& n : graph.nodes) {
    rewrite_bodies(n, [&](const std::string& role, Graph& inner) {
      const BodyPlace where{n.assigned, num_vars_of(n, role)};
      PlacedGraph& in = placed.bodies.emplace_back();
      in.path = body_path(placed.path, n, role);
      place_and_cut(inner, &where, how, in);
      return true;
    });
  }
  // The part that depends on the devices.
  std::vector<bool> parts;
  const bool lowered = lower(
      graph, [&](const Node& n) { return has_kernel(n, graph); }, &parts);
  if (lowered && how.optimize) {
    cse_parts(graph, parts);
    dce(graph);
  }
  if (body) own_results(graph, body->device, body->num_vars);
  if (how.optimize) {
    fuse_products(graph,
                  [&](const Node& n) { return can_fuse_product(n, graph); });
    fuse(graph, &can_fuse);
    merge_updates(
        graph, [&](const Node& n) { return can_merge(n, graph); },
        &merge_limits);
  }
  partition(graph);
}

}  // namespace

CompiledGraph compile_graph(const CompileJob& job) {
  CompiledGraph c;
  Graph g = job.graph;
  const auto optimize = [&] {
    if (job.options.optimize) run_device_free_passes(g);
  };
  // Graph to graph: shapes, the strategy's rewrite, messages.
  if (put_shapes(g, job.shapes)) optimize();
  PlanOptions options{.slices = job.options.slices};
  if (const GraphRewrite* rewrite = job.options.rewrite.get()) {
    rewrite->apply(g);
    if (const int n = rewrite->slices(); n > 0) options.slices = n;
    options.slicing_rule = rewrite->slicing_rule();
    options.timeout_seconds = rewrite->timeout_seconds();
  }
  const bool replicas = has_replicas(g);
  if (replicas) {
    optimize();
    // What is traced in a scope also runs in one.
    lower_all_collectives(g, options.timeout_seconds > 0
                                 ? options.timeout_seconds
                                 : DeadlineScope::current());
    optimize();
  }
  // Devices: a plan or rules; then passes per device and splitting the graph.
  const PlaceOptions devices = real_devices();
  const placement::Policy policy = job.options.placement.empty()
                                       ? config::placement_policy()
                                       : job.options.placement;
  const bool in_order =
      job.options.rewrite != nullptr && job.options.rewrite->in_order();
  if (!policy.is_fit()) {
    StateHomes(g, DeviceManager::get().default_device()).unite();
  }
  AutoPlaced planned =
      plan_places(policy, job, g, devices, replicas, options.slices);
  if (policy.is_fit()) {
    fit_memory(g, devices,
               {job.options.optimize, options.slices, in_order,
                /*may_measure=*/false});
  }
  c.placed = place_all(g, devices, job.options.optimize);
  if (planned.planned || in_order) {
    options.in_order = true;
    // The launching thread must not compute: others would get their work late.
    options.host_threads = computes_on_cpu_and_others(c.placed.graph);
  }
  if (planned.planned) note_planned(std::move(planned), devices, c);
  // Program: pin_reads, make_schedule, PlanBuilder and make_runner, for the
  // step and for each body (Plan::Impl::build).
  options.steps = job.steps;
  options.body_steps = job.body_steps;
  if (options.body_steps) options.body_steps->next = 0;
  c.parts = split_tasks(g, options);
  c.plan = Plan::build(std::move(g), options);
  if (c.parts) c.parts->add_to(c.plan->impl().info);
  return c;
}

PlacedGraph place_all(Graph& graph, const PlaceOptions& devices, bool optimize,
                      bool on_trial) {
  PlacedGraph placed;
  place_and_cut(graph, nullptr, {devices, optimize, on_trial}, placed);
  return placed;
}

}  // namespace berth
