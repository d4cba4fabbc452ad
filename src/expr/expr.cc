#include "expr/expr.h"

#include <fmt/format.h>

#include <algorithm>

#include "berth/errors.h"

namespace berth::expr {

namespace {

[[noreturn]] void refuse(const std::string& message) {
  throw errors::InvalidArgument("expression: " + message);
}

bool is_type(DType d) { return (kValueTypes & dtype_bit(d)) != 0; }

}  // namespace

DType loop_type(const Expr& e, const Value& v) {
  if (v.args[0] < 0) return v.type;
  return e[v.args[v.code == OpCode::kSelect ? 1 : 0]].type;
}

int Expr::add(Value v) {
  if (!is_type(v.type)) {
    refuse(fmt::format("a value of {}; expected a number or bool",
                       name_of(v.type)));
  }
  if (size() == kMaxValues) {
    refuse(fmt::format("more than {} values", kMaxValues));
  }
  values_.push_back(v);
  return size() - 1;
}

int Expr::input(DType type) {
  if (num_inputs_ == kMaxInputs || num_inputs_ != size()) {
    refuse(
        fmt::format("input {} after {} values; expected at most {} inputs "
                    "before all else",
                    num_inputs_, size(), kMaxInputs));
  }
  const int v = add({.code = OpCode::kInput, .type = type});
  ++num_inputs_;
  return v;
}

int Expr::constant(DType type, double number) {
  return add({.code = OpCode::kConstant, .type = type, .number = number});
}

int Expr::apply(OpCode code, std::initializer_list<int> args) {
  const CodeInfo& i = info(code);
  if (i.result == ResultType::kGiven)
    refuse(fmt::format("apply of {}", i.name));
  if (static_cast<int>(args.size()) != i.operands) {
    refuse(fmt::format("{} of {} operands; expected {}", i.name, args.size(),
                       i.operands));
  }
  Value v{.code = code};
  int at = 0;
  for (const int a : args) {
    if (a < 0 || a >= size()) {
      refuse(fmt::format("{} of v{}; expected a value before it", i.name, a));
    }
    v.args[at++] = a;
  }
  const DType type = loop_type(*this, v);
  bool good = (i.types & dtype_bit(computed_type(type))) != 0;
  // Operands that are not of the loop's dtype.
  if (code == OpCode::kSelect) {
    good &= values_[v.args[0]].type == bool_ && values_[v.args[2]].type == type;
  } else if (code == OpCode::kKeep) {
    good &= values_[v.args[1]].type == uint8;
  } else if (i.operands == 2) {
    good &= values_[v.args[1]].type == type;
  }
  if (!good) {
    std::string types;
    for (const int a : args) {
      types += fmt::format(" {}", name_of(values_[a].type));
    }
    refuse(
        fmt::format("{} of{}; expected dtypes that it takes", i.name, types));
  }
  v.type = i.result == ResultType::kBool ? bool_ : type;
  return add(v);
}

int Expr::cast(int arg, DType type) {
  if (arg < 0 || arg >= size()) refuse("cast of a value that is not there");
  Value v{.code = OpCode::kCast, .type = type};
  v.args[0] = arg;
  return add(v);
}

void Expr::output(int value) {
  if (value < num_inputs_ || value >= size() ||
      values_[value].code == OpCode::kConstant) {
    refuse(fmt::format("output v{}; expected a computed value", value));
  }
  if (num_outputs() == kMaxOutputs ||
      std::count(outputs_.begin(), outputs_.end(), value) > 0) {
    refuse(fmt::format("output v{}; expected at most {} different outputs",
                       value, kMaxOutputs));
  }
  outputs_.push_back(value);
}

double Expr::flops() const {
  double sum = 0;
  for (const Value& v : values_) sum += info(v.code).flops;
  return sum;
}

}  // namespace berth::expr
