// Second derivatives of products of segments. For y = product of the rows of a
// segment, d2y / dx_i dx_j is the product of the others and 0 for i = j.

#include <array>

#include "berth/gradient_tape.h"
#include "berth/ops/indexing.h"
#include "ops/gradient_check_testing.h"
#include "ops/testing.h"

namespace berth::test {
namespace {

// For each element of x, the sum over all others of the second derivatives of
// sum(fn(x)).
Doubles summed_hessian(const Tensor& x,
                       const std::function<Tensor(const Tensor&)>& fn) {
  GradientTape outer;
  outer.watch(x);
  Tensor first;
  {
    GradientTape inner;
    inner.watch(x);
    first = inner.gradient(math::reduce_sum(fn(x)), x);
  }
  return outer.gradient(math::reduce_sum(first), x).to_vector<double>();
}

TEST(SegmentProd, SecondDerivativeAtAnExactZero) {
  // x0 x1 x2 at (0, 1, 2): the others of (0, 1) are 2, of (0, 2) 1, of (1, 2)
  // 0. Beside it 0 * 0 of segment 1 and a row that is dropped.
  const Tensor x = constant(Doubles{0, 0, 1, 7, 2, 0}, {6});
  const Tensor ids = constant({0, 1, 0, -1, 0, 1});
  EXPECT_EQ(
      summed_hessian(
          x, [&](const Tensor& t) { return unsorted_segment_prod(t, ids, 2); }),
      (Doubles{2 + 1, 1, 2, 0, 1, 1}));
  const Tensor y = constant(Doubles{0, 1, 2, 5, 0}, {5});
  EXPECT_EQ(summed_hessian(y,
                           [&](const Tensor& t) {
                             return segment_prod(t, constant({0, 0, 0, 1, 1}));
                           }),
            (Doubles{3, 2, 1, 1, 1}));
}

TEST(SegmentProd, SecondDerivativeOfRowsOfGridsAndOfNothing) {
  // Two zeros in a column: d2 / dx0 dx1 is the third, 3, and no other is left.
  const Tensor x = constant(Doubles{0, 2, 0, 4, 3, 5}, {3, 2});
  const auto of = [](const Tensor& ids) {
    return [ids](const Tensor& t) { return unsorted_segment_prod(t, ids, 1); };
  };
  EXPECT_EQ(summed_hessian(x, of(zeros({3}, int32))),
            (Doubles{3, 5 + 4, 3, 5 + 2, 0, 4 + 2}));
  // As one segment of a grid three zeros are too many.
  const Tensor grid = constant(Doubles{0, 2, 1, 4}, {2, 2});
  EXPECT_EQ(summed_hessian(grid, of(zeros({2, 2}, int32))),
            (Doubles{4 + 8 + 2, 4, 8, 2}));
  EXPECT_EQ(summed_hessian(zeros({0, 2}, float64), of(zeros({0}, int32))),
            Doubles{});
  EXPECT_EQ(summed_hessian(constant(3.0), of(constant(0))), Doubles{0});
}

TEST(SegmentProd, AnInfiniteSegmentLeavesTheOthersAlone) {
  const Tensor x = constant(Doubles{INFINITY, 2, 3, 4}, {4});
  GradientTape tape;
  tape.watch(x);
  const Tensor y = segment_prod(x, constant({0, 0, 1, 1}));
  EXPECT_EQ(tape.gradient(y, x).to_vector<double>(),
            (Doubles{2, INFINITY, 4, 3}));
}

}  // namespace
}  // namespace berth::test
