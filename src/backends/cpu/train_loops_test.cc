#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <vector>

#include "backends/cpu/cpu_testing.h"
#include "backends/cpu/loops.h"
#include "base/rng.h"

namespace berth::cpu {
namespace {

class TrainLoops : public testing::TestWithParam<const Loops*> {
 protected:
  const Loops& l() const { return *GetParam(); }
};

INSTANTIATE_TEST_SUITE_P(Loops, TrainLoops, testing::ValuesIn(all_loops()),
                         [](const auto& info) {
                           return std::string(isa_name(info.param->isa));
                         });

// Calls visit(output index, input index) for the positions inside the image,
// in scan order.
template <class Visit>
void each_position(const PoolShape& s, Visit visit) {
  for (int64_t n = 0; n < s.batch; ++n)
    for (int64_t oy = 0; oy < s.out_h; ++oy)
      for (int64_t ox = 0; ox < s.out_w; ++ox)
        for (int64_t ky = 0; ky < s.window_h; ++ky)
          for (int64_t kx = 0; kx < s.window_w; ++kx) {
            const int64_t y = oy * s.stride_h + ky - s.pad_top;
            const int64_t x = ox * s.stride_w + kx - s.pad_left;
            if (y < 0 || y >= s.in_h || x < 0 || x >= s.in_w) continue;
            for (int64_t c = 0; c < s.channels; ++c) {
              visit(((n * s.out_h + oy) * s.out_w + ox) * s.channels + c,
                    ((n * s.in_h + y) * s.in_w + x) * s.channels + c);
            }
          }
}

std::vector<PoolShape> pool_shapes() {
  std::vector<PoolShape> shapes;
  for (int64_t c : {1, 3, 16, 33}) {
    // valid 2x2/2, ragged 2x2/2, same 3x3/2, same 3x3/1, gaps 2x2/3
    shapes.push_back({2, 8, 6, c, 2, 2, 2, 2, 0, 0, 4, 3});
    shapes.push_back({2, 7, 5, c, 2, 2, 2, 2, 0, 0, 3, 2});
    shapes.push_back({2, 7, 8, c, 3, 3, 2, 2, 1, 0, 4, 4});
    shapes.push_back({2, 5, 4, c, 3, 3, 1, 1, 1, 1, 5, 4});
    shapes.push_back({1, 8, 8, c, 2, 2, 3, 3, 0, 0, 3, 3});
  }
  return shapes;
}

TEST_P(TrainLoops, PoolingMatchesItsDefinitionAndTiesGoToTheFirst) {
  for (const PoolShape& s : pool_shapes()) {
    const int64_t in = s.batch * s.in_h * s.in_w * s.channels;
    const int64_t out = s.batch * s.out_h * s.out_w * s.channels;
    auto x = noise(in, 1, -2, 2);
    for (float& value : x) value = std::round(value * 2) / 2;  // many ties
    const auto dy = noise(out, 2);
    std::vector<float> top(out, -INFINITY), mean(out), count(out);
    std::vector<int64_t> winner(out, -1);
    each_position(s, [&](int64_t o, int64_t i) {
      if (x[i] > top[o]) {
        top[o] = x[i];
        winner[o] = i;
      }
      mean[o] += x[i];
      ++count[o];
    });
    std::vector<double> dmax(in), davg(in);
    for (int64_t o = 0; o < out; ++o) dmax[winner[o]] += dy[o];
    each_position(s,
                  [&](int64_t o, int64_t i) { davg[i] += dy[o] / count[o]; });

    std::vector<float> y(out), avg(out), dx(in, NAN), da(in, NAN);
    for (int64_t n = 0; n < s.batch; ++n) {  // image by image
      l().max_pool(s, x.data(), y.data(), n, n + 1);
      l().avg_pool(s, x.data(), avg.data(), n, n + 1);
      l().max_pool_grad(s, x.data(), y.data(), dy.data(), dx.data(), n, n + 1);
      l().avg_pool_grad(s, dy.data(), da.data(), n, n + 1);
    }
    for (int64_t o = 0; o < out; ++o) {
      ASSERT_EQ(y[o], top[o]);
      ASSERT_NEAR(avg[o], mean[o] / count[o], 1e-6);
    }
    for (int64_t i = 0; i < in; ++i) {
      ASSERT_NEAR(dx[i], dmax[i], 1e-6);
      ASSERT_NEAR(da[i], davg[i], 1e-6);
    }
  }
}

TEST_P(TrainLoops, MaxPoolPropagatesNanAndItsGradientReachesIt) {
  const PoolShape s = {1, 2, 2, 1, 2, 2, 2, 2, 0, 0, 1, 1};
  const float x[] = {1, 2, NAN, 3}, dy = 5;
  float y, dx[4];
  l().max_pool(s, x, &y, 0, 1);
  EXPECT_TRUE(std::isnan(y));
  l().max_pool_grad(s, x, &y, &dy, dx, 0, 1);
  EXPECT_EQ(dx[2], 5);
  EXPECT_EQ(dx[0] + dx[1] + dx[3], 0);
}

TEST_P(TrainLoops, BatchNormPiecesMatchTheirDefinition) {
  for (int64_t c : {1, 7, 16, 33}) {
    const int64_t rows = 301;
    auto x = noise(rows * c, 1, 99, 101);
    const auto dy = noise(rows * c, 2);
    std::vector<float> mean(c), square(c), sum_dy(c), sum_dy_x(c);
    l().moments(x.data(), rows, c, mean.data(), square.data());
    std::vector<double> m(c), s(c), d(c), dxs(c);
    for (int64_t i = 0; i < rows * c; ++i) m[i % c] += x[i] / double(rows);
    for (int64_t i = 0; i < rows * c; ++i) {
      s[i % c] += (x[i] - m[i % c]) * (x[i] - m[i % c]);
      d[i % c] += dy[i];
      dxs[i % c] += dy[i] * (x[i] - m[i % c]);
    }
    l().norm_grad_sums(x.data(), dy.data(), mean.data(), rows, c, sum_dy.data(),
                       sum_dy_x.data());
    for (int64_t i = 0; i < c; ++i) {
      ASSERT_NEAR(mean[i], m[i], 1e-5);
      ASSERT_NEAR(square[i], s[i], 1e-5 * s[i]);
      ASSERT_NEAR(sum_dy[i], d[i], 1e-4);
      ASSERT_NEAR(sum_dy_x[i], dxs[i], 2e-3);
    }
    const auto a = noise(c, 3), b = noise(c, 4), k = noise(c, 5);
    std::vector<float> y(rows * c);
    l().scale_shift(x.data(), a.data(), b.data(), y.data(), rows, c);
    for (int64_t i = 0; i < rows * c; ++i) {
      ASSERT_NEAR(y[i], x[i] * double(a[i % c]) + b[i % c], 2e-5);
    }
    l().norm_grad(x.data(), dy.data(), mean.data(), a.data(), b.data(),
                  k.data(), y.data(), rows, c);
    for (int64_t i = 0; i < rows * c; ++i) {
      const double want = dy[i] * double(a[i % c]) -
                          ((x[i] - mean[i % c]) * double(b[i % c]) + k[i % c]);
      ASSERT_NEAR(y[i], want, 2e-6);
    }
  }
}

TEST_P(TrainLoops, UpdatesFollowTensorFlowsFormulas) {
  for (int64_t n : {0, 1, 7, 8, 9, 31, 33, 1000}) {
    const auto w0 = noise(n + 1, 1), g = noise(n, 2), m0 = noise(n, 3);
    const auto v0 = noise(n, 4, 0, 1);
    auto w = w0, m = m0, v = v0;
    const AdamParams p{0.01f, 0.9f, 0.999f, 1e-7f};
    l().adam(w.data(), g.data(), m.data(), v.data(), n, p);
    for (int64_t i = 0; i < n; ++i) {
      const double mean = 0.9 * m0[i] + 0.1 * g[i];
      const double square = 0.999 * v0[i] + 0.001 * double(g[i]) * g[i];
      ASSERT_NEAR(m[i], mean, 1e-6);
      ASSERT_NEAR(v[i], square, 1e-6);
      ASSERT_NEAR(w[i], w0[i] - 0.01 * mean / (std::sqrt(square) + 1e-7),
                  1e-6 * (1 + 1 / std::sqrt(square)));
    }
    ASSERT_EQ(w[n], w0[n]);
    w = w0;
    l().sgd(w.data(), g.data(), n, 0.1f);
    for (int64_t i = 0; i < n; ++i) {
      ASSERT_NEAR(w[i], w0[i] - 0.1 * g[i], 2e-7);
    }
    for (bool nesterov : {false, true}) {
      w = w0, v = v0;
      l().momentum(w.data(), g.data(), v.data(), n, 0.1f, 0.9f, nesterov);
      for (int64_t i = 0; i < n; ++i) {
        const double velocity = 0.9 * v0[i] + g[i];
        ASSERT_NEAR(v[i], velocity, 2e-7);
        const double step = nesterov ? g[i] + 0.9 * velocity : velocity;
        ASSERT_NEAR(w[i], w0[i] - 0.1 * step, 3e-7);
      }
      w = w0, v = v0;
      l().keras_momentum(w.data(), g.data(), v.data(), n, 0.1f, 0.9f, nesterov);
      for (int64_t i = 0; i < n; ++i) {
        const double velocity = 0.9 * v0[i] - 0.1 * g[i];
        ASSERT_NEAR(v[i], velocity, 2e-7);
        const double step = nesterov ? 0.9 * velocity - 0.1 * g[i] : velocity;
        ASSERT_NEAR(w[i], w0[i] + step, 3e-7);
      }
    }
  }
}

TEST_P(TrainLoops, RandomTensorsAreTheStreamsElementsHoweverCut) {
  const RandomStream stream(99, 5, 1ull << 33 | 7);
  const StreamKey key{{stream.key()[0], stream.key()[1]}, stream.step()};
  for (uint64_t begin :
       {uint64_t{0}, uint64_t{1}, uint64_t{126}, uint64_t{1} << 35}) {
    for (int64_t n : {0, 1, 3, 127, 128, 129, 400}) {
      std::vector<float> u(n + 1, 77), z(n + 1, 77), y(n + 1, 77);
      l().uniform(key, begin, u.data(), n);
      l().normal(key, begin, z.data(), n);
      const auto x = noise(n, 1);
      l().dropout(key, begin, x.data(), y.data(), n, 0.25f, 1 / 0.75f);
      for (int64_t i = 0; i < n; ++i) {
        ASSERT_EQ(u[i], stream.uniform(begin + i));
        ASSERT_NEAR(z[i], stream.normal(begin + i), 2e-6);
        ASSERT_EQ(y[i], u[i] >= 0.25f ? x[i] * (1 / 0.75f) : 0.0f);
      }
      ASSERT_EQ(u[n] + z[n] + y[n], 3 * 77.0f);
    }
  }
}

TEST_P(TrainLoops, SmallProductsMatchPlainLoops) {
  for (int64_t m : {1, 3, 16, 37}) {
    for (int64_t n : {1, 7, 10, 16, 17, 40, 300}) {
      for (int64_t k : {0, 1, 10, 16, 300}) {
        for (int mode = 0; mode < 4; ++mode) {
          const bool ta = mode & 1, tb = mode & 2;
          const int64_t lda = (ta ? m : k) + 1, ldb = (tb ? k : n) + 2;
          const auto a = noise((ta ? k : m) * lda, 1);
          const auto b = noise((tb ? n : k) * ldb, 2);
          const auto c0 = noise(m * n, 3);
          auto c = c0;
          l().small_gemm(ta, tb, m, n, k, 2, a.data(), lda, b.data(), ldb, -1,
                         c.data(), n);
          for (int64_t i = 0; i < m; ++i) {
            for (int64_t j = 0; j < n; ++j) {
              double sum = 0;
              for (int64_t p = 0; p < k; ++p) {
                sum += double(ta ? a[p * lda + i] : a[i * lda + p]) *
                       double(tb ? b[j * ldb + p] : b[p * ldb + j]);
              }
              ASSERT_NEAR(c[i * n + j], 2 * sum - c0[i * n + j],
                          1e-6 * (k + 2));
            }
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace berth::cpu
