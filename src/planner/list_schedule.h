// ListScheduler: a plan in one pass, op by op.
//
// Takes the next op by its rank, puts it where it ends earliest, and continues:
// good plans in milliseconds, or starts for a search of seconds. The first op
// of a unit places the unit. Arrays grow once; one per thread.

#ifndef BERTH_PLANNER_LIST_SCHEDULE_H_
#define BERTH_PLANNER_LIST_SCHEDULE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "planner/budget.h"
#include "planner/step_units.h"
#include "simulate/copy_route.h"

namespace berth {

struct ListRule {
  enum class Next : uint8_t {
    kPath,   // the longest path after it
    kReady,  // the op that could start first
    kChain,  // a reader of what was placed last
  };
  Next next = Next::kPath;
  double copies = 1;    // weight of copy times in paths
  double noise = 0;     // paths are scaled by 1 - noise to 1 + noise
  double stay = 0;      // extra weight of copies over their time
  bool insert = true;   // ops may fill idle time before what is placed
  bool spread = false;  // first spreads what units hold over devices
  int32_t devices = 0;  // only this many fastest, if allowed; 0: all
};

// The rules to begin with, the best guess first.
const std::vector<ListRule>& list_rules();
// A random rule for this many devices.
ListRule random_rule(StreamRandom& random, int32_t devices);
// "list scheduling by path, on 4 devices".
std::string name_of(const ListRule& rule);

class ListScheduler {
 public:
  explicit ListScheduler(const StepUnits& units);

  // Returns a plan that keeps masks and groups, and limits as far as an
  // estimate can tell; the next call overwrites it. Each unit must allow some
  // device.
  const PlacePlan& run(const ListRule& rule, StreamRandom& random);

 private:
  struct Gap {
    double begin, end;
  };
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
      if (first != o.first) return first < o.first;
      return second != o.second ? second < o.second : node > o.node;
    }
  };

  void find_middling_costs();
  void find_middling_work();
  void rank_devices();
  void reset();
  void spread_held(StreamRandom& random);
  void find_ranks(StreamRandom& random);
  void enqueue(int32_t node);
  void wake_behind(int32_t node);
  void settle(int32_t node);
  void place(int32_t op);
  int32_t choose(int32_t op);
  Slot slot_on(int32_t op, int32_t device, bool commit);
  double copy_in(int32_t op, int32_t device, bool commit);
  Slot free_slot(int32_t device, double ready, double us) const;
  void fill(int32_t device, Slot slot);
  double arrival(int32_t value, int32_t device) const;
  void place_unit(int32_t unit, int32_t device);
  double lacking_bytes(int32_t op, int32_t device) const;
  void read_value(int32_t value);
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
  std::vector<int32_t> position_;        // per node: its index in placing order
  std::vector<int32_t> newest_input_;    // per node: greatest position
  std::vector<int32_t> device_of_unit_;  // -1: not yet
  std::vector<int32_t> first_arrival_;   // per value
  std::vector<Arrival> arrivals_;
  CopyRoutes routes_;
  std::vector<double> free_;                       // per resource
  std::vector<std::pair<int32_t, double>> tried_;  // what it was before
  std::vector<std::vector<Gap>> gaps_;             // per device, by time
  std::vector<Waiting> waiting_;                   // a heap
  std::vector<int32_t> settled_;
  // Limits: bytes on each device; for values, whether they have bytes of their
  // own that come and go, and their remaining readers.
  std::vector<double> bytes_;
  std::vector<uint8_t> counted_;
  std::vector<int32_t> readers_left_;
};

}  // namespace berth

#endif  // BERTH_PLANNER_LIST_SCHEDULE_H_
