// DeviceScheduler: an order of the ops of a plan with given devices.
//
// Goes through the step by time: whenever a device is idle, it takes one of its
// ready ops. A pass costs little more than reading the graph. One per thread;
// arrays grow once.

#ifndef BERTH_PLANNER_DEVICE_SCHEDULE_H_
#define BERTH_PLANNER_DEVICE_SCHEDULE_H_

#include <cstdint>
#include <vector>

#include "planner/step_units.h"
#include "simulate/copy_route.h"

namespace berth {

class DeviceScheduler {
 public:
  // Which of the ready ops to take.
  enum class First : uint8_t {
    kPath,     // the one with the longest path after it
    kProgram,  // first in the file: keeps values for less time
  };

  explicit DeviceScheduler(const StepUnits& units);

  // Replaces the sequence of a plan that has a device per node.
  void run(First first, PlacePlan& plan);

 private:
  struct Event {
    double at;
    int32_t node;
    bool ends;  // else: becomes ready
    bool operator<(const Event& o) const {
      if (at != o.at) return at > o.at;
      return node != o.node ? node > o.node : ends < o.ends;
    }
  };
  struct Ready {
    double rank;
    int32_t node;
    bool operator<(const Ready& o) const {
      return rank != o.rank ? rank < o.rank : node > o.node;
    }
  };

  void find_ranks(First first, const PlacePlan& plan);
  double copy_of(int32_t value, int32_t from, int32_t to) const;
  void end(int32_t node, double at, const PlacePlan& plan);
  void send(int32_t value, double at, const PlacePlan& plan);
  void become_ready(int32_t node);
  void arrive(int32_t node, double at);
  void settle(const PlacePlan& plan);
  void start_on(int32_t device, double now, PlacePlan& plan);

  const StepUnits& units_;
  const PlanProblem& p_;
  const SimulatedGraph& g_;
  std::vector<int32_t> program_;  // per node: position in the file's order
  std::vector<double> rank_, came_;
  std::vector<int32_t> missing_;
  std::vector<Event> events_;              // a heap
  std::vector<std::vector<Ready>> ready_;  // per device: a heap
  std::vector<uint8_t> idle_;
  const CopyRoutes routes_;
  std::vector<double> free_;      // per resource, of copies
  std::vector<double> arrival_;   // per device: of the value being sent
  std::vector<int32_t> settled_;  // nodes without time whose inputs are ready
};

}  // namespace berth

#endif  // BERTH_PLANNER_DEVICE_SCHEDULE_H_
