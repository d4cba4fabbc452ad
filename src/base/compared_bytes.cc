#include "base/compared_bytes.h"

#include <fmt/format.h>

#include "base/bytes_text.h"

namespace berth {

std::pair<std::string, std::string> compared_bytes(int64_t a, int64_t b) {
  std::pair texts(bytes_text(a), bytes_text(b));
  if (a != b && texts.first == texts.second) {
    return {fmt::format("{} B", a), fmt::format("{} B", b)};
  }
  return texts;
}

}  // namespace berth
