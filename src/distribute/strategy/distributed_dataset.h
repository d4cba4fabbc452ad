// The part of a dataset that a task reads (berth/data_options.h).

#ifndef BERTH_DISTRIBUTE_STRATEGY_DISTRIBUTED_DATASET_H_
#define BERTH_DISTRIBUTE_STRATEGY_DISTRIBUTED_DATASET_H_

#include <optional>

#include "berth/data_options.h"
#include "distribute/strategy/strategy_core.h"

namespace berth::distribute {

// Returns the dataset of this task: batches of its own, which together with
// those of the other tasks make a step. Returns none if every task reads
// everything and takes its rows. All tasks call it together; if a policy cannot
// be followed or the policies differ, it throws errors::InvalidArgument, naming
// `what`, in all of them.
std::optional<data::Dataset> dataset_of_task(const StrategyCore& core,
                                             const data::Dataset& dataset,
                                             const char* what, Site site);

// Implements Strategy::distribute_datasets_from_function().
DistributedDataset dataset_from_function(
    std::shared_ptr<StrategyCore> core,
    const std::function<data::Dataset(const InputContext&)>& fn, Site site);

// Components with no examples, for a task whose data has ended. None if their
// shapes are not known.
std::optional<Tensors> without_examples(const data::Dataset& dataset);

// Whether `mine` is true in any task. All tasks call it together.
bool any_task(CollectiveExecutor& link, bool mine, const char* what);

}  // namespace berth::distribute

#endif  // BERTH_DISTRIBUTE_STRATEGY_DISTRIBUTED_DATASET_H_
