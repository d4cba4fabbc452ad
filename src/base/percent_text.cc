#include "base/percent_text.h"

#include <fmt/format.h>

#include <cmath>

namespace berth {

std::string percent_text(double share) {
  const double percent = 100 * share;
  if (percent > 1000) return "more than 1000 %";
  return std::abs(percent) < 9.95 ? fmt::format("{:.1f} %", percent)
                                  : fmt::format("{:.0f} %", percent);
}

}  // namespace berth
