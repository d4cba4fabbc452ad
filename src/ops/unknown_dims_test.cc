#include <gtest/gtest.h>

#include "berth/gradient_tape.h"
#include "ops/unknown_dims_testing.h"

namespace berth::test {

void expect_gradient_shapes(const UnknownCase& k) {
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
