// StepWindow: a part of a long plan as a problem of its own.
//
// Some hundred ops that stand one behind the other in a sequence, with all else
// as it is: when devices and values are there for them, and how late they may
// end without making the step longer. Ops that stand for the rest are on
// devices of their own: the window's step is the whole plan's, less what was
// over before it, but for what cannot be seen from inside (copies that wait for
// each other). So a trial of the whole plan decides. Values; pure.

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
  // Positions of its ops: from `begin` in the plan that it is of, from `first`
  // in its own, where all others must stay.
  int32_t begin = 0, end = 0, first = 0;
  double span_us = 0;  // from the first start to the last end of its ops

  int32_t last() const { return first + end - begin; }
};

// Whether windows can be cut out of plans of this problem: no aliases, at most
// 21 devices, no limits that plans could break.
bool has_windows(const StepUnits& units);

// Returns, per op, how late it may start in the order of the plan that `kept`
// keeps, by times of ops and copies alone, for a step that is no longer.
std::vector<double> latest_starts(const StepUnits& units, const Decoder& kept,
                                  const PlacePlan& plan);

// Returns the window of positions `begin` to `end` - 1 of the plan that `kept`
// keeps; `latest` is what latest_starts() returned for it.
StepWindow cut_window(const StepUnits& units, const Decoder& kept,
                      const PlacePlan& plan, const std::vector<double>& latest,
                      int32_t begin, int32_t end);

// Writes a plan of the window into the plan that it was cut from.
void put_back(const StepUnits& units, const StepWindow& window,
              const PlacePlan& part, PlacePlan& whole);

}  // namespace berth

#endif  // BERTH_PLACE_PLANNER_WINDOW_STEPS_H_
