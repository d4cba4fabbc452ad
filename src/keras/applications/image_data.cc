// Images and labels of a data set as tensors.

#include "keras/applications/image_data.h"

#include <memory>
#include <utility>

namespace berth::keras::datasets {

Tensor tensor_of(std::vector<uint8_t> bytes, const Shape& shape) {
  auto owner = std::make_shared<std::vector<uint8_t>>(std::move(bytes));
  return wrap_memory(owner->data(), shape, uint8, [owner] {});
}

}  // namespace berth::keras::datasets
