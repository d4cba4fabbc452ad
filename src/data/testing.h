// What the tests of this module share.

#ifndef BERTH_DATA_TESTING_H_
#define BERTH_DATA_TESTING_H_

#include <numeric>
#include <string>
#include <vector>

#include "base/errors_testing.h"
#include "berth/data.h"
#include "berth/ops/array.h"

namespace berth::data {

using Numbers = std::vector<int64_t>;

// Returns the numbers of component 0 of all elements, one after the other.
inline Numbers numbers(const Dataset& dataset) {
  Numbers all;
  for (const Tensors& element : dataset) {
    const Numbers part = element[0].to_vector<int64_t>();
    all.insert(all.end(), part.begin(), part.end());
  }
  return all;
}

// Returns start, start + 1, ... , n of them.
inline Numbers counting(int64_t n, int64_t start = 0) {
  Numbers all(static_cast<size_t>(n));
  std::iota(all.begin(), all.end(), start);
  return all;
}

// Returns start, start + 1, ... as a tensor.
inline Tensor iota(const Shape& shape, int64_t start = 0) {
  return constant(counting(shape.num_elements(), start), shape);
}

inline Tensor float_zeros(const Shape& shape) {
  return constant(std::vector<float>(static_cast<size_t>(shape.num_elements())),
                  shape);
}

// The elements from a dataset that is not indexed: transforms after it work on
// elements, not on row numbers.
inline Dataset unindexed(const Dataset& dataset) {
  return dataset.map([](const Tensors& element) { return element; });
}

inline bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace berth::data

#endif  // BERTH_DATA_TESTING_H_
