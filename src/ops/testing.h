// What the tests of this module share.

#ifndef BERTH_OPS_TESTING_H_
#define BERTH_OPS_TESTING_H_

#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "berth/errors.h"
#include "berth/ops/array.h"
#include "berth/ops/math.h"
#include "ops/op_call.h"

namespace berth::test {

using Ints = std::vector<int64_t>;
using Floats = std::vector<float>;
using Doubles = std::vector<double>;

inline constexpr double kInf = std::numeric_limits<double>::infinity();

inline Floats floats(const Tensor& t) { return t.to_vector<float>(); }
inline Doubles doubles(const Tensor& t) { return t.to_vector<double>(); }
inline Ints ints(const Tensor& t) { return t.to_vector<int64_t>(); }

// 0, 1, 2, ... as float32.
inline Tensor counted(const Shape& shape) {
  Floats v(static_cast<size_t>(shape.num_elements()));
  for (size_t i = 0; i < v.size(); ++i) v[i] = static_cast<float>(i);
  return constant(v, shape);
}

// The shapes that the shape rule of an op gives for float32 inputs.
inline std::vector<Shape> inferred(const char* name,
                                   const std::vector<Shape>& in,
                                   std::vector<Attrs::Pair> pairs,
                                   std::vector<DType> dtypes = {}) {
  const OpDef& op = op_named(name);
  const AttrsRef attrs(std::move(pairs));
  std::vector<SpecView> specs;
  for (size_t i = 0; i < in.size(); ++i) {
    specs.push_back({i < dtypes.size() ? dtypes[i] : float32, &in[i]});
  }
  std::vector<OutSpec> out(static_cast<size_t>(op.num_outputs(attrs.get())));
  infer_outputs(op, attrs.get(), specs, out);
  std::vector<Shape> shapes;
  for (const OutSpec& o : out) shapes.push_back(o.shape);
  return shapes;
}

// Runs `fn`; its InvalidArgument must say `text`.
template <class Fn>
void expect_invalid(Fn&& fn, const std::string& text) {
  try {
    fn();
    ADD_FAILURE() << "nothing thrown; expected: " << text;
  } catch (const errors::InvalidArgument& e) {
    EXPECT_NE(std::string(e.what()).find(text), std::string::npos) << e.what();
  }
}

// d sum(fn(x) * weights) / dx: the adjoint of fn applied to the weights.
Tensor adjoint(const Tensor& x, const Tensor& weights,
               const std::function<Tensor(const Tensor&)>& fn);

// Infers shapes instead of computing, as a tracer does.
class ShapesOnly : public Dispatcher {
 public:
  void apply(const OpDef& op, std::span<const Tensor* const> in,
             const Attrs* attrs, std::span<Tensor> out) override {
    std::vector<SpecView> specs;
    for (const Tensor* t : in) specs.push_back({t->dtype(), &t->shape()});
    std::vector<OutSpec> outs(out.size());
    infer_outputs(op, attrs, specs, outs);
    for (size_t i = 0; i < out.size(); ++i) {
      out[i] = make_symbolic(1, 0, 0, outs[i].dtype, outs[i].shape);
    }
    called.push_back(op.name());
  }

  std::vector<std::string> called;
};

inline Tensor symbol(const Shape& shape, DType dtype = float32) {
  return make_symbolic(1, 0, 0, dtype, shape);
}

}  // namespace berth::test

#endif  // BERTH_OPS_TESTING_H_
