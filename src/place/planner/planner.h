// Planner: where everything runs and in which order, and how far from the best
// possible that is at most.
//
// plan_placement() searches with one part of its effort and proves with the
// other; both share the stated time. The answer is never worse, in the model,
// than any candidate of the problem or everything on one device. Pure; uses
// `threads` threads of its own while it runs. docs/planner.md explains the
// certificate to users.

#ifndef BERTH_PLACE_PLANNER_PLANNER_H_
#define BERTH_PLACE_PLANNER_PLANNER_H_

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "place/planner/budget.h"
#include "place/planner/problem.h"

namespace berth {

// What proves a bound, as named arrays: a checker that shares no code with the
// prover reads it from a plan file (docs/formats.md names them per kind).
struct Witness {
  std::string kind;   // "packing", "windows", ...; "": none
  double target = 0;  // no plan has a value below this
  std::vector<std::pair<std::string, std::vector<double>>> arrays;
};

// A lower bound on every plan's value, and how it was proved.
struct Bound {
  double value = 0;
  std::string how;  // "cut-inflated packing, patterns"
  Witness witness;
};

// The plan that a search went on from.
struct SearchStart {
  std::string name;  // "4 stages, reversed"; "": none
  double value = std::numeric_limits<double>::infinity();
};

// What a search found. A plan without devices: nothing.
struct Found {
  PlacePlan plan;
  double value = std::numeric_limits<double>::infinity();
  int64_t moves = 0;  // tried
  SearchStart start;
  bool any() const { return !plan.device.empty(); }
};

// Ops and limits that cannot all be kept: a smallest set, none of which can be
// left out.
struct Infeasible {
  std::vector<int32_t> ops;
  std::vector<int32_t> devices;  // whose limits or kernels are in the way
  std::string text;              // one sentence with names and bytes
  bool any() const { return !text.empty(); }
};

// What a plan does, by the rules of the problem's model.
struct DeviceUse {
  double busy = 0;       // computing; with CopyRules that block also copies
  double copy_busy = 0;  // as destination, beside computing
  double bytes = 0;      // at the peak; resident ones where there are no others
};
struct Evaluation {
  double value = std::numeric_limits<double>::infinity();
  std::vector<DeviceUse> devices;
  // Throughput: how long the links of each `shared` number are busy in a step.
  std::vector<double> shared_busy;
  // Ops on devices that they do not allow, groups apart, limits exceeded:
  // sentences. Empty: the plan is one.
  std::vector<std::string> violations;
  Simulation simulation;  // kStep alone
};

struct PlannerOptions {
  double seconds = 1;  // value and bound together
  int64_t moves = 0;   // more than 0: instead of seconds
  uint64_t seed = 1;
  int threads = 0;  // 0: as many as there are cores, at most 8
  bool prove = true;
};

// What a candidate comes to.
struct PricedCandidate {
  std::string name;
  double value = 0;
  std::vector<std::string> violations;
};

enum class PlanStatus : uint8_t {
  kPlanned,
  kInfeasible,    // proved: no plan keeps all limits
  kNothingFound,  // and nothing proved
};

struct PlanAnswer {
  PlanStatus status = PlanStatus::kNothingFound;
  PlacePlan plan;
  Evaluation evaluation;
  double value = 0;
  std::string source;  // "search", or the name of the candidate that it is
  SearchStart start;   // the best plan that the search began with
  Bound bound;
  std::vector<PricedCandidate> candidates;
  Infeasible conflict;
  double seconds = 0;     // value and bound together
  int64_t moves = 0;      // tried by the search
  bool in_moves = false;  // the effort was stated in them

  // The share by which the search made its start shorter.
  double improved() const {
    return start.value > 0 ? std::max(1 - value / start.value, 0.0) : 0;
  }
  // No plan can be more than this share better; 0: proved best.
  double gap() const { return bound.value > 0 ? value / bound.value - 1 : -1; }
};

// Throws what check_problem() throws.
PlanAnswer plan_placement(PlanProblem problem,
                          const PlannerOptions& options = {});

// Prices a plan of any origin (evaluate.cc). Throws errors::InvalidArgument for
// one that is none: lengths, device numbers, an order that cannot be followed.
Evaluation evaluate(const PlanProblem& problem, const PlacePlan& plan);

// "no plan can be more than 12 % better".
std::string gap_text(double gap);

// One sentence: planned, bound, gap, what the bound covers.
std::string certificate(const PlanProblem& problem, const PlanAnswer& answer);

}  // namespace berth

#endif  // BERTH_PLACE_PLANNER_PLANNER_H_
