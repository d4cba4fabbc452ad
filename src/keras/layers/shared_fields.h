// Fields that configs of several layers have.

#ifndef BERTH_KERAS_LAYERS_SHARED_FIELDS_H_
#define BERTH_KERAS_LAYERS_SHARED_FIELDS_H_

#include <optional>
#include <utility>
#include <vector>

#include "berth/keras/augmentation_layers.h"
#include "berth/keras/preprocessing_layers.h"
#include "berth/keras/volume_layers.h"
#include "keras/config/classes.h"

namespace berth::keras {

// Regularizers and constraints of kernel and bias.
template <class Options>
void kernel_penalty_fields(Fields& f, Options& o) {
  f("kernel_regularizer", o.kernel_regularizer);
  f("bias_regularizer", o.bias_regularizer);
  if constexpr (requires { o.activity_regularizer; }) {
    f.unless_none("activity_regularizer", o.activity_regularizer);
  }
  f("kernel_constraint", o.kernel_constraint);
  f("bias_constraint", o.bias_constraint);
}
template <class Options>
void norm_penalty_fields(Fields& f, Options& o) {
  f("beta_regularizer", o.beta_regularizer);
  f("gamma_regularizer", o.gamma_regularizer);
  f("beta_constraint", o.beta_constraint);
  f("gamma_constraint", o.gamma_constraint);
}

// An axis, which Keras may have written as a list of one.
inline void axis_field(Fields& f, int64_t& axis) {
  if (f.reading()) return f.one("axis", axis);
  f("axis", axis);
}
// Some; one of them is a number.
inline void axis_field(Fields& f, std::vector<int64_t>& axes) {
  if (!f.reading() && axes.size() == 1) return f("axis", axes[0]);
  const auto written = f.get("axis");
  if (written && written->kind() == Config::Kind::kInt) {
    axes = {written->as_int()};
  } else {
    f("axis", axes);
  }
}

// As many numbers as axes; Keras writes one as a list, too.
inline void size_field(Fields& f, const char* name, int64_t& s) {
  f.one(name, s);
}
inline void size_field(Fields& f, const char* name, Size2D& s) { f(name, s); }
inline void size_field(Fields& f, const char* name, Size3D& s) {
  std::vector<int64_t> v{s.d, s.h, s.w};
  f(name, v);
  if (v.size() == 1) v.assign(3, v[0]);
  if (v.size() != 3) f.fail(name, *f.get(name), "three numbers");
  s = {v[0], v[1], v[2]};
}

// The lowest and the highest value of a pixel.
inline void value_range_field(Fields& f, ValueRange& v) {
  std::vector<double> range{v.low, v.high};
  f("value_range", range);
  range.resize(2, 0);
  v = {range[0], range[1]};
}

// A number, or two that ascend.
inline void factor_field(Fields& f, const char* name, Factor& v) {
  std::vector<double> list{v.upper};
  if (v.lower) list = {*v.lower, v.upper};
  f(name, list);
  if (f.reading() && list.size() == 2) v = {list[0], list[1]};
  if (f.reading() && list.size() == 1) v = list[0];
}

// A token, or null.
template <class Token>
void token_field(Fields& f, const char* name, std::optional<Token>& token) {
  if (f.reading() ? !f.get(name).has_value() : !token) {
    if (!f.reading()) f.put(name, nullptr);
    return;
  }
  Token value = token.value_or(Token());
  f(name, value);
  token = std::move(value);
}

// [first, second], or null.
inline void salt_field(Fields& f, std::optional<Salt>& salt) {
  std::vector<int64_t> v;
  if (salt) {
    v = {static_cast<int64_t>(salt->first), static_cast<int64_t>(salt->second)};
  }
  if (f.reading() || salt) f("salt", v);
  if (!f.reading() || v.empty()) return;
  salt =
      Salt(static_cast<uint64_t>(v.front()), static_cast<uint64_t>(v.back()));
}

}  // namespace berth::keras

#endif  // BERTH_KERAS_LAYERS_SHARED_FIELDS_H_
