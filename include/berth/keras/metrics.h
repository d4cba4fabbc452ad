// metrics: what training reports (tf.keras.metrics).
//
// A Metric is a value handle of a running mean whose total and count are
// variables: update_state() inside a traced step becomes part of its plan, and
// only result() reads values back. Updates of one metric must not overlap.

#ifndef BERTH_KERAS_METRICS_H_
#define BERTH_KERAS_METRICS_H_

#include <functional>
#include <memory>
#include <string>

#include "berth/keras/losses.h"
#include "berth/tensor.h"
#include "berth/variable.h"

namespace berth::keras {

struct Description;  // keras/fields.h

class Metric {
 public:
  // One value per sample.
  using Fn = std::function<Tensor(const Tensor& y_true, const Tensor& y_pred)>;

  // Finds one by Keras' name: sparse_categorical_accuracy,
  // categorical_accuracy, binary_accuracy, mse, or accuracy, which takes of
  // these what fits the shapes, as Keras does: binary for y_pred [n, 1],
  // sparse for labels of one axis less, else categorical. Throws
  // errors::InvalidArgument for another name.
  Metric(const char* name);         // NOLINT: {.metrics = {"accuracy"}}
  Metric(const std::string& name);  // NOLINT
  Metric(std::string name, Fn fn,
         std::shared_ptr<const Description> description = nullptr);

  // Adds the values of one batch; in strategy.run() those of all replicas.
  void update_state(const Tensor& y_true, const Tensor& y_pred) const;
  void update_state(const Tensor& values) const;
  // The mean so far; 0 when there is nothing. Reads it back.
  double result() const;
  void reset_state() const;

  const std::string& name() const;
  // How it was made, for configs; null: of a function.
  const std::shared_ptr<const Description>& description() const;
  Variable total() const;
  Variable count() const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

namespace metrics {

struct MetricOptions {
  std::string name = {};
};

// Takes values: update_state(values).
Metric Mean(MetricOptions options = {});
// Share of samples whose largest y_pred stands where labels [n] say.
Metric SparseCategoricalAccuracy(MetricOptions options = {});
// The same for one-hot labels [n, c].
Metric CategoricalAccuracy(MetricOptions options = {});
// Share of elements on the right side of 0.5.
Metric BinaryAccuracy(MetricOptions options = {});
Metric MeanSquaredError(MetricOptions options = {});

}  // namespace metrics
}  // namespace berth::keras

#endif  // BERTH_KERAS_METRICS_H_
