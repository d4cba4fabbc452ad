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
    {OpCode::kInput, "input", 0, kTypes, ResultType::kGiven, 0},
    {OpCode::kConstant, "constant", 0, kTypes, ResultType::kGiven, 0},
    {OpCode::kRelu, "relu", 1, kNumbers, ResultType::kSame, 1},
    {OpCode::kSigmoid, "sigmoid", 1, kFloats, ResultType::kSame, 20},
    {OpCode::kTanh, "tanh", 1, kFloats, ResultType::kSame, 20},
    {OpCode::kGeluTanh, "gelu_tanh", 1, kSingle, ResultType::kSame, 26},
    {OpCode::kGeluErf, "gelu_erf", 1, kSingle, ResultType::kSame, 24},
    {OpCode::kExp, "exp", 1, kFloats, ResultType::kSame, 14},
    {OpCode::kLog, "log", 1, kFloats, ResultType::kSame, 18},
    {OpCode::kLog1p, "log1p", 1, kFloats, ResultType::kSame, 24},
    {OpCode::kSqrt, "sqrt", 1, kFloats, ResultType::kSame, 4},
    {OpCode::kRsqrt, "rsqrt", 1, kFloats, ResultType::kSame, 8},
    {OpCode::kErf, "erf", 1, kFloats, ResultType::kSame, 20},
    {OpCode::kFloor, "floor", 1, kFloats, ResultType::kSame, 1},
    {OpCode::kNeg, "neg", 1, kNumbers, ResultType::kSame, 1},
    {OpCode::kAbs, "abs", 1, kNumbers, ResultType::kSame, 1},
    {OpCode::kSign, "sign", 1, kNumbers, ResultType::kSame, 1},
    {OpCode::kSquare, "square", 1, kNumbers, ResultType::kSame, 1},
    {OpCode::kReciprocal, "reciprocal", 1, kFloats, ResultType::kSame, 4},
    {OpCode::kNot, "not", 1, kBoolType, ResultType::kSame, 1},
    {OpCode::kAdd, "add", 2, kNumbers, ResultType::kSame, 1},
    {OpCode::kSub, "sub", 2, kNumbers, ResultType::kSame, 1},
    {OpCode::kMul, "mul", 2, kNumbers, ResultType::kSame, 1},
    {OpCode::kDiv, "div", 2, kFloats, ResultType::kSame, 4},
    {OpCode::kMax, "max", 2, kNumbers, ResultType::kSame, 1},
    {OpCode::kMin, "min", 2, kNumbers, ResultType::kSame, 1},
    {OpCode::kPow, "pow", 2, kFloats, ResultType::kSame, 60},
    {OpCode::kAnd, "and", 2, kBoolType, ResultType::kSame, 1},
    {OpCode::kOr, "or", 2, kBoolType, ResultType::kSame, 1},
    {OpCode::kReluGrad, "relu_grad", 2, kNumbers, ResultType::kSame, 1},
    {OpCode::kGeluTanhGrad, "gelu_tanh_grad", 2, kSingle, ResultType::kSame,
     34},
    {OpCode::kGeluErfGrad, "gelu_erf_grad", 2, kSingle, ResultType::kSame, 40},
    {OpCode::kEqual, "eq", 2, kTypes, ResultType::kBool, 1},
    {OpCode::kNotEqual, "ne", 2, kTypes, ResultType::kBool, 1},
    {OpCode::kLess, "lt", 2, kNumbers, ResultType::kBool, 1},
    {OpCode::kLessEqual, "le", 2, kNumbers, ResultType::kBool, 1},
    {OpCode::kGreater, "gt", 2, kNumbers, ResultType::kBool, 1},
    {OpCode::kGreaterEqual, "ge", 2, kNumbers, ResultType::kBool, 1},
    {OpCode::kKeep, "keep", 2, kSigned, ResultType::kSame, 1},
    {OpCode::kSelect, "select", 3, kTypes, ResultType::kSame, 1},
    {OpCode::kCast, "cast", 1, kTypes, ResultType::kGiven, 1},
};

constexpr bool in_order() {
  for (int i = 0; i < kNumCodes; ++i) {
    if (static_cast<int>(kInfos[i].code) != i) return false;
  }
  return std::size(kInfos) == kNumCodes;
}
static_assert(in_order());

}  // namespace

const CodeInfo& info(OpCode code) { return kInfos[static_cast<int>(code)]; }

OpCode code_named(std::string_view name) {
  for (const CodeInfo& i : kInfos) {
    if (name == i.name) return i.code;
  }
  return OpCode::kCount;
}

}  // namespace berth::expr
