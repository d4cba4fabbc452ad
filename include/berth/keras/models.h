// models: combined layers, and their training (tf.keras.Model).
//
// A Model is a Layer that trains. fit() runs a whole step (forward, loss,
// gradients, update, metrics) as one compiled plan per batch shape and reads
// metrics back only when it prints them. One thread trains a model at a time.
// Options are written by name, in the order of their struct (berth.h).

#ifndef BERTH_KERAS_MODELS_H_
#define BERTH_KERAS_MODELS_H_

#include <functional>
#include <initializer_list>
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
#include "berth/keras/saving.h"

namespace berth::distribute {
class DistributedDataset;
struct InputContext;
class Strategy;
struct StrategyPlan;
}  // namespace berth::distribute

namespace berth::train {
class Tracked;
}

namespace berth::keras {

// Tensors of several inputs or outputs: by name, {{"image", x}, {"text", t}},
// or in order. Names are those of Input layers and of the output layers.
class NamedTensors {
 public:
  NamedTensors() = default;
  NamedTensors(
      std::initializer_list<std::pair<std::string, Tensor>> named)  // NOLINT
      : items_(named) {}
  NamedTensors(const std::map<std::string, Tensor>& named)  // NOLINT
      : items_(named.begin(), named.end()) {}
  NamedTensors(const Tensors& in_order);                  // NOLINT
  NamedTensors(const Tensor& one) : items_{{"", one}} {}  // NOLINT

  // The name is "" if tensors are in order.
  const std::vector<std::pair<std::string, Tensor>>& items() const {
    return items_;
  }

