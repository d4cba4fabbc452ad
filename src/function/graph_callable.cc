#include "function/graph_callable.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <optional>

#include "berth/config.h"
#include "berth/errors.h"
#include "device/device_manager.h"
#include "device/placement_policy.h"
#include "function/compile.h"
#include "function/graph_rewrite.h"
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

std::string key_of(const std::vector<Shape>& shapes) {
  std::string key;
  for (const Shape& s : shapes) key += s.str();
  return key;
}

template <class Compiled>
std::vector<uint64_t> counts_of(const Compiled& c) {
  std::vector<uint64_t> counts = {*c.steps};
  for (const auto& body : c.body_steps->counters) counts.push_back(*body);
  return counts;
}

template <class Compiled>
void set_counts(Compiled& c, const std::vector<uint64_t>& counts) {
  *c.steps = counts.empty() ? 0 : counts[0];
  auto& bodies = c.body_steps->counters;
  for (size_t i = bodies.size() + 1; i < counts.size(); ++i) {
    bodies.push_back(std::make_shared<std::atomic<uint64_t>>(0));
  }
  for (size_t i = 0; i < bodies.size(); ++i) {
    *bodies[i] = i + 1 < counts.size() ? counts[i + 1] : 0;
  }
}

bool is_placeholder(const Node& n) {
  return n.op->graph_only() && n.op->kind() != OpKind::kTransfer;
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

std::shared_ptr<GraphCallable::Compiled> GraphCallable::compile(
    const std::vector<Shape>& shapes,
    const std::vector<std::string>& argument_on) const {
  const double start = now_seconds();
  auto c = std::make_shared<Compiled>();
  c->shapes = shapes;
  {
    std::lock_guard lock(mutex_);
    start_counts(*c);
  }
  // Under soft placement the passes may have taken away what is refused now.
  Graph strict;
  const bool again = options_.optimize && !config::get_soft_device_placement();
  if (again) {
    strict = traced_;
    run_device_free_passes(strict);
  }
  const CompileJob job{again ? strict : graph_,
                       options_,
                       contracts_,
                       shapes,
                       argument_on,
                       c->steps,
                       c->body_steps};
  for (int tries = 0; tries < kMostTries; ++tries) {
    c->rewrite_key = rewrite_key();
    c->policy_key = policy_key();
    CompiledGraph compiled = compile_graph(job);
    c->plan = std::move(compiled.plan);
    c->parts = std::move(compiled.parts);
    c->placed = std::move(compiled.placed);
    c->certificate = std::move(compiled.certificate);
    c->planned_costs = std::move(compiled.planned_costs);
    if (!options_.rewrite || options_.rewrite->accept(*c->plan)) break;
  }
  c->seconds = now_seconds() - start;
  note_contracts(*c);
  return c;
}

GraphCallable::RunCounts GraphCallable::part_of(const RunCounts& all,
                                                const std::string& prefix) {
  RunCounts part;
  for (const auto& [key, counts] : all) {
    if (key.starts_with(prefix)) part[key.substr(prefix.size())] = counts;
  }
  return part;
}

void GraphCallable::start_counts(Compiled& c) const {
  // A step on other shares continues its random sequence.
  for (const auto& other : plans_) {
    if (other->shapes != c.shapes) continue;
    c.steps = other->steps;
    c.body_steps = other->body_steps;
    return;
  }
  c.steps = std::make_shared<std::atomic<uint64_t>>(0);
  c.body_steps = std::make_shared<BodySteps>();
  const auto before = counts_.find(key_of(c.shapes));
  if (before == counts_.end()) return;
  set_counts(c, before->second);
  counts_.erase(before);
}

GraphCallable::RunCounts GraphCallable::run_counts() const {
  RunCounts all;
  std::shared_ptr<GraphCallable> taped;
  {
    std::lock_guard lock(mutex_);
    all = counts_;
    for (const auto& c : plans_) all[key_of(c->shapes)] = counts_of(*c);
    taped = taped_;
  }
  const auto add = [&](const char* prefix, const GraphCallable& f) {
    for (auto& [key, counts] : f.run_counts()) {
      all[prefix + key] = std::move(counts);
    }
  };
  if (taped) add(kTaped, *taped);
  if (backward_) add(kGradient, *backward_->function);
  return all;
}

void GraphCallable::set_run_counts(RunCounts counts) {
  std::shared_ptr<GraphCallable> taped;
  {
    std::lock_guard lock(mutex_);
    for (const auto& c : plans_) {
      const std::string key = key_of(c->shapes);
      const auto it = counts.find(key);
      set_counts(*c, it == counts.end() ? std::vector<uint64_t>{} : it->second);
    }
    for (const auto& c : plans_) counts.erase(key_of(c->shapes));
    counts_ = counts;
    taped = taped_;
  }
  if (taped) taped->set_run_counts(part_of(counts, kTaped));
  if (backward_) {
    backward_->function->set_run_counts(part_of(counts, kGradient));
  }
}

uint64_t GraphCallable::rewrite_key() const {
  return options_.rewrite ? options_.rewrite->key() : 0;
}

uint64_t GraphCallable::policy_key() const {
  const uint64_t policy =
      options_.placement.empty() ? placement_policy_generation() : 0;
  return 2 * policy + (config::get_soft_device_placement() ? 0 : 1);
}

template <class Fits>
std::shared_ptr<GraphCallable::Compiled> GraphCallable::find_plan(
    const Fits& shapes_fit, bool use) {
  const uint64_t key = rewrite_key(), policy = policy_key();
  std::lock_guard lock(mutex_);
  for (auto it = plans_.begin(); it != plans_.end(); ++it) {
    const Compiled& c = **it;
    if (c.rewrite_key != key || c.policy_key != policy || !shapes_fit(c)) {
      continue;
    }
    if (use && it != plans_.begin()) {
      plans_.splice(plans_.begin(), plans_, it);
      it = plans_.begin();
    }
    return *it;
  }
  return nullptr;
}

void GraphCallable::keep(std::shared_ptr<Compiled> c, bool use) {
  std::lock_guard lock(mutex_);
  const bool first = use || plans_.empty();
  plans_.insert(first ? plans_.begin() : std::next(plans_.begin()),
                std::move(c));
  if (plans_.size() <= kMaxPlans) return;
  counts_[key_of(plans_.back()->shapes)] = counts_of(*plans_.back());
  plans_.pop_back();
}

std::shared_ptr<GraphCallable::Compiled> GraphCallable::compiled_for(
    std::span<const Tensor* const> in) {
  const auto fits = [&](const Compiled& c) {
    for (size_t i = 0; i < c.shapes.size(); ++i) {
      if (!(c.shapes[i] == in[i]->shape())) return false;
    }
    return true;
  };
  if (auto c = find_plan(fits, true)) return c;
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
  // One at a time, so that a plan is made once. Calls of existing plans take
  // another lock and are not held up.
  std::lock_guard compiling(compile_mutex_);
  if (auto c = find_plan(fits, true)) return c;
  auto c = compile(shapes, argument_on);
  keep(c, true);
  return c;
}

GraphCallable::Prepared GraphCallable::prepare(
    const std::vector<Shape>& shapes) {
  const auto fits = [&](const Compiled& c) { return c.shapes == shapes; };
  std::shared_ptr<Compiled> c = find_plan(fits, false);
  if (!c) {
    std::lock_guard compiling(compile_mutex_);
    c = find_plan(fits, false);
    if (!c) {
      c = compile(shapes, {});
      // Behind the most recently used plan, which reports describe.
      keep(c, false);
    }
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
    // Compiling computes constants, to which no contract of the caller applies.
    std::optional<ContractsSwap> none;
    if (open) none.emplace(nullptr);
    compiled = compiled_for(args);
  }
  if (compiled->has_contracts || open) {
    run_checked(*compiled, args, out, open);
  } else {
    compiled->run(args, out);
  }
  if (options_.rewrite) options_.rewrite->ran(*compiled->plan);
}

std::shared_ptr<GraphCallable::Compiled> GraphCallable::last() const {
  for (const bool waited : {false, true}) {
    // Another thread may be making the first plan.
    std::unique_lock compiling(compile_mutex_, std::defer_lock);
    if (waited) compiling.lock();
    std::lock_guard lock(mutex_);
    if (!plans_.empty()) return plans_.front();
  }
  throw errors::FailedPrecondition(
      fmt::format("{} has not run yet; call it first", name()));
}

GraphCallable::Stages GraphCallable::stages() const {
  const auto c = last();
  return {print(traced_), print(graph_), print(c->plan->graph()),
          c->plan->str() + (c->parts ? c->parts->str() : "")};
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
