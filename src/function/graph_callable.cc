#include "function/graph_callable.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <optional>

#include "base/diagnostics.h"
#include "berth/config.h"
#include "berth/errors.h"
#include "collective/lower.h"
#include "device/device_manager.h"
#include "device/placement_policy.h"
#include "function/auto_place.h"
#include "function/graph_rewrite.h"
#include "function/place_bodies.h"
#include "graph/body.h"
#include "graph/replay.h"
#include "op/dispatcher.h"
#include "passes/pipeline.h"
#include "tensor/tensor_impl.h"

namespace berth {

namespace {

constexpr size_t kMaxPlans = 16;
constexpr int kMostTries = 3;  // GraphRewrite::accept()

double now_seconds() {
  return std::chrono::duration<double>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

// Puts numbers in the place of symbols, in shapes and lists of attributes, in
// the bodies too. Their arguments get theirs from the operands.
void put_symbols(Graph& g, const std::function<int64_t(int64_t)>& value_of) {
  for (Node& n : g.nodes) {
    if (n.attrs.get() == nullptr || n.op->name() == "_Arg") continue;
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

bool has_replicas(const Graph& g) {
  return std::any_of(g.nodes.begin(), g.nodes.end(), [](const Node& n) {
    bool has = n.replica >= 0;
    visit_bodies(n, [&](const std::string&, const Graph& body) {
      has = has || has_replicas(body);
    });
    return has;
  });
}

// Bodies have replicas of their own: steps in a loop.
void lower_all_collectives(Graph& g) {
  for (Node& n : g.nodes) {
    rewrite_bodies(n, [](const std::string&, Graph& body) {
      if (!has_replicas(body)) return false;
      lower_all_collectives(body);
      return true;
    });
  }
  lower_collectives(g);
}

bool computes_on_cpu_and_others(const Graph& placed) {
  bool cpu = false, others = false;
  for (const Node& n : placed.nodes) {
    if (n.op->kind() != OpKind::kCompute) continue;
    const bool here = DeviceName::parse(n.assigned).type == "CPU";
    cpu = cpu || here;
    others = others || !here;
  }
  return cpu && others;
}

bool is_placeholder(const Node& n) {
  return n.op->kind() == OpKind::kPlaceholder && n.op->name() != "_Transfer";
}

}  // namespace

GraphCallable::GraphCallable(Graph graph, const FunctionOptions& options)
    : options_(options), traced_(std::move(graph)), graph_(traced_) {
  for (const placement::Contract& c : options_.contract.list()) {
    contracts_.emplace_back(c);
  }
  for (const Node& n : graph_.nodes) ops_traced_ += !is_placeholder(n);
  if (options_.optimize) run_device_free_passes(graph_);
  for (int32_t a : graph_.args) {
    const OutSpec& s = graph_[a].outputs[0];
    input_specs_.push_back({s.shape, s.dtype, graph_[a].name});
  }
  for (const ValueRef& v : graph_.outputs) {
    output_specs_.push_back({graph_.spec(v).shape, graph_.spec(v).dtype, {}});
  }
  for (const Node& n : traced_.nodes) {
    if (n.variable.defined()) variables_.push_back(n.variable);
  }
}

GraphCallable::~GraphCallable() = default;

Graph GraphCallable::specialize(const std::vector<Shape>& shapes) const {
  Graph g = graph_;
  // What each symbol of the signature is this time.
  std::vector<std::pair<int64_t, int64_t>> symbols;
  bool symbolic = false;
  for (size_t i = 0; i < shapes.size(); ++i) {
    Node& arg = g[g.args[i]];
    const Shape& declared = arg.outputs[0].shape;
    for (int d = 0; d < declared.rank(); ++d) {
      if (declared[d] < 0) {
        symbols.push_back({declared[d], shapes[i][d]});
        symbolic = true;
      }
    }
    arg.attrs = AttrsRef({{"index", static_cast<int64_t>(i)},
                          {"dtype", arg.outputs[0].dtype},
                          {"shape", shapes[i]}});
  }
  if (!symbolic) return g;
  auto value_of = [&](int64_t d) {
    for (const auto& [symbol, value] : symbols) {
      if (symbol == d) return value;
    }
    return d;
  };
  put_symbols(g, value_of);
  g.infer();
  if (options_.optimize) run_device_free_passes(g);
  return g;
}

std::shared_ptr<GraphCallable::Compiled> GraphCallable::compile(
    const std::vector<Shape>& shapes,
    const std::vector<std::string>& argument_on) const {
  const double start = now_seconds();
  std::shared_ptr<Compiled> c;
  for (int tries = 0; tries < kMostTries; ++tries) {
    c = compile_once(shapes, argument_on);
    if (!options_.rewrite || options_.rewrite->accept(*c->plan)) break;
  }
  c->seconds = now_seconds() - start;
  note_contracts(*c);
  return c;
}

std::shared_ptr<GraphCallable::Compiled> GraphCallable::compile_once(
    const std::vector<Shape>& shapes,
    const std::vector<std::string>& argument_on) const {
  auto c = std::make_shared<Compiled>();
  c->shapes = shapes;
  Graph g = specialize(shapes);
  PlanOptions options{.slices = options_.slices};
  if (options_.rewrite) {
    c->rewrite_key = options_.rewrite->key();
    options_.rewrite->apply(g);
    if (const int n = options_.rewrite->slices(); n > 0) options.slices = n;
    options.timeout_seconds = options_.rewrite->timeout_seconds();
  }
  const bool replicas = has_replicas(g);
  if (replicas) {
    if (options_.optimize) run_device_free_passes(g);
    lower_all_collectives(g);
    if (options_.optimize) run_device_free_passes(g);
  }
  c->policy_key = policy_key();
  place(*c, g, options, replicas, argument_on);
  // The same step on other shares goes on with its random numbers.
  for (const auto& other : plans_) {
    if (other->shapes == shapes) options.steps = other->steps;
  }
  if (!options.steps) {
    options.steps = std::make_shared<std::atomic<uint64_t>>(0);
  }
  c->steps = options.steps;
  c->plan = Plan::build(std::move(g), options);
  return c;
}

uint64_t GraphCallable::policy_key() const {
  return options_.placement.empty() ? placement_policy_generation() : 0;
}

// By rules, or by the planner where the policy says so.
void GraphCallable::place(Compiled& c, Graph& g, PlanOptions& options,
                          bool replicas,
                          const std::vector<std::string>& argument_on) const {
  const PlaceOptions places = real_devices();
  const placement::Policy policy = options_.placement.empty()
                                       ? config::placement_policy()
                                       : options_.placement;
  AutoPlaced planned;
  if (policy.is_auto() && replicas) {
    // A strategy has said what runs on which replica.
    report_once(name(), {"plan-under-strategy", debugging::Severity::kLint,
                         fmt::format("function \"{}\": its strategy places "
                                     "it; the placement policy \"auto\" does "
                                     "not apply",
                                     name()),
                         t_state.site});
  } else if (policy.is_auto()) {
    planned = auto_place(g, places,
                         {policy.plan(), contracts_, argument_on,
                          options_.optimize, options.slices});
  }
  c.placed = place_all(g, places, options_.optimize);
  if (!planned.planned) return;
  options.in_order = true;
  // Who launches must not compute: others would get their work late.
  options.host_threads = computes_on_cpu_and_others(c.placed.graph);
  c.certificate = std::move(planned.certificate);
  c.planned_costs = std::move(planned.costs);
  for (PlaceReason& r : c.placed.placement.reasons) {
    if (r.rule == PlaceRule::kAssigned) r.rule = PlaceRule::kPlanned;
  }
  c.placed.placement.fallbacks = std::move(planned.fallbacks);
  report_fallbacks(c.placed.graph, c.placed.placement, places.soft);
  berth::report({"planned", debugging::Severity::kInfo,
                 fmt::format("function \"{}\": {}", name(), c.certificate),
                 t_state.site});
}

std::shared_ptr<GraphCallable::Compiled> GraphCallable::compiled_for(
    std::span<const Tensor* const> in) {
  const uint64_t key = options_.rewrite ? options_.rewrite->key() : 0;
  const uint64_t policy = policy_key();
  auto fits = [&](const Compiled& c) {
    if (c.rewrite_key != key || c.policy_key != policy) return false;
    for (size_t i = 0; i < c.shapes.size(); ++i) {
      if (!(c.shapes[i] == in[i]->shape())) return false;
    }
    return true;
  };
  std::unique_lock lock(mutex_);
  for (auto it = plans_.begin(); it != plans_.end(); ++it) {
    if (!fits(**it)) continue;
    if (it != plans_.begin()) plans_.splice(plans_.begin(), plans_, it);
    return plans_.front();
  }
  std::vector<Shape> shapes;
  std::vector<std::string> argument_on;
  for (size_t i = 0; i < num_args(); ++i) {
    const TensorSpec& want = input_specs_[i];
    if (in[i]->dtype() != want.dtype ||
        !in[i]->shape().compatible_with(want.shape)) {
      throw errors::InvalidArgument(
          fmt::format("{}: argument {} is {}; expected {}", name(), i,
                      in[i]->spec().str(), want.str()));
    }
    shapes.push_back(in[i]->shape());
    argument_on.push_back(in[i]->impl()->block->device->str());
  }
  plans_.push_front(compile(shapes, argument_on));
  if (plans_.size() > kMaxPlans) plans_.pop_back();
  return plans_.front();
}

GraphCallable::Prepared GraphCallable::prepare(
    const std::vector<Shape>& shapes) {
  const uint64_t key = options_.rewrite ? options_.rewrite->key() : 0;
  const uint64_t policy = policy_key();
  std::lock_guard lock(mutex_);
  const auto it = std::find_if(plans_.begin(), plans_.end(), [&](auto& c) {
    return c->rewrite_key == key && c->policy_key == policy &&
           c->shapes == shapes;
  });
  std::shared_ptr<Compiled> c;
  if (it != plans_.end()) {
    c = *it;
  } else {
    // Behind the plan used last: that one is what reports are about.
    c = compile(shapes, {});
    plans_.insert(plans_.empty() ? plans_.end() : std::next(plans_.begin()), c);
    if (plans_.size() > kMaxPlans) plans_.pop_back();
  }
  return {c->plan, &c->placed, c};
}

void GraphCallable::call(std::span<const Tensor* const> in,
                         std::span<Tensor> out) {
  const auto args = in.first(num_args());
  const bool symbolic =
      std::any_of(args.begin(), args.end(),
                  [](const Tensor* t) { return t->is_symbolic(); });
  if (symbolic) {
    Tensors values;
    for (const Tensor* t : args) values.push_back(*t);
    Tensors results = replay(graph_, values);
    for (size_t i = 0; i < out.size(); ++i) out[i] = std::move(results[i]);
    return;
  }
  const ContractChainRef open = open_contracts();
  std::shared_ptr<Compiled> compiled;
  {
    // Compiling computes constants, which is no business of the caller's.
    std::optional<ContractsSwap> none;
    if (open) none.emplace(nullptr);
    compiled = compiled_for(args);
  }
  if (compiled->has_contracts || open) {
    run_checked(*compiled, args, out, open);
  } else {
    compiled->plan->run(args, out);
  }
  if (options_.rewrite) options_.rewrite->ran(*compiled->plan);
}

std::shared_ptr<GraphCallable::Compiled> GraphCallable::last() const {
  std::lock_guard lock(mutex_);
  if (!plans_.empty()) return plans_.front();
  throw errors::FailedPrecondition(
      fmt::format("{} has not run yet; call it first", name()));
}

GraphCallable::Stages GraphCallable::stages() const {
  const auto c = last();
  return {print(traced_), print(graph_), print(c->plan->graph()),
          c->plan->str()};
}

FunctionPlanInfo GraphCallable::plan_info() const {
  std::lock_guard lock(mutex_);
  FunctionPlanInfo info;
  info.ops_traced = ops_traced_;
  if (plans_.empty()) return info;
  const Compiled& c = *plans_.front();
  const PlanInfo& p = c.plan->info();
  info.ops = p.ops;
  info.regions = p.regions;
  info.transfers = p.transfers;
  info.copied_bytes = p.copied_bytes;
  info.peak_bytes = p.arena_bytes + p.output_bytes;
  info.bound_bytes = p.bound_bytes + p.output_bytes;
  info.compile_seconds = c.seconds;
  return info;
}

}  // namespace berth
