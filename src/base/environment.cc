#include "base/environment.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <vector>

#include "berth/errors.h"

namespace berth {

std::string environment_choice(const char* name,
                               std::initializer_list<const char*> allowed) {
  const std::string value = environment(name);
  if (value.empty()) return *allowed.begin();
  if (std::find(allowed.begin(), allowed.end(), value) != allowed.end()) {
    return value;
  }
  std::vector<std::string> quoted;
  for (const char* a : allowed) quoted.push_back(fmt::format("'{}'", a));
  throw errors::InvalidArgument(
      fmt::format("environment variable {} is '{}'; expected {}", name, value,
                  fmt::join(quoted, " or ")));
}

bool environment_switch(const char* name, bool otherwise) {
  return (otherwise ? environment_choice(name, {"1", "0"})
                    : environment_choice(name, {"0", "1"})) == "1";
}

}  // namespace berth
