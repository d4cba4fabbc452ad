// StepWindow: a part of a long plan as a separate problem.
//
// Some hundred consecutive ops of a sequence, with everything else unchanged:
// it tells when devices and values are ready for them, and how late they may
// end without making the step longer. Ops that stand for the rest are on extra
// devices. The window's step is the whole plan's, less what was over before it,
// except for what is not visible from inside (copies that wait for each other);
// so a trial of the whole plan decides. Values; pure.

#ifndef BERTH_PLACE_PLANNER_WINDOW_STEPS_H_
#define BERTH_PLACE_PLANNER_WINDOW_STEPS_H_

#include <cstdint>
#include <vector>

#include "place/decode.h"
#include "place/planner/step_units.h"

namespace berth {

struct StepWindow {
  PlanProblem problem;
  PlacePlan plan;  // its part of the plan
  // Positions of its ops: from `begin` in the whole plan, from `first` in its
  // own, where all others must stay.
  int32_t begin = 0, end = 0, first = 0;
  double span_us = 0;  // from the first start to the last end of its ops

  int32_t last() const { return first + end - begin; }
};

// Whether plans of this problem can have windows: no aliases, at most 21
// devices, no limits that plans could break.
bool has_windows(const StepUnits& units);

// Returns, per op, how late it may start in the order of the plan that `kept`
// keeps without making the step longer, by times of ops and copies alone.
std::vector<double> latest_starts(const StepUnits& units, const Decoder& kept,
                                  const PlacePlan& plan);

// Returns the window of positions `begin` to `end` - 1 of the plan that `kept`
// keeps; `latest` is the result of latest_starts() for it.
StepWindow cut_window(const StepUnits& units, const Decoder& kept,
                      const PlacePlan& plan, const std::vector<double>& latest,
                      int32_t begin, int32_t end);

// Writes a plan of the window back into the whole plan.
void put_back(const StepUnits& units, const StepWindow& window,
              const PlacePlan& part, PlacePlan& whole);

}  // namespace berth

#endif  // BERTH_PLACE_PLANNER_WINDOW_STEPS_H_
