// Integers and bits, complex numbers.

#include "backends/gpu/element_kernel.h"

namespace berth::gpu {

namespace integer_ops {

using Kind = ElementOp::Kind;

constexpr DTypeSet kWhole = kEveryInteger;
// By the sign of the types in which they are computed.
constexpr DTypeSet kUnsigned = dtype_bit(uint8) | dtype_bit(uint64);
constexpr DTypeSet kSigned = kWhole & ~kUnsigned;
constexpr const char* kDivisor =
    "integer division by zero; expected divisors that are not 0";
constexpr const char* kExponent =
    "Pow: the exponent of a whole number is {0}; expected 0 or more, or both "
    "cast to floats";

constexpr ElementOp kWholeOps[] = {
    {"Pow", "POW", 2, kSigned, Kind::kFault, false, kExponent},
    {"Pow", "POW", 2, kUnsigned},
    {"FloorDiv", "FLOOR_DIV", 2, kWhole, Kind::kFault, false, kDivisor},
    {"FloorMod", "FLOOR_MOD", 2, kWhole, Kind::kFault, false, kDivisor},
    {"TruncateDiv", "TRUNCATE_DIV", 2, kWhole, Kind::kFault, false, kDivisor},
    {"TruncateMod", "TRUNCATE_MOD", 2, kWhole, Kind::kFault, false, kDivisor},
    {"Round", "SAME", 1, kWhole},
    {"Invert", "INVERT", 1, kWhole},
    {"BitwiseAnd", "BITWISE_AND", 2, kWhole},
    {"BitwiseOr", "BITWISE_OR", 2, kWhole},
    {"BitwiseXor", "BITWISE_XOR", 2, kWhole},
    {"LeftShift", "LEFT_SHIFT", 2, kWhole},
    {"RightShift", "RIGHT_SHIFT", 2, kWhole},
};

bool whole(Recipe& r) {
  return make_element_op(r, kWholeOps, {"math.cl", "whole.cl"},
                         r.args().op->name());
}

constexpr ElementOp kComplexOps[] = {
    {"AddV2", "ADD", 2, kComplexTypes},
    {"Sub", "SUB", 2, kComplexTypes},
    {"Mul", "MUL", 2, kComplexTypes},
    {"RealDiv", "DIV", 2, kComplexTypes},
    {"Pow", "POW", 2, kComplexTypes},
    {"SquaredDifference", "SQUARED_DIFFERENCE", 2, kComplexTypes},
    {"Neg", "NEG", 1, kComplexTypes},
    {"Square", "SQUARE", 1, kComplexTypes},
    {"Sqrt", "SQRT", 1, kComplexTypes},
    {"Rsqrt", "RSQRT", 1, kComplexTypes},
    {"Exp", "EXP", 1, kComplexTypes},
    {"Log", "LOG", 1, kComplexTypes},
    {"Log1p", "LOG1P", 1, kComplexTypes},
    {"Sigmoid", "SIGMOID", 1, kComplexTypes},
    {"Tanh", "TANH", 1, kComplexTypes},
    {"Conj", "CONJ", 1, kComplexTypes},
    {"Real", "REAL", 1, kComplexTypes, Kind::kPart},
    {"Imag", "IMAG", 1, kComplexTypes, Kind::kPart},
    {"Angle", "ANGLE", 1, kComplexTypes, Kind::kPart},
    {"ComplexAbs", "MODULUS", 1, kComplexTypes, Kind::kPart},
    {"Equal", "EQ", 2, kComplexTypes, Kind::kBool},
    {"NotEqual", "NE", 2, kComplexTypes, Kind::kBool},
};

bool complex(Recipe& r) {
  return make_element_op(r, kComplexOps, {"math.cl", "complex.cl"},
                         r.args().op->name());
}

}  // namespace integer_ops

void add_integer_ops(Kernels& k) {
  add_element_ops(k, integer_ops::kWholeOps, &integer_ops::whole);
  add_element_ops(k, integer_ops::kComplexOps, &integer_ops::complex);
  add_casts(k);
  add_constant_ops(k);
}

}  // namespace berth::gpu
