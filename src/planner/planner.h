// Planner: finds where everything runs and in which order, and a bound on how
// much better any plan can be.
//
// plan_placement() searches with one part of its effort and proves with the
// other; both share the stated time. The answer is never worse, in the model,
// than any candidate of the problem or everything on one device. Pure; starts
// `threads` threads while it runs. docs/planner.md explains the certificate to
// users.

#ifndef BERTH_PLANNER_PLANNER_H_
#define BERTH_PLANNER_PLANNER_H_

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/infinity.h"
#include "planner/budget.h"
#include "planner/problem.h"

namespace berth {

// The proof of a bound as named arrays: a checker that shares no code with the
// prover reads it from a plan file (docs/formats.md names them per kind).
struct Witness {
  std::string kind;   // "packing", "path", "search"; "": none
  double target = 0;  // no plan has a value below this
  std::vector<std::pair<std::string, std::vector<double>>> arrays;
};

// A lower bound on every plan's value, and how it was proved.
struct Bound {
  double value = 0;
  std::string how;  // "cut-inflated packing, patterns"
  Witness witness;
};

// Ops and limits that cannot all be kept: a small set.
struct Infeasible {
  std::vector<int32_t> ops;
  std::vector<int32_t> devices;  // whose limits or kernels prevent it
  std::string text;              // one sentence with names and bytes
  bool any() const { return !text.empty(); }
};

// The result of a plan, by the rules of the problem's model.
struct DeviceUse {
  double busy = 0;       // computing, and blocking copies by CopyRule
  double copy_busy = 0;  // as destination, besides computing
  double bytes = 0;      // at the peak; else resident ones
  // kPipeline, of these bytes: weights with all their versions; sums of
  // gradients.
  double weights = 0, gradients = 0;
};
// kPipeline: a stage, and when its parts run.
struct StageUse {
  int32_t device = -1;
  double forward = 0, backward = 0;  // time per micro-batch
  int32_t in_flight = 0;             // most micro-batches between the two
};
struct TaskTime {
  int32_t stage = 0, micro_batch = 0;
  bool backward = false;
  double start = 0, end = 0;
};
struct Evaluation {
  double value = kInfinity;
  std::vector<DeviceUse> devices;
  // Throughput: how long the links of each `shared` number are busy in a step.
  std::vector<double> shared_busy;
  // Ops on devices that they do not allow, split groups, exceeded limits:
  // sentences. Empty: the plan is valid.
  std::vector<std::string> violations;
  Simulation simulation;         // kStep only
  std::vector<StageUse> stages;  // kPipeline only, like the tasks
  std::vector<TaskTime> tasks;
};

// The plan that a search started from.
struct SearchStart {
  std::string name;  // "4 stages, reversed"; "": none
  double value = kInfinity;
};

// The result of a search. A plan without devices: nothing found.
struct Found {
  PlacePlan plan;
  double value = kInfinity;
  int64_t moves = 0;  // tried
  SearchStart start;
  std::optional<Evaluation> evaluation;  // of the plan, if it was needed
  bool any() const { return !plan.device.empty(); }
};

struct PlannerOptions {
  double seconds = 1;  // for value and bound; more never give a worse plan
  // Above 0: replaces seconds. From 500 on, twice as many (or 4, 8, ... times)
  // never do either.
  int64_t moves = 0;
  uint64_t seed = 1;
  int threads = 0;  // 0: one per core, at most 8
  bool prove = true;
};

// The value of a candidate.
struct PricedCandidate {
  std::string name;
  double value = 0;
  std::vector<std::string> violations;
};

enum class PlanStatus : uint8_t {
  kPlanned,
  kInfeasible,    // proved: no plan keeps all limits
  kNothingFound,  // nor anything proved
};

struct PlanAnswer {
  PlanStatus status = PlanStatus::kNothingFound;
  PlacePlan plan;
  Evaluation evaluation;
  double value = 0;
  std::string source;  // "search", or the candidate's name
  SearchStart start;   // the best plan that the search began with
  Bound bound;
  std::vector<PricedCandidate> candidates;
  Infeasible conflict;
  double seconds = 0;     // value and bound together
  int64_t moves = 0;      // tried by the search
  bool in_moves = false;  // the effort was stated in moves

  // The share by which the search improved its start.
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
// an invalid plan: lengths, device numbers, an infeasible order.
Evaluation evaluate(const PlanProblem& problem, const PlacePlan& plan);

// "no plan can be more than 12 % better".
std::string gap_text(double gap);

// The share of a pipeline's time in which its devices with stages are idle.
double bubble_of(const PlanAnswer& answer);

// One sentence: value, bound, gap, what the bound covers.
std::string certificate(const PlanProblem& problem, const PlanAnswer& answer);

}  // namespace berth

#endif  // BERTH_PLANNER_PLANNER_H_
