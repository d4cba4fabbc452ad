// regularizers: penalties on weights and outputs, added to the training loss
// (tf.keras.regularizers).
//
// A Regularizer is a value handle, made from a name ("l2"), by one of the
// functions below, or from a function of your own. It acts in each training
// step. Thread-safe if your own function is.
// Options are written by name, in the order of their struct (berth.h).

#ifndef BERTH_KERAS_REGULARIZERS_H_
#define BERTH_KERAS_REGULARIZERS_H_

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "berth/tensor.h"

namespace berth::keras {

class Regularizer {
 public:
  // Returns a scalar: the penalty of a tensor.
  using Fn = std::function<Tensor(const Tensor& x)>;
  using Parameters = std::vector<std::pair<std::string, double>>;

  Regularizer() = default;  // none
  // Finds one by Keras' name: l1, l2, l1_l2, orthogonal_regularizer, or by the
  // class (L1, ...); "" is none. Throws errors::InvalidArgument for another
  // name.
  Regularizer(const char* name);         // NOLINT: {.kernel_regularizer = "l2"}
  Regularizer(const std::string& name);  // NOLINT
  Regularizer(Fn fn) : fn_(std::move(fn)) {}  // NOLINT: one of your own
  Regularizer(std::string class_name, Parameters parameters, Fn fn);

  explicit operator bool() const { return fn_ != nullptr; }
  Tensor operator()(const Tensor& x) const { return fn_(x); }

  // Keras' class, "" for none and for your own, and its arguments.
  const std::string& class_name() const { return class_name_; }
  const Parameters& parameters() const { return parameters_; }

 private:
  std::string class_name_;
  Parameters parameters_;
  Fn fn_;
};

namespace regularizers {

using keras::Regularizer;

// Factors must be finite and not negative, else errors::InvalidArgument.

// l1 * sum |x|, l2 * sum x^2, and the sum of both.
Regularizer L1(double l1 = 0.01);
Regularizer L2(double l2 = 0.01);
Regularizer L1L2(double l1 = 0, double l2 = 0);

// Mean |cosine| between different rows, or columns, of a matrix [rows, columns]
// times `factor`.
struct OrthogonalOptions {
  double factor = 0.01;
  std::string mode = "rows";  // or "columns"
};
Regularizer OrthogonalRegularizer(OrthogonalOptions options = {});

// Keras' other names.
inline Regularizer l1(double l1 = 0.01) { return L1(l1); }
inline Regularizer l2(double l2 = 0.01) { return L2(l2); }
inline Regularizer l1_l2(double l1 = 0, double l2 = 0) { return L1L2(l1, l2); }
inline Regularizer orthogonal_regularizer(OrthogonalOptions options = {}) {
  return OrthogonalRegularizer(std::move(options));
}

}  // namespace regularizers
}  // namespace berth::keras

#endif  // BERTH_KERAS_REGULARIZERS_H_
