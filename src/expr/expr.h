// Expr: elementwise arithmetic over one iteration space, as data.
//
// Values are numbered: inputs first, then constants and results, each computed
// from values with smaller numbers. Some of them are outputs. Inputs broadcast
// to the iteration space; how is not part of the expression. The text form is
// one line:
//   v0:float32, v1:float32, v2=add(v0,v1), v3=float32 0.5, v4=mul(v2,v3) -> v4
// One thread.

#ifndef BERTH_EXPR_EXPR_H_
#define BERTH_EXPR_EXPR_H_

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "expr/code.h"
#include "op/op_def.h"

namespace berth::expr {

// Limits, so that a program's registers fit a thread's stack.
inline constexpr int kMaxValues = 48;
inline constexpr int kMaxInputs = 16;
inline constexpr int kMaxOutputs = 8;

struct Value {
  OpCode code = OpCode::kInput;
  DType type = float32;
  int args[3] = {-1, -1, -1};
  double number = 0;  // of a constant
};

class Expr {
 public:
  // Each returns the number of the new value. They throw
  // errors::InvalidArgument for operands, dtypes and sizes outside the rules.
  int input(DType type);
  int constant(DType type, double number);
  int apply(OpCode code, std::initializer_list<int> args);
  int cast(int arg, DType type);
  // Makes a result an output; not an input, not twice.
  void output(int value);

  const std::vector<Value>& values() const { return values_; }
  const std::vector<int>& outputs() const { return outputs_; }
  const Value& operator[](int i) const { return values_[i]; }
  int size() const { return static_cast<int>(values_.size()); }
  int num_inputs() const { return num_inputs_; }
  int num_outputs() const { return static_cast<int>(outputs_.size()); }
  // Operations per element, roughly.
  double flops() const;

  std::string str() const;
  // Throws errors::InvalidArgument "expression: ..., expected ...".
  static Expr parse(std::string_view text);

 private:
  int add(Value v);

  std::vector<Value> values_;
  std::vector<int> outputs_;
  int num_inputs_ = 0;
};

// The dtype that selects the loop of a value; 16 bits have float32's.
DType loop_type(const Expr& e, const Value& v);

// Appends what `op` computes from `args`; nullopt when its result in `type` is
// not made of codes. The op is elementwise.
std::optional<int> lower(Expr& e, const OpDef& op, const Attrs* attrs,
                         std::span<const int> args, DType type);

// True when lower() knows the op for these dtypes.
bool can_lower(const OpDef& op, const Attrs* attrs,
               std::span<const DType> inputs, DType type);

}  // namespace berth::expr

#endif  // BERTH_EXPR_EXPR_H_
