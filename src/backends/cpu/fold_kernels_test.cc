// Compares functions, reductions and sorts with the C library in extended
// precision and with the reference kernels.

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "backends/cpu/function_loops.h"
#include "backends/cpu/kernel_check_testing.h"
#include "expr/block_ops.h"

namespace berth::cpu {

namespace {

using Ints = std::vector<int64_t>;
constexpr float kNanF = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfF = std::numeric_limits<float>::infinity();

const FunctionLoops& functions_of(Isa isa) {
#if defined(__x86_64__)
  if (isa == Isa::kV4) return v4::function_table();
  if (isa == Isa::kV3) return v3::function_table();
#endif
  (void)isa;
  return v1::function_table();
}

// Returns the distance in units in the last place of `want`.
double ulps(float got, long double want) {
  const auto near = static_cast<float>(want);
  if (std::isnan(near)) return std::isnan(got) ? 0 : 1e9;
  if (std::isinf(near) || std::isinf(got)) return got == near ? 0 : 1e9;
  const float next = std::nextafter(std::fabs(near), kInfF);
  const long double ulp = static_cast<long double>(next) - std::fabs(near);
  return static_cast<double>(std::fabs(got - want) / ulp);
}

std::vector<float> angles() {
  std::vector<float> x = noise(20000, 1, -10, 10);
  for (const float v : noise(5000, 2, -1e6f, 1e6f)) x.push_back(v);
  for (const float v : noise(1000, 3, -1, 1)) x.push_back(v * 3e38f);
  // Adds the floats nearest to multiples of a quarter turn.
  for (int k = 0; k < 5000; ++k) {
    x.push_back(static_cast<float>(k * 1.57079632679489661923L));
  }
  for (const float v : {0.0f, -0.0f, 1e-30f, 1e-45f, 1048576.0f, 1048577.0f,
                        kInfF, -kInfF, kNanF}) {
    x.push_back(v);
  }
  return x;
}

TEST(Functions, SineAndCosineAreNearForEveryArgument) {
  const std::vector<float> x = angles();
  const auto n = static_cast<int64_t>(x.size());
  for (const Loops* l : all_loops()) {
    SCOPED_TRACE(static_cast<int>(l->isa));
    const FunctionLoops& f = functions_of(l->isa);
    std::vector<float> s(x.size()), c(x.size());
    f.sin(x.data(), s.data(), n);
    f.cos(x.data(), c.data(), n);
    for (size_t i = 0; i < x.size(); ++i) {
      ASSERT_LE(ulps(s[i], sinl(x[i])), 1.5) << "sin " << x[i];
      ASSERT_LE(ulps(c[i], cosl(x[i])), 1.5) << "cos " << x[i];
    }
    EXPECT_TRUE(std::signbit(s[x.size() - 8]));  // of -0
  }
}

TEST(Functions, PowersAreNearForEveryBaseAndExponent) {
  std::vector<float> a = noise(20000, 4, 0, 20), b = noise(20000, 5, -20, 20);
  const auto add = [&](float base, float exponent) {
    a.push_back(base);
    b.push_back(exponent);
  };
  // Bases near 1, of all sizes, subnormal, and negative.
  for (const float v : noise(3000, 6, -1, 1)) {
    add(1 + v * 1e-3f, v * 4e4f);
    add(std::exp2(v * 126), v);
    add(std::fabs(v) * 1e-39f, v * 2);
    add(v * 8, std::rint(v * 20));
    add(v - 1, v * 3);  // NaN, or 1
  }
  const float special[] = {0.0f,  -0.0f,  1.0f,  -1.0f, 2.0f,   -2.0f,
                           0.5f,  -0.5f,  3.0f,  -3.0f, 1e30f,  1e-45f,
                           kInfF, -kInfF, kNanF, 1e10f, -1e10f, 3.4e38f};
  for (const float base : special) {
    for (const float exponent : special) add(base, exponent);
  }
  const auto n = static_cast<int64_t>(a.size());
  for (const Loops* l : all_loops()) {
    SCOPED_TRACE(static_cast<int>(l->isa));
    std::vector<float> y(a.size());
    l->expr->fn[static_cast<int>(expr::OpCode::kPow)][0](a.data(), b.data(),
                                                         nullptr, y.data(), n);
    for (size_t i = 0; i < a.size(); ++i) {
      const long double want = powl(a[i], b[i]);
      ASSERT_LE(ulps(y[i], want), 1.0) << a[i] << " ^ " << b[i] << ": " << y[i];
      if (want == 0) {
        ASSERT_EQ(std::signbit(y[i]), std::signbit(want)) << a[i] << b[i];
      }
    }
  }
}

TEST(Folds, EqualTheReferenceOverEveryAxis) {
  const std::vector<std::pair<Shape, Ints>> forms = {
      {{100}, {0}},     {{70000}, {0}},      {{64, 10}, {0}},
      {{64, 10}, {1}},  {{70, 600}, {0}},    {{70, 600}, {1}},
      {{9, 9000}, {0}}, {{9, 9000}, {1}},    {{5, 9, 70}, {1}},
      {{3, 4}, {}},     {{1, 5, 1}, {0, 2}}, {{7, 1}, {0}}};
  for (const auto& [shape, axis] : forms) {
    for (const DType type : {float32, int32, int64}) {
      for (const char* op : {"Max", "Min", "Prod", "Sum"}) {
        check({op, {{shape, type}}, {{"axis", axis}}, 1e-4});
      }
    }
    for (const char* op : {"All", "Any"}) {
      check({op, {{shape, bool_}}, {{"axis", axis}}});
    }
  }
}

TEST(Folds, NanWinsWhereverItStands) {
  for (int64_t at : {0, 1, 63, 64, 129}) {
    std::vector<float> x = noise(260, 6);
    x[static_cast<size_t>(at)] = kNanF;
    for (const char* op : {"Max", "Min"}) {
      check({op, {{{260}, float32, x}}, {{"axis", Ints{0}}}, 0});
      check({op, {{{2, 130}, float32, x}}, {{"axis", Ints{0}}}, 0});
      check({op, {{{2, 130}, float32, x}}, {{"axis", Ints{1}}}, 0});
    }
  }
}

TEST(Folds, PlacesOfExtremesAreTheFirstOnes) {
  std::vector<float> x = noise(3 * 50 * 600, 10, 0, 30);
  for (float& v : x) v = std::floor(v);
  for (size_t i = 0; i < x.size(); i += 7001) x[i] = kNanF;
  for (const char* op : {"ArgMax", "ArgMin"}) {
    for (const int64_t axis : {0, 1, 2}) {
      for (const DType out : {int32, int64}) {
        const std::vector<Attrs::Pair> attrs = {{"axis", axis},
                                                {"output_type", out}};
        check({op, {{{3, 50, 600}, float32, x}}, attrs});
        check({op, {{{3, 50, 600}, int32, noise(90000, 11, 0, 9)}}, attrs});
        check({op, {{{3, 50, 600}, int64, noise(90000, 12, 0, 9)}}, attrs});
      }
    }
  }
}

TEST(Folds, AProductMayOverflowOnItsWay) {
  std::vector<float> x(40000, 1.0f);
  x[0] = x[1] = 1e30f;
  x[39998] = x[39999] = 1e-30f;
  check({"Prod", {{{40000}, float32, x}}, {{"axis", Ints{0}}}});
}

// Returns whole numbers, so that many are equal, and special values.
std::vector<float> orders(int64_t n, float range) {
  std::vector<float> x = noise(n, 7, -range, range);
  for (float& v : x) v = std::floor(v);
  for (size_t i = 0; i < x.size(); i += 37) {
    const float special[] = {kNanF, -kNanF, kInfF, -kInfF, 0.0f, -0.0f};
    x[i] = special[i % 6];
  }
  return x;
}

TEST(Sort, EqualsTheReferenceForShortAndLongRows) {
  for (const Shape& shape : {Shape{1}, Shape{7, 9}, Shape{2, 1499},
                             Shape{3, 1500}, Shape{20000}, Shape{2, 0}}) {
    const int64_t n = shape.num_elements();
    for (const float range : {3.0f, 2e6f}) {
      for (const bool down : {false, true}) {
        check({"ArgSort",
               {{shape, float32,
                 n > 0 ? orders(n, range) : std::vector<float>{}}},
               {{"descending", down}}});
        check({"ArgSort",
               {{shape, int32, noise(n, 8, -range, range)}},
               {{"descending", down}}});
        check({"ArgSort",
               {{shape, int64, noise(n, 9, -1e15f, 1e15f)}},
               {{"descending", down}}});
      }
    }
  }
}

TEST(Sort, OfValuesEqualsTheReferenceForEveryTypeAndLength) {
  for (const Shape& shape :
       {Shape{1}, Shape{9, 7}, Shape{3, 100}, Shape{2, 1500}, Shape{40000}}) {
    const int64_t n = shape.num_elements();
    for (const float range : {3.0f, 2e6f}) {
      for (const bool down : {false, true}) {
        const std::vector<Attrs::Pair> attrs = {{"descending", down}};
        for (const DType dtype : {float32, float64}) {
          check({"Sort", {{shape, dtype, orders(n, range)}}, attrs});
          check({"Sort", {{shape, dtype, noise(n, 3, -range, range)}}, attrs});
        }
        for (const DType dtype : {int32, int64}) {
          check({"Sort", {{shape, dtype, noise(n, 8, -range, range)}}, attrs});
        }
        check({"Sort", {{shape, uint8, noise(n, 9, 0, 255)}}, attrs});
      }
    }
  }
}

template <class T>
void expect_sorted(bool (*sort)(const T*, T*, int64_t, int), std::vector<T> x,
                   const char* order) {
  std::vector<T> wanted = x;
  std::sort(wanted.begin(), wanted.end());
  for (const int splits : {60, 2, 0}) {
    std::vector<T> y(x.size());
    EXPECT_TRUE(
        sort(x.data(), y.data(), static_cast<int64_t>(x.size()), splits));
    EXPECT_EQ(y, wanted) << order << " order of " << x.size() << ", " << splits
                         << " splits";
  }
}

// Lengths around those of vectors, of networks and of splits.
template <class T>
void expect_sorts(bool (*sort)(const T*, T*, int64_t, int)) {
  if (sort == nullptr) return;
  std::vector<int64_t> lengths;
  for (int64_t n = 0; n < 150; ++n) lengths.push_back(n);
  for (const int64_t n : {256, 512, 1024, 4096, 12000}) {
    for (const int64_t more : {-1, 0, 1, 77}) lengths.push_back(n + more);
  }
  for (const int64_t n : lengths) {
    std::vector<T> x(static_cast<size_t>(n));
    const auto order = [&](const char* name, auto value) {
      for (int64_t i = 0; i < n; ++i) {
        x[static_cast<size_t>(i)] = static_cast<T>(value(i));
      }
      expect_sorted(sort, x, name);
    };
    order("rising", [](int64_t i) { return i; });
    order("falling", [](int64_t i) { return -i; });
    order("one", [](int64_t) { return 5; });
    order("mixed", [](int64_t i) { return i * 7919 % 10007 - 5000; });
    order("repeating", [](int64_t i) { return i * 7919 % 10007 % 3; });
    order("saw", [](int64_t i) { return i % 16; });
    if (n > 2) {
      x[1] = std::numeric_limits<T>::max();
      x[static_cast<size_t>(n - 1)] = std::numeric_limits<T>::lowest();
      if constexpr (std::is_floating_point_v<T>) {
        x[0] = std::numeric_limits<T>::infinity();
        x[static_cast<size_t>(n / 2)] = -std::numeric_limits<T>::infinity();
      }
      expect_sorted(sort, x, "extreme");
    }
  }
}

TEST(Sort, LoopsOfEveryInstructionSetSortEveryOrder) {
  for (const Loops* l : all_loops()) {
    SCOPED_TRACE(static_cast<int>(l->isa));
    const SortLoops& sort = functions_of(l->isa).sort;
    expect_sorts(sort.float32);
    expect_sorts(sort.float64);
    expect_sorts(sort.int32);
    expect_sorts(sort.int64);
  }
}

TEST(Sort, LoopsReportEveryNanAndMinusZero) {
  for (const Loops* l : all_loops()) {
    const auto sort = functions_of(l->isa).sort.float32;
    if (sort == nullptr) continue;
    for (const uint32_t bits : {0x7f800001u, 0x7fc00000u, 0x7fffffffu,
                                0x80000000u, 0xff800001u, 0xffffffffu}) {
      for (const int64_t at : {0, 15, 36}) {
        std::vector<float> x = noise(37, 5, -1, 1), y(37);
        x[static_cast<size_t>(at)] = std::bit_cast<float>(bits);
        EXPECT_FALSE(sort(x.data(), y.data(), 37, 60)) << bits << " at " << at;
        EXPECT_EQ(std::memcmp(x.data(), y.data(), 37 * 4), 0);
      }
    }
    for (const uint32_t bits : {0x7f800000u, 0xff800000u, 0x80000001u, 0u}) {
      std::vector<float> x = {std::bit_cast<float>(bits), 1.0f}, y(2);
      EXPECT_TRUE(sort(x.data(), y.data(), 2, 60)) << bits;
    }
  }
}

TEST(Sort, TopKEqualsTheReferenceWhateverTheOrder) {
  for (const int64_t k : {0, 1, 10, 300, 2500, 5000, 10000}) {
    std::vector<float> x = orders(10000, 1000);
    for (int order = 0; order < 3; ++order) {
      if (order > 0) {
        for (size_t i = 0; i < x.size(); ++i) {
          x[i] = static_cast<float>(order == 1 ? i : x.size() - i);
        }
      }
      check({"TopKV2", {{{10000}, float32, x}}, {{"k", k}}, 0});
      if (order == 0) continue;  // NaN is not a whole number
      check({"TopKV2", {{{1, 10000}, int64, x}}, {{"k", k}}, 0});
    }
  }
}

}  // namespace
}  // namespace berth::cpu
