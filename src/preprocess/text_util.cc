#include "preprocess/text_util.h"

#include <fmt/format.h>

#include <cstring>

#include "berth/errors.h"
#include "data/row_source.h"
#include "tensor/tensor_impl.h"
#include "tensor/text_block.h"

namespace berth::strings {

Tensor TextMaker::tensor(const Shape& shape) const {
  return make_texts(starts_, text_, shape);
}

Tensor int64_vector(const std::vector<int64_t>& values) {
  Tensor t =
      data::make_batch(int64, Shape{static_cast<int64_t>(values.size())});
  if (!values.empty()) {
    std::memcpy(t.impl()->data(), values.data(), 8 * values.size());
  }
  return t;
}

size_t code_point(std::string_view text, bool* valid) {
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
  const uint8_t first = byte(0);
  const size_t n = first < 0x80    ? 1
                   : first >= 0xf8 ? 0
                   : first >= 0xf0 ? 4
                   : first >= 0xe0 ? 3
                   : first >= 0xc2 ? 2
                                   : 0;
  *valid = n > 0 && n <= text.size();
  for (size_t i = 1; *valid && i < n; ++i) *valid = (byte(i) & 0xc0) == 0x80;
  if (*valid && n > 2) {
    // Longer than needed, surrogates, beyond U+10FFFF.
    const uint8_t second = byte(1);
    *valid = !(first == 0xe0 && second < 0xa0) &&
             !(first == 0xed && second >= 0xa0) &&
             !(first == 0xf0 && second < 0x90) &&
             !(first == 0xf4 && second >= 0x90) && first <= 0xf4;
  }
  return *valid ? n : 1;
}

bool counts_code_points(const std::string& unit) {
  if (unit == "BYTE") return false;
  if (unit == "UTF8_CHAR") return true;
  throw errors::InvalidArgument(
      fmt::format("unit is \"{}\"; expected BYTE or UTF8_CHAR", unit));
}

}  // namespace berth::strings
