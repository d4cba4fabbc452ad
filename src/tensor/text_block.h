// Tensors of text that was collected in one piece. Thread-safe.

#ifndef BERTH_TENSOR_TEXT_BLOCK_H_
#define BERTH_TENSOR_TEXT_BLOCK_H_

#include <cstdint>
#include <span>
#include <string_view>

#include "berth/tensor.h"

namespace berth {

// Returns a host tensor [shape] of dtype string_: value i begins at byte
// starts[i] of `text` and ends where the next begins, the last at its end.
Tensor make_texts(std::span<const uint64_t> starts, std::string_view text,
                  const Shape& shape);

}  // namespace berth

#endif  // BERTH_TENSOR_TEXT_BLOCK_H_
