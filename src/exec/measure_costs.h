// Costs measured on the devices of this process.
//
// Acts when explain, a report or `berth calibrate` asks. Variables are never
// touched: what is measured runs on scratch of its own. Results go to the
// CostStore. Thread-safe, but measurements of several threads disturb each
// other.

#ifndef BERTH_EXEC_MEASURE_COSTS_H_
#define BERTH_EXEC_MEASURE_COSTS_H_

#include <functional>
#include <optional>
#include <string>

#include "device/device.h"
#include "graph/graph.h"
#include "place/costs.h"

namespace berth {

struct MeasureOptions {
  double op_budget_ms = 20;  // for one op on one device
  double budget_s = 2;       // for all that is missing
  // Turns a graph of one node into what a plan can run (lowers composites);
  // null: nothing.
  std::function<void(Graph&)> prepare = nullptr;
  // Called before each measurement.
  std::function<void(int done, int of, const std::string& what)> progress =
      nullptr;
};

// Returns the devices of this process: kept or measured rates and links where
// there are any, else assumed ones. Simulated devices have the rates that they
// declare.
Machine this_machine();

// What the CostStore knows by it: the link between two tasks. A device of
// another task is a class of its own there, by its full name: that task says
// how fast it is, and nothing is measured from here.
std::string task_link_key(const Device& from, const Device& to);

// Measures rates of every class and links of every pair of classes, and keeps
// them. `quick`: a quarter of the time.
Machine measure_machine(bool quick, const MeasureOptions& options = {});

// Measures what the core sets of this process get from memory when all of them
// read and write at once, and keeps it; nothing when there is only one, or,
// unless `again`, it is known. About 50 ms.
void measure_bus(bool again = false);

// Returns the estimated costs of a placed graph on this machine, with kept
// measurements in their place.
CostTable kept_costs(const Graph& placed);

// Measures, within the budget, the costs that are missing: first every op on
// its own device, the dearest first, then on the others.
CostTable measured_costs(const Graph& placed, const MeasureOptions& options);

// Measures one node on devices of a class and keeps the result; a class that
// declares its rates is measured, too, but not kept. Empty when it cannot be
// measured.
std::optional<OpTime> measure_on_class(const Graph& graph, int32_t node,
                                       const Machine& machine,
                                       int32_t device_class,
                                       const MeasureOptions& options);

}  // namespace berth

#endif  // BERTH_EXEC_MEASURE_COSTS_H_
