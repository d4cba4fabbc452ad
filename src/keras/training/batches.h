// Batches: what fit, evaluate and predict loop over.
//
// Elements are lists of tensors with one first dimension, whatever they come
// from. One thread.

#ifndef BERTH_KERAS_TRAINING_BATCHES_H_
#define BERTH_KERAS_TRAINING_BATCHES_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include "berth/data.h"
#include "berth/distribute.h"

namespace berth::keras {

struct LayerState;  // keras/models/layer_state.h

// Sets the list to the next element; false at the end.
using NextBatch = std::function<bool(Tensors&)>;

// One time through the batches.
struct BatchReader {
  NextBatch next;
  std::shared_ptr<data::Iterator> iterator;  // null: of replicas
};

struct Batches {
  // Elements whose components have names of the model's inputs are put into
  // order: inputs, targets named like outputs, the rest. Passes throw
  // errors::InvalidArgument, naming `what`, when an input is missing then.
  // With a strategy of several tasks, each reads the share that the options of
  // the dataset say (berth/data_options.h), as below.
  Batches(data::Dataset dataset, const LayerState& model, const char* what,
          Site site,
          const std::shared_ptr<distribute::StrategyCore>& core = nullptr);
  // Joins the shares of replicas, on the host. With several tasks elements have
  // the examples of all of them, where only this task's are filled in; the
  // strategy is told whose are where, and passes end when all tasks have.
  Batches(const distribute::DistributedDataset& dataset,
          std::shared_ptr<distribute::StrategyCore> core);

  int64_t cardinality = data::kUnknown;
  bool own_data = false;  // each task reads examples that others do not
  std::function<BatchReader()> begin;
  std::optional<data::Dataset> dataset;  // none: of replicas
};

// Inputs of a batch, and its targets with weights after them.
struct Batch {
  Tensors inputs, targets;
};

// Sets `batch`, whose storage is used again. Throws errors::InvalidArgument
// when there are no targets though they are `needed`, or first dimensions
// differ.
void cut_batch(const Tensors& element, size_t num_inputs, bool needed,
               Site site, Batch* batch);

// Throws errors::InvalidArgument unless all have as many rows, naming the
// first as x and the others as y.
data::Dataset batches_of(const char* what, const Tensors& components,
                         int64_t batch_size, bool shuffle, Site site);

}  // namespace berth::keras

#endif  // BERTH_KERAS_TRAINING_BATCHES_H_
