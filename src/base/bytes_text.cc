#include "base/bytes_text.h"

#include <fmt/format.h>

#include <cmath>

namespace berth {

std::string bytes_text(int64_t bytes) {
  constexpr const char* kUnits[] = {"KiB", "MiB", "GiB", "TiB"};
  if (bytes > -1024 && bytes < 1024) {
    return fmt::format("{} B", bytes);
  }
  double value = static_cast<double>(bytes) / 1024;
  int unit = 0;
  while (std::abs(value) >= 1023.95 && unit < 3) {
    value /= 1024;
    ++unit;
  }
  return fmt::format("{:g} {}", std::round(value * 10) / 10, kUnits[unit]);
}

}  // namespace berth
