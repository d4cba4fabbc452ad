// Shape.

#include "berth/shape.h"

#include <fmt/format.h>

#include "berth/errors.h"

namespace berth {

namespace {

[[noreturn]] void axis_error(int axis, int end) {
  throw errors::InvalidArgument(fmt::format(
      "Shape: axis {} is out of range; expected one in [0, {})", axis, end));
}

}  // namespace

Shape::Shape(std::span<const int64_t> dims) {
  if (dims.size() > kMaxRank) {
    throw errors::InvalidArgument(fmt::format(
        "shape has {} dimensions; expected at most {}", dims.size(), kMaxRank));
  }
  rank_ = static_cast<int32_t>(dims.size());
  for (int i = 0; i < rank_; ++i) dims_[i] = dims[i];
}

void Shape::push_back(int64_t dim) { insert(rank_, dim); }

void Shape::insert(int axis, int64_t dim) {
  if (rank_ == kMaxRank) {
    throw errors::InvalidArgument(
        fmt::format("{} has no room for another dimension; expected rank "
                    "below {}",
                    str(), kMaxRank));
  }
  if (axis < 0 || axis > rank_) axis_error(axis, rank_ + 1);
  for (int i = rank_; i > axis; --i) dims_[i] = dims_[i - 1];
  dims_[axis] = dim;
  ++rank_;
}

void Shape::erase(int axis) {
  if (axis < 0 || axis >= rank_) axis_error(axis, rank_);
  for (int i = axis; i + 1 < rank_; ++i) dims_[i] = dims_[i + 1];
  dims_[--rank_] = 0;
}

bool Shape::compatible_with(const Shape& other) const {
  if (rank_ != other.rank_) return false;
  for (int i = 0; i < rank_; ++i) {
    const int64_t a = dims_[i], b = other.dims_[i];
    if (a >= 0 && b >= 0 && a != b) return false;
  }
  return true;
}

std::string Shape::str() const {
  std::string s = "[";
  for (int i = 0; i < rank_; ++i) {
    if (i) s += ',';
    s += dims_[i] < 0 ? "?" : std::to_string(dims_[i]);
  }
  return s + "]";
}

int normalize_axis(int64_t axis, int rank, const char* what) {
  if (axis < -rank || axis >= rank) {
    throw errors::InvalidArgument(
        fmt::format("{}: axis {} is out of range; expected an axis in [{}, {}) "
                    "for a tensor of rank {}",
                    what, axis, -rank, rank, rank));
  }
  return static_cast<int>(axis < 0 ? axis + rank : axis);
}

std::string TensorSpec::str() const { return name_of(dtype) + shape.str(); }

}  // namespace berth
