// Compares every code of the expression language with the CPU, bit for bit.

#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <random>

#include "backends/cpu/loops.h"
#include "backends/opencl/opencl_testing.h"
#include "berth/device.h"
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

constexpr size_t kNumbers = 100000;

class Elementwise : public OpenClTest {
 protected:
  void SetUp() override {
    OpenClTest::SetUp();
    if (cpu::loops().isa == cpu::Isa::kV1) {
      GTEST_SKIP() << "the CPU's loops are v1, which round twice where those "
                      "of a GPU round once";
    }
  }
};

// Returns special values, all kinds of bits, and numbers around 0.
template <class T, class Bits>
std::vector<T> floats(uint32_t seed) {
  using Limits = std::numeric_limits<T>;
  const T inf = Limits::infinity(), tiny = Limits::denorm_min();
  std::vector<T> x = {0,
                      -T(0),
                      1,
                      -1,
                      T(0.5),
                      2,
                      -2,
                      inf,
                      -inf,
                      Limits::quiet_NaN(),
                      Limits::max(),
                      Limits::lowest(),
                      Limits::min(),
                      -Limits::min(),
                      tiny,
                      -tiny,
                      T(88.5),
                      T(-104),
                      T(709.5),
                      T(1e-20),
                      T(9.02),
                      T(3.92),
                      T(2147483647.5),
                      T(-2147483649.0),
                      T(255.5),
                      T(-0.5)};
  // Every pair of them, for codes with two operands.
  const size_t special = x.size();
  std::vector<T> all;
  for (size_t i = 0; i < special * special; ++i) {
    all.push_back(x[seed % 2 ? i % special : i / special]);
  }
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<T> near(-12, 12), positive(0, 3);
  while (all.size() < kNumbers) {
    all.push_back(std::bit_cast<T>(static_cast<Bits>(random())));
    all.push_back(near(random));
    all.push_back(positive(random));
  }
  return all;
}

template <class T>
std::vector<T> wholes(uint32_t seed) {
  std::mt19937_64 random(seed);
  std::vector<T> x = {0, 1, std::numeric_limits<T>::max(),
                      std::numeric_limits<T>::lowest()};
  while (x.size() < kNumbers) {
    x.push_back(static_cast<T>(random()));
    x.push_back(static_cast<T>(random() % 5));
  }
  return x;
}

template <class T>
Tensor vector_of(const std::vector<T>& x) {
  return constant(x, Shape{static_cast<int64_t>(x.size())});
}

Tensor numbers(DType type, uint32_t seed) {
  switch (type) {
    case DType::kFloat32:
      return vector_of(floats<float, uint32_t>(seed));
    case DType::kFloat64:
      return vector_of(floats<double, uint64_t>(seed));
    case DType::kInt32:
      return vector_of(wholes<int32_t>(seed));
    case DType::kInt64:
      return vector_of(wholes<int64_t>(seed));
    default:
      return vector_of(wholes<uint8_t>(seed));
  }
}

// Returns the distance of two numbers in units in the last place.
template <class T, class Bits>
double distance(T a, T b) {
  if constexpr (std::is_floating_point_v<T>) {
    if (a != a && b != b) return 0;
    const auto x = std::bit_cast<Bits>(a), y = std::bit_cast<Bits>(b);
    if (x == y) return 0;
    if (a == b || a != a || b != b || (x < 0) != (y < 0)) return 1e9;
    return x < y ? static_cast<double>(y - x) : static_cast<double>(x - y);
  } else {
    return a == b ? 0 : 1e9;
  }
}

template <class T, class Bits>
void compare(const std::string& what, const Tensor& cpu, const Tensor& gpu,
             double ulps) {
  const auto a = cpu.to_vector<T>(), b = gpu.to_vector<T>();
  ASSERT_EQ(a.size(), b.size());
  size_t wrong = 0, first = 0;
  double worst = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    const double d = distance<T, Bits>(a[i], b[i]);
    if (d > ulps && wrong++ == 0) first = i;
    worst = std::max(worst, d);
  }
  EXPECT_EQ(wrong, 0u) << what << ": " << wrong << " differ, first at " << first
                       << ": " << +b[first] << ", expected " << +a[first]
                       << "; at most " << worst << " ulp";
}

// Runs one expression on both devices.
class Group {
 public:
  explicit Group(std::vector<DType> inputs) : inputs_(std::move(inputs)) {
    for (const DType d : inputs_) expr_.input(d);
  }
  void add(int value, double ulps) {
    expr_.output(value);
    ulps_.push_back(ulps);
    if (expr_.num_outputs() == expr::kMaxOutputs) run();
  }
  Expr& expr() { return expr_; }

  void run() {
    if (expr_.num_outputs() == 0) return;
    std::vector<std::string> types;
    for (const int o : expr_.outputs()) {
      types.emplace_back(name_of(expr_[o].type));
    }
    const AttrsRef attrs({{"expr", expr_.str()}, {"types", types}});
    const auto on = [&](const char* device) {
      const auto scope = berth::device(device);
      Tensors in;
      uint32_t seed = 0;
      for (const DType d : inputs_) {
        const Tensor x = numbers(d == bool_ ? uint8 : d, ++seed);
        in.push_back(d == bool_ ? math::cast(x, bool_) : x);
      }
      return call_list(op_named("_Fused"), in, attrs.get());
    };
    const Tensors cpu = on("/CPU:0"), gpu = on("/GPU:0");
    for (size_t i = 0; i < cpu.size(); ++i) check(i, cpu[i], gpu[i]);
    *this = Group(inputs_);
  }

