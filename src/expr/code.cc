#include "expr/code.h"

#include <iterator>

#include "op/op_def.h"

namespace berth::expr {

namespace {

constexpr DTypeSet kFloats = kFloatingTypes;
constexpr DTypeSet kNumbers = kNumberTypes;
constexpr DTypeSet kSingle = dtype_bit(float32);
constexpr DTypeSet kSigned = kFloats | kIndexTypes;

constexpr CodeInfo kInfos[] = {
    {Code::kInput, "input", 0, kTypes, Result::kGiven, 0},
    {Code::kConstant, "constant", 0, kTypes, Result::kGiven, 0},
    {Code::kRelu, "relu", 1, kNumbers, Result::kSame, 1},
    {Code::kSigmoid, "sigmoid", 1, kFloats, Result::kSame, 20},
    {Code::kTanh, "tanh", 1, kFloats, Result::kSame, 20},
    {Code::kGeluTanh, "gelu_tanh", 1, kSingle, Result::kSame, 26},
    {Code::kGeluErf, "gelu_erf", 1, kSingle, Result::kSame, 24},
    {Code::kExp, "exp", 1, kFloats, Result::kSame, 14},
    {Code::kLog, "log", 1, kFloats, Result::kSame, 18},
    {Code::kLog1p, "log1p", 1, kFloats, Result::kSame, 24},
    {Code::kSqrt, "sqrt", 1, kFloats, Result::kSame, 4},
    {Code::kRsqrt, "rsqrt", 1, kFloats, Result::kSame, 8},
    {Code::kErf, "erf", 1, kFloats, Result::kSame, 20},
    {Code::kFloor, "floor", 1, kFloats, Result::kSame, 1},
    {Code::kNeg, "neg", 1, kNumbers, Result::kSame, 1},
    {Code::kAbs, "abs", 1, kNumbers, Result::kSame, 1},
    {Code::kSign, "sign", 1, kNumbers, Result::kSame, 1},
    {Code::kSquare, "square", 1, kNumbers, Result::kSame, 1},
    {Code::kReciprocal, "reciprocal", 1, kFloats, Result::kSame, 4},
    {Code::kNot, "not", 1, kBoolType, Result::kSame, 1},
    {Code::kAdd, "add", 2, kNumbers, Result::kSame, 1},
    {Code::kSub, "sub", 2, kNumbers, Result::kSame, 1},
    {Code::kMul, "mul", 2, kNumbers, Result::kSame, 1},
    {Code::kDiv, "div", 2, kFloats, Result::kSame, 4},
    {Code::kMax, "max", 2, kNumbers, Result::kSame, 1},
    {Code::kMin, "min", 2, kNumbers, Result::kSame, 1},
    {Code::kPow, "pow", 2, kFloats, Result::kSame, 60},
    {Code::kAnd, "and", 2, kBoolType, Result::kSame, 1},
    {Code::kOr, "or", 2, kBoolType, Result::kSame, 1},
    {Code::kReluGrad, "relu_grad", 2, kNumbers, Result::kSame, 1},
    {Code::kGeluTanhGrad, "gelu_tanh_grad", 2, kSingle, Result::kSame, 34},
    {Code::kGeluErfGrad, "gelu_erf_grad", 2, kSingle, Result::kSame, 40},
    {Code::kEqual, "eq", 2, kTypes, Result::kBool, 1},
    {Code::kNotEqual, "ne", 2, kTypes, Result::kBool, 1},
    {Code::kLess, "lt", 2, kNumbers, Result::kBool, 1},
    {Code::kLessEqual, "le", 2, kNumbers, Result::kBool, 1},
    {Code::kGreater, "gt", 2, kNumbers, Result::kBool, 1},
    {Code::kGreaterEqual, "ge", 2, kNumbers, Result::kBool, 1},
    {Code::kKeep, "keep", 2, kSigned, Result::kSame, 1},
    {Code::kSelect, "select", 3, kTypes, Result::kSame, 1},
    {Code::kCast, "cast", 1, kTypes, Result::kGiven, 1},
};

constexpr bool in_order() {
  for (int i = 0; i < kNumCodes; ++i) {
    if (static_cast<int>(kInfos[i].code) != i) return false;
  }
  return std::size(kInfos) == kNumCodes;
}
static_assert(in_order());

}  // namespace

const CodeInfo& info(Code code) { return kInfos[static_cast<int>(code)]; }

Code code_named(std::string_view name) {
  for (const CodeInfo& i : kInfos) {
    if (name == i.name) return i.code;
  }
  return Code::kCount;
}

}  // namespace berth::expr
