// Tests of gradients where dimensions are unknown, as in a trace.

#ifndef BERTH_OPS_UNKNOWN_DIMS_H_
#define BERTH_OPS_UNKNOWN_DIMS_H_

#include <gtest/gtest.h>

#include <functional>
#include <vector>

#include "berth/gradient_tape.h"
#include "ops/test_util.h"

namespace berth::test {

struct UnknownCase {
  const char* name;
  std::vector<Shape> in;
  std::function<Tensor(const Tensors&)> fn;
};

// Expects gradients of both orders to have the shapes of the inputs, whatever
// is unknown.
inline void expect_gradient_shapes(const UnknownCase& k) {
  SCOPED_TRACE(k.name);
  ShapesOnly tracer;
  const DispatchGuard on(&tracer);
  Tensors x;
  for (const Shape& s : k.in) x.push_back(symbol(s));
  GradientTape outer({.persistent = true});
  for (const Tensor& t : x) outer.watch(t);
  Tensors first;
  {
    GradientTape inner;
    std::vector<Source> sources;
    for (const Tensor& t : x) {
      inner.watch(t);
      sources.emplace_back(t);
    }
    const Tensor y = k.fn(x);
    first = inner.gradient(y * y, sources);
  }
  for (size_t i = 0; i < x.size(); ++i) {
    ASSERT_TRUE(first[i].defined());
    EXPECT_EQ(first[i].shape(), x[i].shape()) << "input " << i;
    const Tensor second = outer.gradient(first[i], x[i]);
    ASSERT_TRUE(second.defined());
    EXPECT_EQ(second.shape(), x[i].shape()) << "second, input " << i;
  }
}

}  // namespace berth::test

#endif  // BERTH_OPS_UNKNOWN_DIMS_H_
