#include "base/pretended_cores.h"

#include <fmt/format.h>

#include <atomic>
#include <string>
#include <utility>

#include "base/environment.h"
#include "berth/errors.h"

namespace berth {

namespace {

// Sets are never freed: threads that end late read them.
const CoreSet* cores_of_environment() {
  const std::string text = environment("BERTH_CORES");
  if (text.empty()) return nullptr;
  try {
    return new CoreSet(CoreSet::parse(text));
  } catch (const errors::InvalidArgument& e) {
    throw errors::InvalidArgument(
        fmt::format("environment variable BERTH_CORES: {}", e.what()));
  }
}

std::atomic<const CoreSet*>& pretended() {
  static std::atomic<const CoreSet*> cores = cores_of_environment();
  return cores;
}

}  // namespace

const CoreSet* pretended_cores() { return pretended(); }

void pretend_cores(CoreSet cores) {
  pretended() = new CoreSet(std::move(cores));
}

}  // namespace berth
