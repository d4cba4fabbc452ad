// decode_raw.

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "berth/io.h"
#include "data/row_source.h"
#include "io/text_input.h"
#include "tensor/tensor_impl.h"

namespace berth::io {
namespace {

void swap_units(std::byte* p, size_t bytes, size_t unit) {
  for (size_t at = 0; at + unit <= bytes; at += unit) {
    std::reverse(p + at, p + at + unit);
  }
}

}  // namespace

Tensor decode_raw(const Tensor& input_bytes, DType out_type, bool little_endian,
                  Site site) {
  const auto texts = texts_of(input_bytes, "decode_raw", site);
  return named_call("decode_raw", site, [&] {
    const size_t unit = size_of(out_type);
    if (unit == 0) {
      throw errors::InvalidArgument(
          fmt::format("out_type is {}; expected one that holds numbers",
                      name_of(out_type)));
    }
    const size_t bytes = texts.empty() ? 0 : texts[0].size();
    for (size_t i = 0; i < texts.size(); ++i) {
      if (texts[i].size() == bytes && bytes % unit == 0) continue;
      throw errors::InvalidArgument(fmt::format(
          "string {} has {} bytes, the first {}; expected as many, a multiple "
          "of {} for {}",
          i, texts[i].size(), bytes, unit, name_of(out_type)));
    }
    Shape shape = input_bytes.shape();
    shape.insert(shape.rank(), static_cast<int64_t>(bytes / unit));
    Tensor t = data::make_batch(out_type, shape);
    std::byte* to = t.impl()->data();
    for (const std::string_view s : texts) {
      if (bytes > 0) std::memcpy(to, s.data(), bytes);
      to += bytes;
    }
    if (out_type == bool_) {  // other values than 0 and 1 are none
      auto* b = reinterpret_cast<uint8_t*>(t.impl()->data());
      for (size_t i = 0; i < texts.size() * bytes; ++i) b[i] = b[i] != 0;
    }
    const size_t number = is_complex(out_type) ? unit / 2 : unit;
    if (!little_endian) {
      swap_units(t.impl()->data(), texts.size() * bytes, number);
    }
    return t;
  });
}

}  // namespace berth::io
