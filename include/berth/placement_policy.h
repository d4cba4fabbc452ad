// Placement policies: how the ops of a traced function are placed.
//
//   berth::function(step, {.placement = placement::Auto{}});
//   config::set_placement_policy("auto");
//   model.compile({.placement = "auto"});
//
// docs/planner.md describes what "auto" does and proves. Values.

#ifndef BERTH_PLACEMENT_POLICY_H_
#define BERTH_PLACEMENT_POLICY_H_

#include <cstdint>
#include <string>

namespace berth::placement {

// What a plan minimises: the time of one step, or the load of the busiest
// device, which bounds the rate of steps.
enum class Objective : uint8_t { kLatency, kThroughput };
inline constexpr Objective Latency = Objective::kLatency;
inline constexpr Objective Throughput = Objective::kThroughput;

// How long to search for a plan. A number of moves gives the same plan on every
// machine and any number of threads; seconds do not.
struct Effort {
  double seconds = 0;  // of search and proof together; 0: counted in moves
  int64_t moves = 0;   // 0: a number that suits the graph
  bool operator==(const Effort&) const = default;
};
// Throw errors::InvalidArgument unless the number is positive and finite.
Effort seconds(double seconds);
Effort moves(int64_t moves);

// The planner decides, by the costs of ops and links, within what kernels,
// colocation, memory limits and contracts allow. In its model a plan is never
// worse than one device, TensorFlow's rules or the scopes as written.
struct Auto {
  Objective objective = Latency;
  Effort effort = {};
  // Requests of scopes are binding; false: they are suggestions.
  bool keep_scopes = true;
  // Measures ops without measurements, for a second or two; results are kept.
  // false: uses estimates.
  bool measure = true;
  uint64_t seed = 1;
  bool operator==(const Auto&) const = default;
};

// Rules (docs/placement.md), the planner, or "fit": rules, and a step that does
// not fit the memory limit of a device computes values again instead of keeping
// them for its gradients, or has variables on the host. Empty: the policy of
// config::set_placement_policy(), initially rules.
class Policy {
 public:
  Policy() = default;
  Policy(Auto plan) : kind_(Kind::kAuto), plan_(plan) {}  // NOLINT
  // "auto", "rules", "fit" or ""; others throw errors::InvalidArgument.
  Policy(const std::string& name);                         // NOLINT
  Policy(const char* name) : Policy(std::string(name)) {}  // NOLINT

  bool empty() const { return kind_ == Kind::kNone; }
  bool is_auto() const { return kind_ == Kind::kAuto; }
  bool is_fit() const { return kind_ == Kind::kFit; }
  const Auto& plan() const { return plan_; }
  std::string str() const;  // as given: "auto", "rules", "fit" or ""
  bool operator==(const Policy&) const = default;

 private:
  enum class Kind : uint8_t { kNone, kRules, kAuto, kFit };
  Kind kind_ = Kind::kNone;
  Auto plan_;
};

}  // namespace berth::placement

#endif  // BERTH_PLACEMENT_POLICY_H_