 private:
  std::vector<std::pair<std::string, Tensor>> items_;
};

// One value per output: {"mse", "mae"} in order, or by name
// {{"price", "mse"}, {"sold", "bce"}}.
template <class T>
struct PerOutput : std::vector<T> {
  using std::vector<T>::vector;
  PerOutput() = default;
  PerOutput(std::vector<T> in_order)  // NOLINT
      : std::vector<T>(std::move(in_order)) {}
  PerOutput(std::initializer_list<std::pair<std::string, T>> named) {
    for (const auto& [name, value] : named) {
      names.push_back(name);
      this->push_back(value);
    }
  }
  std::vector<std::string> names = {};  // empty: in order
};

struct CompileOptions {
  Optimizer optimizer = "adam";
  Loss loss = {};  // for every output
  // For the first output, without sample weights.
  std::vector<Metric> metrics = {};
  // Parts that a batch is split into; equal slices give equal bits on any
  // number of cores, and of devices of one kind, with a strategy or without. 0:
  // the number of cores.
  int slices = 0;
  // One per output, instead of `loss`; training minimises their sum. An output
  // without a named loss has none, and no target.
  PerOutput<Loss> losses = {};
  // Checked on the training step (function.h).
  berth::placement::Contracts contracts = {};
  // The policy that places the steps of fit, evaluate and predict (function.h).
  // Strategies place their own steps.
  berth::placement::Policy placement = {};
  // Factors of the losses in their sum; 1 when absent.
  PerOutput<double> loss_weights = {};
  // By the name of the output.
  std::map<std::string, std::vector<Metric>> metrics_by_output = {};
  // Runs steps op by op, so that a debugger can stop in layers; slow. Not for
  // strategies with several replicas.
  bool run_eagerly = false;
  // If layers compute in float16, wraps the optimizer in a LossScaleOptimizer.
  bool auto_scale_loss = true;
  // For the first output, with sample and class weights; "weighted_mse" in logs
  // if `metrics` has an "mse", too.
  std::vector<Metric> weighted_metrics = {};
  // By the name of the output.
  std::map<std::string, std::vector<Metric>> weighted_metrics_by_output = {};
  // Logs the Euclidean norm of the gradient of each layer with weights, as the
  // mean over batches: "gradient_norm/dense", in History and for callbacks.
  // Under a strategy of what is summed over replicas.
  bool gradient_norms = false;
};

// The data of fit, evaluate and predict: batches (dataset), or tensors.
struct ValidationData {
  ValidationData() = default;  // none
  ValidationData(Tensor x, Tensor y)
      : ValidationData(NamedTensors(x), NamedTensors(y)) {}
  ValidationData(Tensor x, Tensor y, Tensor sample_weight)
      : ValidationData(NamedTensors(x), NamedTensors(y),
                       std::move(sample_weight)) {}
  ValidationData(NamedTensors x, NamedTensors y, Tensor sample_weight = {})
      : tensors(std::pair(std::move(x), std::move(y))),
        sample_weight(std::move(sample_weight)) {}
  ValidationData(data::Dataset d) : dataset(std::move(d)) {}  // NOLINT
  std::optional<std::pair<NamedTensors, NamedTensors>> tensors;
  Tensor sample_weight;
  std::optional<data::Dataset> dataset;
};

// The reaction of fit to the first loss that is not finite. If the step can be
// repeated, it names the first layer whose output was not finite.
enum class OnNaN : uint8_t {
  kWarn,    // diagnostic "nan-loss", once, and training continues
  kStop,    // the same, and fit ends as with stop_training()
  kRaise,   // errors::InvalidArgument
  kIgnore,  // nothing
};

struct FitOptions {
  int epochs = 1;           // the last epoch
  int64_t batch_size = 32;  // for tensors; a dataset has its own
  // 0: silent; 1: a progress bar on a terminal, else as 2; 2: a line per epoch,
  // and at the end the measurements under a strategy and, if several devices
  // took part, the table of placement().
  int verbose = 1;
  std::vector<Callback> callbacks = {};
  ValidationData validation_data = {};
  bool shuffle = true;  // tensors only
  // Share of the samples, the last ones, used for validation: tensors only.
  double validation_split = 0;
  int validation_freq = 1;  // epochs between validations
  // Ends an epoch after this many batches, or, with a warning, where the data
  // end; the next one continues there. 0: at the end of the data.
  int64_t steps_per_epoch = 0;
  int64_t validation_steps = 0;       // 0: all
  int64_t validation_batch_size = 0;  // 0: batch_size
  int initial_epoch = 0;              // fit runs epochs - initial_epoch
  // Factor of the loss of each sample, [n]. A dataset has it after the targets:
  // one tensor, or one for each of them.
  Tensor sample_weight = {};
  // Factor of the loss of each class; 1 if absent. For models with one output
  // whose targets are class numbers, or one-hot.
  std::map<int64_t, double> class_weight = {};
  OnNaN on_nan = OnNaN::kWarn;
};

struct EvaluateOptions {
  int64_t batch_size = 32;
  int verbose = 0;
  int64_t steps = 0;  // 0: all
  Tensor sample_weight = {};
  std::vector<Callback> callbacks = {};
};
struct PredictOptions {
  int64_t batch_size = 32;
  int64_t steps = 0;  // for a dataset; 0: all
  std::vector<Callback> callbacks = {};
};
struct OnBatchOptions {
  Tensor sample_weight = {};                    // [n]
  std::map<int64_t, double> class_weight = {};  // as in training
};

struct SaveWeightsOptions {
  bool overwrite = true;  // false: an existing file is an error
  std::string format = "safetensors";
};
struct LoadWeightsOptions {
  // Skips weights that are missing in the file, or have another shape.
  bool skip_mismatch = false;
};

struct SaveOptions {
  bool overwrite = true;  // false: an existing file is an error
  // Includes the arguments of compile() and the state of the optimizer, so that
  // training can continue.
  bool include_optimizer = true;
};
struct LoadModelOptions {
  bool compile = true;  // false: only the model, even if the file has more
};

// Where the time of a training step under a strategy went, as measured. Times
// are per step on a full batch; work of different devices overlaps.
struct MeasuredSplit {
  struct Replica {
    std::vector<std::string> devices;  // full names
    int64_t examples = 0;
    double compute_us = 0;
  };
  int64_t steps = 0;  // before the measurement
  std::vector<Replica> replicas;
  double step_us = 0;        // without the wait for input
  double all_reduce_us = 0;  // sums of gradients, including communication
  double input_us = 0;       // waiting for the next batch
  double predicted_us = -1;  // step_us as predicted; -1: not predicted
  // How much longer the slowest replica computes than the mean: 0.1 is 10 %.
  double imbalance() const;
  double slowest_us() const;  // its compute_us
  // Hand-over, waits between replicas, and all else that is in no other figure.
  double other_us() const;
  double prediction_error() const;  // predicted / measured - 1
  std::string str() const;          // a table for people
};

// What a training step holds on each device at its peak, by its plan.
struct FitsReport {
  struct Device {
    std::string device;           // full name
    int64_t peak_bytes = 0;       // of the step
    int64_t available_bytes = 0;  // for the step; 0: no limit
  };
  bool fits = false;
  int64_t batch = 0;
  int64_t largest_batch = 0;  // that fits; 0: none; -1: no limit
  std::vector<Device> devices;
  // What is in memory when the arena of its device is fullest.
  struct Holder {
    std::string device;
    std::string what;  // "\"dense/MatMul\"", "variable \"w\"", "a constant"
    int64_t bytes = 0;
    Site site = {};
  };
  std::vector<Holder> memory;  // the largest first
  explicit operator bool() const { return fits; }
  std::string str() const;  // lines for people
};

// What each task of a fit over several tasks did: its examples, and where the
// time of a step went.
struct TaskReport {
  struct Task {
    std::string name;        // "worker:1"
    int64_t samples = 0;     // that it computed on
    double step_us = 0;      // without the wait for input
    double waited_us = 0;    // part of that: waits for sums of other tasks
    double input_us = 0;     // waiting for the next batch
    double network_us = -1;  // 64 KiB to the first task and back; -1: itself
    double compute_us() const { return step_us - waited_us; }
  };
  std::vector<Task> tasks;  // in order of ranks
  int64_t steps = 0;
  int64_t samples = 0;  // in the batches of all steps
  // Under elastic(), of each epoch: how many examples the tasks computed on
  // once, more often, and never, in steps that count (those that a lost task
  // left unfinished are repeated). Known by their places in the epoch's order.
  struct Seen {
    int64_t once = 0, twice = 0, never = 0;
    bool operator==(const Seen&) const = default;
  };
  std::vector<Seen> epochs;
  // Number of examples computed more than once. Tasks that read their own data
  // are assumed to read different data.
  int64_t duplicates() const;
  // The tasks that the others wait for, by how much, and whether computation or
  // network is slow, in a line each; "" if none is 25 % behind the rest.
  std::string stragglers() const;
  std::string str() const;  // lines for people
};

struct History {
  std::vector<int> epoch;
  std::map<std::string, std::vector<double>> history;
  std::vector<double> seconds;        // per epoch, with validation
  std::vector<double> input_seconds;  // of these, waiting for batches to train
  // Ops of the training step that did not run where requested, and the bytes
  // moved because of them, per step.
  int64_t fallback_ops = 0;
  int64_t fallback_bytes = 0;
  // Under a strategy of several replicas, after 20 steps.
  std::optional<MeasuredSplit> split = {};
  // How automatic shares moved, and the gain: "shares 8:24 -> 6:26: step 812 us
  // -> 640 us"; "" if they did not move.
  std::string shares = {};
  // Under a strategy of several tasks.
  std::optional<TaskReport> tasks = {};
};

// Where a fit resumes: `batch` steps of epoch `epoch` are done.
struct FitPosition {
  int epoch = 0;
  int64_t batch = 0;
};

// The running fit, for callbacks: model.fit_loop().
class FitLoop {
 public:
  virtual ~FitLoop() = default;

