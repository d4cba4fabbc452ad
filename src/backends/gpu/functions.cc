// Mathematical functions by element: roots, logarithms, special functions.

#include "backends/gpu/element_kernel.h"

namespace berth::gpu {

namespace functions {

using Kind = ElementOp::Kind;

constexpr DTypeSet kF = kRealFloats;

constexpr ElementOp kOps[] = {
    {"Ceil", "CEIL", 1, kF},
    {"Round", "RINT", 1, kF},
    {"Rint", "RINT", 1, kF},
    {"Expm1", "EXPM1", 1, kF},
    {"Sin", "SIN", 1, kF},
    {"Cos", "COS", 1, kF},
    {"Tan", "TAN", 1, kF},
    {"Asin", "ASIN", 1, kF},
    {"Acos", "ACOS", 1, kF},
    {"Atan", "ATAN", 1, kF},
    {"Sinh", "SINH", 1, kF},
    {"Cosh", "COSH", 1, kF},
    {"Asinh", "ASINH", 1, kF},
    {"Acosh", "ACOSH", 1, kF},
    {"Atanh", "ATANH", 1, kF},
    {"Erfc", "ERFC", 1, kF},
    {"Erfinv", "ERFINV", 1, kF, Kind::kSame, true},
    {"Ndtri", "NDTRI", 1, kF, Kind::kSame, true},
    {"Lgamma", "LGAMMA", 1, kF, Kind::kSame, true},
    {"Digamma", "DIGAMMA", 1, kF, Kind::kSame, true},
    {"Softplus", "SOFTPLUS", 1, kF},
    {"Softsign", "SOFTSIGN", 1, kF},
    {"Elu", "ELU", 1, kF},
    {"Selu", "SELU", 1, kF},
    {"Relu6", "RELU6", 1, kF},
    {"LeakyRelu", "LEAKY_RELU", 1, kF, Kind::kAlpha},
    {"Atan2", "ATAN2", 2, kF},
    {"Polygamma", "POLYGAMMA", 2, kF, Kind::kSame, true},
    {"Zeta", "ZETA", 2, kF, Kind::kSame, true},
    {"FloorDiv", "FLOOR_DIV", 2, kF, Kind::kSame, true},
    {"FloorMod", "FLOOR_MOD", 2, kF, Kind::kSame, true},
    {"TruncateMod", "TRUNCATE_MOD", 2, kF, Kind::kSame, true},
    {"DivNoNan", "DIV_NO_NAN", 2, kF},
    {"MulNoNan", "MUL_NO_NAN", 2, kF},
    {"Xlogy", "XLOGY", 2, kF},
    {"Xlog1py", "XLOG1PY", 2, kF},
    {"Xdivy", "XDIVY", 2, kF},
    {"NextAfter", "NEXT_AFTER", 2, kFloatingTypes},
    {"IsNan", "IS_NAN", 1, kF, Kind::kBool},
    {"IsInf", "IS_INF", 1, kF, Kind::kBool},
    {"IsFinite", "IS_FINITE", 1, kF, Kind::kBool},
};

bool make(Recipe& r) {
  return make_element_op(r, kOps, {"math.cl", "functions.cl"},
                         r.args().op->name());
}

}  // namespace functions

void add_functions(Kernels& k) {
  add_element_ops(k, functions::kOps, &functions::make);
}

}  // namespace berth::gpu
