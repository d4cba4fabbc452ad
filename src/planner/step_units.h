// StepUnits: the decisions in a search for the shortest step.
//
// A unit is a group, with the nodes that cost nothing beside it: aliases of its
// values, sources that only it reads. The order of a sequence is given between
// ops that take time, seen through nodes that take none. Made once per problem,
// which must outlive it; then read-only.

#ifndef BERTH_PLANNER_STEP_UNITS_H_
#define BERTH_PLANNER_STEP_UNITS_H_

#include <cstdint>
#include <vector>

#include "planner/problem.h"

namespace berth {

class StepUnits {
 public:
  explicit StepUnits(const PlanProblem& problem);

  const PlanProblem& problem;

  // Per node.
  std::vector<int32_t> unit;
  std::vector<int32_t> order;  // all nodes, none before what it waits for

  // Per unit.
  int32_t num_units = 0;
  std::vector<DeviceSet> allowed;  // none: no plan exists
  Rows<int32_t> nodes;
  Rows<int32_t> ops;  // those that take time
  // Bytes that a unit holds on its device from beginning to end: residents;
  // these with variables and arguments.
  std::vector<double> resident_bytes, held_bytes;
  Rows<int32_t> neighbours;  // units connected to it by a value

  // Per node: ops that take time and come before or after it, with nothing that
  // takes time between.
  Rows<int32_t> before, after;
  int32_t num_ops = 0;  // that take time

  // False: no sequence can be changed quickly, because nodes that take no time
  // tie too many ops together; `before` and `after` are empty then.
  bool ordered = true;
  // A plan may break a memory limit.
  bool limited = false;

  // True when a plan has a sequence of exactly the ops that take time, and all
  // of each unit on one device that it allows.
  bool keeps(const PlacePlan& plan) const;

  // The device, or the first one that the unit allows.
  int32_t near(int32_t unit, int32_t device) const {
    const DeviceSet& mask = allowed[unit];
    return mask.has(device) || !mask ? device : mask.first();
  }
  // Gives units without a device (-1), those without ops, that of a neighbour,
  // else the one near `otherwise`.
  void place_rest(std::vector<int32_t>& device, int32_t otherwise) const;

 private:
  void join_nodes();
  void collect_units();
  void collect_neighbours();
  void collect_ops_around();
  void look_at_limits();
};

// The time to send a value from one device to another.
inline double copy_time(const PlanProblem& p, int32_t from, int32_t to,
                        int64_t bytes) {
  const double us = p.costs.link(from, to).time_us(bytes);
  return us > 0 ? us : 0;
}

}  // namespace berth

#endif  // BERTH_PLANNER_STEP_UNITS_H_
