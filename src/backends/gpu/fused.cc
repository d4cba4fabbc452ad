// _Fused: an expression as one kernel.

#include <fmt/format.h>

#include <bit>

#include "backends/gpu/element_kernel.h"
#include "berth/errors.h"
#include "expr/expr.h"

namespace berth::gpu {

namespace fused {

using expr::Expr;
using expr::OpCode;
using expr::Value;

std::string word_of(DType dtype) { return std::string(type_word(dtype)); }

// Returns the bits of a constant, since text would lose some.
std::string constant(DType type, double x) {
  switch (type) {
    case DType::kFloat32:
    case DType::kBFloat16:
    case DType::kFloat16:
      return fmt::format("AS_F32(0x{:08x})",
                         std::bit_cast<uint32_t>(static_cast<float>(x)));
    case DType::kFloat64:
      return fmt::format("AS_F64(0x{:016x}L)", std::bit_cast<uint64_t>(x));
    case DType::kInt32:
      return fmt::format("(i32)0x{:x}u",
                         static_cast<uint32_t>(static_cast<int32_t>(x)));
    case DType::kInt64:
      return fmt::format("(i64)0x{:x}UL",
                         static_cast<uint64_t>(static_cast<int64_t>(x)));
    default:
      return fmt::format("(u8){}", static_cast<int>(static_cast<uint8_t>(x)));
  }
}

const char* comparison(OpCode code) {
  switch (code) {
    case OpCode::kEqual:
      return "==";
    case OpCode::kNotEqual:
      return "!=";
    case OpCode::kLess:
      return "<";
    case OpCode::kLessEqual:
      return "<=";
    case OpCode::kGreater:
      return ">";
    case OpCode::kGreaterEqual:
      return ">=";
    default:
      return nullptr;
  }
}

// "gelu_tanh" is f32_GELU_TANH.
std::string function(OpCode code, const std::string& computed) {
  std::string name = computed + "_";
  for (const char c : std::string_view(expr::info(code).name)) {
    name += c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  }
  return name;
}

std::string text_of(const Expr& e, const Value& v) {
  const auto arg = [&](int i) { return fmt::format("x{}", v.args[i]); };
  if (v.code == OpCode::kConstant) return constant(v.type, v.number);
  if (v.code == OpCode::kCast) {
    return converted(arg(0), word_of(e[v.args[0]].type), word_of(v.type));
  }
  if (v.code == OpCode::kSelect) {
    return fmt::format("{} != 0 ? {} : {}", arg(0), arg(1), arg(2));
  }
  if (const char* infix = comparison(v.code)) {
    return fmt::format("(u8)({} {} {})", arg(0), infix, arg(1));
  }
  std::string args = arg(0);
  if (v.args[1] >= 0) args += ", " + arg(1);
  const DType type = expr::computed_type(expr::loop_type(e, v));
  return function(v.code, word_of(type)) + "(" + args + ")";
}

// A value of 16 bits as it would be stored and loaded again.
std::string rounded(const std::string& x, DType type) {
  if (!(dtype_bit(type) & kHalfTypes)) return x;
  return fmt::format("f32_of_{0}({0}_of_f32({1}))", word_of(type), x);
}

// Returns which values an output needs.
std::vector<bool> needed(const Expr& e) {
  std::vector<bool> is(static_cast<size_t>(e.size()), false);
  for (const int o : e.outputs()) is[static_cast<size_t>(o)] = true;
  for (int i = e.size() - 1; i >= 0; --i) {
    if (!is[static_cast<size_t>(i)]) continue;
    for (const int a : e[i].args) {
      if (a >= 0) is[static_cast<size_t>(a)] = true;
    }
  }
  return is;
}

ElementKernel kernel_of(const Expr& e) {
  ElementKernel k;
  k.name = "fused";
  const std::vector<bool> used = needed(e);
  for (int i = 0; i < e.size(); ++i) {
    const std::string word = word_of(e[i].type);
    if (i < e.num_inputs()) {
      k.in.push_back(word);
    } else if (used[static_cast<size_t>(i)]) {
      k.body += fmt::format("  const {} x{} = {};\n", computed_in(word), i,
                            rounded(text_of(e, e[i]), e[i].type));
    }
  }
  for (int o = 0; o < e.num_outputs(); ++o) {
    const int v = e.outputs()[static_cast<size_t>(o)];
    const std::string word = word_of(e[v].type);
    k.out.push_back(word);
    k.body += fmt::format("  const {} y{} = x{};\n", computed_in(word), o, v);
  }
  return k;
}

bool needs_f64(const Expr& e) {
  for (const Value& v : e.values()) {
    if (v.type == float64) return true;
  }
  return false;
}

bool make(Recipe& r) {
  const Expr e = Expr::parse(r.args().attr<std::string>("expr"));
  if (!r.features().has_f64 && needs_f64(e)) return false;
  return launch_elements(r, {"math.cl"}, kernel_of(e));
}

}  // namespace fused

void add_fused(Kernels& k) {
  k.add("_Fused", expr::kValueTypes, &fused::make, true);
}

}  // namespace berth::gpu
