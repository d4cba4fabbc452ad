// constraints: conditions on weights after each update (tf.keras.constraints).
//
// A Constraint is a value handle, made from a name ("non_neg"), by one of the
// functions below, or from a function of your own. It acts after each update of
// the weight by fit. Thread-safe if your own function is.
// Options are written by name, in the order of their struct (berth.h).

#ifndef BERTH_KERAS_CONSTRAINTS_H_
#define BERTH_KERAS_CONSTRAINTS_H_

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "berth/tensor.h"

namespace berth::keras {

class Constraint {
 public:
  // Returns the constrained weight; [shape of x].
  using Fn = std::function<Tensor(const Tensor& x)>;
  using Parameters = std::vector<std::pair<std::string, double>>;
  using Axes = std::vector<int64_t>;

  Constraint() = default;  // none
  // Finds one by Keras' name: max_norm, non_neg, unit_norm, min_max_norm, or by
  // the class (MaxNorm, ...); "" is none. Throws errors::InvalidArgument for
  // another name.
  Constraint(const char* name);              // NOLINT
  Constraint(const std::string& name);       // NOLINT
  Constraint(Fn fn) : fn_(std::move(fn)) {}  // NOLINT: one of your own
  Constraint(std::string class_name, Parameters parameters, Axes axis, Fn fn);

  explicit operator bool() const { return fn_ != nullptr; }
  Tensor operator()(const Tensor& x) const { return fn_(x); }

  // Keras' class, "" for none and for your own, and its arguments.
  const std::string& class_name() const { return class_name_; }
  const Parameters& parameters() const { return parameters_; }
  const Axes& axis() const { return axis_; }

 private:
  std::string class_name_;
  Parameters parameters_;
  Axes axis_;
  Fn fn_;
};

namespace constraints {

using keras::Constraint;
using Axes = Constraint::Axes;

// Norms are Euclidean, over `axis`: {0} for each column of a Dense kernel, {0,
// 1, 2} for each filter of a Conv2D kernel. Limits must be finite and not
// negative, the rate in [0, 1], else errors::InvalidArgument.

// Scales what has a larger norm down to max_value.
Constraint MaxNorm(double max_value = 2, Axes axis = {0});
// 0 where x is negative.
Constraint NonNeg();
// Norm 1.
Constraint UnitNorm(Axes axis = {0});
struct MinMaxNormOptions {
  double min_value = 0;
  double max_value = 1;
  double rate = 1;  // how far norms outside are moved towards it
  Axes axis = {0};
};
Constraint MinMaxNorm(MinMaxNormOptions options = {});

// Keras' other names.
inline Constraint max_norm(double max_value = 2, Axes axis = {0}) {
  return MaxNorm(max_value, std::move(axis));
}
inline Constraint non_neg() { return NonNeg(); }
inline Constraint unit_norm(Axes axis = {0}) {
  return UnitNorm(std::move(axis));
}
inline Constraint min_max_norm(MinMaxNormOptions options = {}) {
  return MinMaxNorm(std::move(options));
}

}  // namespace constraints
}  // namespace berth::keras

#endif  // BERTH_KERAS_CONSTRAINTS_H_
