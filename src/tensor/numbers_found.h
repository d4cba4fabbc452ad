// NumbersFound: what is among the numbers of a value. A value.

#ifndef BERTH_TENSOR_NUMBERS_FOUND_H_
#define BERTH_TENSOR_NUMBERS_FOUND_H_

#include <cmath>
#include <cstddef>
#include <string>

#include "berth/dtype.h"

namespace berth {

struct NumbersFound {
  size_t count = 0, nans = 0, infinities = 0, negative_infinities = 0;
  size_t negatives = 0, zeros = 0, positives = 0;  // finite
  double least = INFINITY, most = -INFINITY;       // finite

  // Adds values that lie one after the other on the host; those of types
  // without fractions are only counted.
  void add(const void* data, size_t values, DType dtype);
  bool bad() const { return nans + infinities > 0; }
  std::string found() const;  // "2 NaN and 1 Inf"
  std::string range() const;  // "-1 to 2 and 1 Inf"
};

}  // namespace berth

#endif  // BERTH_TENSOR_NUMBERS_FOUND_H_
