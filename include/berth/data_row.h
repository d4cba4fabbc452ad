// Rows: one element of a dataset as plain memory, for functions in plain C++.
//
// Dataset::map_rows() calls a function with the bytes of one element and space
// for its output components. Views: valid during the call only. One thread;
// several threads may call the function at once.

#ifndef BERTH_DATA_ROW_H_
#define BERTH_DATA_ROW_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

#include "berth/dtype.h"
#include "berth/tensor.h"

namespace berth::data {

// The components of the input element.
class RowIn {
 public:
  RowIn(std::span<const TensorSpec> specs, std::span<const std::byte* const> at)
      : specs_(specs), at_(at) {}
  size_t size() const { return at_.size(); }
  // Throw errors::InvalidArgument if there is no such component, or its dtype
  // is not T.
  const TensorSpec& spec(size_t component) const {
    check(component, specs_, nullptr);
    return specs_[component];
  }
  template <class T>
  std::span<const T> get(size_t component) const {
    const DType dtype = dtype_of<T>;
    const size_t n = check(component, specs_, &dtype);
    return {reinterpret_cast<const T*>(at_[component]), n};
  }

 private:
  friend class RowOut;
  // Returns the number of values.
  static size_t check(size_t component, std::span<const TensorSpec> specs,
                      const DType* dtype) {
    if (component < specs.size() &&
        (dtype == nullptr || specs[component].dtype == *dtype)) {
      return static_cast<size_t>(specs[component].shape.num_elements());
    }
    raise(component, specs, dtype);
  }
  [[noreturn]] static void raise(size_t component,
                                 std::span<const TensorSpec> specs,
                                 const DType* dtype);
  std::span<const TensorSpec> specs_;
  std::span<const std::byte* const> at_;
};

// The components of the output element; initially uninitialised.
class RowOut {
 public:
  RowOut(std::span<const TensorSpec> specs, std::span<std::byte* const> at)
      : specs_(specs), at_(at) {}
  size_t size() const { return at_.size(); }
  template <class T>
  std::span<T> get(size_t component) const {
    const DType dtype = dtype_of<T>;
    const size_t n = RowIn::check(component, specs_, &dtype);
    return {reinterpret_cast<T*>(at_[component]), n};
  }

 private:
  std::span<const TensorSpec> specs_;
  std::span<std::byte* const> at_;
};

// Random numbers of one element: they depend on the seed, the number of the
// iteration and that of the element, not on the thread.
class RowRandom {
 public:
  RowRandom(uint64_t seed, uint64_t number) : seed_(seed), number_(number) {}
  // Returns a uniform number in [0, n); n is at least 1.
  uint64_t below(uint64_t n);
  // Returns a number in [low, high).
  float uniform(float low = 0, float high = 1);
  float normal(float mean = 0, float stddev = 1);

 private:
  uint32_t word();
  uint64_t seed_, number_, at_ = 0;
  uint32_t block_[4] = {};
};

using RowFunction =
    std::function<void(const RowIn& in, RowOut& out, RowRandom& random)>;

}  // namespace berth::data

#endif  // BERTH_DATA_ROW_H_