  virtual int epoch() const = 0;            // from 0
  virtual int epochs() const = 0;           // the last epoch
  virtual int64_t batch() const = 0;        // steps done in this epoch
  virtual int64_t steps() const = 0;        // of an epoch; -1: not known yet
  virtual int64_t total_steps() const = 0;  // since on_train_begin
  // The position of the next step; after the end of an epoch, of the next one's
  // first step.
  virtual FitPosition position() const = 0;
  virtual bool has_validation() const = 0;
  virtual bool stopping() const = 0;  // stop_training() was called
  // Repeats the step of element(), op by op, regardless of compile().
  virtual void repeat_eagerly() = 0;
  // Logs of the finished epochs; in on_epoch_end including this one.
  virtual const History& history() const = 0;
  virtual const std::vector<Callback>& callbacks() const = 0;
  // The batch of the current or last step: inputs, targets, weights.
  virtual const Tensors& element() const = 0;
  // The pass over the data, positioned after the last batch; between epochs
  // that of the last one; null before the first, and for a DistributedDataset.
  virtual data::Iterator* iterator() = 0;

  // In on_train_begin: resumes there. `restore` restores the pass that
  // continues epoch position.epoch, or that which begins it, or the whole one
  // before, whose dataset then begins the next. Without it,
  // earlier passes are started and dropped (the order of a shuffle depends on
  // their number), and earlier batches are read and dropped. If batches of the
  // epoch are done its metrics are not reset.
  using Restore = std::function<void(data::Iterator&)>;
  virtual void start_at(FitPosition position, History so_far = {},
                        Restore restore = {}) = 0;

