// Tests of gradients where dimensions are unknown, as in a trace.

#ifndef BERTH_OPS_UNKNOWN_DIMS_TESTING_H_
#define BERTH_OPS_UNKNOWN_DIMS_TESTING_H_

#include <functional>
#include <vector>

#include "ops/testing.h"

namespace berth::test {

struct UnknownCase {
  const char* name;
  std::vector<Shape> in;
  std::function<Tensor(const Tensors&)> fn;
};

// Expects gradients of both orders to have the shapes of the inputs, whatever
// is unknown.
void expect_gradient_shapes(const UnknownCase& k);

}  // namespace berth::test

#endif  // BERTH_OPS_UNKNOWN_DIMS_TESTING_H_
