// What the data sets of images share. Internal to the module; pure.

#ifndef BERTH_KERAS_APPLICATIONS_IMAGE_DATA_H_
#define BERTH_KERAS_APPLICATIONS_IMAGE_DATA_H_

#include <cstdint>
#include <vector>

#include "berth/tensor.h"

namespace berth::keras::datasets {

// Series of drawn images: test images are others than training images.
inline constexpr uint64_t kTrainSeries = 1;
inline constexpr uint64_t kTestSeries = 2;

// Returns a uint8 tensor that owns `bytes`.
Tensor tensor_of(std::vector<uint8_t> bytes, const Shape& shape);

}  // namespace berth::keras::datasets

#endif  // BERTH_KERAS_APPLICATIONS_IMAGE_DATA_H_
