// Which ops of the catalogue are made of which codes.

#include <limits>
#include <string_view>

#include "expr/expr.h"

namespace berth::expr {

namespace {

struct Row {
  std::string_view op;
  OpCode code;
};

// Ops that are one code over their operands in order.
constexpr Row kRows[] = {
    {"Relu", OpCode::kRelu},
    {"Sigmoid", OpCode::kSigmoid},
    {"Tanh", OpCode::kTanh},
    {"Exp", OpCode::kExp},
    {"Log", OpCode::kLog},
    {"Log1p", OpCode::kLog1p},
    {"Sqrt", OpCode::kSqrt},
    {"Rsqrt", OpCode::kRsqrt},
    {"Erf", OpCode::kErf},
    {"Floor", OpCode::kFloor},
    {"Neg", OpCode::kNeg},
    {"Abs", OpCode::kAbs},
    {"Sign", OpCode::kSign},
    {"Square", OpCode::kSquare},
    {"Reciprocal", OpCode::kReciprocal},
    {"LogicalNot", OpCode::kNot},
    {"AddV2", OpCode::kAdd},
    {"BiasAdd", OpCode::kAdd},
    {"Sub", OpCode::kSub},
    {"Mul", OpCode::kMul},
    {"RealDiv", OpCode::kDiv},
    {"Maximum", OpCode::kMax},
    {"Minimum", OpCode::kMin},
    {"Pow", OpCode::kPow},
    {"LogicalAnd", OpCode::kAnd},
    {"LogicalOr", OpCode::kOr},
    {"ReluGrad", OpCode::kReluGrad},
    {"Equal", OpCode::kEqual},
    {"NotEqual", OpCode::kNotEqual},
    {"Less", OpCode::kLess},
    {"LessEqual", OpCode::kLessEqual},
    {"Greater", OpCode::kGreater},
    {"GreaterEqual", OpCode::kGreaterEqual},
    {"SelectV2", OpCode::kSelect},
};

// exp(x) - 1, also near 0: with t = tanh(x / 2) it is 2 t / (1 - t).
int expm1(Expr& e, int x) {
  const int one = e.constant(float32, 1), half = e.constant(float32, 0.5);
  const int t = e.apply(OpCode::kTanh, {e.apply(OpCode::kMul, {x, half})});
  const int near = e.apply(OpCode::kDiv, {e.apply(OpCode::kAdd, {t, t}),
                                          e.apply(OpCode::kSub, {one, t})});
  const int far = e.apply(OpCode::kSub, {e.apply(OpCode::kExp, {x}), one});
  return e.apply(OpCode::kSelect,
                 {e.apply(OpCode::kGreater, {x, one}), far, near});
}

// Activations and tests of one float32 number in several codes. Not of 16 bits,
// which are rounded after each code.
std::optional<int> build_float(Expr& e, std::string_view name, const OpDef& op,
                               const Attrs* attrs, int x) {
  const auto number = [&](double n) { return e.constant(float32, n); };
  const auto apply = [&](OpCode code, int a, int b) {
    return e.apply(code, {a, b});
  };
  // Below 0 another value than above; NaN is as below.
  const auto piecewise = [&](int above, int below) {
    const int positive = apply(OpCode::kGreater, x, number(0));
    return e.apply(OpCode::kSelect, {positive, above, below});
  };
  if (name == "IsNan") return apply(OpCode::kNotEqual, x, x);
  if (name == "IsInf") {
    return apply(OpCode::kGreater, e.apply(OpCode::kAbs, {x}),
                 number(std::numeric_limits<float>::max()));
  }
  if (name == "IsFinite") {
    return apply(OpCode::kLessEqual, e.apply(OpCode::kAbs, {x}),
                 number(std::numeric_limits<float>::max()));
  }
  // To the nearest whole number, halves to even: below 2^23 the sum with 2^23
  // is rounded so. The sign stays, also of -0.
  if (name == "Round" || name == "Rint") {
    const int size = e.apply(OpCode::kAbs, {x}), huge = number(8388608);
    const int up = apply(OpCode::kSub, apply(OpCode::kAdd, size, huge), huge);
    const int negative = apply(OpCode::kLess, x, number(0));
    const int rounded =
        e.apply(OpCode::kSelect, {negative, e.apply(OpCode::kNeg, {up}), up});
    const int changes = apply(OpCode::kAnd, apply(OpCode::kLess, size, huge),
                              apply(OpCode::kGreater, size, number(0)));
    return e.apply(OpCode::kSelect, {changes, rounded, x});
  }
  if (name == "LeakyRelu") {
    const double alpha = op.attr<double>(attrs, "alpha");
    return piecewise(x, apply(OpCode::kMul, x, number(alpha)));
  }
  if (name == "Relu6") {
    const int large = apply(OpCode::kGreater, x, number(6));
    return e.apply(OpCode::kSelect,
                   {large, number(6), e.apply(OpCode::kRelu, {x})});
  }
  if (name == "Softsign") {
    return apply(OpCode::kDiv, x,
                 apply(OpCode::kAdd, e.apply(OpCode::kAbs, {x}), number(1)));
  }
  if (name == "Softplus") {  // max(x, 0) + log(1 + exp(-|x|))
    const int down = e.apply(OpCode::kNeg, {e.apply(OpCode::kAbs, {x})});
    return apply(OpCode::kAdd, e.apply(OpCode::kRelu, {x}),
                 e.apply(OpCode::kLog1p, {e.apply(OpCode::kExp, {down})}));
  }
  if (name == "Expm1") return expm1(e, x);
  if (name == "Elu") return piecewise(x, expm1(e, x));
  if (name == "Selu") {
    constexpr double kScale = 1.0507009873554804934193349852946;
    constexpr double kAlpha = 1.6732632423543772848170429916717;
    return piecewise(apply(OpCode::kMul, x, number(kScale)),
                     apply(OpCode::kMul, expm1(e, x), number(kScale * kAlpha)));
  }
  return std::nullopt;
}

// What an op computes, when its dtypes are within the rules.
std::optional<int> build(Expr& e, const OpDef& op, const Attrs* attrs,
                         std::span<const int> x, DType type) {
  const std::string_view name = op.name();
  const auto one = [&](OpCode code) -> std::optional<int> {
    const CodeInfo& i = info(code);
    if (static_cast<int>(x.size()) != i.operands) return std::nullopt;
    const DType first = e[x[code == OpCode::kSelect ? 1 : 0]].type;
    if (!(i.types & dtype_bit(computed_type(first)))) return std::nullopt;
    if (x.size() == 1) return e.apply(code, {x[0]});
    if (x.size() == 2) return e.apply(code, {x[0], x[1]});
    return e.apply(code, {x[0], x[1], x[2]});
  };
  for (const Row& row : kRows) {
    if (row.op != name) continue;
    // What attributes would change is not known here.
    if (!op.attrs().empty() && attrs != nullptr) return std::nullopt;
    return one(row.code);
  }
  if (name == "Cast") return e.cast(x[0], type);
  if (name == "Ceil") {
    const int below = e.apply(OpCode::kFloor, {e.apply(OpCode::kNeg, {x[0]})});
    return e.apply(OpCode::kNeg, {below});
  }
  if (name == "MulNoNan" && e[x[0]].type == type && e[x[1]].type == type &&
      type != bool_) {
    const int zero = e.constant(type, 0);
    const int product = e.apply(OpCode::kMul, {x[0], x[1]});
    return e.apply(OpCode::kSelect,
                   {e.apply(OpCode::kEqual, {x[1], zero}), zero, product});
  }
  // Of 16 bits it is rounded once, not after each code.
  if (name == "SquaredDifference" && type == computed_type(type)) {
    return e.apply(OpCode::kSquare, {e.apply(OpCode::kSub, {x[0], x[1]})});
  }
  if (x.size() == 1 && e[x[0]].type == float32) {
    if (const auto made = build_float(e, name, op, attrs, x[0])) return made;
  }
  if (computed_type(type) != float32) return std::nullopt;
  if (name == "Gelu" || name == "GeluGrad") {
    const bool tanh = op.attr<bool>(attrs, "approximate");
    if (name == "Gelu") return one(tanh ? OpCode::kGeluTanh : OpCode::kGeluErf);
    return e.apply(tanh ? OpCode::kGeluTanhGrad : OpCode::kGeluErfGrad,
                   {x[1], x[0]});
  }
  if (name == "DropoutGrad" && type == float32) {
    const int scale = e.constant(
        float32, static_cast<float>(1 / (1 - op.attr<double>(attrs, "rate"))));
    return e.apply(OpCode::kKeep, {e.apply(OpCode::kMul, {x[0], scale}), x[1]});
  }
  return std::nullopt;
}

}  // namespace

std::optional<int> lower(Expr& e, const OpDef& op, const Attrs* attrs,
                         std::span<const int> args, DType type) {
  if (!op.elementwise() || args.empty() || args.size() > 3 ||
      !(kValueTypes & dtype_bit(type))) {
    return std::nullopt;
  }
  return build(e, op, attrs, args, type);
}

bool can_lower(const OpDef& op, const Attrs* attrs,
               std::span<const DType> inputs, DType type) {
  if (inputs.size() > 3) return false;
  Expr e;
  int args[3];
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!(kValueTypes & dtype_bit(inputs[i]))) return false;
    args[i] = e.input(inputs[i]);
  }
  return lower(e, op, attrs, {args, inputs.size()}, type).has_value();
}

}  // namespace berth::expr
