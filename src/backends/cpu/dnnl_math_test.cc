#include "backends/cpu/dnnl_math.h"

#include <gtest/gtest.h>
#include <omp.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <thread>
#include <vector>

#include "backends/cpu/cpu_testing.h"
#include "backends/cpu/gemm.h"
#include "base/thread_pool.h"

namespace berth::cpu {
namespace {

// Plain loops in double, straight from the definition.
std::vector<double> plain_gemm(const Gemm& g, const std::vector<float>& c0) {
  std::vector<double> c(c0.begin(), c0.end());
  for (int64_t i = 0; i < g.m; ++i) {
    for (int64_t j = 0; j < g.n; ++j) {
      double sum = 0;
      for (int64_t p = 0; p < g.k; ++p) {
        sum += double(g.transpose_a ? g.a[p * g.lda + i] : g.a[i * g.lda + p]) *
               double(g.transpose_b ? g.b[j * g.ldb + p] : g.b[p * g.ldb + j]);
      }
      double& y = c[i * g.ldc + j];
      y = g.alpha * sum + (g.beta == 0 ? 0 : g.beta * y);
    }
  }
  return c;
}

struct GemmCase {
  int64_t m, n, k;
};

class GemmSizes : public testing::TestWithParam<GemmCase> {};

TEST_P(GemmSizes, MatchPlainLoopsForAllTransposesAndSlices) {
  const auto [m, n, k] = GetParam();
  ThreadPool pool({.size = 3, .shared = true});
  for (int mode = 0; mode < 16; ++mode) {
    Gemm g{.transpose_a = (mode & 1) != 0,
           .transpose_b = (mode & 2) != 0,
           .m = m,
           .n = n,
           .k = k};
    const int64_t pad = mode & 4 ? 3 : 0;
    g.lda = (g.transpose_a ? m : k) + pad;
    g.ldb = (g.transpose_b ? k : n) + pad;
    g.ldc = n + pad;
    if (mode & 8) {
      g.alpha = 0.5f;
      g.beta = -2;
    }
    const auto a = noise((g.transpose_a ? k : m) * g.lda, 1);
    const auto b = noise((g.transpose_b ? n : k) * g.ldb, 2);
    // With beta = 0 the old contents of c must not matter.
    const auto c0 =
        g.beta == 0 ? std::vector<float>(m * g.ldc, NAN) : noise(m * g.ldc, 3);
    g.a = a.data();
    g.b = b.data();
    auto want = plain_gemm(g, c0);
    for (int slices : {1, 4, 7}) {
      auto c = c0;
      g.c = c.data();
      parallel_gemm(g, slices, &pool);
      for (int64_t i = 0; i < m; ++i) {
        for (int64_t j = 0; j < g.ldc; ++j) {
          const int64_t at = i * g.ldc + j;
          if (j >= n) {  // the gap between rows stays untouched
            ASSERT_EQ(std::memcmp(&c[at], &c0[at], 4), 0);
          } else {
            ASSERT_NEAR(c[at], want[at], 2e-6 * (k + 4))
                << "mode " << mode << " at " << i << "," << j;
          }
        }
      }
      auto serial = c0;
      g.c = serial.data();
      parallel_gemm(g, slices, nullptr);
      ASSERT_EQ(std::memcmp(c.data(), serial.data(), c.size() * 4), 0)
          << "bits differ from one thread with " << slices << " slices";
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, GemmSizes,
    testing::Values(GemmCase{1, 1, 1}, GemmCase{64, 10, 128},
                    GemmCase{128, 10, 64}, GemmCase{64, 128, 10},
                    GemmCase{13, 16, 300}, GemmCase{300, 5, 700},
                    GemmCase{33, 1, 40}, GemmCase{5, 600, 3},
                    GemmCase{17, 33, 29}, GemmCase{64, 128, 784},
                    GemmCase{200, 300, 100}, GemmCase{784, 128, 64},
                    GemmCase{90, 410, 400}, GemmCase{4, 70, 50},
                    GemmCase{271, 430, 650}));  // both operands packed

TEST(Gemm, OwnLoopsGiveTheSameBitsForEveryCut) {
  // The second operand is packed as a whole, except where its parts are small.
  for (const auto& [m, n, k] : {GemmCase{100, 130, 300}, {290, 700, 450}}) {
    const auto a = noise(m * k, 1), b = noise(k * n, 2);
    for (int mode = 0; mode < 4; ++mode) {
      const bool transpose_a = (mode & 1) != 0, transpose_b = (mode & 2) != 0;
      std::vector<float> whole(m * n), cut(m * n);
      Gemm g{.transpose_a = transpose_a,
             .transpose_b = transpose_b,
             .m = m,
             .n = n,
             .k = k,
             .a = a.data(),
             .lda = transpose_a ? m : k,
             .b = b.data(),
             .ldb = transpose_b ? k : n,
             .c = whole.data(),
             .ldc = n};
      gemm(g);
      g.c = cut.data();
      for (int slices : {2, 3, 5, 9, 32}) {
        std::fill(cut.begin(), cut.end(), NAN);
        parallel_gemm(g, slices, nullptr);
        EXPECT_EQ(whole, cut) << mode << " in " << slices;
      }
    }
  }
}

TEST(Pooled, OneDnnStartsNoThreadsOfItsOwn) {
  auto tasks = [] {
    int count = 0;
    for (const auto& entry :
         std::filesystem::directory_iterator("/proc/self/task")) {
      (void)entry;
      ++count;
    }
    return count;
  };
  ThreadPool pool({.size = 3, .shared = true});
  const int before = tasks();
  const int64_t n = 520;  // too large for our own loops
  const auto a = noise(n * n, 1);
  std::vector<float> c(n * n);
  parallel_gemm({.m = n,
                 .n = n,
                 .k = n,
                 .a = a.data(),
                 .lda = n,
                 .b = a.data(),
                 .ldb = n,
                 .c = c.data(),
                 .ldc = n},
                4, &pool);
  EXPECT_EQ(tasks(), before);
}

TEST(CutGemm, NeverExceedsTheSlicesAndCoversEverything) {
  for (int64_t m : {1, 7, 64, 784}) {
    for (int64_t n : {1, 15, 128, 1000}) {
      for (int slices : {1, 2, 3, 4, 5, 8, 31, 32}) {
        const GemmCut cut = cut_gemm(m, n, 512, slices);
        EXPECT_LE(cut.parts(), slices);
        EXPECT_GE(cut.parts(), 1);
      }
    }
  }
  EXPECT_EQ(cut_gemm(64, 10, 128, 4).parts(), 1);
  EXPECT_EQ(cut_gemm(784, 128, 64, 4).parts(), 4);
}

TEST(Sgemm, LeavesTheCallersOpenMpSettingAlone) {
  std::thread([] {
    omp_set_num_threads(3);
    const auto a = noise(64 * 64, 1);
    std::vector<float> c(64 * 64);
    sgemm(false, false, 64, 64, 64, 1, a.data(), 64, a.data(), 64, 0, c.data(),
          64);
    EXPECT_EQ(omp_get_max_threads(), 3);
  }).join();
}

// The definition of convolution, for one input-filter-output triple.
template <class Visit>
void each_product(const ConvShape& s, Visit visit) {
  const int64_t in_g = s.in_c / s.groups, out_g = s.out_c / s.groups;
  for (int64_t n = 0; n < s.batch; ++n)
    for (int64_t oy = 0; oy < s.out_h(); ++oy)
      for (int64_t ox = 0; ox < s.out_w(); ++ox)
        for (int64_t ky = 0; ky < s.kernel_h; ++ky)
          for (int64_t kx = 0; kx < s.kernel_w; ++kx) {
            const int64_t y = oy * s.stride_h - s.pad_top + ky * s.dilation_h;
            const int64_t x = ox * s.stride_w - s.pad_left + kx * s.dilation_w;
            if (y < 0 || y >= s.in_h || x < 0 || x >= s.in_w) continue;
            for (int64_t ic = 0; ic < in_g; ++ic)
              for (int64_t oc = 0; oc < s.out_c; ++oc) {
                const int64_t c = oc / out_g * in_g + ic;
                visit(((n * s.in_h + y) * s.in_w + x) * s.in_c + c,
                      ((ky * s.kernel_w + kx) * in_g + ic) * s.out_c + oc,
                      ((n * s.out_h() + oy) * s.out_w() + ox) * s.out_c + oc);
              }
          }
}

struct AlignedBytes {
  explicit AlignedBytes(size_t bytes) : bytes_(bytes + 64) {}
  void* get() {
    auto at = reinterpret_cast<uintptr_t>(bytes_.data());
    return bytes_.data() + (64 - at % 64) % 64;
  }
  std::vector<char> bytes_;
};

class ConvShapes : public testing::TestWithParam<ConvShape> {
 protected:
  // Runs one pass with several slice counts, checks it against `want`, and
  // checks that the pool and one thread agree bit for bit.
  void check(ConvPass pass, ConvChoice options, ConvBuffers buffers,
             const std::vector<double>& want, double tolerance) {
    ThreadPool pool({.size = 3, .shared = true});
    for (int slices : {1, 3, 4}) {
      options.slices = slices;
      std::string why;
      auto plan = ConvPlan::make(GetParam(), pass, options, &why);
      ASSERT_NE(plan, nullptr) << why;
      EXPECT_LE(plan->slices(), slices);
      std::vector<float> first;
      for (ThreadPool* on : {static_cast<ThreadPool*>(nullptr), &pool}) {
        std::vector<float> result(want.size(), NAN);
        AlignedBytes scratch(plan->scratch_bytes());
        std::memset(scratch.get(), 0xff, plan->scratch_bytes());
        buffers.result = result.data();
        buffers.scratch = scratch.get();
        plan->run(buffers, on);
        for (size_t i = 0; i < want.size(); ++i) {
          ASSERT_NEAR(result[i], want[i], tolerance)
              << plan->implementation() << " at " << i;
        }
        if (first.empty()) first = result;
        ASSERT_EQ(std::memcmp(first.data(), result.data(), result.size() * 4),
                  0);
      }
      RecordProperty("implementation", plan->implementation());
    }
  }
};

TEST_P(ConvShapes, MatchTheDefinitionInAllPassesAndSlices) {
  const ConvShape& s = GetParam();
  const auto x = noise(s.batch * s.image_in(), 1);
  const auto w = noise(s.filter_size(), 2);
  const auto dy = noise(s.batch * s.image_out(), 3);
  const auto bias = noise(s.out_c, 4);
  std::vector<double> y(dy.size()), dx(x.size()), dw(w.size());
  each_product(s, [&](int64_t xi, int64_t wi, int64_t yi) {
    y[yi] += double(x[xi]) * w[wi];
    dx[xi] += double(dy[yi]) * w[wi];
    dw[wi] += double(dy[yi]) * x[xi];
  });
  const double depth = s.kernel_h * s.kernel_w * s.in_c;
  for (bool winograd : {false, true}) {
    const ConvChoice options{.winograd = winograd};
    check(ConvPass::kForward, options, {.input = x.data(), .filter = w.data()},
          y, 1e-6 * (depth + 8));
    check(ConvPass::kBackwardData, options,
          {.filter = w.data(), .grad = dy.data()}, dx,
          1e-6 * (s.kernel_h * s.kernel_w * s.out_c + 8));
    check(ConvPass::kBackwardWeights, options,
          {.input = x.data(), .grad = dy.data()}, dw,
          1e-6 * (s.batch * s.out_h() * s.out_w() + 8));
  }
  for (size_t i = 0; i < y.size(); ++i) {
    y[i] = std::max(0.0, y[i] + bias[i % s.out_c]);
  }
  check(ConvPass::kForward, {.bias = true, .relu = true},
        {.input = x.data(), .filter = w.data(), .bias = bias.data()}, y,
        1e-6 * (depth + 8));
}

ConvShape same3x3(int64_t batch, int64_t size, int64_t in, int64_t out) {
  return {.batch = batch,
          .in_h = size,
          .in_w = size,
          .in_c = in,
          .out_c = out,
          .kernel_h = 3,
          .kernel_w = 3,
          .pad_top = 1,
          .pad_bottom = 1,
          .pad_left = 1,
          .pad_right = 1};
}

ConvShape odd() {
  ConvShape s = same3x3(5, 9, 3, 10);
  s.in_w = 12;
  s.kernel_h = 5;
  s.kernel_w = 2;
  s.stride_h = 2;
  s.stride_w = 3;
  s.pad_bottom = 2;
  s.pad_left = 0;
  return s;
}

ConvShape dilated() {
  ConvShape s = same3x3(2, 11, 16, 16);
  s.dilation_h = s.dilation_w = 2;
  s.pad_top = s.pad_bottom = s.pad_left = s.pad_right = 2;
  return s;
}

ConvShape grouped() {
  ConvShape s = same3x3(3, 8, 16, 32);
  s.groups = 2;
  return s;
}

ConvShape point() {
  return {.batch = 4, .in_h = 7, .in_w = 7, .in_c = 32, .out_c = 24};
}

// Padding that differs by side, 3x3 over 11x6.
ConvShape lopsided() {
  ConvShape s = same3x3(6, 11, 20, 36);
  s.in_w = 6;
  s.pad_top = 2;
  s.pad_bottom = 0;
  s.pad_left = 0;
  return s;
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, ConvShapes,
    testing::Values(same3x3(4, 14, 1, 32), same3x3(5, 14, 32, 64),
                    same3x3(2, 8, 3, 16), same3x3(3, 7, 12, 10),
                    same3x3(3, 6, 7, 9), odd(), dilated(), grouped(), point(),
                    lopsided(), same3x3(9, 4, 150, 72), same3x3(4, 16, 17, 33),
                    same3x3(2, 12, 40, 16)));

// Returns the root mean square of the differences, relative to that of `want`.
double relative_error(const std::vector<float>& got,
                      const std::vector<double>& want) {
  double error = 0, size = 0;
  for (size_t i = 0; i < want.size(); ++i) {
    error += (got[i] - want[i]) * (got[i] - want[i]);
    size += want[i] * want[i];
  }
  return std::sqrt(error / size);
}

TEST(Winograd, IsNotMuchLessPreciseThanTheDirectSum) {
  const ConvShape s = same3x3(8, 8, 64, 64);
  const auto x = noise(s.batch * s.image_in(), 1);
  const auto w = noise(s.filter_size(), 2);
  std::vector<double> want(s.batch * s.image_out());
  each_product(s, [&](int64_t xi, int64_t wi, int64_t yi) {
    want[yi] += double(x[xi]) * w[wi];
  });
  double errors[2];
  for (bool winograd : {false, true}) {
    auto plan =
        ConvPlan::make(s, ConvPass::kForward, {.winograd = winograd}, nullptr);
    ASSERT_EQ(plan->implementation() == "berth:winograd", winograd);
    AlignedBytes scratch(plan->scratch_bytes());
    std::vector<float> y(want.size());
    plan->run({.input = x.data(),
               .filter = w.data(),
               .result = y.data(),
               .scratch = scratch.get()},
              nullptr);
    errors[winograd] = relative_error(y, want);
  }
  EXPECT_LT(errors[1], 1e-6);
  EXPECT_LT(errors[1], 4 * errors[0]);
}

TEST(Winograd, GivesTheSameBitsForEveryNumberOfSlicesForwardAndToTheInput) {
  for (int64_t size : {4, 18}) {  // by panels, by tiles
    const ConvShape s = same3x3(10, size, 48, 64);
    const auto x = noise(s.batch * s.image_in(), 1);
    const auto w = noise(s.filter_size(), 2);
    const auto dy = noise(s.batch * s.image_out(), 3);
    for (ConvPass pass : {ConvPass::kForward, ConvPass::kBackwardData}) {
      std::vector<float> first;
      for (int slices : {1, 2, 3, 7, 32}) {
        auto plan = ConvPlan::make(s, pass, {.slices = slices}, nullptr);
        ASSERT_EQ(plan->implementation(), "berth:winograd");
        AlignedBytes scratch(plan->scratch_bytes());
        const bool forward = pass == ConvPass::kForward;
        std::vector<float> result(forward ? dy.size() : x.size());
        plan->run({.input = x.data(),
                   .filter = w.data(),
                   .grad = dy.data(),
                   .result = result.data(),
                   .scratch = scratch.get()},
                  nullptr);
        if (first.empty()) first = result;
        EXPECT_EQ(first, result) << slices << " slices of " << size;
      }
    }
  }
}

TEST(ConvPlan, RefusesImpossibleShapesWithAReason) {
  ConvShape s = same3x3(1, 4, 3, 5);
  s.groups = 2;
  std::string why;
  EXPECT_EQ(ConvPlan::make(s, ConvPass::kForward, {}, &why), nullptr);
  EXPECT_NE(why.find("groups"), std::string::npos) << why;
  s = same3x3(1, 4, 3, 5);
  s.kernel_h = 9;
  EXPECT_EQ(ConvPlan::make(s, ConvPass::kBackwardData, {}, &why), nullptr);
  s = same3x3(0, 4, 3, 5);
  EXPECT_EQ(ConvPlan::make(s, ConvPass::kBackwardWeights, {}, nullptr),
            nullptr);
}

TEST(ConvPlan, RunsConcurrentlyWithItsOwnScratchPerRun) {
  const ConvShape s = same3x3(4, 10, 16, 16);
  auto plan = ConvPlan::make(s, ConvPass::kForward, {.slices = 2}, nullptr);
  ASSERT_NE(plan, nullptr);
  const auto x = noise(s.batch * s.image_in(), 1);
  const auto w = noise(s.filter_size(), 2);
  std::vector<std::vector<float>> results(3);
  std::vector<std::thread> threads;
  for (auto& result : results) {
    threads.emplace_back([&] {
      AlignedBytes scratch(plan->scratch_bytes());
      result.resize(s.batch * s.image_out());
      for (int i = 0; i < 20; ++i) {
        plan->run({.input = x.data(),
                   .filter = w.data(),
                   .result = result.data(),
                   .scratch = scratch.get()},
                  nullptr);
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(results[0], results[1]);
  EXPECT_EQ(results[0], results[2]);
}

TEST(TreeSum, AddsAlongTheFixedTree) {
  // (a+b)+(c+d), with values for which any other order gives other bits.
  std::vector<float> parts = {1e8f, 1.0f, -1e8f, 1.0f, 0.5f};
  tree_sum(parts.data(), 5, 1, 1, nullptr);
  const float left = (1e8f + 1.0f) + (-1e8f + 1.0f);
  EXPECT_EQ(parts[0], left + 0.5f);
  const auto values = noise(7 * 20000, 5);
  auto serial = values, pooled = values;
  ThreadPool pool({.size = 4, .shared = true});
  tree_sum(serial.data(), 7, 20000, 20000, nullptr);
  tree_sum(pooled.data(), 7, 20000, 20000, &pool);
  for (int i = 0; i < 20000; ++i) {
    double want = 0;
    for (int p = 0; p < 7; ++p) want += values[p * 20000 + i];
    ASSERT_NEAR(serial[i], want, 1e-5);
    ASSERT_EQ(serial[i], pooled[i]);
  }
}

}  // namespace
}  // namespace berth::cpu
