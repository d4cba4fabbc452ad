// models: layers put together, and their training (tf.keras.Model).
//
// A Model is a Layer that trains. fit() runs a whole step (forward, loss,
// gradients, update, metrics) as one compiled plan per batch shape and reads
// metrics back only when it prints them. One thread trains a model at a time.

#ifndef BERTH_KERAS_MODELS_H_
#define BERTH_KERAS_MODELS_H_

#include <iosfwd>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "berth/data.h"
#include "berth/function.h"
#include "berth/keras/callbacks.h"
#include "berth/keras/layers.h"
#include "berth/keras/losses.h"
#include "berth/keras/metrics.h"
#include "berth/keras/optimizers.h"

namespace berth::distribute {
class DistributedDataset;
class Strategy;
struct StrategyPlan;
}  // namespace berth::distribute

namespace berth::keras {

struct CompileOptions {
  Optimizer optimizer = "adam";
  Loss loss = {};  // of every output
  std::vector<Metric> metrics = {};
  // Parts that a batch is cut into; equal slices give equal bits on any number
  // of cores, and of devices of one kind, with a strategy or without. 0: the
  // number of cores.
  int slices = 0;
  // One per output, instead of `loss`; the sum is made small.
  std::vector<Loss> losses = {};
  // Checked on the training step (function.h).
  berth::placement::Contracts contracts = {};
  // Who places the steps of fit, evaluate and predict (function.h). A strategy
  // places its own.
  berth::placement::Policy placement = {};
};

// What fit, evaluate and predict take: batches (dataset), or tensors.
struct ValidationData {
  ValidationData() = default;  // none
  ValidationData(Tensor x, Tensor y)
      : tensors(std::pair(std::move(x), std::move(y))) {}
  ValidationData(data::Dataset d) : dataset(std::move(d)) {}  // NOLINT
  std::optional<std::pair<Tensor, Tensor>> tensors;
  std::optional<data::Dataset> dataset;
};

struct FitOptions {
  int epochs = 1;
  int64_t batch_size = 32;  // of tensors; a dataset brings its own
  // 0: silent; 1: a progress bar on a terminal, else a line per epoch; 2: a
  // line per epoch.
  int verbose = 1;
  std::vector<Callback> callbacks = {};
  ValidationData validation_data = {};
  bool shuffle = true;  // tensors only
};

struct EvaluateOptions {
  int64_t batch_size = 32;
  int verbose = 0;
};
struct PredictOptions {
  int64_t batch_size = 32;
};

// Where the time of a training step under a strategy went, measured. Times are
// of one step on a full batch; work of different devices overlaps.
struct MeasuredSplit {
  struct Replica {
    std::vector<std::string> devices;  // full names
    int64_t examples = 0;
    double compute_us = 0;
  };
  int64_t steps = 0;  // that had run when it was measured
  std::vector<Replica> replicas;
  double step_us = 0;        // without the wait for input
  double all_reduce_us = 0;  // sums of gradients, and sending them
  double input_us = 0;       // waiting for the next batch
  double predicted_us = -1;  // step_us as predicted; -1: it was not
  // How much longer the slowest replica computes than the mean: 0.1 is 10 %.
  double imbalance() const;
  double slowest_us() const;  // its compute_us
  // Hand-over, waits between replicas, all that is in no other figure.
  double other_us() const;
  double prediction_error() const;  // predicted over measured, less 1
  std::string str() const;          // a table for people
};

struct History {
  std::vector<int> epoch;
  std::map<std::string, std::vector<double>> history;
  std::vector<double> seconds;  // per epoch, with validation
  // Ops of the training step that did not run where they were asked to, and
  // the bytes that move because of them, per step.
  int64_t fallback_ops = 0;
  int64_t fallback_bytes = 0;
  // Under a strategy of several replicas, after 20 steps.
  std::optional<MeasuredSplit> split = {};
  // How automatic shares moved, and what that gained: "shares 8:24 -> 6:26:
  // step 812 us -> 640 us"; "" when they did not.
  std::string shares = {};
};

class Model : public Layer {
 public:
  struct Training;  // keras/training.h

