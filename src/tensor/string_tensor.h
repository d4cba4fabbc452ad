// Tensors of text: on the host alone, immutable.
//
// The block holds num_elements + 1 ascending offsets (uint64_t) and after
// them the bytes; string i lies between offsets i and i + 1, counted from the
// end of the table. An element has no size of its own: size_of(string_) is 0,
// make_tensor refuses the dtype, and a copy to another memory is an error, so
// that nothing moves part of such a block. Aliases name the whole of it.
// Thread-safe.

#ifndef BERTH_TENSOR_STRING_TENSOR_H_
#define BERTH_TENSOR_STRING_TENSOR_H_

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "berth/tensor.h"

namespace berth {

class Device;

// Returns a host tensor [shape] of dtype string_ of as many values.
Tensor make_strings(std::span<const std::string> values, const Shape& shape);

// Returns string i of the n whose block begins at `data`.
inline std::string_view string_at(const void* data, int64_t n, int64_t i) {
  const auto* offsets = static_cast<const uint64_t*>(data);
  const auto* bytes = reinterpret_cast<const char*>(offsets + n + 1);
  return {bytes + offsets[i], offsets[i + 1] - offsets[i]};
}

// Returns the values of a tensor of dtype string_ in row-major order.
std::vector<std::string> strings_of(const Tensor& t);

// Throws errors::InvalidArgument unless `device` computes in host memory.
void check_holds_strings(const Device& device);

}  // namespace berth

#endif  // BERTH_TENSOR_STRING_TENSOR_H_
