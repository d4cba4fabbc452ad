#include "berth/ops/linalg.h"

#include <cmath>

#include "berth/gradient_tape.h"
#include "ops/gradient_check_testing.h"
#include "ops/testing.h"

namespace berth::test {
namespace {

Tensor matrix(const Doubles& v, const Shape& s) { return constant(v, s); }

void expect_near(const Tensor& got, const Doubles& want, double within) {
  const Doubles v = got.to_vector<double>();
  ASSERT_EQ(v.size(), want.size());
  for (size_t i = 0; i < v.size(); ++i) EXPECT_NEAR(v[i], want[i], within) << i;
}

// LAPACK's textbook example: [[4,12,-16],[12,37,-43],[-16,-43,98]].
TEST(Cholesky, FactorsTheLowerPart) {
  const Tensor x = matrix({4, 7, 7, 12, 37, 7, -16, -43, 98}, {3, 3});
  expect_near(linalg::cholesky(x), {2, 0, 0, 6, 1, 0, -8, 5, 3}, 1e-12);
}

TEST(Cholesky, NamesTheMatrixThatIsNotPositiveDefinite) {
  const Tensor x = matrix({1, 0, 0, 1, 1, 2, 2, 1}, {2, 2, 2});
  expect_invalid([&] { linalg::cholesky(x).to_vector<double>(); },
                 "Cholesky: matrix 1 of the batch is not positive definite");
  expect_invalid(
      [] {
        linalg::cholesky(zeros({2, 3}));
      },
      "the matrix is [2,3]; expected [..., n, n]");
  expect_invalid([] { linalg::cholesky(zeros({3}), {}); }, "[3]");
}

// f(t) = sum(w * chol(a + t (e + e^T))) has slope <gradient, e + e^T>.
TEST(Cholesky, GradientIsThatOfSymmetricChanges) {
  const Doubles a = {4, 1, .5, 1, 3, .2, .5, .2, 2};
  const Tensor x = matrix(a, {3, 3});
  const Tensor w = matrix({1, 0, 0, -2, .5, 0, .3, .7, 1.1}, {3, 3});
  GradientTape tape;
  tape.watch(x);
  const Tensor y = math::reduce_sum(linalg::cholesky(x) * w);
  const Doubles g = tape.gradient(y, {x})[0].to_vector<double>();
  const auto value = [&](const Doubles& v) {
    return math::reduce_sum(linalg::cholesky(matrix(v, {3, 3})) * w)
        .item<double>();
  };
  for (size_t i = 0; i < 3; ++i) {
    for (size_t j = 0; j <= i; ++j) {
      Doubles up = a, down = a;
      const double h = 1e-5;
      up[3 * i + j] += h, down[3 * i + j] -= h;
      if (i != j) up[3 * j + i] += h, down[3 * j + i] -= h;
      const double slope = (value(up) - value(down)) / (2 * h);
      const double both = i == j ? g[3 * i + j] : g[3 * i + j] + g[3 * j + i];
      EXPECT_NEAR(both, slope, 1e-8) << i << "," << j;
      EXPECT_NEAR(g[3 * i + j], g[3 * j + i], 1e-14);
    }
  }
}

TEST(Solve, SolvesEachMatrixOfTheBatch) {
  const Tensor a = matrix({2, 1, 1, 3, 0, 1, 1, 0}, {2, 2, 2});
  const Tensor b = matrix({3, 5, 7, 8}, {2, 2, 1});
  expect_near(linalg::solve(a, b), {.8, 1.4, 8, 7}, 1e-12);
  const Tensor l = matrix({2, 9, 1, 4}, {2, 2});
  expect_near(linalg::triangular_solve(l, matrix({4, 10}, {2, 1})), {2, 2},
              1e-12);
  expect_near(
      linalg::triangular_solve(l, matrix({6, 8}, {2, 1}), {.adjoint = true}),
      {2, 2}, 1e-12);
  // 5 x = [10, 5]: chol is diag(sqrt 5).
  const Tensor five = matrix({5, 0, 0, 5}, {2, 2});
  expect_near(
      linalg::cholesky_solve(linalg::cholesky(five), matrix({10, 5}, {2, 1})),
      {2, 1}, 1e-12);
}

TEST(Solve, NamesTheSingularMatrix) {
  const Tensor a = matrix({1, 0, 0, 1, 1, 2, 2, 4}, {2, 2, 2});
  for (const bool inverse : {false, true}) {
    expect_invalid(
        [&] {
          (inverse ? linalg::inv(a)
                   : linalg::solve(a, ones({2, 2, 1}, float64)))
              .to_vector<double>();
        },
        "matrix 1 of the batch is singular");
  }
  expect_invalid(
      [&] {
        linalg::triangular_solve(matrix({1, 0, 5, 0}, {2, 2}),
                                 ones({2, 1}, float64))
            .to_vector<double>();
      },
      "matrix 0 of the batch is singular");
  expect_invalid(
      [&] {
        linalg::solve(a, ones({2, 3, 1}, float64));
      },
      "the right side [2,3,1]");
}

TEST(Inverse, AndDeterminant) {
  const Tensor a = matrix({2, 1, 7, 4}, {2, 2});
  expect_near(linalg::inv(a), {4, -1, -7, 2}, 1e-11);
  expect_near(linalg::inv(a, {.adjoint = true}), {4, -7, -1, 2}, 1e-11);
  expect_near(linalg::det(a), {1}, 1e-12);
  expect_near(linalg::det(matrix({0, 1, 1, 0}, {2, 2})), {-1}, 0);
  expect_near(linalg::det(zeros({2, 0, 0}, float64)), {1, 1}, 0);
}

}  // namespace
}  // namespace berth::test
