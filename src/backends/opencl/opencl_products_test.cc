// Compares products and convolutions computed in tiles, parts and batches with
// the CPU. Operands are small whole numbers, so that sums are exact in every
// order.

#include <fmt/format.h>

#include "backends/opencl/opencl_testing.h"
#include "berth/device.h"
#include "berth/gradient_tape.h"
#include "berth/ops/array.h"
#include "berth/ops/contract.h"
#include "berth/ops/conv.h"
#include "berth/ops/math.h"

namespace berth::opencl {
namespace {

// Returns whole numbers from -2 to 2 that look random.
Tensor numbers(const Shape& shape, DType dtype, uint32_t seed) {
  std::vector<float> v(static_cast<size_t>(shape.num_elements()));
  uint32_t state = seed;
  for (float& x : v) {
    state = state * 1664525u + 1013904223u;
    x = static_cast<float>(static_cast<int>((state >> 24) % 5) - 2);
  }
  const auto on = berth::device("/CPU:0");
  return math::cast(constant(std::span<const float>(v), shape), dtype);
}

struct Product {
  Shape a, b;
  bool ta = false, tb = false;
  DType dtype = float32;
};

std::vector<double> made_on(const char* device, const Product& p) {
  const auto on = berth::device(device);
  const Tensor y = matmul(numbers(p.a, p.dtype, 1), numbers(p.b, p.dtype, 2),
                          {.transpose_a = p.ta, .transpose_b = p.tb});
  EXPECT_NE(y.device().find(std::string(device).substr(1)), std::string::npos);
  return y.to_vector<double>();
}

class Products : public OpenClTest {
 protected:
  static void check(const Product& p) {
    SCOPED_TRACE(fmt::format("{} x {}", p.a.str(), p.b.str()));
    EXPECT_EQ(made_on("/GPU:0", p), made_on("/CPU:0", p));
  }
};

TEST_F(Products, OfManyRows) {
  check({{1500, 3000}, {3000, 40}});
  check({{3000, 1500}, {20, 3000}, true, true});
  check({{1500, 3000}, {3000, 12}, false, false, float64});
}

TEST_F(Products, OfManyColumns) { check({{20, 4000}, {4000, 6000}}); }

TEST_F(Products, OfLongInnerDimensionsInParts) {
  check({{9, 20000}, {20000, 20}});
  check({{20000, 9}, {70, 20000}, true, true});
  check({{3, 20000}, {20000, 2}});
  check({{5, 20000}, {20000, 128}});
}

TEST_F(Products, OfManyBatches) {
  check({{200, 30, 1000}, {200, 1000, 8}});
  check({{3, 1, 20, 30}, {5, 30, 17}});
  check({{3, 1, 30, 20}, {5, 17, 30}, true, true});
  check({{4, 7, 100}, {4, 100, 64}});
  check({{4, 3, 1, 100}, {3, 100, 16}, false, false, float64});
  check({{4, 20, 30}, {17, 30}, false, true, float64});
}

TEST_F(Products, OfEveryDtype) {
  for (const DType dtype :
       {float32, float64, bfloat16, float16, int32, int64, uint8, int8}) {
    SCOPED_TRACE(name_of(dtype));
    check({{17, 31}, {31, 65}, false, false, dtype});
    check({{31, 17}, {19, 31}, true, true, dtype});
  }
}

struct Conv {
  Shape x, filter;
  int64_t stride = 1;
};

std::vector<std::vector<double>> made_on(const char* device, const Conv& c) {
  const auto on = berth::device(device);
  const Tensor x = numbers(c.x, float32, 3);
  const Tensor filter = numbers(c.filter, float32, 4);
  GradientTape tape;
  tape.watch(x);
  tape.watch(filter);
  const Tensor y =
      nn::conv2d(x, filter, {.strides = {c.stride}, .padding = "SAME"});
  const Tensor z = math::multiply(y, numbers(y.shape(), float32, 5));
  const auto d = tape.gradient(z, {x, filter});
  return {y.to_vector<double>(), d[0].to_vector<double>(),
          d[1].to_vector<double>()};
}

TEST_F(Products, OfConvolutionsAndTheirGradients) {
  for (const Conv& c : {Conv{{2, 100, 100, 3}, {3, 3, 3, 8}},
                        Conv{{3, 40, 40, 37}, {3, 3, 1, 37}},
                        Conv{{2, 90, 90, 16}, {3, 3, 1, 16}, 2},
                        Conv{{4, 30, 30, 20}, {3, 3, 20, 24}, 2},
                        Conv{{2, 60, 60, 128}, {3, 3, 128, 9}}}) {
    SCOPED_TRACE(fmt::format("{} by {}", c.x.str(), c.filter.str()));
    EXPECT_EQ(made_on("/GPU:0", c), made_on("/CPU:0", c));
  }
}

}  // namespace
}  // namespace berth::opencl
