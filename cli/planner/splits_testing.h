// Splits as text, for tests of their reader.

#ifndef BERTH_CLI_PLANNER_SPLITS_TESTING_H_
#define BERTH_CLI_PLANNER_SPLITS_TESTING_H_

#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "planner/problem.h"

namespace berth {

// Writes a plan of a problem with ids as a split.
inline std::string split_text(const PlanProblem& p, const PlacePlan& plan) {
  nlohmann::json json = {{"cpus", nlohmann::json::array()},
                         {"fpgas", nlohmann::json::array()}};
  for (int32_t d = 0; d < p.num_devices(); ++d) {
    nlohmann::json nodes = nlohmann::json::array();
    for (size_t i = 0; i < plan.device.size(); ++i) {
      if (plan.device[i] == d) nodes.push_back(p.ids[i]);
    }
    const char* kind = p.free_of_touch[d] ? "cpus" : "fpgas";
    json[kind].push_back({{"nodes", std::move(nodes)}});
  }
  return json.dump(1) + "\n";
}

}  // namespace berth

#endif  // BERTH_CLI_PLANNER_SPLITS_TESTING_H_
