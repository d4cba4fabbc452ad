// Elementwise kernels as generated text: operands are loaded, values computed
// and stored; inputs broadcast to the shape of the outputs.
//
// A kernel has a form for each way that its inputs lie (element_layout.h).
// Processors get all forms of all kernels of a kind in one program, of which
// they compile what is launched; other cards get one form of one kernel. Pure;
// thread-safe.

#ifndef BERTH_BACKENDS_GPU_ELEMENT_KERNEL_H_
#define BERTH_BACKENDS_GPU_ELEMENT_KERNEL_H_

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "backends/gpu/kernels.h"

namespace berth::gpu {

struct ElementKernel {
  std::string name;
  std::vector<std::string> in, out;  // words of types.cl
  std::string body;    // makes y0, y1, ... of x0, x1, ..., which are of T_C
  std::string params;  // further ones: ", const f32 alpha"
  std::string begin;   // before all else: "AT(i64, fault);"
};

// The type that T_C is for the type of this word.
std::string computed_in(std::string_view word);

// An expression of type `to` with the value of one of type `from`, by the
// rules of the Cast op; both are words of types.cl, the result is of T_C.
std::string converted(const std::string& value, std::string_view from,
                      std::string_view to);

// Kernels that a processor has in one program. `name` says which they are;
// their text is made once in a process. Without a name it is made anew.
struct ElementSet {
  std::string name;
  std::function<std::vector<ElementKernel>()> kernels;
};

// Appends the launch of `kernel`, which is one of `set`, for the inputs and
// outputs of the recipe. False: more elements than a launch has.
bool launch_elements(Recipe& recipe, std::vector<std::string> files,
                     const ElementKernel& kernel, const ElementSet& set,
                     const std::vector<Arg>& more = {});

// An op that is one function of kernels/*.cl, called by name: op "Exp" of
// float32 is f32_EXP.
struct ElementOp {
  enum class Kind : uint8_t {
    kSame,   // a result of the operands' dtype
    kBool,   // a bool
    kPart,   // the real dtype of a complex one
    kFault,  // as kSame; the function may report()
    kAlpha,  // as kSame; the attribute "alpha" is a further operand
    kInfix,  // a bool; `function` is an operator of C
  };
  std::string_view op;
  std::string_view function;
  int operands;
  DTypeSet types;
  Kind kind = Kind::kSame;
  bool wide = false;            // float32 goes through float64
  std::string_view fault = {};  // text of what is reported
};

// Adds ops, made by `make`, which calls make_element_op with the same table.
void add_element_ops(Kernels& k, std::span<const ElementOp> table, Make make);
// Finds the op of the recipe, by `name`, in a table.
bool make_element_op(Recipe& recipe, std::span<const ElementOp> table,
                     std::vector<std::string> files, std::string_view name);

// Parts of the families of kernels.h.
void add_fused(Kernels& k);      // groups of ops as one expression
void add_casts(Kernels& k);      // Cast, SelectV2
void add_generated(Kernels& k);  // Fill, Range, AddN, ...

}  // namespace berth::gpu

#endif  // BERTH_BACKENDS_GPU_ELEMENT_KERNEL_H_
