#include "device/sim_speeds.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <vector>

#include "base/environment.h"
#include "berth/errors.h"

namespace berth {

namespace {

std::vector<double> parse_speeds(const std::string& text) {
  std::vector<double> speeds;
  for (size_t at = 0; at <= text.size();) {
    const size_t comma = std::min(text.find(',', at), text.size());
    const std::string item = text.substr(at, comma - at);
    char* end = nullptr;
    speeds.push_back(std::strtod(item.c_str(), &end));
    if (item.empty() || *end != '\0' ||
        !(speeds.back() >= 1e-6 && speeds.back() <= 1e6)) {
      throw errors::InvalidArgument(
          fmt::format("environment variable BERTH_SIM_SPEEDS is '{}'; expected "
                      "numbers from 1e-6 to 1e6, for example '4,0.5'",
                      text));
    }
    at = comma + 1;
  }
  return speeds;
}

}  // namespace

double sim_speed(int number) {
  const std::string text = environment("BERTH_SIM_SPEEDS");
  if (text.empty()) return 1;
  const std::vector<double> speeds = parse_speeds(text);
  const auto at = static_cast<size_t>(number);
  return at < speeds.size() ? speeds[at] : 1;
}

}  // namespace berth
