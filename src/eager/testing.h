// What the tests of this module share. Tests only.

#ifndef BERTH_EAGER_TESTING_H_
#define BERTH_EAGER_TESTING_H_

#include <vector>

#include "berth/berth.h"

namespace berth {

using Floats = std::vector<float>;

inline Tensor values_on(const char* where, const Floats& v) {
  const auto on = device(where);
  return constant(v, {static_cast<int64_t>(v.size())});
}

}  // namespace berth

#endif  // BERTH_EAGER_TESTING_H_
