#include "distribute/strategy/fit_rewrite.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/diagnostics.h"
#include "berth/errors.h"
#include "collective/lower.h"
#include "distribute/data_parallel/shard_step.h"
#include "distribute/multi_worker/step_consensus.h"
#include "distribute/strategy/rebalance.h"

namespace berth::distribute {

namespace {

// Ops that run whole on every batch cost what the strategy should save.
void report_whole(const SplitReport& report, const std::string& graph) {
  for (const std::string& op : report.whole) {
    report_once(op + graph,
                {"runs-whole",
                 debugging::Severity::kLint,
                 fmt::format("{} in {} has no split rule: its operands are "
                             "gathered and it runs whole, once per memory",
                             op, graph),
                 {}});
  }
}

// Splits a graph whose layers are split.
SplitReport split_again(Graph& graph, SplitPlan plan) {
  SplitReport report;
  report.examples = {batch_of(graph)};
  if (plan.replicas.size() == 1) return report;
  plan.of_layers = true;
  return split_batch(graph, plan);
}

void add_report(SplitReport& to, const SplitReport& second) {
  to.examples = second.examples;
  to.whole.insert(to.whole.end(), second.whole.begin(), second.whole.end());
}

class SlicesRewrite final : public GraphRewrite {
 public:
  explicit SlicesRewrite(int slices) {
    plan_.replicas = {{""}};
    plan_.slices = slices;
  }
  void apply(Graph& graph) const override { split_batch(graph, plan_); }
  int slices() const override { return plan_.slices; }

 private:
  SplitPlan plan_;
};

}  // namespace

FitRewrite::FitRewrite(std::shared_ptr<StrategyCore> core,
                       FitRewriteOptions options)
    : core_(std::move(core)),
      options_(options),
      mover_(options.balances && core_->options().shares.automatic() &&
                     core_->num_replicas() > 1 && !core_->link()
                 ? std::make_unique<Rebalancer>(core_)
                 : nullptr) {}
FitRewrite::~FitRewrite() = default;

void FitRewrite::apply(Graph& graph) const {
  if (core_->undecided() != nullptr) {
    throw errors::Unimplemented(fmt::format(
        "{}: \"{}\" is to run before anything is chosen; expected fit() of a "
        "compiled model, by whose training step it chooses, or "
        "choose(model, batch), before",
        core_->name(), graph.name));
  }
  if (core_->link() && options_.agrees) agree_on_step(*core_->link(), graph);
  SplitReport report = core_->pipeline()  ? pipelined(graph)
                       : core_->layouts() ? split_both(graph)
                                          : split(graph);
  const auto busy =
      std::count_if(report.examples.begin(), report.examples.end(),
                    [](int64_t rows) { return rows > 0; });
  if (busy > 1 || core_->layouts()) report_whole(report, graph.name);
  const std::lock_guard lock(mutex_);
  report_ = std::move(report);
}

SplitReport FitRewrite::split(Graph& graph) const {
  const SplitPlan split = plan();
  ShardPlan shards = core_->shard_plan();
  shards.exact = split.slices > 0;
  // A graph without examples is not split: it reads whole variables.
  const bool divides = shards.divides() && batch_of(graph) > 0;
  if (divides) divide_variables(graph, shards);
  SplitReport report = split_batch(graph, split);
  if (divides) shard_step(graph, shards);
  return report;
}

// Divides the variables that have an axis, and splits what uses them over the
// devices of a replica, or of a stage. `stages`: by node, of variables.
SplitReport FitRewrite::split_layers(Graph& graph,
                                     const std::vector<int>& stages) const {
  core_->layouts()->check_used();
  const SplitPlan layers = core_->layer_plan();
  const std::vector<Device*>& all = core_->replicas()[0];
  const auto width = static_cast<ptrdiff_t>(layers.replicas.size());
  for (int32_t i = 0; i < graph.size(); ++i) {
    const Tensor& v = graph[i].variable;
    if (!v.defined() || variable_state(v).split_axis < 0) continue;
    const auto first = all.begin() + (stages.empty() ? 0 : stages[i] * width);
    divide(v, {first, first + width}, layers.shares);
  }
  return split_batch(graph, layers);
}

// Before layers are split: what cannot be split is refused.
void FitRewrite::prepare_layers(Graph& graph) const {
  if (const int slices = plan().slices; slices > 0) {
    throw errors::Unimplemented(fmt::format(
        "{}: slices = {}; expected 0: sums over parts of a layer are not those "
        "of the whole layer, so that bits depend on the devices",
        core_->name(), slices));
  }
  separate_updates(
      graph, [](const VariableState& v) { return v.split_axis >= 0; },
      core_->name().c_str());
}

// Splits layers over the devices of a replica, then the batch over replicas.
SplitReport FitRewrite::split_both(Graph& graph) const {
  prepare_layers(graph);
  const int64_t batch = batch_of(graph);
  SplitReport report = split_layers(graph, {});
  report.batch = batch;
  report.examples = {batch};
  if (core_->replicas().size() == 1 || batch <= 0) return report;
  add_report(report, split_again(graph, plan()));
  return report;
}

// Splits off micro-batches and orders them by the schedule.
SplitReport FitRewrite::pipelined(Graph& graph) const {
  Pipeline& pipeline = *core_->pipeline();
  if (core_->layouts()) prepare_layers(graph);
  pipeline.cut_stages(graph);
  const StagePlaces places = pipeline.place(graph);
  pipeline.move_variables(graph, places, core_.get());
  const bool trains = std::any_of(places.begin(), places.end(), [](auto& at) {
    return at.second.pass != 'F';
  });
  const int whole = pipeline.options().micro_batches;
  SplitPlan split = plan();
  // No part is empty.
  const auto parts =
      static_cast<int>(std::clamp<int64_t>(batch_of(graph), 1, whole));
  split.replicas.resize(static_cast<size_t>(parts));
  SplitReport report;
  if (core_->layouts()) {
    report = split_layers(graph, pipeline.device_of_variables(graph, places));
    add_report(report, split_again(graph, split));
  } else {
    report = split_batch(graph, split);
  }
  if (parts < 2) return report;
  const PipelineActions actions =
      trains ? pipeline.actions(parts)
             : forward_only(pipeline.actions(whole), parts);
  accumulate(graph);
  order_by_schedule(graph, places, actions);
  verify(graph);
  return report;
}

SplitReport FitRewrite::report() const {
  const std::lock_guard lock(mutex_);
  return report_;
}

SplitPlan FitRewrite::plan() const {
  SplitPlan plan = core_->split_plan();
  if (options_.slices > 0) plan.slices = options_.slices;
  if (core_->link() && !options_.agrees) plan.tasks.link = TaskPart::kNoLink;
  return plan;
}

std::string FitRewrite::moved() const {
  return mover_ ? mover_->str() : std::string();
}

bool FitRewrite::accept(const Plan& plan) const {
  return !mover_ || mover_->accept(plan);
}

void FitRewrite::ran(Plan& plan) const {
  if (mover_) mover_->ran(plan);
}

std::shared_ptr<const FitRewrite> fit_rewrite(
    std::shared_ptr<StrategyCore> core, FitRewriteOptions options) {
  return std::make_shared<const FitRewrite>(std::move(core), options);
}

std::shared_ptr<const GraphRewrite> slices_rewrite(int slices) {
  return std::make_shared<const SlicesRewrite>(slices);
}

}  // namespace berth::distribute
