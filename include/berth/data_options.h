// data_options: how the tasks of a strategy share a dataset
// (tf.data.Options, tf.data.experimental.AutoShardPolicy).
//
//   data::Options options;
//   options.experimental_distribute.auto_shard_policy =
//       data::AutoShardPolicy::kFile;
//   model.fit(data::with_options(dataset, options), {.epochs = 3});
//
// Under MultiWorkerMirroredStrategy every task makes the same dataset, whose
// batches are for all tasks together; the policy decides which part each task
// reads. With other strategies, or none, it has no effect. Values; any thread.
// Options are written by name, in the order of their struct (berth.h).

#ifndef BERTH_DATA_OPTIONS_H_
#define BERTH_DATA_OPTIONS_H_

#include <cstdint>
#include <functional>

#include "berth/data.h"
#include "berth/site.h"

namespace berth::data {

enum class AutoShardPolicy : int8_t {
  // Every task reads everything: for a dataset that already differs by task. It
  // takes an equal part of each of its batches per step.
  kOff = -1,
  // kFile if the dataset reads at least as many files as there are tasks, else
  // kData.
  kAuto = 0,
  // Every task reads its own files: number i, i + tasks, ... of their list. It
  // takes an equal part of each batch per step, so that a step has as many
  // examples as a batch. Throws errors::InvalidArgument if that is impossible.
  kFile = 1,
  // Every task reads everything and takes its rows of each batch. Batches and
  // training results are those of one task.
  kData = 2,
  // Every task reads the elements selected by shard(SHARD_HINT, SHARD_HINT) in
  // the dataset; parts per step as for kFile.
  kHint = 3,
};

// For shard(): split by the tasks of a strategy. Has no effect if there are
// none.
inline constexpr int64_t SHARD_HINT = -1;

struct DistributeOptions {
  AutoShardPolicy auto_shard_policy = AutoShardPolicy::kAuto;
};
struct Options {
  DistributeOptions experimental_distribute = {};
};

// The dataset with these options for the strategy. If a chain has several, the
// last one applies.
Dataset with_options(const Dataset& dataset, const Options& options,
                     Site site = Site::here());
// For Dataset::apply(): dataset.apply(data::with_options(options)).
inline std::function<Dataset(const Dataset&)> with_options(
    const Options& options, Site site = Site::here()) {
  return [=](const Dataset& d) { return with_options(d, options, site); };
}
// Its options, or the defaults.
Options options_of(const Dataset& dataset);

// "OFF", "AUTO", "FILE", "DATA", "HINT"
const char* name_of(AutoShardPolicy policy);

}  // namespace berth::data

#endif  // BERTH_DATA_OPTIONS_H_
