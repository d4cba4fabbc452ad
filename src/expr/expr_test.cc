#include "expr/expr.h"

#include <gtest/gtest.h>

#include <cstring>
#include <limits>
#include <random>

#include "backends/cpu/loops.h"
#include "berth/errors.h"
#include "expr/program.h"

namespace berth::expr {
namespace {

using cpu::Isa;

std::vector<const BlockOps*> all_ops() {
  std::vector<const BlockOps*> found;
  for (Isa isa : {Isa::kV1, Isa::kV3, Isa::kV4}) {
    if (const cpu::Loops* l = cpu::loops_for(isa)) found.push_back(l->expr);
  }
  return found;
}

TEST(ExprText, ReadsWhatItPrints) {
  const char* text =
      "v0:float32, v1:uint8, v2=float32 0.1, v3=mul(v0,v2), v4=keep(v3,v1), "
      "v5=cast(v4):int32, v6=float32 inf, v7=lt(v4,v6), v8=int32 -3, "
      "v9=select(v7,v5,v8) -> v9 v4";
  const Expr e = Expr::parse(text);
  EXPECT_EQ(e.str(), text);
  EXPECT_EQ(Expr::parse(e.str()).str(), text);
  EXPECT_EQ(e.num_inputs(), 2);
  EXPECT_EQ(e.outputs(), (std::vector<int>{9, 4}));
  EXPECT_EQ(static_cast<float>(e[2].number), 0.1f);
}

TEST(ExprText, RefusesWhatIsNotAnExpression) {
  for (const char* text :
       {"",
        "v0",
        "v0:float32",
        "v0:float32 ->",
        "v0:float32 -> v0",
        "v1:float32 -> v1",
        "v0:string -> v0",
        "v0:resource -> v0",
        "v0:float32, v1=add(v0) -> v1",
        "v0:float32, v1=add(v0,v1) -> v1",
        "v0:float32, v1=add(v0,v0,v0,v0) -> v1",
        "v0:float32, v1=foo(v0) -> v1",
        "v0:bool, v1=add(v0,v0) -> v1",
        "v0:float64, v1=gelu_erf(v0) -> v1",
        "v0:float32, v1:int32, v2=add(v0,v1) -> v2",
        "v0:float32, v1=select(v0,v0,v0) -> v1",
        "v0:float32, v1=float32 1 -> v1",
        "v0:float32, v1=neg(v0) -> v1 v1",
        "v0:float32, v1=neg(v0), v2:float32, v3=add(v1,v2) -> v3",
        "v0:float32, v1=cast(v0) -> v1",
        "v0:float32, v1=input(v0) -> v1",
        "v99999999999:float32 -> v0",
        "v0:float32, v1=float32 x -> v1",
        "v0:float32, v1=neg(v-1) -> v1",
        "v0:float32, v1=cast():int32 -> v1"}) {
    EXPECT_THROW(Expr::parse(text), errors::InvalidArgument) << text;
  }
  std::string long_text = "v0:float32";
  for (int i = 1; i < 100; ++i) {
    long_text +=
        ", v" + std::to_string(i) + "=neg(v" + std::to_string(i - 1) + ")";
  }
  EXPECT_THROW(Expr::parse(long_text + " -> v99"), errors::InvalidArgument);
}

TEST(BlockOps, HaveALoopForEveryDtypeOfEveryCode) {
  for (const BlockOps* ops : all_ops()) {
    for (int c = 0; c < kNumCodes; ++c) {
      const CodeInfo& i = info(static_cast<OpCode>(c));
      for (int t = 0; t < kNumTypes; ++t) {
        if (i.operands == 0 || !(i.types >> (t + 1) & 1)) continue;
        if (i.code == OpCode::kCast) {
          for (int to = 0; to < kNumTypes; ++to) EXPECT_TRUE(ops->cast[t][to]);
        } else {
          EXPECT_TRUE(ops->fn[c][t]) << i.name << " " << t;
        }
      }
    }
  }
}

// An array of any dtype.
struct Array {
  Shape shape;
  DType dtype = float32;
  std::vector<unsigned char> bytes;

  Array() = default;
  Array(Shape s, DType d)
      : shape(s),
        dtype(d),
        bytes(static_cast<size_t>(s.num_elements()) * size_of(d), 0xcd) {}
  View view() { return {bytes.data(), &shape, dtype}; }
};

class Dice {
 public:
  explicit Dice(uint32_t seed) : engine_(seed) {}
  int below(int n) {
    return static_cast<int>(engine_() % static_cast<uint32_t>(n));
  }
  double real() { return below(4001) / 1000.0 - 2; }
  template <class T>
  T pick(std::initializer_list<T> list) {
    return list.begin()[below(static_cast<int>(list.size()))];
  }

