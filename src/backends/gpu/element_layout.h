// How the operands of an elementwise kernel lie, and its text, with one element
// per item. Pure; thread-safe.

#ifndef BERTH_BACKENDS_GPU_ELEMENT_LAYOUT_H_
#define BERTH_BACKENDS_GPU_ELEMENT_LAYOUT_H_

#include <string>
#include <vector>

#include "backends/gpu/element_kernel.h"

namespace berth::gpu::element {

inline constexpr int kMostInputs = 16;  // MOST_INPUTS of elementwise.cl
// Number of elements that 32 bits can count.
inline constexpr int64_t kMost32 = int64_t{1} << 31;

// The axes of the outputs; axes along which every input continues are merged.
struct OperandLayout {
  int inputs = 0;
  int rank = 0;
  int64_t n[kMaxRank] = {};
  int64_t step[kMostInputs][kMaxRank] = {};  // in elements
  bool same = true;  // every input has the outputs' shape
};
OperandLayout layout_of(const Recipe& recipe);

// Appends the arguments `Axes` and `Steps` of elementwise.cl, in 64 bits or in
// 32, for the first `rank` axes.
void add_axes(const OperandLayout& l, int rank, bool wide,
              std::vector<Arg>& args);
// Returns their parameters, and text that computes at0, at1, ... from `i`.
std::string axes_params(size_t inputs, bool wide);
std::string axes_places(size_t inputs, bool wide);

// The parts of a kernel's text common to all forms.
struct Parts {
  std::string params;    // "BUF(const f32, in0), "
  std::string pointers;  // "AT(const f32, in0);"
  std::string stores;    // of y0, y1, ... at `i`
};
Parts parts_of(const ElementKernel& k);
std::string load_of(const ElementKernel& k, size_t input, std::string_view at);

struct ElementPlan {
  std::string text, name;
  std::vector<Arg> args;  // between the buffers and the kernel's own
  int64_t items = 0;
  uint32_t group = 1;
};
ElementPlan plan_items(const OperandLayout& l, int64_t n,
                       const ElementKernel& k);

}  // namespace berth::gpu::element

#endif  // BERTH_BACKENDS_GPU_ELEMENT_LAYOUT_H_
