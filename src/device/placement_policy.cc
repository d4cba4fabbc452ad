#include "berth/placement_policy.h"

#include <fmt/format.h>

#include <atomic>
#include <cmath>
#include <mutex>

#include "base/immortal.h"
#include "berth/config.h"
#include "berth/errors.h"
#include "device/placement_policy.h"

namespace berth {

namespace placement {

Effort seconds(double seconds) {
  if (!(seconds > 0) || std::isinf(seconds)) {
    throw errors::InvalidArgument(fmt::format(
        "placement::seconds({}): expected a positive number of seconds",
        seconds));
  }
  return {.seconds = seconds};
}

Effort moves(int64_t moves) {
  if (moves <= 0) {
    throw errors::InvalidArgument(fmt::format(
        "placement::moves({}): expected a positive number of moves", moves));
  }
  return {.moves = moves};
}

Policy::Policy(const std::string& name) {
  if (name == "auto") {
    kind_ = Kind::kAuto;
  } else if (name == "rules") {
    kind_ = Kind::kRules;
  } else if (name == "fit") {
    kind_ = Kind::kFit;
  } else if (!name.empty()) {
    throw errors::InvalidArgument(fmt::format(
        "there is no placement policy \"{}\"; expected \"auto\", \"rules\", "
        "\"fit\" or a placement::Auto",
        name));
  }
}

std::string Policy::str() const {
  switch (kind_) {
    case Kind::kNone:
      return "";
    case Kind::kRules:
      return "rules";
    case Kind::kAuto:
      return "auto";
    case Kind::kFit:
      return "fit";
  }
  return "";
}

}  // namespace placement

namespace {

std::mutex policy_mutex;
placement::Policy& the_policy() {
  static auto& policy = immortal<placement::Policy>("rules");
  return policy;
}
std::atomic<uint64_t> generation{1};

}  // namespace

uint64_t placement_policy_generation() {
  return generation.load(std::memory_order_acquire);
}

namespace config {

void set_placement_policy(const placement::Policy& policy) {
  const std::lock_guard lock(policy_mutex);
  const placement::Policy given = policy.empty() ? "rules" : policy;
  if (the_policy() == given) return;
  the_policy() = given;
  generation.fetch_add(1, std::memory_order_release);
}

placement::Policy placement_policy() {
  const std::lock_guard lock(policy_mutex);
  return the_policy();
}

std::string get_placement_policy() { return placement_policy().str(); }

}  // namespace config

}  // namespace berth
