// Ops that are one function each.

#include <fmt/format.h>

#include "backends/gpu/element_kernel.h"

namespace berth::gpu {

namespace element {

using Kind = ElementOp::Kind;

// Returns the type whose functions compute this op in this dtype.
std::string class_of(const ElementOp& op, DType dtype, const Features& card) {
  const bool doubles = card.has_f64;
  // The width of the type matters.
  if (op.function.ends_with("_SHIFT")) return std::string(type_word(dtype));
  if (dtype == int8 || dtype == int16 || dtype == uint16) return "i32";
  if (dtype == uint32) return "i64";
  if (is_complex(dtype)) return doubles ? "c128" : "c64";
  const bool narrow = dtype == float32 || dtype == bfloat16 || dtype == float16;
  if (op.wide && narrow) return doubles ? "f64" : "f32";
  if (dtype == bool_) return "b8";
  return computed_in(type_word(dtype));
}

// Returns the type of its result before it is stored.
std::string result_class(const ElementOp& op, const std::string& computed) {
  if (op.kind == Kind::kBool || op.kind == Kind::kInfix) return "b8";
  if (op.kind == Kind::kPart) return computed == "c64" ? "f32" : "f64";
  return computed;
}

std::string stored_word(const ElementOp& op, DType dtype) {
  if (op.kind == Kind::kBool || op.kind == Kind::kInfix) return "b8";
  if (op.kind == Kind::kPart) return dtype == complex64 ? "f32" : "f64";
  return std::string(type_word(dtype));
}

ElementKernel kernel_of(const ElementOp& op, DType dtype,
                        const Features& card) {
  static constexpr const char* kNames[] = {"a", "b", "c"};
  const std::string word(type_word(dtype));
  const std::string computed = class_of(op, dtype, card);
  const std::string result = result_class(op, computed);
  ElementKernel k;
  k.name = op.op;
  std::string args;
  for (int i = 0; i < op.operands; ++i) {
    k.in.push_back(word);
    k.body +=
        fmt::format("  const {} {} = {};\n", computed_in(computed), kNames[i],
                    converted(fmt::format("x{}", i), word, computed));
    args += fmt::format("{}{}", i > 0 ? ", " : "", kNames[i]);
  }
  if (op.kind == Kind::kFault) {
    k.params = ", BUF(i64, fault)";
    k.begin = "  AT(i64, fault);\n";
    args += ", fault";
  }
  if (op.kind == Kind::kAlpha) {
    k.params = fmt::format(", const {} alpha", computed);
    args += ", alpha";
  }
  const std::string call =
      op.kind == Kind::kInfix
          ? fmt::format("(u8)(a {} b)", op.function)
          : fmt::format("{}_{}({})", computed, op.function, args);
  k.out.push_back(stored_word(op, dtype));
  k.body += fmt::format("  const {} r = {};\n  const {} y0 = {};\n",
                        computed_in(result), call, computed_in(k.out[0]),
                        converted("r", result, k.out[0]));
  return k;
}

Arg alpha_of(Recipe& r, const std::string& computed) {
  const double alpha = r.args().attr<double>("alpha");
  return computed == "f64" ? value(alpha) : value(static_cast<float>(alpha));
}

}  // namespace element

void add_element_ops(Kernels& k, std::span<const ElementOp> table, Make make) {
  for (const ElementOp& op : table) {
    const bool in_place = op.kind != ElementOp::Kind::kBool &&
                          op.kind != ElementOp::Kind::kInfix &&
                          op.kind != ElementOp::Kind::kPart;
    k.add(op.op, op.types, make, in_place);
  }
}

bool make_element_op(Recipe& recipe, std::span<const ElementOp> table,
                     std::vector<std::string> files, std::string_view name) {
  const DType dtype = recipe.in_type(0);
  const Features& card = recipe.features();
  for (const ElementOp& op : table) {
    if (op.op != name || !(op.types & dtype_bit(dtype))) continue;
    std::vector<Arg> more;
    if (op.kind == ElementOp::Kind::kFault) {
      more.push_back(recipe.fault({std::string(op.fault)}));
    }
    if (op.kind == ElementOp::Kind::kAlpha) {
      more.push_back(
          element::alpha_of(recipe, element::class_of(op, dtype, card)));
    }
    return launch_elements(recipe, std::move(files),
                           element::kernel_of(op, dtype, card), more);
  }
  return false;
}

}  // namespace berth::gpu
