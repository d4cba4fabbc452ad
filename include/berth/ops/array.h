// array: creating, reshaping and slicing tensors (tf.*).
//
// Axes may be negative, counted from the end. All throw errors::InvalidArgument
// for shapes, axes or dtypes that do not fit. Thread-safe.
// Options are written by name, in the order of their struct (berth.h).

#ifndef BERTH_OPS_ARRAY_H_
#define BERTH_OPS_ARRAY_H_

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "berth/tensor.h"

namespace berth {

// Makes a tensor from numbers in row-major order (tf.constant). It lives on
// the device of the innermost scope, else on the default device, or, for at
// most 64 integers, on the host; inside a trace it becomes part of the graph.
//   constant(2.5f)                scalar float32
//   constant({1.f, 2.f})          [2]
//   constant({{1, 2}, {3, 4}})    [2, 2]
//   constant(values, {2, 3})      values.size() == 6; without a shape [6]
//   constant({1, 2}, float32)     of this dtype; InvalidArgument for a number
//                                 that it cannot hold (1.5 as int32)
// Elements are of any dtype's C++ type, or text: tensors of text stay on the
// host in any scope, and take part in shapes and comparisons only.
//   constant("a"), constant({"a", "b"})
template <class T>
Tensor constant(std::span<const T> values, const Shape& shape,
                Site site = Site::here());
Tensor constant(float value, Site site = Site::here());
Tensor constant(double value, Site site = Site::here());
Tensor constant(int value, Site site = Site::here());
Tensor constant(int64_t value, Site site = Site::here());
Tensor constant(bool value, Site site = Site::here());
Tensor constant(const char* value, Site site = Site::here());
// int8_t, int16_t, uint16_t, uint32_t, uint64_t, bfloat16_t, float16_t,
// std::complex<float or double>, std::string: a template, so that a list of two
// numbers is not taken for one of these.
template <class T>
requires(dtype_of<T> == int8 || dtype_of<T> == int16 ||
         (is_unsigned(dtype_of<T>) && dtype_of<T> != uint8) ||
         dtype_of<T> == bfloat16 || dtype_of<T> == float16 ||
         is_complex(dtype_of<T>) || std::is_same_v<T, std::string>) Tensor
    constant(const T& value, Site site = Site::here()) {
  return constant(std::span<const T>(&value, 1), Shape{}, site);
}
template <class T>
Tensor constant(const std::vector<T>& values, const Shape& shape = Shape({-1}),
                Site site = Site::here()) {
  const bool list = shape.rank() == 1 && shape[0] == -1;
  return constant(std::span<const T>(values),
                  list ? Shape{static_cast<int64_t>(values.size())} : shape,
                  site);
}
template <class T>
Tensor constant(std::initializer_list<T> values, Site site = Site::here()) {
  return constant(std::span<const T>(values.begin(), values.size()),
                  Shape{static_cast<int64_t>(values.size())}, site);
}
template <class T>
Tensor constant(std::initializer_list<std::initializer_list<T>> rows,
                Site site = Site::here()) {
  std::vector<T> all;
  const int64_t width =
      rows.size() ? static_cast<int64_t>(rows.begin()->size()) : 0;
  for (const auto& row : rows) all.insert(all.end(), row.begin(), row.end());
  return constant(std::span<const T>(all),
                  Shape{static_cast<int64_t>(rows.size()), width}, site);
}
// With a dtype: numbers of any C++ type.
namespace detail {
Tensor constant_of(std::span<const long double> values, const Shape& shape,
                   DType dtype, Site site);
}
template <class T>
requires std::is_arithmetic_v<T> Tensor constant(T value, DType dtype,
                                                 Site site = Site::here()) {
  const auto wide = static_cast<long double>(value);
  return detail::constant_of({&wide, 1}, Shape{}, dtype, site);
}
template <class T>
requires std::is_arithmetic_v<T> Tensor constant(const std::vector<T>& values,
                                                 DType dtype,
                                                 Site site = Site::here()) {
  const std::vector<long double> wide(values.begin(), values.end());
  return detail::constant_of(wide, Shape{static_cast<int64_t>(wide.size())},
                             dtype, site);
}
template <class T>
requires std::is_arithmetic_v<T> Tensor constant(
    std::initializer_list<T> values, DType dtype, Site site = Site::here()) {
  return constant(std::vector<T>(values), dtype, site);
}

// A tensor filled with one value, zeros, ones.
Tensor fill(const Shape& shape, double value, DType dtype = float32,
            Site site = Site::here());
Tensor zeros(const Shape& shape, DType dtype = float32,
             Site site = Site::here());
Tensor ones(const Shape& shape, DType dtype = float32,
            Site site = Site::here());
Tensor zeros_like(const Tensor& x, Site site = Site::here());
Tensor ones_like(const Tensor& x, Site site = Site::here());
// 0, 1, ... : start, start + delta, ... below limit (tf.range).
Tensor range(int64_t start, int64_t limit, int64_t delta = 1,
             DType dtype = int64, Site site = Site::here());
inline Tensor range(int64_t limit, Site site = Site::here()) {
  return range(0, limit, 1, int64, site);
}
// A range with steps that are not integers.
Tensor float_range(double start, double limit, double delta = 1,
                   DType dtype = float32, Site site = Site::here());
// `num` evenly spaced numbers from start to stop, both included; integers are
// rounded down.
Tensor linspace(double start, double stop, int64_t num, DType dtype = float32,
                Site site = Site::here());
// [batch..., rows, columns]: ones on the diagonal. columns -1: as many.
Tensor eye(int64_t rows, int64_t columns = -1, const Shape& batch = {},
           DType dtype = float32, Site site = Site::here());

// Shape [rank], number of elements and rank as tensors (tf.shape, tf.size,
// tf.rank).
Tensor shape(const Tensor& x, DType out_type = int32, Site site = Site::here());
Tensor size(const Tensor& x, DType out_type = int32, Site site = Site::here());
Tensor rank(const Tensor& x, Site site = Site::here());
// x, which must have this shape; -1 is any length (tf.ensure_shape). In a
// trace, unknown dimensions are checked when they are known.
Tensor ensure_shape(const Tensor& x, const Shape& shape,
                    Site site = Site::here());
// lengths [...] -> bool [..., maxlen]: true below the length. Without maxlen,
// which is required in a trace, the largest length is read.
Tensor sequence_mask(const Tensor& lengths,
                     std::optional<int64_t> maxlen = std::nullopt,
                     Site site = Site::here());

// Returns x on the device of the innermost scope (tf.identity).
Tensor identity(const Tensor& x, Site site = Site::here());
Tensors identity_n(const Tensors& x, Site site = Site::here());
// Returns x and blocks gradients.
Tensor stop_gradient(const Tensor& x, Site site = Site::here());

// Returns the elements with another shape; one dimension may be -1.
Tensor reshape(const Tensor& x, const Shape& shape, Site site = Site::here());
Tensor expand_dims(const Tensor& x, int64_t axis, Site site = Site::here());
// Drops the given axes of length 1; all of them if `axes` is empty, except axes
// whose length is unknown in a trace.
Tensor squeeze(const Tensor& x, const std::vector<int64_t>& axes = {},
               Site site = Site::here());
Tensor broadcast_to(const Tensor& x, const Shape& shape,
                    Site site = Site::here());
// Axis i of the result is axis perm[i] of x; reversed if perm is empty.
Tensor transpose(const Tensor& x, const std::vector<int64_t>& perm = {},
                 Site site = Site::here());
Tensor concat(const Tensors& parts, int64_t axis, Site site = Site::here());
Tensor stack(const Tensors& parts, int64_t axis = 0, Site site = Site::here());
Tensors unstack(const Tensor& x, int64_t axis = 0, Site site = Site::here());
Tensor tile(const Tensor& x, const std::vector<int64_t>& multiples,
            Site site = Site::here());
// Parts along `axis`: `num` equal ones, or one per size, one of which may be
// -1: the rest (tf.split).
Tensors split(const Tensor& x, int64_t num, int64_t axis = 0,
              Site site = Site::here());
Tensors split(const Tensor& x, const std::vector<int64_t>& sizes,
              int64_t axis = 0, Site site = Site::here());
// Repeats each element along `axis` `repeats` times, or as often as its entry;
// without axis x is flattened.
Tensor repeat(const Tensor& x, int64_t repeats,
              std::optional<int64_t> axis = std::nullopt,
              Site site = Site::here());
Tensor repeat(const Tensor& x, const std::vector<int64_t>& repeats,
              int64_t axis, Site site = Site::here());

struct PadOptions {
  std::string mode = "CONSTANT";  // "REFLECT", "SYMMETRIC"
  double constant_values = 0;
};
// Adds elements before and after each axis, paddings.size() == 2 * rank: a
// constant, or a mirror image that repeats the edge (SYMMETRIC) or does not
// (REFLECT).
Tensor pad(const Tensor& x, const std::vector<int64_t>& paddings,
           const PadOptions& options = {}, Site site = Site::here());
// Reverses the elements along each of `axes` (tf.reverse).
Tensor reverse(const Tensor& x, const std::vector<int64_t>& axes,
               Site site = Site::here());
// Shifts the elements shift[i] places along axes[i], cyclically (tf.roll).
Tensor roll(const Tensor& x, const std::vector<int64_t>& shift,
            const std::vector<int64_t>& axes, Site site = Site::here());
// Tensors of rank 1 as one axis each of a grid: the i-th result has x[i]
// along axis i. "xy" swaps the first two axes.
Tensors meshgrid(const Tensors& x, const std::string& indexing = "xy",
                 Site site = Site::here());
// size -1 means to the end (tf.slice). x[{...}] is the short form.
Tensor slice(const Tensor& x, const std::vector<int64_t>& begin,
             const std::vector<int64_t>& size, Site site = Site::here());
struct StridedSliceOptions {
  std::vector<int64_t> strides = {};  // 1 if empty
  // Bit i: axis i begins at its first element, ends at its last, is dropped.
  int64_t begin_mask = 0;
  int64_t end_mask = 0;
  int64_t shrink_axis_mask = 0;
};
// From begin[i] to before end[i] along axis i; x[{...}] is the short form.
Tensor strided_slice(const Tensor& x, const std::vector<int64_t>& begin,
                     const std::vector<int64_t>& end,
                     const StridedSliceOptions& options = {},
                     Site site = Site::here());
// x with that slice replaced by `value`, of the slice's shape
// (tf.tensor_strided_slice_update).
Tensor tensor_strided_slice_update(const Tensor& x,
                                   const std::vector<int64_t>& begin,
                                   const std::vector<int64_t>& end,
                                   const Tensor& value,
                                   const StridedSliceOptions& options = {},
                                   Site site = Site::here());
// Rows of `x` along `axis` at `indices` (int32 or int64): [x before axis,
// indices, x after axis]. An index out of range is an error.
Tensor gather(const Tensor& x, const Tensor& indices, int64_t axis = 0,
              Site site = Site::here());
struct GatherOptions {
  std::optional<int64_t> axis = std::nullopt;  // batch_dims if absent
  int64_t batch_dims = 0;
};
// Gathers where the first batch_dims axes of x and indices correspond: [x
// before axis, indices after batch_dims, x after axis].
Tensor gather(const Tensor& x, const Tensor& indices,
              const GatherOptions& options, Site site = Site::here());

// The bytes as elements of `type`: a smaller one adds a last axis, a larger one
// takes one of the fitting length away. On host devices.
Tensor bitcast(const Tensor& x, DType type, Site site = Site::here());

struct OneHotOptions {
  double on = 1;
  double off = 0;
  int64_t axis = -1;
  DType dtype = float32;
};
// [indices with a new axis of `depth`]; an index out of range gives all off.
Tensor one_hot(const Tensor& indices, int64_t depth,
               const OneHotOptions& options = {}, Site site = Site::here());

// condition ? a : b, elementwise with broadcasting (tf.where).
Tensor where(const Tensor& condition, const Tensor& a, const Tensor& b,
             Site site = Site::here());

}  // namespace berth

#endif  // BERTH_OPS_ARRAY_H_
