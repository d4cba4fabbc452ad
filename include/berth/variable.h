// Variable: a tensor that changes (tf.Variable).
//
// A handle; copying it shares the storage. One of numbers whose shape is fixed
// keeps its address; others (of text, of any_shape, with a `shape` that is not
// the value's) are for code that runs op by op: a trace that meets one ends in
// an error, and a function of Python then runs without it.
// Reading gives a snapshot: later assignments do not change it. After a failed
// run a Variable may be torn: reading throws FailedPrecondition until it is
// assigned. Thread-safe.
// Options are written by name, in the order of their struct (berth.h).

#ifndef BERTH_VARIABLE_H_
#define BERTH_VARIABLE_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <utility>

#include "berth/tensor.h"

namespace berth {

namespace detail {
Tensor constant_of(std::span<const long double> values, const Shape& shape,
                   DType dtype, Site site);
}

// Values [n, ...] and the rows [n] that they belong to (tf.IndexedSlices).
struct IndexedSlices {
  Tensor values;
  Tensor indices;
};

// When the copies of a variable of a strategy are equal
// (tf.VariableSynchronization).
enum class VariableSynchronization : uint8_t {
  kAuto,     // kOnWrite
  kNone,     // never: only one copy
  kOnWrite,  // all copies change together
  kOnRead,   // each replica changes its own; reading outside aggregates
};

// How values of replicas are combined (tf.VariableAggregation).
enum class VariableAggregation : uint8_t {
  kNone,  // writing in a replica throws
  kSum,
  kMean,
  kOnlyFirstReplica,
};

struct VariableOptions {
  std::string name = "Variable";
  bool trainable = true;
  // For variables made in the scope of a strategy (berth/distribute.h).
  VariableSynchronization synchronization = VariableSynchronization::kAuto;
  VariableAggregation aggregation = VariableAggregation::kNone;
  // For one that assign() gives values of other shapes: what these fit,
  // kUnknownDim any length; or any_shape.
  std::optional<Shape> shape = std::nullopt;
  bool any_shape = false;
};

class Variable {
 public:
  Variable() = default;  // An empty handle.
  // Creates a variable on the device of the innermost scope, else on that of
  // `initial`, with its dtype and shape. Inside a trace, `initial` must be an
  // existing value.
  explicit Variable(const Tensor& initial, VariableOptions options = {},
                    Site site = Site::here());
  // From a C++ number, whose dtype it has: Variable(1.f) is a float32.
  template <class T>
  requires std::is_arithmetic_v<T>
  explicit Variable(T initial, VariableOptions options = {},
                    Site site = Site::here())
      : Variable(number(static_cast<long double>(initial), dtype_of<T>, site),
                 std::move(options), site) {}

  bool defined() const { return handle_.defined(); }
  const std::string& name() const;
  const Shape& shape() const;  // of the value now
  // What the shapes of all its values fit; nothing: they may have any.
  std::optional<Shape> shape_of_all() const;
  DType dtype() const;
  bool trainable() const;
  VariableSynchronization synchronization() const;
  VariableAggregation aggregation() const;
  std::string device() const;
  // A number that no other variable of the process has or had; 0 if empty.
  uint64_t serial() const;

  // Returns the current value. Throws errors::FailedPrecondition if torn.
  Tensor value(Site site = Site::here()) const;
  Tensor read_value(Site site = Site::here()) const { return value(site); }
  operator Tensor() const { return value({}); }  // NOLINT: ops take variables

  // [shape()] of dtype(); assign() takes what fits shape_of_all(). Throw
  // errors::InvalidArgument for others.
  const Variable& assign(const Tensor& value, Site site = Site::here()) const;
  const Variable& assign_add(const Tensor& delta,
                             Site site = Site::here()) const;
  const Variable& assign_sub(const Tensor& delta,
                             Site site = Site::here()) const;

  // A number, or one value for all elements.
  const Variable& assign(double value, Site site = Site::here()) const;
  // Short for assign_add(), assign_sub() and assign() of products; errors name
  // no line.
  const Variable& operator+=(const Tensor& delta) const {
    return assign_add(delta, {});
  }
  const Variable& operator-=(const Tensor& delta) const {
    return assign_sub(delta, {});
  }
  const Variable& operator*=(const Tensor& factor) const;
  const Variable& operator/=(const Tensor& divisor) const;
  const Variable& operator+=(double delta) const;
  const Variable& operator-=(double delta) const;
  const Variable& operator*=(double factor) const;
  const Variable& operator/=(double divisor) const;

  // Combine the rows at indices with values; equal indices one after the other.
  // Throw errors::InvalidArgument for an index out of range, which leaves the
  // variable torn.
  const Variable& scatter_add(const IndexedSlices& slices,
                              Site site = Site::here()) const;
  const Variable& scatter_sub(const IndexedSlices& slices,
                              Site site = Site::here()) const;
  const Variable& scatter_mul(const IndexedSlices& slices,
                              Site site = Site::here()) const;
  const Variable& scatter_div(const IndexedSlices& slices,
                              Site site = Site::here()) const;
  const Variable& scatter_min(const IndexedSlices& slices,
                              Site site = Site::here()) const;
  const Variable& scatter_max(const IndexedSlices& slices,
                              Site site = Site::here()) const;
  const Variable& scatter_update(const IndexedSlices& slices,
                                 Site site = Site::here()) const;
  // Updates at indices [n, k] of k coordinates, with updates [n, shape() after
  // axis k].
  const Variable& scatter_nd_update(const Tensor& indices,
                                    const Tensor& updates,
                                    Site site = Site::here()) const;
  const Variable& scatter_nd_add(const Tensor& indices, const Tensor& updates,
                                 Site site = Site::here()) const;
  const Variable& scatter_nd_sub(const Tensor& indices, const Tensor& updates,
                                 Site site = Site::here()) const;

  // The resource tensor that ops take.
  const Tensor& handle() const { return handle_; }

 private:
  static Tensor number(long double value, DType dtype, Site site) {
    return detail::constant_of({&value, 1}, Shape{}, dtype, site);
  }
  Tensor handle_;
};

}  // namespace berth

#endif  // BERTH_VARIABLE_H_
