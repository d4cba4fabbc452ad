// The ops that expressions consist of, as single ops; fused.cc has groups.

#include "backends/gpu/element_kernel.h"

namespace berth::gpu {

namespace elementwise {

using Kind = ElementOp::Kind;

constexpr DTypeSet kFloats = kRealFloats;
constexpr DTypeSet kNumbers = kRealNumbers;

constexpr ElementOp kOps[] = {
    {"Relu", "RELU", 1, kNumbers},
    {"Sigmoid", "SIGMOID", 1, kFloats},
    {"Tanh", "TANH", 1, kFloats},
    {"Exp", "EXP", 1, kFloats},
    {"Log", "LOG", 1, kFloats},
    {"Log1p", "LOG1P", 1, kFloats},
    {"Sqrt", "SQRT", 1, kFloats},
    {"Rsqrt", "RSQRT", 1, kFloats},
    {"Erf", "ERF", 1, kFloats},
    {"Floor", "FLOOR", 1, kFloats},
    {"Neg", "NEG", 1, kNumbers},
    {"Abs", "ABS", 1, kNumbers},
    {"Sign", "SIGN", 1, kNumbers},
    {"Square", "SQUARE", 1, kNumbers},
    {"Reciprocal", "RECIPROCAL", 1, kFloats},
    {"AddV2", "ADD", 2, kNumbers},
    {"BiasAdd", "ADD", 2, kNumbers},
    {"Sub", "SUB", 2, kNumbers},
    {"Mul", "MUL", 2, kNumbers},
    {"RealDiv", "DIV", 2, kFloats},
    {"Maximum", "MAX", 2, kNumbers},
    {"Minimum", "MIN", 2, kNumbers},
    {"Pow", "POW", 2, kFloats},
    {"SquaredDifference", "SQUARED_DIFFERENCE", 2, kNumbers},
    {"ReluGrad", "RELU_GRAD", 2, kNumbers},
    {"Equal", "==", 2, kNumbers | kBoolType, Kind::kInfix},
    {"NotEqual", "!=", 2, kNumbers | kBoolType, Kind::kInfix},
    {"Less", "<", 2, kNumbers, Kind::kInfix},
    {"LessEqual", "<=", 2, kNumbers, Kind::kInfix},
    {"Greater", ">", 2, kNumbers, Kind::kInfix},
    {"GreaterEqual", ">=", 2, kNumbers, Kind::kInfix},
    {"LogicalNot", "NOT", 1, kBoolType},
    {"LogicalAnd", "AND", 2, kBoolType},
    {"LogicalOr", "OR", 2, kBoolType},
};

bool single(Recipe& r) {
  return make_element_op(r, kOps, {"math.cl"}, r.args().op->name());
}

// The attribute "approximate" selects Gelu's function.
constexpr ElementOp kGelu[] = {
    {"Gelu", "GELU_ERF", 1, kFloats},
    {"GeluGrad", "GELU_ERF_SLOPE", 2, kFloats},
};
constexpr ElementOp kGeluTanh[] = {
    {"Gelu", "GELU_TANH", 1, kFloats},
    {"GeluGrad", "GELU_TANH_SLOPE", 2, kFloats},
};

bool gelu(Recipe& r) {
  const bool tanh = r.args().attr<bool>("approximate");
  return make_element_op(r, tanh ? kGeluTanh : kGelu, {"math.cl"},
                         r.args().op->name());
}

}  // namespace elementwise

void add_elementwise(Kernels& k) {
  add_element_ops(k, elementwise::kOps, &elementwise::single);
  add_element_ops(k, elementwise::kGelu, &elementwise::gelu);
  add_fused(k);
}

}  // namespace berth::gpu
