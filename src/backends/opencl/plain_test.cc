// Cases that conformance does not reach: fused groups that broadcast, sums of
// many arrays, values known only to the device.

#include <fmt/format.h>

#include <cmath>
#include <complex>
#include <limits>

#include "backends/cpu/loops.h"
#include "backends/opencl/opencl_testing.h"
#include "berth/device.h"
#include "berth/errors.h"
#include "berth/function.h"
#include "berth/ops/array.h"
#include "berth/ops/math.h"
#include "berth/ops/nn.h"
#include "expr/expr.h"
#include "ops/op_call.h"

namespace berth::opencl {
namespace {

using expr::Expr;
using expr::OpCode;
using Plain = OpenClTest;

Tensor counting(const Shape& shape, float first) {
  std::vector<float> x;
  for (int64_t i = 0; i < shape.num_elements(); ++i) {
    x.push_back(first + 0.25f * static_cast<float>(i % 1000));
  }
  return constant(x, shape);
}

// (x0 + x1) * x2 + ... and two of its values, for inputs of these shapes.
void check_fused(const std::vector<Shape>& shapes) {
  Expr e;
  for (size_t i = 0; i < shapes.size(); ++i) e.input(float32);
  int sum = 0;
  for (size_t i = 1; i < shapes.size(); ++i) {
    sum = e.apply(i % 2 ? OpCode::kAdd : OpCode::kMul,
                  {sum, static_cast<int>(i)});
  }
  const int outputs[] = {sum, e.apply(OpCode::kNeg, {sum}),
                         e.apply(OpCode::kLess, {sum, 0})};
  for (const int o : outputs) e.output(o);
  const AttrsRef attrs(
      {{"expr", e.str()},
       {"types", std::vector<std::string>{"float32", "float32", "bool"}}});
  const auto on = [&](const char* device) {
    const auto scope = berth::device(device);
    Tensors in;
    for (const Shape& s : shapes) {
      in.push_back(counting(s, static_cast<float>(in.size())));
    }
    return call_list(op_named("_Fused"), in, attrs.get());
  };
  const Tensors cpu = on("/CPU:0"), gpu = on("/GPU:0");
  EXPECT_EQ(gpu[0].to_vector<float>(), cpu[0].to_vector<float>());
  EXPECT_EQ(gpu[1].to_vector<float>(), cpu[1].to_vector<float>());
  EXPECT_EQ(gpu[2].to_vector<bool>(), cpu[2].to_vector<bool>());
}

// A chain that fuses into few groups, in an arena, in place.
Tensor chain(const Tensor& x) {
  const Tensor bias = constant({0.5f, -1.f, 2.f, 0.25f, 1.5f});
  Tensor y = nn::relu(x * bias + bias);
  y = y * math::sigmoid(x) - math::exp(-math::abs(x));
  const Tensor large = math::greater(y, math::tanh(x * 0.5), {});
  y = where(large, y, math::sqrt(math::abs(y)));
  const Tensor whole = math::cast(y * 100.0, int32);
  return nn::gelu(y) + math::cast(whole * whole, float32) * 1e-3;
}

TEST_F(Plain, FunctionsGiveTheBitsOfTheCpu) {
  if (cpu::loops().isa == cpu::Isa::kV1) GTEST_SKIP() << "v1 rounds twice";
  const auto on = [](const char* device, int64_t rows) {
    const auto scope = berth::device(device);
    const auto f = function(&chain);
    const Tensor x = counting(Shape{rows, 5}, -120.f);
    const Tensor first = f(x), second = f(x * 0.5);
    auto all = first.to_vector<float>();
    for (const float v : second.to_vector<float>()) all.push_back(v);
    return all;
  };
  for (const int64_t rows : {1, 7, 5000}) {
    EXPECT_EQ(on("/GPU:0", rows), on("/CPU:0", rows)) << rows;
  }
}

TEST_F(Plain, FusedGroupsBroadcast) {
  const std::vector<std::vector<Shape>> forms = {
      {{5, 7}, {5, 7}},
      {{5, 7}, {7}},
      {{5, 7}, {5, 1}, {}},
      {{3, 1}, {1, 400}},
      {{2, 3, 4, 5}, {3, 1, 5}, {2, 1, 1, 1}},
      {{1, 3, 1, 2, 1, 2}, {4, 1, 5, 1, 3, 1}},
      {{0, 3}, {3}},
      {{}, {}},
  };
  for (const auto& form : forms) {
    SCOPED_TRACE(fmt::format("{} and {}", form[0].str(), form[1].str()));
    check_fused(form);
  }
}

TEST_F(Plain, FusedGroupsHaveManyInputs) {
  std::vector<Shape> shapes;
  for (int i = 0; i < expr::kMaxInputs; ++i) {
    shapes.push_back(i % 3 == 0   ? Shape{4, 5, 6}
                     : i % 3 == 1 ? Shape{5, 1}
                                  : Shape{4, 1, 6});
  }
  check_fused(shapes);
}

TEST_F(Plain, SumsOfManyArrays) {
  for (const int count : {1, 8, 9, 30}) {
    const auto on = berth::device("/GPU:0");
    Tensors parts;
    double want = 0;
    for (int i = 0; i < count; ++i) {
      parts.push_back(fill(Shape{300}, 1.5 * i));
      want += 1.5 * i;
    }
    const std::vector<float> all(300, static_cast<float>(want));
    EXPECT_EQ(math::add_n(parts).to_vector<float>(), all) << count;
  }
}

// Returns the error from reading the tensor.
std::string failure_of(const Tensor& t) {
  std::string text;
  try {
    t.to_vector<int32_t>();
  } catch (const errors::InvalidArgument& e) {
    text = e.what();
  }
  config::reset_device_error("GPU:0");
  return text;
}

TEST_F(Plain, DivisionByZeroIsReported) {
  const auto on = berth::device("/GPU:0");
  const Tensor a = constant({7, 8, 9});
  const auto text = "integer division by zero";
  EXPECT_NE(failure_of(math::floordiv(a, constant({1, 0, 2}))).find(text),
            std::string::npos);
  EXPECT_NE(failure_of(math::truncatemod(a, constant({0}))).find(text),
            std::string::npos);
  EXPECT_EQ(math::floordiv(a, constant({2, -3, 4})).to_vector<int32_t>(),
            (std::vector<int32_t>{3, -3, 2}));
}

TEST_F(Plain, PowersBelowZeroAreReported) {
  const auto on = berth::device("/GPU:0");
  const Tensor a = constant({2, 3});
  const std::string text = failure_of(math::pow(a, constant({4, -3})));
  EXPECT_NE(text.find("the exponent of a whole number is -3"),
            std::string::npos)
      << text;
  EXPECT_EQ(math::pow(a, constant({5, 0})).to_vector<int32_t>(),
            (std::vector<int32_t>{32, 1}));
}

std::vector<std::complex<double>> quadrants() {
  std::vector<std::complex<double>> all;
  for (const double re : {-30.0, -2.0, -0.5, -0.0, 0.0, 0.25, 1.0, 3.0, 25.0}) {
    for (const double im : {-40.0, -3.0, -0.75, -0.0, 0.0, 0.5, 2.0, 31.0}) {
      all.emplace_back(re, im);
    }
  }
  return all;
}

void check_complex(const char* name, bool binary) {
  SCOPED_TRACE(name);
  const auto on = [&](const char* device) {
    const auto scope = berth::device(device);
    const auto z = quadrants();
    const auto n = static_cast<int64_t>(z.size());
    const Tensor x = constant(z, binary ? Shape{n, 1} : Shape{n});
    const Tensor y = constant(z, Shape{n});
    const OpDef& op = op_named(name);
    const Tensor result = binary ? call1(op, x, y) : call1(op, x);
    return math::cast(result, complex128).to_vector<std::complex<double>>();
  };
  const auto cpu = on("/CPU:0"), gpu = on("/GPU:0");
  ASSERT_EQ(cpu.size(), gpu.size());
  for (size_t i = 0; i < cpu.size(); ++i) {
    if (!std::isfinite(std::abs(cpu[i]))) continue;
    EXPECT_LE(std::abs(cpu[i] - gpu[i]), 1e-12 * (1 + std::abs(cpu[i])))
        << "element " << i << ": " << gpu[i] << ", expected " << cpu[i];
  }
}

TEST_F(Plain, ComplexNumbersOfAllQuadrants) {
  for (const char* name : {"Sqrt", "Rsqrt", "Exp", "Log", "Log1p", "Sigmoid",
                           "Tanh", "Angle", "ComplexAbs", "Conj", "Neg"}) {
    check_complex(name, false);
  }
  for (const char* name : {"Mul", "RealDiv", "Pow", "SquaredDifference"}) {
    check_complex(name, true);
  }
}

template <class T>
std::vector<T> next_numbers(const char* device) {
  const auto scope = berth::device(device);
  using Limits = std::numeric_limits<T>;
  const std::vector<T> x = {0,
                            -T(0),
                            1,
                            -1,
                            T(-0.1),
                            3,
                            Limits::max(),
                            Limits::lowest(),
                            Limits::denorm_min(),
                            -Limits::denorm_min(),
                            Limits::min(),
                            Limits::infinity(),
                            -Limits::infinity()};
  const auto n = static_cast<int64_t>(x.size());
  const Tensor from = constant(x, Shape{n, 1}), to = constant(x, Shape{n});
  const Tensor next = math::nextafter(from, to);
  return next.to_vector<T>();
}

TEST_F(Plain, NextNumbersAreThoseOfTheCpu) {
  EXPECT_EQ(next_numbers<float>("/GPU:0"), next_numbers<float>("/CPU:0"));
  EXPECT_EQ(next_numbers<double>("/GPU:0"), next_numbers<double>("/CPU:0"));
}

}  // namespace
}  // namespace berth::opencl
