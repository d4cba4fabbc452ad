// Shape: the dimensions of a tensor, at most 8, stored inline.
//
// An unknown dimension is negative: kUnknownDim (-1) is anonymous; values below
// it are symbols, equal exactly if they are the same dimension of the same
// traced signature. Values; thread-safe.

#ifndef BERTH_SHAPE_H_
#define BERTH_SHAPE_H_

#include <cstdint>
#include <initializer_list>
#include <iosfwd>
#include <span>
#include <string>

#include "berth/dtype.h"

namespace berth {

inline constexpr int64_t kUnknownDim = -1;
inline constexpr int kMaxRank = 8;

class Shape {
 public:
  Shape() = default;  // A scalar.
  // Throws errors::InvalidArgument for more than kMaxRank dimensions.
  Shape(std::initializer_list<int64_t> dims)
      : Shape(std::span<const int64_t>(dims.begin(), dims.size())) {}
  explicit Shape(std::span<const int64_t> dims);

  int rank() const { return rank_; }
  int64_t operator[](int axis) const { return dims_[axis]; }
  int64_t& operator[](int axis) { return dims_[axis]; }
  std::span<const int64_t> dims() const {
    return {dims_, static_cast<size_t>(rank_)};
  }
  const int64_t* begin() const { return dims_; }
  const int64_t* end() const { return dims_ + rank_; }

  // Returns the number of elements; kUnknownDim if any dimension is unknown,
  // INT64_MAX if there are more than that.
  int64_t num_elements() const {
    int64_t n = 1;
    for (int i = 0; i < rank_; ++i) {
      if (dims_[i] < 0) return kUnknownDim;
      if (__builtin_mul_overflow(n, dims_[i], &n)) n = INT64_MAX;
    }
    return n;
  }
  bool is_fully_defined() const { return num_elements() >= 0; }
  bool is_scalar() const { return rank_ == 0; }

  void push_back(int64_t dim);
  void insert(int axis, int64_t dim);
  void erase(int axis);

  // Equal rank and dimensions; an anonymous unknown equals only itself.
  bool operator==(const Shape& other) const {
    if (rank_ != other.rank_) return false;
    for (int i = 0; i < rank_; ++i) {
      if (dims_[i] != other.dims_[i]) return false;
    }
    return true;
  }

  // Whether the two could be equal once every dimension is known.
  bool compatible_with(const Shape& other) const;

  // "[32,128]"; unknown dimensions print as "?".
  std::string str() const;

 private:
  int64_t dims_[kMaxRank] = {};
  int32_t rank_ = 0;
};

// Prints str().
std::ostream& operator<<(std::ostream& out, const Shape& shape);

// Resolves a possibly negative axis against `rank`. Throws
// errors::InvalidArgument naming `what` if out of range.
int normalize_axis(int64_t axis, int rank, const char* what);

// Shape and dtype of a value, with an optional name (tf.TensorSpec).
struct TensorSpec {
  Shape shape;
  DType dtype = float32;
  std::string name = {};

  bool operator==(const TensorSpec& o) const {
    return dtype == o.dtype && shape == o.shape;
  }
  std::string str() const;  // "float32[32,128]"
};

}  // namespace berth

#endif  // BERTH_SHAPE_H_