 private:
  std::mt19937 engine_;
};

template <class T>
void fill(Array& a, Dice& dice) {
  auto* p = reinterpret_cast<T*>(a.bytes.data());
  for (int64_t i = 0; i < a.shape.num_elements(); ++i) {
    p[i] = static_cast<T>(dice.real() * (std::is_integral_v<T> ? 5 : 1));
    if constexpr (std::is_floating_point_v<T>) {
      if (dice.below(50) == 0) {
        p[i] = dice.pick<T>({T(NAN), T(INFINITY), T(-INFINITY), T(0), T(-0.0)});
      }
    }
  }
}

Array random_array(Shape shape, DType dtype, Dice& dice) {
  Array a(shape, dtype);
  switch (dtype) {
    case DType::kFloat32:
      fill<float>(a, dice);
      break;
    case DType::kFloat64:
      fill<double>(a, dice);
      break;
    case DType::kInt32:
      fill<int32_t>(a, dice);
      break;
    case DType::kInt64:
      fill<int64_t>(a, dice);
      break;
    default:
      for (auto& b : a.bytes) b = static_cast<unsigned char>(dice.below(2));
  }
  return a;
}

// The operand copied out to the whole iteration space.
Array expanded(Array& a, const Shape& full) {
  Array out(full, a.dtype);
  const size_t size = size_of(a.dtype);
  const int shift = full.rank() - a.shape.rank();
  for (int64_t i = 0; i < full.num_elements(); ++i) {
    int64_t rest = i, offset = 0, step = 1;
    for (int d = full.rank() - 1; d >= 0; --d) {
      const int64_t at = rest % full[d];
      rest /= full[d];
      if (d < shift || a.shape[d - shift] == 1) continue;
      offset += at * step;
      step *= a.shape[d - shift];
    }
    std::memcpy(&out.bytes[static_cast<size_t>(i) * size],
                &a.bytes[static_cast<size_t>(offset) * size], size);
  }
  return out;
}

// One loop per value over whole arrays: what unfused kernels do.
std::vector<Array> one_by_one(const Expr& e, const BlockOps& ops,
                              std::vector<Array>& in, const Shape& full) {
  std::vector<Array> values;
  for (int i = 0; i < e.size(); ++i) {
    const Value& v = e[i];
    Array y(full, v.type);
    const int64_t n = full.num_elements();
    if (v.code == OpCode::kInput) {
      y = expanded(in[static_cast<size_t>(i)], full);
    } else if (v.code == OpCode::kConstant) {
      Array one({}, v.type);
      const auto f = static_cast<float>(v.number);
      if (v.type == float32) {
        std::memcpy(one.bytes.data(), &f, 4);
      } else if (v.type == float64) {
        std::memcpy(one.bytes.data(), &v.number, 8);
      } else {
        const auto whole = static_cast<int64_t>(v.number);
        std::memcpy(one.bytes.data(), &whole, size_of(v.type));
      }
      y = expanded(one, full);
    } else {
      const int type = type_index(loop_type(e, v));
      const BlockFn fn = v.code == OpCode::kCast
                             ? ops.cast[type][type_index(v.type)]
                             : ops.fn[static_cast<int>(v.code)][type];
      const void* args[3] = {};
      for (int a = 0; a < info(v.code).operands; ++a) {
        args[a] = values[static_cast<size_t>(v.args[a])].bytes.data();
      }
      fn(args[0], args[1], args[2], y.bytes.data(), n);
    }
    values.push_back(std::move(y));
  }
  std::vector<Array> out;
  for (const int o : e.outputs()) out.push_back(values[static_cast<size_t>(o)]);
  return out;
}

Expr random_expr(Dice& dice) {
  Expr e;
  const int inputs = 1 + dice.below(4);
  for (int i = 0; i < inputs; ++i) {
    e.input(dice.pick(
        {float32, float32, float32, float64, int32, int64, uint8, bool_}));
  }
  const int wanted = e.size() + 1 + dice.below(14);
  while (e.size() < wanted) {
    if (dice.below(6) == 0) {
      e.constant(dice.pick({float32, float32, int32}), dice.below(5) - 2);
      continue;
    }
    const auto code = static_cast<OpCode>(2 + dice.below(kNumCodes - 2));
    const auto any = [&] { return dice.below(e.size()); };
    try {
      if (code == OpCode::kCast) {
        e.cast(any(),
               dice.pick({float32, float64, int32, int64, uint8, bool_}));
      } else if (info(code).operands == 1) {
        e.apply(code, {any()});
      } else if (info(code).operands == 2) {
        e.apply(code, {any(), any()});
      } else {
        e.apply(code, {any(), any(), any()});
      }
    } catch (const errors::InvalidArgument&) {  // dtypes that do not fit
    }
  }
  for (int i = e.num_inputs(); i < e.size() && e.num_outputs() < 3; ++i) {
    const bool last = i == e.size() - 1 && e.num_outputs() == 0;
    if (e[i].code != OpCode::kConstant && (last || dice.below(4) == 0)) {
      e.output(i);
    }
  }
  return e;
}

Shape broadcast_form(const Shape& full, Dice& dice) {
  if (dice.below(2)) return full;
  const int rank = dice.below(full.rank() + 1);
  std::vector<int64_t> dims;
  for (int d = full.rank() - rank; d < full.rank(); ++d) {
    dims.push_back(dice.below(3) == 0 ? 1 : full[d]);
  }
  return Shape(std::span<const int64_t>(dims));
}

TEST(Program, GivesTheBitsOfOneLoopPerOperation) {
  const auto tables = all_ops();
  int ran = 0;
  for (uint32_t seed = 0; seed < 2000; ++seed) {
    Dice dice(seed);
    const Expr e = random_expr(dice);
    if (e.num_outputs() == 0) continue;
    ++ran;
    SCOPED_TRACE("seed " + std::to_string(seed) + ": " + e.str());
    const Shape full = dice.pick<Shape>({{1},
                                         {7},
                                         {300},
                                         {3, 5},
                                         {2, 300},
                                         {20, 31},
                                         {2, 3, 130},
                                         {4, 1, 7},
                                         {0, 3},
                                         {2, 1500},
                                         {}});
    const BlockOps& ops = *tables[seed % tables.size()];
    std::vector<Array> in, out;
    std::vector<View> in_views, out_views;
    for (int i = 0; i < e.num_inputs(); ++i) {
      in.push_back(random_array(broadcast_form(full, dice), e[i].type, dice));
    }
    const std::vector<Array> want = one_by_one(e, ops, in, full);
    for (const int o : e.outputs()) out.emplace_back(full, e[o].type);
    for (Array& a : in) in_views.push_back(a.view());
    for (Array& a : out) out_views.push_back(a.view());
    // In place where dtype and shape allow it.
    int over = -1;
    if (dice.below(2)) {
      for (size_t i = 0; i < in.size(); ++i) {
        if (in[i].shape == full &&
            size_of(in[i].dtype) == size_of(out[0].dtype)) {
          over = static_cast<int>(i);
          out_views[0].data = in[i].bytes.data();
        }
      }
    }
    ExprProgram(e, ops).run(in_views.data(), out_views.data());
    for (size_t o = 0; o < out.size(); ++o) {
      const auto& got =
          over >= 0 && o == 0 ? in[static_cast<size_t>(over)] : out[o];
      ASSERT_EQ(got.bytes, want[o].bytes) << "output " << o;
    }
  }
  EXPECT_GT(ran, 1500);
}

TEST(Program, WritesLargeOutputsPastTheCacheFromAnyAddress) {
  const Expr e = Expr::parse(
      "v0:float32, v1:float32, v2=add(v0,v1), v3=sqrt(v2), v4=gt(v3,v2) -> v3 "
      "v4");
  const int64_t n = kStreamBytes / 4 + 77;
  const Shape full{n};
  std::vector<float> x(static_cast<size_t>(n)), y(x.size() + 8);
  std::vector<uint8_t> big(x.size());
  for (int64_t i = 0; i < n; ++i) x[i] = static_cast<float>(i % 1000);
  float one = 1;
  const Shape scalar;
  for (const BlockOps* ops : all_ops()) {
    for (const int64_t skip : {0, 1, 5}) {
      std::fill(y.begin(), y.end(), -1.0f);
      const View in[] = {{x.data(), &full, float32}, {&one, &scalar, float32}};
      const View out[] = {{y.data() + skip, &full, float32},
                          {big.data(), &full, bool_}};
      ExprProgram(e, *ops).run(in, out);
      for (int64_t i = 0; i < n; ++i) {
        ASSERT_EQ(y[i + skip], std::sqrt(x[i] + 1)) << i;
        ASSERT_EQ(big[i], std::sqrt(x[i] + 1) > x[i] + 1) << i;
      }
      EXPECT_EQ(y[static_cast<size_t>(n + skip)], -1.0f);
    }
  }
}

TEST(Program, JoinsPairsAndReusesRegisters) {
  const Expr e = Expr::parse(
      "v0:float32, v1:float32, v2:float32, v3=add(v0,v1), v4=gelu_erf(v3), "
      "v5=mul(v4,v1), v6=add(v2,v5), v7=neg(v0) -> v6");
  const ExprProgram p(e, *all_ops()[0]);
  EXPECT_EQ(p.num_instructions(), 2);  // v7 is not needed
  EXPECT_EQ(p.num_registers(), 1);
}

}  // namespace
}  // namespace berth::expr
