#include "berth/ops/factor.h"

#include <cmath>

#include "berth/gradient_tape.h"
#include "berth/ops/contract.h"
#include "berth/ops/linalg.h"
#include "ops/testing.h"

namespace berth::test {
namespace {

using namespace linalg;  // NOLINT: svd(x)

// Numbers without a pattern.
Tensor matrices(const Shape& shape) {
  Doubles v;
  for (int64_t i = 0; i < shape.num_elements(); ++i) {
    v.push_back(std::sin(static_cast<double>(1 + 13 * i * i)));
  }
  return constant(v, shape);
}
Tensor nt(const Tensor& a, const Tensor& b) {
  return matmul(a, b, {.transpose_b = true});
}
Tensor tn(const Tensor& a, const Tensor& b) {
  return matmul(a, b, {.transpose_a = true});
}
void expect_equal(const Tensor& got, const Tensor& want,
                  double within = 1e-10) {
  ASSERT_EQ(got.shape(), want.shape());
  const Doubles a = got.to_vector<double>(), b = want.to_vector<double>();
  for (size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], b[i], within) << i;
}

TEST(Svd, FactorsGiveTheMatrixBack) {
  for (const Shape& shape : {Shape{2, 5, 3}, Shape{3, 5}, Shape{4, 4}}) {
    for (const bool full : {false, true}) {
      const Tensor x = matrices(shape);
      const Svd f = svd(x, {.full_matrices = full});
      const int64_t p = f.s.shape()[f.s.rank() - 1];
      const Tensor u = split(f.u, {p, -1}, -1)[0],
                   v = split(f.v, {p, -1}, -1)[0];
      expect_equal(nt(u * expand_dims(f.s, -2), v), x);
      const int64_t left = f.u.shape()[x.rank() - 1];
      const Tensor one = tn(f.u, f.u);
      expect_equal(one,
                   broadcast_to(eye(left, left, {}, float64), one.shape()));
      expect_equal(svd(x, {.compute_uv = false}).s, f.s);
    }
  }
}

TEST(Svd, NumbersThatAreNotFiniteGiveNaN) {
  const Tensor x = constant(Doubles{1, NAN, 0, 1}, {2, 2});
  EXPECT_TRUE(std::isnan(svd(x).s.to_vector<double>()[0]));
  EXPECT_TRUE(std::isnan(eigvalsh(constant(Doubles{1, 0, INFINITY, 1}, {2, 2}))
                             .to_vector<double>()[0]));
}

// [[1, 2], [3, 4]]: s^2 = 15 +- sqrt(221).
TEST(Svd, HasTheValuesOfAClosedForm) {
  const Svd f = svd(constant(Doubles{1, 2, 3, 4}, {2, 2}));
  expect_equal(f.s, constant(Doubles{std::sqrt(15 + std::sqrt(221.)),
                                     std::sqrt(15 - std::sqrt(221.))}));
}

TEST(Qr, IsOrthogonalTimesTriangular) {
  for (const Shape& shape : {Shape{2, 5, 3}, Shape{3, 5}, Shape{4, 4}}) {
    for (const bool full : {false, true}) {
      const Tensor x = matrices(shape);
      const Qr f = qr(x, full);
      expect_equal(matmul(f.q, f.r), x);
      expect_equal(band_part(f.r, 0, -1), f.r, 0);
      const int64_t n = f.q.shape()[x.rank() - 1];
      const Tensor one = tn(f.q, f.q);
      expect_equal(one, broadcast_to(eye(n, n, {}, float64), one.shape()));
    }
  }
}

TEST(Eigh, SolvesASymmetricProblem) {
  const Tensor half = matrices({3, 4, 4});
  const Tensor x = half + matrix_transpose(half);
  const Eigen f = eigh(band_part(x, -1, 0));
  expect_equal(nt(f.v * expand_dims(f.e, -2), f.v), x);
  expect_equal(eigvalsh(x), f.e);
  // [[2, 1], [1, 2]]: 1 and 3.
  expect_equal(eigvalsh(constant(Doubles{2, 1, 1, 2}, {2, 2})),
               constant(Doubles{1, 3}));
}

TEST(Eig, SolvesAProblemWithComplexValues) {
  const Tensor x = matrices({2, 5, 5});
  const Eigen f = eig(x);
  const Tensor gap =
      matmul(math::cast(x, complex128), f.v) - f.v * expand_dims(f.e, -2);
  EXPECT_LT(math::reduce_max(math::abs(gap)).item<double>(), 1e-12);
  // A rotation by a right angle: -i and i.
  const Tensor e = eigvals(constant(Doubles{0, -1, 1, 0}, {2, 2}));
  expect_equal(math::real(e), constant(Doubles{0, 0}));
  expect_equal(math::imag(e), constant(Doubles{-1, 1}));
}

// |v| of the dominant eigenvector does not depend on the phase.
TEST(Eig, GradientOfVectors) {
  const Tensor x = matrices({4, 4});
  const auto value = [](const Tensor& t) {
    const Eigen f = eig(t);
    const Tensor w = constant(Doubles{1, -2, .5, 3}, {4, 1});
    return math::reduce_sum(math::square(math::abs(f.v)) * w) +
           math::reduce_sum(math::real(f.e) * constant(Doubles{1, 2, 3, 4}));
  };
  GradientTape tape;
  tape.watch(x);
  const Doubles g = tape.gradient(value(x), {x})[0].to_vector<double>();
  for (size_t i = 0; i < 16; ++i) {
    Doubles up = x.to_vector<double>(), down = up;
    up[i] += 1e-6, down[i] -= 1e-6;
    const double slope = (value(constant(up, {4, 4})).item<double>() -
                          value(constant(down, {4, 4})).item<double>()) /
                         2e-6;
    EXPECT_NEAR(g[i], slope, 1e-6) << i;
  }
}

TEST(Lu, SolvesInvertsAndGivesTheMatrixBack) {
  const Tensor x = matrices({2, 4, 4}), b = matrices({2, 4, 3});
  const Lu f = lu(x);
  expect_equal(lu_reconstruct(f.lu, f.p), x);
  expect_equal(matmul(x, lu_solve(f.lu, f.p, b)), b);
  const Tensor one = matmul(x, lu_matrix_inverse(f.lu, f.p));
  expect_equal(one, broadcast_to(eye(4, 4, {}, float64), one.shape()));
}

TEST(SlogDet, IsTheDeterminantsSignAndLogarithm) {
  const Tensor x = matrices({3, 4, 4});
  const SlogDet f = slogdet(x);
  expect_equal(f.sign * math::exp(f.log_abs_determinant), det(x));
  const Tensor spd = nt(x, x);
  expect_equal(logdet(spd), slogdet(spd).log_abs_determinant, 1e-8);
  const SlogDet none = slogdet(zeros({2, 2}, float64));
  EXPECT_EQ(none.sign.item<double>(), 0);
  EXPECT_EQ(none.log_abs_determinant.item<double>(), -INFINITY);
}

TEST(Pinv, InvertsWhatIsRegular) {
  const Tensor x = matrices({5, 3});
  expect_equal(matmul(pinv(x), x), eye(3, 3, {}, float64));
  // A matrix of rank one has x^T / |x|^2.
  const Tensor one = constant(Doubles{1, 2, 2, 4}, {2, 2});
  expect_equal(pinv(one), matrix_transpose(one) / 25);
  EXPECT_EQ(matrix_rank(one).item<int32_t>(), 1);
  EXPECT_EQ(matrix_rank(x).item<int32_t>(), 3);
  EXPECT_EQ(matrix_rank(x, 1e9).item<int32_t>(), 0);
}

TEST(Lstsq, TheRestIsOrthogonalToTheColumns) {
  for (const bool fast : {false, true}) {
    const Tensor x = matrices({2, 6, 3}), b = matrices({2, 6, 2});
    const Tensor y = lstsq(x, b, {.fast = fast});
    expect_equal(tn(x, matmul(x, y) - b), zeros({2, 3, 2}, float64), 1e-8);
    const Tensor wide = matrices({3, 6}), c = matrices({3, 1});
    expect_equal(matmul(wide, lstsq(wide, c, {.fast = fast})), c, 1e-8);
  }
  const Tensor x = eye(2, 2, {}, float64), b = constant(Doubles{2, 4}, {2, 1});
  expect_equal(lstsq(x, b, {.l2_regularizer = 1}), b / 2);
}

TEST(Norm, OfMatricesBySingularValues) {
  const Tensor x = constant(Doubles{3, 0, 0, 0, 0, 4}, {1, 2, 3});
  const std::vector<int64_t> axes{1, 2};
  expect_equal(norm(x, {.ord = 2, .axis = axes}), constant(Doubles{4}));
  expect_equal(norm(x, {.ord = "nuc", .axis = axes, .keepdims = true}),
               constant(Doubles{7}, {1, 1, 1}));
  expect_invalid([&] { norm(x, {.ord = 3, .axis = axes}); }, "1, 2, nuc");
}

TEST(Factor, NamesAShapeThatIsNone) {
  expect_invalid([] { svd(zeros({3})); }, "[3]; expected [..., m, n]");
  expect_invalid([] { eigh(zeros({2, 3})); }, "[2,3]; expected [..., n, n]");
}

}  // namespace
}  // namespace berth::test
