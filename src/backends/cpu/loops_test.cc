#include "backends/cpu/loops.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "backends/cpu/cpu_testing.h"
#include "berth/errors.h"

namespace berth::cpu {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
const int64_t kSizes[] = {0, 1, 7, 8, 9, 31, 33, 1000};

class EveryIsa : public testing::TestWithParam<const Loops*> {
 protected:
  const Loops& l() const { return *GetParam(); }
};

INSTANTIATE_TEST_SUITE_P(Loops, EveryIsa, testing::ValuesIn(all_loops()),
                         [](const auto& info) {
                           return std::string(isa_name(info.param->isa));
                         });

void expect_close(float got, double want, double relative, double absolute) {
  if (std::isnan(want)) {
    EXPECT_TRUE(std::isnan(got)) << got;
  } else if (std::isinf(want)) {
    EXPECT_EQ(got, want);
  } else {
    EXPECT_NEAR(got, want, relative * std::fabs(want) + absolute);
  }
}

struct UnaryCase {
  UnaryOp op;
  double (*plain)(double);
  float low, high;
  double relative, absolute;
};

double gelu_tanh(double x) {
  return 0.5 * x *
         (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
}
double gelu_erf(double x) { return 0.5 * x * (1 + std::erf(x / M_SQRT2)); }

const UnaryCase kUnary[] = {
    {UnaryOp::kRelu, [](double x) { return x < 0 ? 0 : x; }, -2, 2, 0, 0},
    {UnaryOp::kSigmoid, [](double x) { return 1 / (1 + std::exp(-x)); }, -20,
     20, 4e-7, 1e-30},
    {UnaryOp::kTanh, [](double x) { return std::tanh(x); }, -11, 11, 7e-7, 0},
    {UnaryOp::kGeluTanh, gelu_tanh, -6, 6, 1e-6, 2e-6},
    {UnaryOp::kGeluErf, gelu_erf, -6, 6, 1e-6, 2e-6},
    {UnaryOp::kExp, [](double x) { return std::exp(x); }, -80, 80, 2e-7, 0},
    {UnaryOp::kLog, [](double x) { return std::log(x); }, 1e-3f, 50, 2e-7,
     1e-9},
    {UnaryOp::kSqrt, [](double x) { return std::sqrt(x); }, 0, 50, 1e-7, 0},
    {UnaryOp::kRsqrt, [](double x) { return 1 / std::sqrt(x); }, 1e-3f, 50,
     2e-7, 0},
    {UnaryOp::kNeg, [](double x) { return -x; }, -2, 2, 0, 0},
    {UnaryOp::kAbs, [](double x) { return std::fabs(x); }, -2, 2, 0, 0},
    {UnaryOp::kSquare, [](double x) { return x * x; }, -9, 9, 1e-7, 0},
    {UnaryOp::kReciprocal, [](double x) { return 1 / x; }, 0.1f, 9, 1e-7, 0},
    {UnaryOp::kErf, [](double x) { return std::erf(x); }, -5, 5, 7e-7, 0},
};

TEST_P(EveryIsa, UnaryLoopsMatchTheLibraryAtEverySizeAndOffset) {
  static_assert(std::size(kUnary) == static_cast<int>(UnaryOp::kCount));
  for (const UnaryCase& c : kUnary) {
    auto loop = l().unary[static_cast<int>(c.op)];
    for (int64_t n : kSizes) {
      for (int offset : {0, 1, 3}) {
        const auto x = noise(n + 8, 1, c.low, c.high);
        std::vector<float> y(n + 8, 77.0f);
        loop(x.data() + offset, y.data() + 2, n);
        for (int64_t i = 0; i < n; ++i) {
          SCOPED_TRACE(testing::Message() << "op " << static_cast<int>(c.op)
                                          << " x " << x[offset + i]);
          expect_close(y[2 + i], c.plain(x[offset + i]), c.relative,
                       c.absolute);
        }
        EXPECT_EQ(y[1], 77.0f);
        EXPECT_EQ(y[n + 2], 77.0f);
        auto in_place = x;
        loop(in_place.data() + offset, in_place.data() + offset, n);
        EXPECT_EQ(std::memcmp(in_place.data() + offset, y.data() + 2, n * 4),
                  0);
      }
    }
  }
}

TEST_P(EveryIsa, AnElementDoesNotDependOnItsPlaceInTheSlice) {
  const auto x = noise(100, 4, 0.1f, 3);
  for (int op = 0; op < static_cast<int>(UnaryOp::kCount); ++op) {
    std::vector<float> whole(100), pieces(100);
    l().unary[op](x.data(), whole.data(), 100);
    for (int64_t at = 0, size = 1; at < 100; at += size, ++size) {
      const int64_t n = std::min<int64_t>(size, 100 - at);
      l().unary[op](x.data() + at, pieces.data() + at, n);
    }
    EXPECT_EQ(std::memcmp(whole.data(), pieces.data(), 400), 0) << op;
  }
}

TEST_P(EveryIsa, UnaryLoopsTreatNanAndInfinityAsTheLibraryDoes) {
  const float special[] = {NAN, kInf, -kInf, 0.0f, 1.0f, -1.0f};
  for (const UnaryCase& c : kUnary) {
    for (float x : special) {
      const bool gelu = c.op == UnaryOp::kGeluTanh || c.op == UnaryOp::kGeluErf;
      if (gelu && std::isinf(x)) continue;  // inf * 0
      float y;
      l().unary[static_cast<int>(c.op)](&x, &y, 1);
      SCOPED_TRACE(testing::Message()
                   << "op " << static_cast<int>(c.op) << " x " << x);
      expect_close(y, c.plain(x), 1e-6, 1e-6);
    }
  }
}

struct BinaryCase {
  BinaryOp op;
  double (*plain)(double, double);
  double tolerance;
};

double derivative(double (*f)(double), double x) {
  return (f(x + 1e-5) - f(x - 1e-5)) / 2e-5;
}

const BinaryCase kBinary[] = {
    {BinaryOp::kAdd, [](double a, double b) { return a + b; }, 1e-7},
    {BinaryOp::kSub, [](double a, double b) { return a - b; }, 1e-7},
    {BinaryOp::kMul, [](double a, double b) { return a * b; }, 1e-7},
    {BinaryOp::kDiv, [](double a, double b) { return a / b; }, 1e-7},
    {BinaryOp::kMax, [](double a, double b) { return a > b ? a : b; }, 0},
    {BinaryOp::kMin, [](double a, double b) { return a < b ? a : b; }, 0},
    {BinaryOp::kReluGrad, [](double d, double x) { return x > 0 ? d : 0; }, 0},
    {BinaryOp::kSigmoidGrad, [](double y, double d) { return d * y * (1 - y); },
     1e-6},
    {BinaryOp::kTanhGrad, [](double y, double d) { return d * (1 - y * y); },
     1e-6},
    {BinaryOp::kGeluTanhGrad,
     [](double x, double d) { return d * derivative(gelu_tanh, x); }, 3e-6},
    {BinaryOp::kGeluErfGrad,
     [](double x, double d) { return d * derivative(gelu_erf, x); }, 3e-6},
};

TEST_P(EveryIsa, BinaryLoopsMatchPlainOnesInEveryForm) {
  static_assert(std::size(kBinary) == static_cast<int>(BinaryOp::kCount));
  const int64_t rows = 3;
  for (const BinaryCase& c : kBinary) {
    const BinaryLoops& loop = l().binary[static_cast<int>(c.op)];
    auto check = [&](float got, float a, float b) {
      expect_close(got, c.plain(a, b), c.tolerance, c.tolerance);
    };
    for (int64_t n : kSizes) {
      const auto a = noise(rows * n + 1, 1, -3, 3);
      const auto b = noise(rows * n + 1, 2, -3, 3);
      const float *pa = a.data() + 1, *pb = b.data() + 1;
      std::vector<float> y(rows * n + 1, 77.0f);
      loop.same(pa, pb, y.data(), n);
      for (int64_t i = 0; i < n; ++i) check(y[i], pa[i], pb[i]);
      loop.scalar_right(pa, 1.5f, y.data(), n);
      for (int64_t i = 0; i < n; ++i) check(y[i], pa[i], 1.5f);
      loop.scalar_left(-1.5f, pb, y.data(), n);
      for (int64_t i = 0; i < n; ++i) check(y[i], -1.5f, pb[i]);
      loop.row_right(pa, pb, y.data(), rows, n);
      for (int64_t i = 0; i < rows * n; ++i) check(y[i], pa[i], pb[i % n]);
      loop.row_left(pa, pb, y.data(), rows, n);
      for (int64_t i = 0; i < rows * n; ++i) check(y[i], pa[i % n], pb[i]);
      EXPECT_EQ(y[rows * n], 77.0f);
      auto left = a, right = b;
      loop.same(left.data(), right.data(), left.data(), n);
      loop.same(a.data(), right.data(), right.data(), n);
      EXPECT_EQ(std::memcmp(left.data(), right.data(), n * 4), 0);
    }
  }
}

TEST_P(EveryIsa, MaximumMinimumAndReluPropagateNan) {
  for (BinaryOp op : {BinaryOp::kMax, BinaryOp::kMin}) {
    const BinaryLoops& loop = l().binary[static_cast<int>(op)];
    for (int64_t n : {1, 16, 17}) {
      std::vector<float> a(n, 1.0f), b(n, 2.0f), y(n);
      a[n - 1] = NAN;
      loop.same(a.data(), b.data(), y.data(), n);
      EXPECT_TRUE(std::isnan(y[n - 1]));
      loop.same(b.data(), a.data(), y.data(), n);
      EXPECT_TRUE(std::isnan(y[n - 1]));
      EXPECT_TRUE(std::isnan(l().max(a.data(), n)));
    }
  }
}

TEST_P(EveryIsa, FillTransposeAndBiasReluMatchPlainLoops) {
  for (int64_t n : kSizes) {
    std::vector<float> y(n + 1, 77.0f);
    l().fill(2.5f, y.data(), n);
    for (int64_t i = 0; i < n; ++i) ASSERT_EQ(y[i], 2.5f);
    ASSERT_EQ(y[n], 77.0f);
  }
  for (int64_t rows : {0, 1, 3, 4, 5, 19, 64}) {
    for (int64_t cols : {0, 1, 4, 7, 16, 33}) {
      const int64_t ldx = cols + 2, ldy = rows + 1;
      const auto x = noise(rows * ldx + 1, 1);
      std::vector<float> y(cols * ldy + 1, 77.0f);
      l().transpose(x.data(), rows, cols, ldx, y.data(), ldy);
      for (int64_t c = 0; c < cols; ++c) {
        for (int64_t r = 0; r < rows; ++r) {
          ASSERT_EQ(y[c * ldy + r], x[r * ldx + c]);
        }
        ASSERT_EQ(y[c * ldy + rows], 77.0f);
      }
      const auto bias = noise(cols, 2);
      auto z = x;
      l().bias_relu(z.data(), bias.data(), rows, cols, ldx);
      for (int64_t r = 0; r < rows; ++r) {
        for (int64_t c = 0; c < cols; ++c) {
          ASSERT_EQ(z[r * ldx + c], std::max(0.0f, x[r * ldx + c] + bias[c]));
        }
        ASSERT_EQ(z[r * ldx + cols], x[r * ldx + cols]);
      }
    }
  }
}

TEST_P(EveryIsa, ReductionsMatchDoubleSums) {
  for (int64_t n : {0, 1, 7, 8, 9, 31, 33, 1000, 70001}) {
    const auto x = noise(n + 1, 1, 0, 1);
    double want = 0;
    float top = -kInf;
    for (int64_t i = 1; i <= n; ++i) {
      want += x[i];
      top = std::max(top, x[i]);
    }
    EXPECT_NEAR(l().sum(x.data() + 1, n), want, 1e-6 * want);
    EXPECT_EQ(l().max(x.data() + 1, n), top);
  }
  for (int64_t rows : {0, 1, 2, 300, 1025}) {
    for (int64_t cols : {1, 7, 10, 33, 128}) {
      const int64_t ld = cols + 3;
      const auto x = noise(rows * ld + 1, 2, 0, 1);
      std::vector<double> columns(cols), by_row(rows);
      for (int64_t r = 0; r < rows; ++r) {
        for (int64_t c = 0; c < cols; ++c) {
          columns[c] += x[r * ld + c];
          by_row[r] += x[r * cols + c];
        }
      }
      std::vector<float> y(cols, 77.0f), z(rows);
      l().col_sum(x.data(), y.data(), rows, cols, ld);
      l().row_sum(x.data(), z.data(), rows, cols);
      for (int64_t c = 0; c < cols; ++c) {
        ASSERT_NEAR(y[c], columns[c], 1e-6 * columns[c]);
      }
      for (int64_t r = 0; r < rows; ++r) {
        ASSERT_NEAR(z[r], by_row[r], 1e-6 * by_row[r]);
      }
    }
  }
}

// Row r of the softmax of x in double.
std::vector<double> plain_softmax(const float* x, int64_t n, double* log_sum) {
  double top = -INFINITY, sum = 0;
  for (int64_t i = 0; i < n; ++i) top = std::max<double>(top, x[i]);
  std::vector<double> p(n);
  for (int64_t i = 0; i < n; ++i) sum += p[i] = std::exp(x[i] - top);
  for (double& value : p) value /= sum;
  *log_sum = top + std::log(sum);
  return p;
}

TEST_P(EveryIsa, SoftmaxFamilyMatchesItsDefinition) {
  const int64_t rows = 5;
  for (int64_t n : {1, 7, 8, 10, 31, 33, 1000}) {
    const auto x = noise(rows * n, 1, -12, 12);
    const auto dy = noise(rows * n, 2);
    std::vector<float> y(rows * n), ly(rows * n), dx(rows * n), ldx(rows * n);
    l().softmax(x.data(), y.data(), rows, n);
    l().log_softmax(x.data(), ly.data(), rows, n);
    l().softmax_grad(y.data(), dy.data(), dx.data(), rows, n);
    l().log_softmax_grad(ly.data(), dy.data(), ldx.data(), rows, n);
    for (int64_t r = 0; r < rows; ++r) {
      double log_sum, dot = 0, total = 0;
      const auto p = plain_softmax(&x[r * n], n, &log_sum);
      for (int64_t i = 0; i < n; ++i) {
        dot += p[i] * dy[r * n + i];
        total += dy[r * n + i];
      }
      for (int64_t i = 0; i < n; ++i) {
        const int64_t at = r * n + i;
        ASSERT_NEAR(y[at], p[i], 1e-6);
        ASSERT_NEAR(ly[at], x[at] - log_sum, 4e-6);
        ASSERT_NEAR(dx[at], p[i] * (dy[at] - dot), 2e-6);
        ASSERT_NEAR(ldx[at], dy[at] - p[i] * total, 1e-5);
      }
    }
    auto in_place = x;
    l().softmax(in_place.data(), in_place.data(), rows, n);
    EXPECT_EQ(in_place, y);
    in_place = x;
    l().log_softmax(in_place.data(), in_place.data(), rows, n);
    EXPECT_EQ(in_place, ly);
  }
}

TEST_P(EveryIsa, CrossEntropyMatchesItsDefinitionForAllLabelKinds) {
  const int64_t rows = 6;
  for (int64_t n : {1, 2, 10, 16, 17, 100}) {
    const auto x = noise(rows * n, 1, -12, 12);
    std::vector<int32_t> small(rows);
    std::vector<int64_t> large(rows);
    std::vector<float> dense(rows * n);
    for (int64_t r = 0; r < rows; ++r) {
      small[r] = static_cast<int32_t>(large[r] = (r * 7 + 3) % n);
      dense[r * n + large[r]] = 1;
    }
    std::vector<float> loss(rows), back(rows * n), again(rows), grad(rows * n);
    l().xent_i32(x.data(), small.data(), loss.data(), back.data(), rows, n);
    for (int64_t r = 0; r < rows; ++r) {
      double log_sum;
      const auto p = plain_softmax(&x[r * n], n, &log_sum);
      EXPECT_NEAR(loss[r], log_sum - x[r * n + large[r]], 1e-5);
      for (int64_t i = 0; i < n; ++i) {
        ASSERT_NEAR(back[r * n + i], p[i] - dense[r * n + i], 1e-6);
      }
    }
    grad = x;  // in place
    l().xent_i64(grad.data(), large.data(), again.data(), grad.data(), rows, n);
    EXPECT_EQ(again, loss);
    EXPECT_EQ(grad, back);
    l().xent_i32(x.data(), small.data(), again.data(), nullptr, rows, n);
    for (int64_t r = 0; r < rows; ++r) EXPECT_NEAR(again[r], loss[r], 1e-5);
    l().xent_dense(x.data(), dense.data(), again.data(), grad.data(), rows, n);
    for (int64_t r = 0; r < rows; ++r) EXPECT_NEAR(again[r], loss[r], 1e-5);
    for (int64_t i = 0; i < rows * n; ++i) ASSERT_NEAR(grad[i], back[i], 1e-6);
  }
}

TEST_P(EveryIsa, CrossEntropySurvivesBadLabelsAndInfiniteLogits) {
  const float x[] = {1, 2, 3, 1, -kInf, 3};
  const int64_t labels[] = {-1, 3};
  float loss[2], back[6];
  l().xent_i64(x, labels, loss, back, 2, 3);
  for (float value : loss) EXPECT_TRUE(std::isnan(value));
  for (float value : back) EXPECT_TRUE(std::isnan(value));
  const float dense[] = {0, 0, 1, 1, 0, 0};
  l().xent_dense(x, dense, loss, back, 2, 3);
  EXPECT_NEAR(loss[1], std::log(1 + std::exp(2.0)), 1e-6);
  EXPECT_EQ(back[4], 0.0f);
}

TEST(MergeMoments, EqualsMomentsOfTheWhole) {
  const Loops& l = loops();
  const int64_t c = 5, rows = 100;
  const auto x = noise(rows * c, 1, 1000, 1001);
  std::vector<float> mean(c), square(c), m(c, NAN), s(c, NAN), pm(c), ps(c);
  l.moments(x.data(), rows, c, mean.data(), square.data());
  int64_t seen = 0;
  for (int64_t part : {0, 13, 1, 50, 36}) {
    l.moments(x.data() + seen * c, part, c, pm.data(), ps.data());
    merge_moments(seen, m.data(), s.data(), part, pm.data(), ps.data(), c);
    seen += part;
  }
  for (int64_t i = 0; i < c; ++i) {
    EXPECT_NEAR(m[i], mean[i], 1e-3);
    EXPECT_NEAR(s[i], square[i], 1e-3 * square[i]);
  }
}

TEST(SelectLoops, NamesTheChoicesForAnUnknownValueAndNeverCrashes) {
  EXPECT_STREQ(isa_name(select_loops("v1").isa), "v1");
  EXPECT_STREQ(isa_name(select_loops("v2").isa), "v1");
  EXPECT_EQ(select_loops(nullptr).isa, select_loops("").isa);
  for (const char* bad : {"avx2", "v5", "V3", " v3", "v33", "\xff\xfe"}) {
    try {
      select_loops(bad);
      FAIL() << bad;
    } catch (const errors::InvalidArgument& error) {
      EXPECT_NE(std::string(error.what()).find("v1, v2, v3 or v4"),
                std::string::npos);
    }
  }
  if (loops_for(Isa::kV4) == nullptr) {
    EXPECT_THROW(select_loops("v4"), errors::InvalidArgument);
  }
}

}  // namespace
}  // namespace berth::cpu
