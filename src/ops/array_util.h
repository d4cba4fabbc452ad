// What the families that move data share: checked calls, sizes, costs.

#ifndef BERTH_OPS_ARRAY_UTIL_H_
#define BERTH_OPS_ARRAY_UTIL_H_

#include <fmt/format.h>

#include <initializer_list>
#include <string>
#include <vector>

#include "berth/errors.h"
#include "op/device_scope.h"
#include "ops/op_call.h"

namespace berth {

// Calls an op with one output for a public function. Throws
// errors::FailedPrecondition when an input is an empty handle.
Tensor call_checked(const OpDef& op, Site site,
                    std::initializer_list<const Tensor*> in,
                    const Attrs* attrs = nullptr);

// Throws Error: what a public function got wrong, and the user's line.
template <class Error = errors::InvalidArgument>
[[noreturn]] void refuse(const char* function, const std::string& message) {
  throw Error(fmt::format("{}: {}{}", function, message, where_text()));
}

// Returns `t` under the shape of `like`; shares the bytes.
Tensor reshape_like(const Tensor& t, const Tensor& like);

// Returns `t` with its first `axes` axes made one; none: with a new axis of
// length 1. Shares the bytes.
Tensor merge_axes(const Tensor& t, int axes, Site site);

// Calls `name`, which takes the wanted shape as attribute "shape" besides
// `attrs`, or `name` + "Like", which takes it from a last input, when the
// shape of `like` is not known yet. Keeping `like` alive costs memory.
Tensor call_with_shape_of(const char* name, std::vector<const Tensor*> in,
                          const Tensor& like, std::vector<Attrs::Pair> attrs);

// Return a + b, a * b for sizes; unknown when one is. Fail on overflow.
int64_t add_dims(const InferContext& c, int64_t a, int64_t b);
int64_t multiply_dims(const InferContext& c, int64_t a, int64_t b);

// Fails when the number of elements overflows.
void check_elements(const InferContext& c, const Shape& shape);

// Fails when a tensor of `dtype` cannot hold `value` (2.5 as int32).
void check_value(const InferContext& c, const char* what, double value,
                 DType dtype);

// Costs: bytes in and out without arithmetic; output bytes read and written;
// nothing at all.
Cost cost_move(const InferContext& c);
Cost cost_pick(const InferContext& c);
Cost cost_nothing(const InferContext& c);

// Shorthands of the split algebra.
inline int8_t cut(int axis) { return static_cast<int8_t>(axis); }
inline constexpr int8_t kWhole = SplitSignature::kWhole;
inline constexpr int8_t kPartialSum = SplitSignature::kPartialSum;

// For generators, whose elements are numbered in row-major order: the first
// axis.
std::vector<SplitSignature> split_generator(const InferContext& c);

}  // namespace berth

#endif  // BERTH_OPS_ARRAY_UTIL_H_
