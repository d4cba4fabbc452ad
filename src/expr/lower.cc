// Which ops of the catalogue are made of which codes.

#include <algorithm>
#include <iterator>
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
  // Of 16 bits it is rounded once, not after each code.
  if (name == "SquaredDifference" && type == computed_type(type)) {
    return e.apply(Code::kSquare, {e.apply(Code::kSub, {x[0], x[1]})});
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
