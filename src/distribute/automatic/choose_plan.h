// choose_plan: what an AutoStrategy becomes.
//
// Traces the training step, reads it as a chain of layers (read_step.h),
// searches (search/search_plans.h), asks the plans of the steps that it finds
// what they hold (planned_step.h), and makes the strategy that runs the result.
// Nothing runs but measurements. One thread.

#ifndef BERTH_DISTRIBUTE_AUTOMATIC_CHOOSE_PLAN_H_
#define BERTH_DISTRIBUTE_AUTOMATIC_CHOOSE_PLAN_H_

#include <memory>

#include "berth/auto_strategy.h"
#include "distribute/prediction/plan_step.h"
#include "distribute/search/search_plans.h"
#include "distribute/strategy/strategy_core.h"

namespace berth::distribute {

// Chooses for steps like this one, unless that is done. Throws
// errors::ResourceExhausted if nothing fits, and the errors of tracing.
void choose_plan(StrategyCore& core, const StepToPlan& step);

// Makes the strategy of a choice. Throws errors::InvalidArgument for one that
// no strategy can run.
std::unique_ptr<StrategyCore> core_of_choice(const ParallelPlan::Choice& choice,
                                             Site site);

// Searches; `who` begins messages. Throws errors::ResourceExhausted if nothing
// fits, naming what comes closest.
ParallelPlan best_plan(const ModelChain& chain,
                       const AutoStrategyOptions& options,
                       const std::string& who);

// The result of a search as a plan, with what was not chosen and why.
ParallelPlan plan_of_search(const ModelChain& chain, const SearchResult& found);

}  // namespace berth::distribute

#endif  // BERTH_DISTRIBUTE_AUTOMATIC_CHOOSE_PLAN_H_