 private:
  void check(size_t i, const Tensor& cpu, const Tensor& gpu) {
    const expr::Value& v = expr_[expr_.outputs()[i]];
    const std::string what =
        fmt::format("{} of {} to {}", info(v.code).name,
                    name_of(inputs_.back()), name_of(v.type));
    switch (v.type) {
      case DType::kFloat32:
        return compare<float, int32_t>(what, cpu, gpu, ulps_[i]);
      case DType::kFloat64:
        return compare<double, int64_t>(what, cpu, gpu, ulps_[i]);
      case DType::kInt32:
        return compare<int32_t, int32_t>(what, cpu, gpu, 0);
      case DType::kInt64:
        return compare<int64_t, int64_t>(what, cpu, gpu, 0);
      case DType::kBool:
        return compare<bool, bool>(what, cpu, gpu, 0);
      default:
        return compare<uint8_t, uint8_t>(what, cpu, gpu, 0);
    }
  }

  std::vector<DType> inputs_;
  Expr expr_;
  std::vector<double> ulps_;
};

// Functions that the CPU leaves to the C library differ a little, no others.
double allowed(OpCode code, DType type) {
  if (code == OpCode::kPow) return type == float32 ? 1 : 4;
  if (type != float64) return 0;
  switch (code) {
    case OpCode::kSigmoid:
    case OpCode::kTanh:
    case OpCode::kExp:
    case OpCode::kLog:
    case OpCode::kLog1p:
    case OpCode::kErf:
      return 8;
    default:
      return 0;
  }
}

void check_codes(DType type) {
  Group group({bool_, uint8, type, type});
  for (int c = 0; c < expr::kNumCodes; ++c) {
    const expr::CodeInfo& i = expr::info(static_cast<OpCode>(c));
    if (i.operands == 0 || !(i.types & dtype_bit(type))) continue;
    Expr& e = group.expr();
    if (i.code == OpCode::kCast) {
      for (int to = 1; to <= expr::kNumTypes; ++to) {
        group.add(group.expr().cast(3, static_cast<DType>(to)), 0);
      }
    } else if (i.code == OpCode::kSelect) {
      group.add(e.apply(i.code, {0, 2, 3}), 0);
    } else if (i.code == OpCode::kKeep) {
      group.add(e.apply(i.code, {2, 1}), 0);
    } else if (i.operands == 1) {
      group.add(e.apply(i.code, {3}), allowed(i.code, type));
    } else {
      group.add(e.apply(i.code, {2, 3}), allowed(i.code, type));
    }
  }
  group.run();
}

TEST_F(Elementwise, Float32HasTheBitsOfTheCpu) { check_codes(float32); }
TEST_F(Elementwise, Float64HasTheBitsOfTheCpu) { check_codes(float64); }
TEST_F(Elementwise, Int32HasTheBitsOfTheCpu) { check_codes(int32); }
TEST_F(Elementwise, Int64HasTheBitsOfTheCpu) { check_codes(int64); }
TEST_F(Elementwise, Uint8HasTheBitsOfTheCpu) { check_codes(uint8); }
TEST_F(Elementwise, BoolHasTheBitsOfTheCpu) { check_codes(bool_); }

// Functions of `x` and `y`, of 16 bits and of float32 between casts, with
// values that several read.
Tensor chain_of_halves(const Tensor& x, const Tensor& y) {
  const Tensor a = nn::relu(x * y + x) - math::exp(-math::abs(y));
  const Tensor b = math::tanh(a * 0.37) / (math::square(y) + 0.75);
  const Tensor wide = math::cast(b, float32) * 1.0001 + 1e-4;
  const Tensor c = math::cast(wide, x.dtype()) + nn::gelu(a);
  const Tensor larger = where(math::greater(c, a, {}), c, math::sqrt(c * c));
  return math::maximum(larger, math::rsqrt(a * a + 0.5)) -
         nn::gelu(c, {.approximate = true});
}

// Rounding after each op is what makes the bits those of the ops one by one.
TEST_F(Elementwise, FusedOpsOf16BitsHaveTheBitsOfTheOpsOneByOne) {
  const auto on = berth::device("/GPU:0");
  for (const DType dtype : {bfloat16, float16}) {
    const Tensor x = math::cast(numbers(float32, 1), dtype),
                 y = math::cast(numbers(float32, 2), dtype);
    const auto of = [&](bool optimize) {
      return function(
          [](const Tensors& in) -> Tensors {
            return {chain_of_halves(in[0], in[1])};
          },
          {.optimize = optimize});
    };
    auto fused = of(true), alone = of(false);
    const Tensor a = fused(Tensors{x, y})[0], b = alone(Tensors{x, y})[0];
    EXPECT_NE(fused.text("plan").find("_Fused"), std::string::npos);
    EXPECT_EQ(alone.text("plan").find("_Fused"), std::string::npos);
    const auto got = math::cast(a, float32).to_vector<float>(),
               want = math::cast(b, float32).to_vector<float>();
    size_t wrong = 0;
    for (size_t i = 0; i < got.size(); ++i) {
      const bool both_nan = got[i] != got[i] && want[i] != want[i];
      wrong += !both_nan && std::bit_cast<uint32_t>(got[i]) !=
                                std::bit_cast<uint32_t>(want[i]);
    }
    EXPECT_EQ(wrong, 0u) << name_of(dtype);
  }
}

}  // namespace
}  // namespace berth::opencl