  // Whether one pass over the data continues in the next epoch
  // (steps_per_epoch).
  virtual bool counts_steps() const = 0;
  // The part of the data that this task reads for itself: "1 of 3"; "" if the
  // tasks share each batch.
  virtual std::string data_part() const { return ""; }
};

namespace utils::experimental {

// A dataset that each task makes for itself, with batches for one replica
// (tf.keras.utils.experimental.DatasetCreator).
//   model.fit(DatasetCreator([](const distribute::InputContext& c) {...}));
// Without a strategy, and under ParameterServerStrategy, where the chief reads,
// it is called once with the InputContext of one pipeline.
struct DatasetCreator {
  using Fn = std::function<data::Dataset(const distribute::InputContext&)>;
  explicit DatasetCreator(Fn fn) : dataset_fn(std::move(fn)) {}
  Fn dataset_fn;
};

}  // namespace utils::experimental

class Model : public Layer {
 public:
  struct Training;  // keras/training.h

  // A functional model: the layers from `inputs` to `outputs`. Throws
  // errors::InvalidArgument if an output needs another input.
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

  // Makes the weights for inputs with these shapes; the batch may be -1.
  void build(const Shape& input, DType dtype = float32);

  // The layers in order; and one of them. Throw errors::NotFound, with the
  // nearest names, OutOfRange. Layers of a Sequential that knows its inputs
  // have input() and output(), too.
  std::vector<Layer> layers() const;
  Layer get_layer(const std::string& name) const;
  Layer get_layer(int64_t index) const;
  std::vector<std::string> input_names() const;
  std::vector<std::string> output_names() const;

  // Whether a training step on `batch` examples fits into `memory_bytes` of
  // each device (0: what its limit leaves), and the largest batch that does.
  // Plans the step; nothing is trained. Weights that are not there are made.
  // Throws errors::FailedPrecondition before compile(), and when the shape of
  // the inputs is not known.
  FitsReport fits(int64_t batch, int64_t memory_bytes = 0,
                  Site site = Site::here());

  // In the scope of a strategy (berth/distribute.h), or for a model made in
  // one, steps are split over its replicas.
  void compile(CompileOptions options, Site site = Site::here());

  // Trains. x [n, ...], y [n, ...]; elements of `dataset` are batches: the
  // inputs, then the targets, then sample weights, if any. A model of a
  // strategy splits each batch over the replicas, and gives the results of one
  // device. Throws errors::FailedPrecondition before compile(),
  // errors::InvalidArgument for data that does not fit.
  History fit(const Tensor& x, const Tensor& y, const FitOptions& options = {},
              Site site = Site::here());
  History fit(const data::Dataset& dataset, const FitOptions& options = {},
              Site site = Site::here());
  // For several inputs or outputs, in order or by name.
  History fit(const Tensors& x, const Tensors& y,
              const FitOptions& options = {}, Site site = Site::here());
  History fit(const NamedTensors& x, const NamedTensors& y,
              const FitOptions& options = {}, Site site = Site::here());
  // Parts of batches are joined: the strategy splits the step by its own
  // shares.
  History fit(const distribute::DistributedDataset& dataset,
              const FitOptions& options = {}, Site site = Site::here());
  History fit(const utils::experimental::DatasetCreator& creator,
              const FitOptions& options = {}, Site site = Site::here());
  // Returns "loss" and the metrics.
  Logs evaluate(const Tensor& x, const Tensor& y,
                const EvaluateOptions& options = {}, Site site = Site::here());
  Logs evaluate(const Tensors& x, const Tensors& y,
                const EvaluateOptions& options = {}, Site site = Site::here());
  Logs evaluate(const NamedTensors& x, const NamedTensors& y,
                const EvaluateOptions& options = {}, Site site = Site::here());
  Logs evaluate(const data::Dataset& dataset,
                const EvaluateOptions& options = {}, Site site = Site::here());
  // Returns the first output for x [n, ...], computed in batches.
  Tensor predict(const Tensor& x, const PredictOptions& options = {},
                 Site site = Site::here());
  // Returns all outputs for all inputs.
  Tensors predict(const Tensors& x, const PredictOptions& options = {},
                  Site site = Site::here());
  Tensors predict(const NamedTensors& x, const PredictOptions& options = {},
                  Site site = Site::here());
  // All outputs; the inputs are the first tensors of each batch.
  Tensors predict(const data::Dataset& dataset,
                  const PredictOptions& options = {}, Site site = Site::here());

