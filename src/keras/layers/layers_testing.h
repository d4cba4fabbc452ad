// What the tests of layers share.

#ifndef BERTH_KERAS_LAYERS_LAYERS_TESTING_H_
#define BERTH_KERAS_LAYERS_LAYERS_TESTING_H_

#include <gtest/gtest.h>

#include <vector>

#include "berth/tensor.h"

namespace berth::keras {

using Floats = std::vector<float>;

inline void expect_near(const Tensor& got, const Floats& want,
                        double tolerance) {
  const Floats values = got.to_vector<float>();
  ASSERT_EQ(values.size(), want.size());
  for (size_t i = 0; i < want.size(); ++i) {
    EXPECT_NEAR(values[i], want[i], tolerance) << "element " << i;
  }
}

}  // namespace berth::keras

#endif  // BERTH_KERAS_LAYERS_LAYERS_TESTING_H_
