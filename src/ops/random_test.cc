#include "berth/ops/random.h"

#include <algorithm>
#include <cmath>

#include "base/rng.h"
#include "device/device_manager.h"
#include "op/kernel.h"
#include "ops/testing.h"

namespace berth::test {
namespace {

TEST(Random, SameSeedSameProgramSameNumbers) {
  random::set_seed(7);
  const Floats a = floats(random::normal({5})), b = floats(random::normal({5}));
  random::set_seed(7);
  EXPECT_EQ(floats(random::normal({5})), a);
  EXPECT_EQ(floats(random::normal({5})), b);
  EXPECT_NE(a, b);
  random::set_seed(8);
  EXPECT_NE(floats(random::normal({5})), a);
  random::set_seed(7);
  EXPECT_NE(floats(random::normal({5}, {.seed = 1})), a);
  random::set_seed(7);
  EXPECT_NE(floats(random::normal({5}, {.seed = 1})),
            floats(random::normal({5}, {.seed = 2})));
}

TEST(Random, NumbersAreTheStreamOfSeedAndOpId) {
  random::set_seed(42);
  const Floats u = floats(random::uniform({2, 5}));  // op id 0
  const Floats n = floats(random::normal({7}));      // 1
  const Floats m = floats(random::normal({3}, {.mean = 10, .stddev = 2}));
  for (size_t i = 0; i < u.size(); ++i) {
    EXPECT_EQ(u[i], RandomStream(42, 0, 0).uniform(i));
  }
  for (size_t i = 0; i < n.size(); ++i) {
    EXPECT_EQ(n[i], RandomStream(42, 1, 0).normal(i));
  }
  for (size_t i = 0; i < m.size(); ++i) {
    EXPECT_EQ(m[i], 10 + 2 * RandomStream(42, 2, 0).normal(i));
  }
}

// Runs the kernel of the default device on part of a whole of 16 elements.
template <class T>
std::vector<T> part(const char* name, std::vector<Attrs::Pair> pairs,
                    DType dtype, int64_t origin, int64_t n, uint64_t step = 0) {
  pairs.emplace_back("shape", Shape{16});
  pairs.emplace_back("dtype", dtype);
  const AttrsRef attrs(std::move(pairs));
  const OpDef& op = op_named(name);
  const Shape shape{n};
  const OutSpec spec{dtype, shape};
  const BoundKernel kernel =
      bind_kernel(DeviceManager::get().default_device().kernels(),
                  {&op, attrs.get(), {}, {&spec, 1}, 1});
  std::vector<T> out(static_cast<size_t>(n));
  const View view{out.data(), &shape, dtype};
  KernelContext context;
  context.slice_origin = origin;
  context.step_counter = &step;
  kernel.run({&op, attrs.get(), nullptr, &view, 0, 1, &context});
  return out;
}

TEST(Random, PartsHoldTheNumbersOfTheWhole) {
  const std::vector<Attrs::Pair> wide = {{"minval", int64_t{-5}},
                                         {"maxval", int64_t{1} << 40}};
  const auto check = [&](auto type, const char* name, DType dtype,
                         const std::vector<Attrs::Pair>& pairs) {
    using T = decltype(type);
    const auto whole = part<T>(name, pairs, dtype, 0, 16);
    auto joined = part<T>(name, pairs, dtype, 0, 6);
    for (const auto& [origin, n] :
         {std::pair<int64_t, int64_t>{6, 3}, {9, 7}}) {
      const auto more = part<T>(name, pairs, dtype, origin, n);
      joined.insert(joined.end(), more.begin(), more.end());
    }
    EXPECT_EQ(joined, whole) << name;
    EXPECT_NE(part<T>(name, pairs, dtype, 0, 16, 1), whole) << name;
  };
  check(float{}, "RandomUniform", float32, {});
  check(float{}, "RandomStandardNormal", float32, {});
  check(double{}, "TruncatedNormal", float64, {});
  check(int64_t{}, "RandomUniformInt", int64, wide);
}

TEST(Random, Float64HoldsTheNumbersOfFloat32) {
  random::set_seed(1);
  const auto a = random::normal({9}).to_vector<double>();
  random::set_seed(1);
  EXPECT_EQ(random::normal({9}, {.dtype = float64}).to_vector<double>(), a);
}

TEST(Random, UniformStaysInItsRange) {
  random::set_seed(3);
  const Floats v = floats(random::uniform({4000}, {.minval = -1, .maxval = 3}));
  double sum = 0;
  for (float x : v) {
    ASSERT_GE(x, -1);
    ASSERT_LT(x, 3);
    sum += x;
  }
  EXPECT_NEAR(sum / 4000, 1, 0.08);  // 4 standard errors
  // Rounding would reach 2^24 + 2 without the guard.
  for (float x : floats(
           random::uniform({1000}, {.minval = 0x1p24, .maxval = 0x1p24 + 2}))) {
    ASSERT_LT(x, 0x1p24f + 2);
  }
}

TEST(Random, UniformIntegersReachEveryValue) {
  random::set_seed(3);
  Ints seen(5);
  for (int64_t x : ints(random::uniform(
           {1000}, {.minval = -2, .maxval = 3, .dtype = int32}))) {
    ASSERT_GE(x, -2);
    ASSERT_LT(x, 3);
    ++seen[static_cast<size_t>(x + 2)];
  }
  for (int64_t n : seen) EXPECT_NEAR(static_cast<double>(n), 200, 52);
  const Ints bytes = ints(
      random::uniform({2000}, {.minval = 0, .maxval = 256, .dtype = uint8}));
  EXPECT_GT(*std::max_element(bytes.begin(), bytes.end()), 250);
}

TEST(Random, TruncatedNormalStaysWithinTwoDeviations) {
  random::set_seed(5);
  double sum = 0, squares = 0;
  const Floats v =
      floats(random::truncated_normal({4000}, {.mean = 1, .stddev = 0.5}));
  for (float x : v) {
    ASSERT_LE(std::abs(x - 1), 1.0f);
    ASSERT_NE(x, 1.0f);  // drawn again, not given up
    sum += x - 1;
    squares += (x - 1) * (x - 1);
  }
  EXPECT_NEAR(sum / 4000, 0, 0.03);
  // The variance of a normal cut at two deviations is 0.7737 of it.
  EXPECT_NEAR(squares / 4000, 0.7737 * 0.25, 0.015);
}

TEST(Random, TakesEmptyAndScalarShapes) {
  EXPECT_EQ(random::normal({0, 3}).shape(), Shape({0, 3}));
  EXPECT_EQ(random::uniform({}).shape(), Shape{});
}

TEST(Random, DrawsTheOneNumberOfARangeOfNoWidth) {
  EXPECT_EQ(floats(random::uniform({2}, {.minval = 5, .maxval = 5})),
            (std::vector<float>{5, 5}));
}

TEST(Random, SaysWhatItCannotDraw) {
  using namespace random;
  expect_invalid([] { normal({2}, {.dtype = int32}); }, "dtype is int32");
  expect_invalid([] { normal({2}, {.stddev = -1}); }, "stddev is -1");
  expect_invalid([] { normal({2}, {.mean = 1e300}); }, "mean is 1e+300");
  expect_invalid([] { uniform({2}, {.minval = 2, .maxval = 1}); }, "[2, 1)");
  expect_invalid([] { uniform({2}, {.minval = -3e38, .maxval = 3e38}); },
                 "range");
  expect_invalid([] { uniform({2}, {.dtype = int32}); }, "maxval is missing");
  expect_invalid([] { uniform({2}, {.maxval = 2.5, .dtype = int32}); },
                 "maxval is 2.5");
  expect_invalid([] { uniform({2}, {.maxval = 257, .dtype = uint8}); },
                 "the largest value 256 does not fit");
  expect_invalid([] { uniform({2}, {.dtype = bool_}); }, "dtype is bool");
  expect_invalid([] { uniform({-1}); }, "[?]");
  const int64_t big = int64_t{1} << 40;
  expect_invalid([&] { uniform({big, big}); }, "too many elements");
}

}  // namespace
}  // namespace berth::test
