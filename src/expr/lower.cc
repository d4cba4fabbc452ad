// Which ops of the catalogue are made of which codes.

#include <algorithm>
#include <iterator>
#include <limits>
#include <string_view>

#include "expr/expr.h"

namespace berth::expr {

namespace {

struct Row {
  std::string_view op;
  Code code;
};

// Ops that are one code over their operands in order.
constexpr Row kRows[] = {
    {"Relu", Code::kRelu},
    {"Sigmoid", Code::kSigmoid},
    {"Tanh", Code::kTanh},
    {"Exp", Code::kExp},
    {"Log", Code::kLog},
    {"Log1p", Code::kLog1p},
    {"Sqrt", Code::kSqrt},
    {"Rsqrt", Code::kRsqrt},
    {"Erf", Code::kErf},
    {"Floor", Code::kFloor},
    {"Neg", Code::kNeg},
    {"Abs", Code::kAbs},
    {"Sign", Code::kSign},
    {"Square", Code::kSquare},
    {"Reciprocal", Code::kReciprocal},
    {"LogicalNot", Code::kNot},
    {"AddV2", Code::kAdd},
    {"BiasAdd", Code::kAdd},
    {"Sub", Code::kSub},
    {"Mul", Code::kMul},
    {"RealDiv", Code::kDiv},
    {"Maximum", Code::kMax},
    {"Minimum", Code::kMin},
    {"Pow", Code::kPow},
    {"LogicalAnd", Code::kAnd},
    {"LogicalOr", Code::kOr},
    {"ReluGrad", Code::kReluGrad},
    {"Equal", Code::kEqual},
    {"NotEqual", Code::kNotEqual},
    {"Less", Code::kLess},
    {"LessEqual", Code::kLessEqual},
    {"Greater", Code::kGreater},
    {"GreaterEqual", Code::kGreaterEqual},
    {"SelectV2", Code::kSelect},
};

// exp(x) - 1, also near 0: with t = tanh(x / 2) it is 2 t / (1 - t).
int expm1(Expr& e, int x) {
  const int one = e.constant(float32, 1), half = e.constant(float32, 0.5);
  const int t = e.apply(Code::kTanh, {e.apply(Code::kMul, {x, half})});
  const int near = e.apply(
      Code::kDiv, {e.apply(Code::kAdd, {t, t}), e.apply(Code::kSub, {one, t})});
  const int far = e.apply(Code::kSub, {e.apply(Code::kExp, {x}), one});
  return e.apply(Code::kSelect, {e.apply(Code::kGreater, {x, one}), far, near});
}

// Activations and tests of one float32 number in several codes. Not of 16 bits,
// which are rounded after each code.
std::optional<int> build_float(Expr& e, std::string_view name, const OpDef& op,
                               const Attrs* attrs, int x) {
  const auto number = [&](double n) { return e.constant(float32, n); };
  const auto apply = [&](Code code, int a, int b) {
    return e.apply(code, {a, b});
  };
  // Below 0 another value than above; NaN is as below.
  const auto piecewise = [&](int above, int below) {
    const int positive = apply(Code::kGreater, x, number(0));
    return e.apply(Code::kSelect, {positive, above, below});
  };
  if (name == "IsNan") return apply(Code::kNotEqual, x, x);
  if (name == "IsInf") {
    return apply(Code::kGreater, e.apply(Code::kAbs, {x}),
                 number(std::numeric_limits<float>::max()));
  }
  if (name == "IsFinite") {
    return apply(Code::kLessEqual, e.apply(Code::kAbs, {x}),
                 number(std::numeric_limits<float>::max()));
  }
  // To the nearest whole number, halves to even: below 2^23 the sum with 2^23
  // is rounded so. The sign stays, also of -0.
  if (name == "Round" || name == "Rint") {
    const int size = e.apply(Code::kAbs, {x}), huge = number(8388608);
    const int up = apply(Code::kSub, apply(Code::kAdd, size, huge), huge);
    const int negative = apply(Code::kLess, x, number(0));
    const int rounded =
        e.apply(Code::kSelect, {negative, e.apply(Code::kNeg, {up}), up});
    const int changes = apply(Code::kAnd, apply(Code::kLess, size, huge),
                              apply(Code::kGreater, size, number(0)));
    return e.apply(Code::kSelect, {changes, rounded, x});
  }
  if (name == "LeakyRelu") {
    const double alpha = op.attr<double>(attrs, "alpha");
    return piecewise(x, apply(Code::kMul, x, number(alpha)));
  }
  if (name == "Relu6") {
    const int large = apply(Code::kGreater, x, number(6));
    return e.apply(Code::kSelect,
                   {large, number(6), e.apply(Code::kRelu, {x})});
  }
  if (name == "Softsign") {
    return apply(Code::kDiv, x,
                 apply(Code::kAdd, e.apply(Code::kAbs, {x}), number(1)));
  }
  if (name == "Softplus") {  // max(x, 0) + log(1 + exp(-|x|))
    const int down = e.apply(Code::kNeg, {e.apply(Code::kAbs, {x})});
    return apply(Code::kAdd, e.apply(Code::kRelu, {x}),
                 e.apply(Code::kLog1p, {e.apply(Code::kExp, {down})}));
  }
  if (name == "Expm1") return expm1(e, x);
  if (name == "Elu") return piecewise(x, expm1(e, x));
  if (name == "Selu") {
    constexpr double kScale = 1.0507009873554804934193349852946;
    constexpr double kAlpha = 1.6732632423543772848170429916717;
    return piecewise(apply(Code::kMul, x, number(kScale)),
                     apply(Code::kMul, expm1(e, x), number(kScale * kAlpha)));
  }
  return std::nullopt;
}

// What an op computes, when its dtypes are within the rules.
std::optional<int> build(Expr& e, const OpDef& op, const Attrs* attrs,
                         std::span<const int> x, DType type) {
  const std::string_view name = op.name();
  const auto one = [&](Code code) -> std::optional<int> {
    const CodeInfo& i = info(code);
    if (static_cast<int>(x.size()) != i.operands) return std::nullopt;
    const DType first = e[x[code == Code::kSelect ? 1 : 0]].type;
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
    const int below = e.apply(Code::kFloor, {e.apply(Code::kNeg, {x[0]})});
    return e.apply(Code::kNeg, {below});
  }
  if (name == "MulNoNan" && e[x[0]].type == type && e[x[1]].type == type &&
      type != bool_) {
    const int zero = e.constant(type, 0);
    const int product = e.apply(Code::kMul, {x[0], x[1]});
    return e.apply(Code::kSelect,
                   {e.apply(Code::kEqual, {x[1], zero}), zero, product});
  }
  // Of 16 bits it is rounded once, not after each code.
  if (name == "SquaredDifference" && type == computed_type(type)) {
    return e.apply(Code::kSquare, {e.apply(Code::kSub, {x[0], x[1]})});
  }
  if (x.size() == 1 && e[x[0]].type == float32) {
    if (const auto made = build_float(e, name, op, attrs, x[0])) return made;
  }
  if (computed_type(type) != float32) return std::nullopt;
  if (name == "Gelu" || name == "GeluGrad") {
    const bool tanh = op.attr<bool>(attrs, "approximate");
    if (name == "Gelu") return one(tanh ? Code::kGeluTanh : Code::kGeluErf);
    return e.apply(tanh ? Code::kGeluTanhGrad : Code::kGeluErfGrad,
                   {x[1], x[0]});
  }
  if (name == "DropoutGrad" && type == float32) {
    const int scale = e.constant(
        float32, static_cast<float>(1 / (1 - op.attr<double>(attrs, "rate"))));
    return e.apply(Code::kKeep, {e.apply(Code::kMul, {x[0], scale}), x[1]});
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
