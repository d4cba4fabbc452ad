// Which part of a dataset a task reads (berth/data_options.h).

#ifndef BERTH_DISTRIBUTE_DISTRIBUTED_DATASET_H_
#define BERTH_DISTRIBUTE_DISTRIBUTED_DATASET_H_

#include <optional>

#include "berth/data_options.h"
#include "distribute/strategy_core.h"

namespace berth::distribute {

// What this task reads: batches of its own, of which those of all tasks make a
// step. None: every task reads everything and takes its rows. All tasks call it
// together; it throws errors::InvalidArgument, naming `what`, in all of them
// where a policy cannot be followed or theirs differ.
std::optional<data::Dataset> dataset_of_task(const StrategyCore& core,
                                             const data::Dataset& dataset,
                                             const char* what, Site site);

// What Strategy::distribute_datasets_from_function() returns.
DistributedDataset dataset_from_function(
    std::shared_ptr<StrategyCore> core,
    const std::function<data::Dataset(const InputContext&)>& fn, Site site);

// Of a task whose data has ended: components with no examples. None when their
// shapes are not known.
std::optional<Tensors> without_examples(const data::Dataset& dataset);

// Whether any of the tasks has `mine`. All call it together.
bool any_task(TaskLink& link, bool mine, const char* what);

}  // namespace berth::distribute

#endif  // BERTH_DISTRIBUTE_DISTRIBUTED_DATASET_H_