  // One step; returns the loss before it, which is not read back.
  Tensor train_on_batch(const Tensor& x, const Tensor& y,
                        Site site = Site::here());
  Tensor train_on_batch(const Tensors& inputs, const Tensors& targets,
                        Site site = Site::here());
  Tensor train_on_batch(const NamedTensors& x, const NamedTensors& y,
                        const OnBatchOptions& options,
                        Site site = Site::here());
  // Returns the loss without training; metrics count the batch.
  Tensor test_on_batch(const NamedTensors& x, const NamedTensors& y,
                       const OnBatchOptions& options = {},
                       Site site = Site::here());
  // All outputs.
  Tensors predict_on_batch(const NamedTensors& x, Site site = Site::here());

  // The optimizer of compile(). Throws errors::FailedPrecondition before.
  Optimizer optimizer() const;
  // "loss" and those of compile(), in the order of results.
  std::vector<Metric> metrics() const;

  // Their names, as in logs.
  std::vector<std::string> metrics_names() const;
  // The arguments of compile(), as save() stores them, without contracts and
  // placement; and compile() with these. Throw errors::FailedPrecondition
  // before compile() and for arguments that a config cannot hold,
  // InvalidArgument for an invalid config.
  Config get_compile_config() const;
  void compile_from_config(const Config& config, Site site = Site::here());

  // Metrics since the last reset, read back; and the reset.
  Logs metrics_result() const;
  Logs get_metrics_result() const { return metrics_result(); }
  void reset_metrics();

  // Ends fit after the current batch.
  void stop_training();
  // The fit that runs on this model, or null.
  FitLoop* fit_loop() const;

  // The last step: figures, and text of a stage (function.h). Throw
  // errors::FailedPrecondition before the first step.
  FunctionPlanInfo train_plan_info() const;
  std::string train_plan_text(const std::string& stage = "plan") const;
  int num_train_traces() const;

  // Report on the training step that ran most often: what ran where (berth/
  // placement.h). Throws errors::FailedPrecondition before the first step.
  berth::placement::Report placement() const;
  // Why an op of the training step is where it is: "dense/MatMul", "dense".
  // Throws errors::NotFound with the nearest names.
  berth::placement::Explanation explain(const std::string& op) const;

  // A prediction of a training step on `batch_size` examples under the strategy
  // that the model is compiled for: Strategy::plan() calls it. Runs nothing but
  // measurements of parts of the step, on scratch memory, whose times are kept.
  // Throws errors::FailedPrecondition before compile(), or if the inputs are
  // not known; errors::InvalidArgument for another strategy.
  distribute::StrategyPlan strategy_plan(const distribute::Strategy& strategy,
                                         int64_t batch_size,
                                         Site site = Site::here()) const;

  // Writes the weights to a safetensors file, atomically; .safetensors is
  // appended to its name if missing. Names in the file: "dense_1/kernel", where
  // layers are counted within the model. Throws errors::FailedPrecondition
  // before the weights are made, AlreadyExists, InvalidArgument for another
  // format, and the errors of writing files (train.h).
  void save_weights(const std::string& filepath,
                    const SaveWeightsOptions& options = {},
                    Site site = Site::here()) const;
  // Reads such a file, also into torn weights. Throws errors::NotFound,
  // DataLoss (a damaged file), FailedPrecondition before the weights are made,
  // and InvalidArgument if names, shapes or dtypes differ: then nothing has
  // changed.
  void load_weights(const std::string& filepath,
                    const LoadWeightsOptions& options = {},
                    Site site = Site::here()) const;

