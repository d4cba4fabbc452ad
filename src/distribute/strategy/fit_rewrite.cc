#include "distribute/strategy/fit_rewrite.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/diagnostics.h"
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
  if (core_->link() && options_.agrees) agree_on_step(*core_->link(), graph);
  SplitReport report = core_->pipeline() ? pipelined(graph) : split(graph);
  const auto busy =
      std::count_if(report.examples.begin(), report.examples.end(),
                    [](int64_t rows) { return rows > 0; });
  if (busy > 1) report_whole(report, graph.name);
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

// Splits off micro-batches and orders them by the schedule.
SplitReport FitRewrite::pipelined(Graph& graph) const {
  Pipeline& pipeline = *core_->pipeline();
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
  SplitReport report = split_batch(graph, split);
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
