// Gradients through functions whose shapes are known only when they run.

#include <functional>

#include "berth/function.h"
#include "berth/gradient_tape.h"
#include "berth/ops/indexing.h"
#include "berth/ops/linalg.h"
#include "ops/testing.h"

namespace berth::test {
namespace {

using Fn = std::function<Tensor(const Tensor&)>;

// d sum(fn(x)^2) / dx, eagerly and in a function of unknown dimensions.
void expect_same_gradient(const char* what, const Tensor& x, const Fn& fn) {
  const auto gradient = [&](const Tensor& t) {
    GradientTape tape;
    tape.watch(t);
    const Tensor y = fn(t);
    return tape.gradient(math::reduce_sum(y * y), std::vector<Source>{t})[0];
  };
  Shape unknown = x.shape();
  for (int i = 0; i < unknown.rank(); ++i) unknown[i] = kUnknownDim;
  const auto traced =
      function(gradient, {.input_signature = {{unknown, x.dtype()}}});
  EXPECT_EQ(floats(traced(x)), floats(gradient(x))) << what;
}

TEST(UnknownShapes, GiveTheSameGradients) {
  const Tensor x = counted({4, 6}), v = counted({6});
  const Tensor rows = constant({3, 1, 3});
  expect_same_gradient("split", x,
                       [](const Tensor& t) { return split(t, 2, 1)[1]; });
  expect_same_gradient("split sizes", x, [](const Tensor& t) {
    return split(t, std::vector<int64_t>{1, -1}, 0)[1];
  });
  expect_same_gradient("pad", x, [](const Tensor& t) {
    return pad(t, {1, 2, 0, 3}, {.constant_values = 2});
  });
  for (const char* mode : {"REFLECT", "SYMMETRIC"}) {
    expect_same_gradient(mode, x, [&](const Tensor& t) {
      return pad(t, {1, 2, 0, 3}, {.mode = mode});
    });
  }
  expect_same_gradient("reverse", x,
                       [](const Tensor& t) { return reverse(t, {1}); });
  expect_same_gradient("roll", x,
                       [](const Tensor& t) { return roll(t, {2}, {0}); });
  expect_same_gradient("repeat", x,
                       [](const Tensor& t) { return repeat(t, 3, 1); });
  expect_same_gradient("repeat flat", x,
                       [](const Tensor& t) { return repeat(t, 2); });
  expect_same_gradient("gather", x,
                       [&](const Tensor& t) { return gather(t, rows); });
  expect_same_gradient("gather_nd", x, [](const Tensor& t) {
    return gather_nd(t, constant({{1, 2}, {3, 5}, {1, 2}}));
  });
  expect_same_gradient("scatter", x, [](const Tensor& t) {
    return tensor_scatter_nd_update(t, constant({{2, 3}}), constant({9.f}));
  });
  expect_same_gradient("top_k", x,
                       [](const Tensor& t) { return top_k(t, 2).values; });
  expect_same_gradient("sort", x,
                       [](const Tensor& t) { return sort(t, {.axis = 0}); });
  expect_same_gradient("strided_slice", x, [](const Tensor& t) {
    return strided_slice(t, {1, 0}, {3, 6}, {.strides = {1, 2}});
  });
  expect_same_gradient("update", x, [](const Tensor& t) {
    return tensor_strided_slice_update(t, {1}, {2}, ones({1, 6}));
  });
  expect_same_gradient("diag", v, [](const Tensor& t) {
    return linalg::band_part(ensure_shape(t, {6}) * eye(6), 0, 0);
  });
  expect_same_gradient("meshgrid", v, [](const Tensor& t) {
    return meshgrid({t, constant({1.f, 2.f})})[0];
  });
}

TEST(UnknownShapes, SegmentsAndSolvers) {
  const Tensor x = counted({3, 2});
  const Tensor ids = constant({1, 0, 1});
  expect_same_gradient("sum", x, [&](const Tensor& t) {
    return unsorted_segment_sum(t, ids, 2);
  });
  expect_same_gradient("mean", x, [&](const Tensor& t) {
    return unsorted_segment_mean(t, ids, 2);
  });
  expect_same_gradient("max", x, [&](const Tensor& t) {
    return unsorted_segment_max(t, ids, 2);
  });
  expect_same_gradient("prod", x, [&](const Tensor& t) {
    return unsorted_segment_prod(t, ids, 2);
  });
  expect_same_gradient("prod of a grid", x, [&](const Tensor& t) {
    return unsorted_segment_prod(t, zeros_like(math::cast(t, int32)), 2);
  });
  const Tensor a = constant({{4.f, 1.f}, {1.f, 3.f}});
  expect_same_gradient("solve", a, [](const Tensor& t) {
    return linalg::solve(t, constant({{1.f}, {2.f}}));
  });
  expect_same_gradient("inverse", a,
                       [](const Tensor& t) { return linalg::inv(t); });
  expect_same_gradient("determinant", a,
                       [](const Tensor& t) { return linalg::det(t); });
}

}  // namespace
}  // namespace berth::test
