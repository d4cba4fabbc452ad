// Array: a host array between two sentinels, for calling kernels directly.
//
// Fresh ones hold garbage, so that an element that a kernel forgets shows, and
// a write past either end is caught by guards_intact(). Values; one thread.

#ifndef BERTH_CONFORMANCE_ARRAY_H_
#define BERTH_CONFORMANCE_ARRAY_H_

#include <cstddef>
#include <string>
#include <vector>

#include "berth/shape.h"
#include "op/kernel.h"

namespace berth::conformance {

class Array {
 public:
  Array() = default;
  // [shape] of garbage, 64-byte aligned.
  Array(DType dtype, const Shape& shape);

  DType dtype() const { return dtype_; }
  const Shape& shape() const { return shape_; }
  int64_t size() const { return shape_.num_elements(); }
  size_t size_bytes() const {
    return static_cast<size_t>(size()) * size_of(dtype_);
  }
  std::byte* data() { return bytes_.data() + offset_; }
  const std::byte* data() const { return bytes_.data() + offset_; }
  View view() { return {data(), &shape_, dtype_}; }

  // The numbers that elements consist of: one each, or real and imaginary
  // part of a complex element in turn.
  int64_t parts() const { return size() * (is_complex(dtype_) ? 2 : 1); }
  // Number i in row-major order; whole numbers above 2^53 lose digits.
  double at(int64_t i) const;
  // Stores a value, converted; out of range values saturate.
  void set(int64_t i, double value);

  // False when somebody wrote before the first or after the last byte.
  bool guards_intact() const;

  // Returns the numbers in another dtype.
  Array converted(DType dtype) const;

  Array(const Array& o) : Array(o.dtype_, o.shape_) { copy_bytes(o); }
  Array& operator=(const Array& o) {
    Array copy(o);
    std::swap(*this, copy);
    return *this;
  }
  Array(Array&&) noexcept = default;
  Array& operator=(Array&&) noexcept = default;

 private:
  void copy_bytes(const Array& o);
  DType dtype_ = DType::kInvalid;
  Shape shape_;
  std::vector<std::byte> bytes_;
  size_t offset_ = 0;
};

using Arrays = std::vector<Array>;

struct Tolerance {
  double rtol = 0;
  double atol = 0;
};

// Returns "" when shapes and dtypes are equal, NaN stands where NaN is wanted,
// infinities are equal and |got - want| <= atol + rtol * |want| else, for each
// part of a complex number with the modulus of the whole; whole numbers must
// be equal. `want` may be wider than `got`: it is rounded first. Otherwise says
// what differs and where.
std::string difference(const Array& got, const Array& want, Tolerance t);

// Returns the part [begin, end) of `axis`, and puts such a part back.
Array cut(const Array& whole, int axis, int64_t begin, int64_t end);
void paste(Array* whole, const Array& part, int axis, int64_t begin);

}  // namespace berth::conformance

#endif  // BERTH_CONFORMANCE_ARRAY_H_
