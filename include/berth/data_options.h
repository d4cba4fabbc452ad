// data_options: how a dataset is shared by the tasks of a strategy
// (tf.data.Options, tf.data.experimental.AutoShardPolicy).
//
//   data::Options options;
//   options.experimental_distribute.auto_shard_policy =
//       data::AutoShardPolicy::kFile;
//   model.fit(data::with_options(dataset, options), {.epochs = 3});
//
// Under MultiWorkerMirroredStrategy every task makes the same dataset, with
// batches of all tasks together; the policy says which part each task reads.
// Alone, and under other strategies, it says nothing. Values; any thread.

#ifndef BERTH_DATA_OPTIONS_H_
#define BERTH_DATA_OPTIONS_H_

#include <cstdint>
#include <functional>

#include "berth/data.h"
#include "berth/site.h"

namespace berth::data {

enum class AutoShardPolicy : int8_t {
  // Every task reads everything as it is: for a dataset that differs by task
  // already. It takes an equal part of each of its batches per step.
  kOff = -1,
  // kFile where the dataset reads at least as many files as there are tasks,
  // else kData.
  kAuto = 0,
  // Every task reads files of its own: number i, i + tasks, ... of their list.
  // It takes an equal part of each batch per step, so that a step has as many
  // examples as a batch. Throws errors::InvalidArgument where that cannot be.
  kFile = 1,
  // Every task reads everything and takes its rows of each batch. Batches, and
  // what is trained, are those of one task.
  kData = 2,
  // Every task reads what shard(SHARD_HINT, SHARD_HINT) in the dataset lets
  // through; parts per step as for kFile.
  kHint = 3,
};

// For shard(): split by the tasks of a strategy. Whole where there are none.
inline constexpr int64_t SHARD_HINT = -1;

struct DistributeOptions {
  AutoShardPolicy auto_shard_policy = AutoShardPolicy::kAuto;
};
struct Options {
  DistributeOptions experimental_distribute = {};
};

// The dataset, of which the strategy is told this. Among several in one chain
// the last holds.
Dataset with_options(const Dataset& dataset, const Options& options,
                     Site site = Site::here());
// For Dataset::apply(): dataset.apply(data::with_options(options)).
inline std::function<Dataset(const Dataset&)> with_options(
    const Options& options, Site site = Site::here()) {
  return [=](const Dataset& d) { return with_options(d, options, site); };
}
// What it was told; else the defaults.
Options options_of(const Dataset& dataset);

// "OFF", "AUTO", "FILE", "DATA", "HINT"
const char* name_of(AutoShardPolicy policy);

}  // namespace berth::data

#endif  // BERTH_DATA_OPTIONS_H_