  // A functional model: what leads from `inputs` to `outputs`. Throws
  // errors::InvalidArgument when an output needs another input.
  Model(KerasTensor input, KerasTensor output, NameOptions options = {},
        Site site = Site::here());
  Model(KerasTensors inputs, KerasTensors outputs, NameOptions options = {},
        Site site = Site::here());
  // A model of your own.
  explicit Model(std::shared_ptr<LayerBase> base);
  template <class T, class... Args>
  static Model make(Args&&... args) {
    return Model(std::make_shared<T>(std::forward<Args>(args)...));
  }

  // Makes the weights for inputs of these shapes; the batch may be -1.
  void build(const Shape& input, DType dtype = float32);

  // In the scope of a strategy (berth/distribute.h), or of a model made in one,
  // steps are split over its replicas.
  void compile(CompileOptions options, Site site = Site::here());

  // Trains. x [n, ...], y [n, ...]; elements of `dataset` are batches: the
  // inputs, then the targets. A model of a strategy splits each batch over the
  // replicas, and gives what one device gives. Throws
  // errors::FailedPrecondition before compile(), errors::InvalidArgument for
  // data that does not fit: also batches smaller than the number of replicas,
  // but for later, smaller ones.
  History fit(const Tensor& x, const Tensor& y, const FitOptions& options = {},
              Site site = Site::here());
  History fit(const data::Dataset& dataset, const FitOptions& options = {},
              Site site = Site::here());
  // Parts of batches are joined: the strategy cuts the step by its own shares.
  History fit(const distribute::DistributedDataset& dataset,
              const FitOptions& options = {}, Site site = Site::here());
  // Returns "loss" and the metrics.
  Logs evaluate(const Tensor& x, const Tensor& y,
                const EvaluateOptions& options = {}, Site site = Site::here());
  Logs evaluate(const data::Dataset& dataset,
                const EvaluateOptions& options = {}, Site site = Site::here());
  // Returns the first output for x [n, ...], computed in batches.
  Tensor predict(const Tensor& x, const PredictOptions& options = {},
                 Site site = Site::here());
  // The same of all inputs and outputs.
  Tensors predict(const Tensors& x, const PredictOptions& options = {},
                  Site site = Site::here());

  // One step; returns the loss before it, which is not read back.
  Tensor train_on_batch(const Tensor& x, const Tensor& y,
                        Site site = Site::here());
  Tensor train_on_batch(const Tensors& inputs, const Tensors& targets,
                        Site site = Site::here());

  // Metrics since the last reset, read back; and the reset.
  Logs metrics_result() const;
  void reset_metrics();

  // Ends fit after the batch that runs.
  void stop_training();

  // The step that ran last: figures, and text of a stage (function.h). Throw
  // errors::FailedPrecondition before the first step.
  FunctionPlanInfo train_plan_info() const;
  std::string train_plan_text(const std::string& stage = "plan") const;
  int num_train_traces() const;

  // Of the training step that ran most often: what ran where (berth/
  // placement.h). Throws errors::FailedPrecondition before the first step.
  berth::placement::Report placement() const;
  // Why an op of the training step is where it is: "dense/MatMul", "dense".
  // Throws errors::NotFound with the nearest names.
  berth::placement::Explanation explain(const std::string& op) const;

  // What a training step on `batch_size` examples would do under the strategy
  // that the model is compiled for: Strategy::plan() calls it. Runs nothing but
  // measurements of parts of the step, on scratch, whose times are kept. Throws
  // errors::FailedPrecondition before compile(), or when nothing says what the
  // inputs are; errors::InvalidArgument for another strategy.
  distribute::StrategyPlan strategy_plan(const distribute::Strategy& strategy,
                                         int64_t batch_size,
                                         Site site = Site::here()) const;

  // Prints layers, output shapes, parameters and devices.
  void summary(std::ostream& out) const;
  void summary() const;  // to stdout

 private:
  std::shared_ptr<Training> training_;
};

struct SequentialOptions {
  std::string name = {};
};
// Layers one after the other.
struct Sequential : Model {
  explicit Sequential(std::vector<Layer> layers, SequentialOptions options = {},
                      Site site = Site::here());
};

}  // namespace berth::keras

#endif  // BERTH_KERAS_MODELS_H_
