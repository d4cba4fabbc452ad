// Elementwise kernels as generated text: load operands, compute, store; inputs
// broadcast to the shape of the outputs.
//
// A kernel has a form for each layout of its inputs (element_layout.h). A
// program has one form of one kernel; those of a plan are compiled together.
// Pure; thread-safe.

#ifndef BERTH_BACKENDS_GPU_ELEMENT_KERNEL_H_
#define BERTH_BACKENDS_GPU_ELEMENT_KERNEL_H_

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "backends/gpu/kernels.h"

namespace berth::gpu {

struct ElementKernel {
  std::string name;
  std::vector<std::string> in, out;  // words of types.cl
  std::string body;    // computes y0, y1, ... from x0, x1, ..., of type T_C
  std::string params;  // extra ones: ", const f32 alpha"
  std::string begin;   // first statements: "AT(i64, fault);"
};

// Returns the type T_C for the type of this word.
std::string computed_in(std::string_view word);

// Returns an expression of type `to` with the value of one of type `from`, by
// the rules of the Cast op. Both are words of types.cl; the result is of T_C.
std::string converted(const std::string& value, std::string_view from,
                      std::string_view to);

// Appends the launch of `kernel` for the recipe's inputs and outputs. Returns
// false for more elements than a launch can have.
bool launch_elements(Recipe& recipe, std::vector<std::string> files,
                     const ElementKernel& kernel,
                     const std::vector<Arg>& more = {});

// An op that is a single function of kernels/*.cl, called by name: op "Exp" of
// float32 is f32_EXP.
struct ElementOp {
  enum class Kind : uint8_t {
    kSame,   // result in the operands' dtype
    kBool,   // a bool
    kPart,   // the real part's dtype
    kFault,  // as kSame; the function may report()
    kAlpha,  // as kSame; attribute "alpha" is an extra operand
    kInfix,  // a bool; `function` is a C operator
  };
  std::string_view op;
  std::string_view function;
  int operands;
  DTypeSet types;
  Kind kind = Kind::kSame;
  bool wide = false;            // computes float32 in float64
  std::string_view fault = {};  // text of the report
};

// Adds ops made by `make`, which calls make_element_op with the same table.
void add_element_ops(Kernels& k, std::span<const ElementOp> table, Make make);
// Finds the recipe's op by `name` in a table.
bool make_element_op(Recipe& recipe, std::span<const ElementOp> table,
                     std::vector<std::string> files, std::string_view name);

// Parts of the families in kernels.h.
void add_fused(Kernels& k);         // groups of ops as one expression
void add_casts(Kernels& k);         // Cast, SelectV2
void add_constant_ops(Kernels& k);  // Fill, Range, AddN, ...

}  // namespace berth::gpu

#endif  // BERTH_BACKENDS_GPU_ELEMENT_KERNEL_H_
