// What a pipeline does with a step, read from the plan of the step.

#ifndef BERTH_DISTRIBUTE_PREDICTION_PLAN_PIPELINE_H_
#define BERTH_DISTRIBUTE_PREDICTION_PLAN_PIPELINE_H_

#include "berth/distribute.h"
#include "distribute/pipeline/pipeline.h"
#include "exec/measure_plan.h"

namespace berth::distribute {

// `traced`: the step before it was split. Times are 0 if `prediction` does not
// know them.
StrategyPlan::PipelinePlan plan_pipeline(const Pipeline& pipeline, Graph traced,
                                         const Plan& plan,
                                         const PlanPrediction& prediction,
                                         int micro_batches);

}  // namespace berth::distribute

#endif  // BERTH_DISTRIBUTE_PREDICTION_PLAN_PIPELINE_H_
