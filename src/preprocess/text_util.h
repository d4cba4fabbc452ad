// What the functions of berth/strings.h share: texts in, texts out. Pure.

#ifndef BERTH_PREPROCESS_TEXT_UTIL_H_
#define BERTH_PREPROCESS_TEXT_UTIL_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "berth/tensor.h"

namespace berth::strings {

// Collects texts for one tensor.
class TextMaker {
 public:
  void add(std::string_view text) {
    starts_.push_back(text_.size());
    text_.append(text);
  }
  int64_t count() const { return static_cast<int64_t>(starts_.size()); }
  Tensor tensor(const Shape& shape) const;

 private:
  std::vector<uint64_t> starts_;
  std::string text_;
};

// int64 numbers [n].
Tensor int64_vector(const std::vector<int64_t>& values);

// Bytes of the code point that `text`, not empty, begins with: 1 to 4, and
// whether they are one.
size_t code_point(std::string_view text, bool* valid);

// Whether `unit` is UTF8_CHAR; throws unless it is that or BYTE.
bool counts_code_points(const std::string& unit);

}  // namespace berth::strings

#endif  // BERTH_PREPROCESS_TEXT_UTIL_H_
