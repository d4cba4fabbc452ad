// Tensor: a handle of an n-dimensional array on one device.
//
// Copying a handle shares the array. Values never change once computed; only
// Variables change. Inside a traced function a Tensor is symbolic: it has a
// dtype and a shape (dimensions may be unknown) but no values.
// Thread-compatible: distinct handles of one array may be used by distinct
// threads.

#ifndef BERTH_TENSOR_H_
#define BERTH_TENSOR_H_

#include <atomic>
#include <complex>
#include <concepts>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <iosfwd>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "berth/dtype.h"
#include "berth/shape.h"
#include "berth/site.h"

namespace berth {

struct bfloat16_t;  // half.h
struct float16_t;
struct TensorImpl;  // tensor/tensor_impl.h
class Tensor;
using Tensors = std::vector<Tensor>;

// One subscript: an index (drops the axis) or a range with a step.
struct Index {
  constexpr Index(std::integral auto at)  // NOLINT: x[{0, 1}]
      : begin(static_cast<int64_t>(at)), is_index(true) {}
  constexpr Index(std::optional<int64_t> begin, std::optional<int64_t> end,
                  int64_t stride)
      : begin(begin), end(end), stride(stride) {}

  std::optional<int64_t> begin, end;
  int64_t stride = 1;
  bool is_index = false;
};

// Python's begin:end:stride; std::nullopt leaves a side open.
constexpr Index slice(std::optional<int64_t> begin = std::nullopt,
                      std::optional<int64_t> end = std::nullopt,
                      int64_t stride = 1) {
  return Index(begin, end, stride);
}

// Element types of item() and to_vector().
template <class T>
concept ElementType = std::same_as<T, float> || std::same_as<T, double> ||
    std::same_as<T, int32_t> || std::same_as<T, int64_t> ||
    std::same_as<T, uint8_t> || std::same_as<T, int8_t> ||
    std::same_as<T, int16_t> || std::same_as<T, uint16_t> ||
    std::same_as<T, uint32_t> || std::same_as<T, uint64_t> ||
    std::same_as<T, bool> || std::same_as<T, std::string> ||
    std::same_as<T, bfloat16_t> || std::same_as<T, float16_t> ||
    std::same_as<T, std::complex<float>> ||
    std::same_as<T, std::complex<double>>;

// All of an axis: x(All, 0).
inline constexpr Index All = slice();

template <class I>
concept Subscript = std::integral<I> || std::same_as<I, Index>;

class Tensor {
 public:
  Tensor() = default;  // An empty handle: defined() is false.
  Tensor(const Tensor& o) : impl_(o.impl_) { retain(); }
  Tensor(Tensor&& o) noexcept : impl_(std::exchange(o.impl_, nullptr)) {}
  Tensor& operator=(const Tensor& o) {
    Tensor copy(o);
    std::swap(impl_, copy.impl_);
    return *this;
  }
  Tensor& operator=(Tensor&& o) noexcept {
    std::swap(impl_, o.impl_);
    return *this;
  }
  ~Tensor() { release(); }

  bool defined() const { return impl_ != nullptr; }
  // True inside a trace: there are no values to read.
  bool is_symbolic() const;

  // Throw errors::FailedPrecondition on an empty handle.
  const Shape& shape() const;
  DType dtype() const;
  int rank() const { return shape().rank(); }
  int64_t num_elements() const { return shape().num_elements(); }
  TensorSpec spec() const;

  // The full name of the device where the op that made this ran, and of the
  // device that holds the bytes. They differ for values kept on the host:
  // shape(), size() and rank() of a tensor on a GPU give numbers in host
  // memory, without GPU work. Integers and everything else that kernels compute
  // are where the kernel ran. "" in a trace: not placed yet.
  std::string device() const;
  std::string backing_device() const;

  // Returns the only element, converted to T; waits for it. Throws
  // errors::InvalidArgument unless there is exactly one element,
  // errors::FailedPrecondition inside a trace, and the errors of the op that
  // computes it.
  template <ElementType T>
  T item(Site site = Site::here()) const;

  // Returns the elements in row-major order, converted to T; waits for them.
  template <ElementType T>
  std::vector<T> to_vector(Site site = Site::here()) const;

  // Copies the elements, in row-major order and in this dtype, to `target`,
  // num_elements() * size_of(dtype()) bytes. Waits for them.
  void copy_to(void* target, Site site = Site::here()) const;

  // Returns a part as NumPy does: x[{0}], x[{slice(0, 10), slice()}],
  // x[{slice(i, {}, n)}].
  Tensor operator[](std::initializer_list<Index> subscripts) const;
  // Subscripts of the first axis only, x[0], x[slice(1, 3)], and several as a
  // call, x(slice(1, 3), All, 0).
  template <Subscript I>
  Tensor operator[](const I& first) const {
    return (*this)[{Index(first)}];
  }
  template <Subscript... I>
  Tensor operator()(const I&... subscripts) const {
    return (*this)[{Index(subscripts)...}];
  }

  // "Tensor(shape=[2], dtype=float32, device=CPU:0, [1. , 2.5])": values as
  // NumPy prints them, in rows with aligned columns; above 1,000 elements the
  // middle of long axes is replaced by "...".
  std::string str() const;

  // Implementation handles.
  TensorImpl* impl() const { return impl_; }
  static Tensor adopt(TensorImpl* impl) {
    Tensor t;
    t.impl_ = impl;
    return t;
  }

 private:
  struct Counted {  // the first member of TensorImpl
    std::atomic<int32_t> references;
  };
  void retain() {
    if (impl_ == nullptr) return;
    reinterpret_cast<Counted*>(impl_)->references.fetch_add(
        1, std::memory_order_relaxed);
  }
  void release() {
    if (impl_ == nullptr) return;
    auto& n = reinterpret_cast<Counted*>(impl_)->references;
    // A sole owner needs no locked decrement.
    if (n.load(std::memory_order_acquire) == 1 ||
        n.fetch_sub(1, std::memory_order_acq_rel) == 1) {
      destroy(impl_);
    }
  }
  static void destroy(TensorImpl* impl) noexcept;

  TensorImpl* impl_ = nullptr;
};

std::ostream& operator<<(std::ostream& out, const Tensor& t);

// Returns a host tensor over memory of the caller, [shape] of `dtype` in
// row-major order, aligned to the element; `deleter` runs when the last
// reference ends (DLPack's contract). Throws errors::InvalidArgument for an
// invalid address, shape or dtype.
Tensor wrap_memory(void* data, Shape shape, DType dtype,
                   std::function<void()> deleter);

}  // namespace berth

#endif  // BERTH_TENSOR_H_
