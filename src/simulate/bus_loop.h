// When everything happens if ops slow each other down on a bus.
//
// Items and their order are those of the StepTimer; only the time of an op
// depends on what runs beside it, so a loop over events computes the times.
// Internal to the module; one thread per object.

#ifndef BERTH_SIMULATE_BUS_LOOP_H_
#define BERTH_SIMULATE_BUS_LOOP_H_

#include <cstdint>
#include <span>
#include <vector>

#include "simulate/step_timer.h"

namespace berth {

class BusLoop {
 public:
  BusLoop(const SimulatedGraph& graph, const CostTable& costs);

  // Tells whether any op moves bytes over a bus.
  bool needed() const { return needed_; }

  // Sets the times of nodes and copies, which come as timed without buses.
  void run(const PlacePlan& plan, std::span<TimeSpan> spans,
           std::span<StepTimer::Event> events);

 private:
  struct Item {
    int32_t node = -1;   // an op, or
    int32_t event = -1;  // a copy or an alias
    double us = 0;
    int32_t missing = 0;  // unfinished items that it waits for
    int32_t bus = -1;
    double rate = 0;  // bytes per us when alone
  };
  struct Running {
    int32_t item;
    double end;
    double speed;
  };

  void add_items(const PlacePlan& plan,
                 std::span<const StepTimer::Event> events);
  void add_event(const PlacePlan& plan, const StepTimer::Event& e,
                 int32_t event);
  void add_op(const PlacePlan& plan, int32_t op);
  void add_inputs(const PlacePlan& plan, int32_t node);
  void wait_for(int32_t item);
  void occupy(int32_t resource);
  void start(int32_t item);
  void share_bus(int32_t bus);
  void end_item(int32_t item);
  void loop();

  const SimulatedGraph& graph_;
  const CostTable& costs_;
  bool needed_ = false;
  CopyRoutes routes_;

  std::vector<Item> items_;
  std::vector<std::vector<int32_t>> then_;  // per item: those waiting for it
  std::vector<double> start_, end_;         // per item
  std::vector<int32_t> item_of_;            // per node; -1: there throughout
  std::vector<int32_t> copy_of_;            // [value * devices + device]
  std::vector<int32_t> last_;               // per resource
  std::vector<Running> running_;
  std::vector<int32_t> ready_;  // items
  std::vector<int32_t> freed_;  // buses
  double now_ = 0;
};

}  // namespace berth

#endif  // BERTH_SIMULATE_BUS_LOOP_H_