  // Writes the whole model as one safetensors file: weights, and in its
  // metadata to_json() and the arguments of compile(); load_model() restores
  // it, and load_weights() reads the file as well. Throws as save_weights()
  // does, and errors::FailedPrecondition for what a config cannot hold
  // (saving.h). "": model.safetensors in the folder AIP_MODEL_DIR.
  void save(const std::string& filepath = "", const SaveOptions& options = {},
            Site site = Site::here()) const;

  // Weights, optimizer, metrics, and the state of random layers, for
  // checkpoints (train.h).
  std::shared_ptr<train::Tracked> tracked() const;

  // The structure of the model, as Keras' to_json() writes it, without weights
  // (keras/saving.h); model_from_json() reads it.
  std::string to_json(int indent = -1) const;

  // Prints layers, output shapes, parameters and devices.
  void summary(std::ostream& out) const;
  void summary() const;  // to stdout

 private:
  std::shared_ptr<Training> training_;
};

// The batch of a step.
struct StepData {
  Tensors x, y;
  Tensors sample_weight;  // none, one for all outputs, or one for each
};
// Scalars by name: what a step returns.
using StepLogs = std::vector<std::pair<std::string, Tensor>>;

// A model of your own with steps of your own. Override a step, and fit compiles
// it like its own:
//   StepLogs train_step(const StepData& data) override {
//     GradientTape tape;
//     const Tensor loss = compute_loss(data, forward(data.x, true));
//     const auto weights = trainable_variables();
//     optimizer().apply_gradients(tape.gradient(loss, weights), weights);
//     return {{"loss", loss}};
//   }
class ModelBase : public LayerBase {
 public:
  using LayerBase::LayerBase;

  // The step of fit and train_on_batch. fit logs the mean over the epoch of
  // each returned scalar; train_on_batch returns the first.
  virtual StepLogs train_step(const StepData& data);
  // The step of evaluate, validation and test_on_batch.
  virtual StepLogs test_step(const StepData& data);
  virtual Tensors predict_step(const Tensors& x);
  // The losses of compile(), weighted and summed, and those added by layers. A
  // scalar.
  virtual Tensor compute_loss(const StepData& data, const Tensors& y_pred);

 protected:
  // Calls the model, which runs call().
  Tensors forward(const Tensors& x, bool training);
  // Updates the metrics of compile().
  void update_metrics(const StepData& data, const Tensors& y_pred);
  // Throws errors::FailedPrecondition before compile().
  const Optimizer& optimizer() const;
  std::vector<Variable> trainable_variables() const;
  // Number of inputs among a batch's tensors; 1 by default. In the constructor.
  void set_num_inputs(size_t n);

 private:
  friend struct Model::Training;
  Model::Training& training() const;
  Model::Training* training_ = nullptr;
};

struct SequentialOptions {
  std::string name = {};
};
// Layers in sequence.
struct Sequential : Model {
  explicit Sequential(std::vector<Layer> layers, SequentialOptions options = {},
                      Site site = Site::here());
};

// A model from the text of to_json(), here or in Keras, with new weights.
// Throws errors::InvalidArgument for an invalid text, classes that are not
// registered, or fields that they do not have.
Model model_from_json(const std::string& json, Site site = Site::here());
// Loads a file of Model::save(): the model, compiled if it was, with its
// weights and the state of its optimizer; your own code is found by the name
// that it is registered under (saving.h). Contracts and placement are not part
// of the file. Throws errors::NotFound, DataLoss (a damaged file), and
// InvalidArgument for a file of weights only or unknown classes.
Model load_model(const std::string& filepath,
                 const LoadModelOptions& options = {},
                 Site site = Site::here());
// Another model like `model`, with weights of its own.
Model clone_model(const Model& model, Site site = Site::here());

}  // namespace berth::keras

#endif  // BERTH_KERAS_MODELS_H_
