// ListScheduler: a plan in one pass, op by op.
//
// Takes the next op by its rank, puts it where it ends earliest, and continues:
// good plans in milliseconds, or starts for a search of seconds. The first op
// of a unit places the unit. Arrays grow once; one per thread.

#ifndef BERTH_PLANNER_LIST_SCHEDULE_H_
#define BERTH_PLANNER_LIST_SCHEDULE_H_

#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

#include "planner/budget.h"
#include "planner/step_units.h"
#include "simulate/copy_route.h"

namespace berth {

struct ListRule {
  enum class Next : uint8_t {
    kPath,   // the longest path after it
    kReady,  // the op that could start first
  };
  Next next = Next::kPath;
  double copies = 1;    // weight of copy times in paths
  double stay = 0;      // extra weight of copies over their time
  int32_t devices = 0;  // only this many fastest, if allowed; 0: all
  double noise = 0;     // paths are scaled by 1 - noise to 1 + noise
};

// The rules to begin with, the best guess first.
const std::vector<ListRule>& list_rules();
// "list scheduling by path, on 4 devices".
std::string name_of(const ListRule& rule);

class ListScheduler {
 public:
  explicit ListScheduler(const StepUnits& units);

  // Returns a plan that keeps masks and groups, and does not look at limits;
  // the next call overwrites it. Each unit must allow some device.
  const PlacePlan& run(const ListRule& rule, StreamRandom& random);

 private:
  struct Arrival {
    double at;
    int32_t device, next;
  };
  struct Slot {
    double start, end;
  };
  struct Waiting {
    double first, second;
    int32_t node;
    bool operator<(const Waiting& o) const {
      return std::tuple(first, second, o.node) <
             std::tuple(o.first, o.second, node);
    }
  };

  void find_middling_costs();
  void find_middling_work();
  void reset();
  void find_ranks(StreamRandom& random);
  void enqueue(int32_t node);
  void wake_behind(int32_t node);
  void settle(int32_t node);
  void place(int32_t op);
  int32_t choose(int32_t op);
  Slot slot_on(int32_t op, int32_t device, bool commit);
  double copy_in(int32_t op, int32_t device, bool commit);
  double arrival(int32_t value, int32_t device) const;
  void finish_plan();

  const StepUnits& units_;
  const PlanProblem& p_;
  const SimulatedGraph& g_;
  const ListRule* rule_ = nullptr;
  std::vector<double> work_us_;   // per node, on an average device
  std::vector<double> copy_us_;   // per value, over an average link
  std::vector<int32_t> fastest_;  // devices
  DeviceSet among_;               // those that the rule allows
  PlacePlan plan_;
  double copies_us_ = 0;  // as seen by slot_on()

  std::vector<double> rank_;             // per node
  std::vector<double> start_, end_;      // per node
  std::vector<int32_t> missing_;         // per node
  std::vector<int32_t> device_of_unit_;  // -1: not yet
  std::vector<int32_t> first_arrival_;   // per value
  std::vector<Arrival> arrivals_;
  CopyRoutes routes_;
  std::vector<double> free_;                       // per resource
  std::vector<std::pair<int32_t, double>> tried_;  // what it was before
  std::vector<Waiting> waiting_;                   // a heap
  std::vector<int32_t> settled_;
};

}  // namespace berth

#endif  // BERTH_PLANNER_LIST_SCHEDULE_H_
