// OpCode: the operations of the expression language, and which ops they are.
//
// One table row per code: name, operands, dtypes, result, cost; one row per op
// of the catalogue that is made of codes. Pure; thread-safe.

#ifndef BERTH_EXPR_CODE_H_
#define BERTH_EXPR_CODE_H_

#include <cstdint>
#include <string_view>

#include "op/op_def.h"

namespace berth::expr {

// The dtypes that expressions compute with.
inline constexpr DTypeSet kTypes = kAllTypes;
// The dtypes that values may have: bfloat16 and float16, too, which are
// computed in float32 and rounded after each code. Not every backend's kernels
// of expressions take them.
inline constexpr DTypeSet kValueTypes = kTypes | kHalfTypes;
constexpr DType computed_type(DType d) {
  return (dtype_bit(d) & kHalfTypes) != 0 ? float32 : d;
}

enum class OpCode : uint8_t {
  kInput,
  kConstant,
  // One operand, a result of its dtype.
  kRelu,
  kSigmoid,
  kTanh,
  kGeluTanh,
  kGeluErf,
  kExp,
  kLog,
  kLog1p,
  kSqrt,
  kRsqrt,
  kErf,
  kFloor,
  kNeg,
  kAbs,
  kSign,
  kSquare,
  kReciprocal,
  kNot,
  // Two operands, a result of their dtype.
  kAdd,
  kSub,
  kMul,
  kDiv,
  kMax,
  kMin,
  kPow,
  kAnd,
  kOr,
  kReluGrad,      // (dy, x)
  kGeluTanhGrad,  // (x, dy)
  kGeluErfGrad,   // (x, dy)
  // Two operands, a bool.
  kEqual,
  kNotEqual,
  kLess,
  kLessEqual,
  kGreater,
  kGreaterEqual,
  // (x, mask): x where the uint8 mask is not 0, else +0.
  kKeep,
  // (bool, a, b): a where true, else b.
  kSelect,
  kCast,
  kCount,
};

inline constexpr int kNumCodes = static_cast<int>(OpCode::kCount);

enum class ResultType : uint8_t { kSame, kBool, kGiven };

struct CodeInfo {
  OpCode code;
  const char* name;  // in texts
  int operands;
  uint32_t types;  // DTypeSet of the operand that selects the loop
  ResultType result;
  double flops;  // per element, roughly
};

const CodeInfo& info(OpCode code);
// kCount when there is no such name.
OpCode code_named(std::string_view name);

// Expressions compute with the first so many dtypes: numbers and bool.
inline constexpr int kNumTypes = 6;
constexpr int type_index(DType d) { return static_cast<int>(d) - 1; }
static_assert(type_index(bool_) == kNumTypes - 1);

}  // namespace berth::expr

#endif  // BERTH_EXPR_CODE_H_
