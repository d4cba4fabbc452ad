// LoadProblem: throughput, as a hypergraph whose nodes go to devices.
//
// A unit is a group of ops, a net a value that several units hold: its producer
// and its readers. The value of a plan is the highest load of a machine: a
// device that computes, or the copy engine of one. A pure function of a
// PlanProblem of model kLoad; read-only during a search, by any number of
// threads.
//
// Which devices pay for a value that more than one device holds:
//  - Touch rule (PlanProblem::touch_us): every device that holds it, as
//    producer or as reader, pays its time once, except devices that are
//    `free_of_touch`. So direction does not matter. These are the rules of
//    dnn-partitioning's max-load, with one difference: there all CPUs of a
//    split are one device, here each is a separate one. With one CPU, as in
//    all its inputs, they agree.
//  - Link rule (no touch_us): every reading device other than the producer's
//    receives one copy. It takes the time of the link from all that it occupies
//    (CopyRoute). Copies to kFree devices cost nothing.
// Aliases and the value that they rename are one value; values that are
// everywhere cost nothing. Memory: resident bytes and variables of the ops that
// are on a device, against its limit.

#ifndef BERTH_PLANNER_LOADS_H_
#define BERTH_PLANNER_LOADS_H_

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "planner/problem.h"
#include "simulate/copy_route.h"

namespace berth {

// Numbered as resources (copy_route.h); engines exist where copies overlap.
using LoadMachine = int32_t;

struct LoadDevices {
  size_t num_classes = 0;
  std::vector<int32_t> device_class;
  std::vector<double> limit;  // bytes; infinite: none
  bool by_links = false;      // the link rule, else the touch rule
  DeviceSet pays = 0;         // touch rule: devices that are not free
  // Link rule; kFree by the touch rule.
  std::vector<CopyRule> copies_to;  // per device
  std::shared_ptr<const CopyRoutes> routes;
  std::vector<double> latency_us, us_per_byte;  // per link
};

struct LoadProblem : LoadDevices {
  LoadProblem() = default;
  explicit LoadProblem(const PlanProblem& problem);

  int32_t num_units() const { return static_cast<int32_t>(bytes.size()); }
  int32_t num_nets() const { return pins.size(); }
  int32_t num_devices() const { return static_cast<int32_t>(limit.size()); }
  size_t num_machines() const {
    return by_links ? routes->num_resources() : 2 * limit.size();
  }
  double work_on(int32_t unit, int32_t device) const {
    return work[static_cast<size_t>(unit) * num_classes + device_class[device]];
  }
  // Time of a net's copies, by the link rule.
  double copy_us(int32_t net, int32_t from, int32_t to) const {
    const size_t link = routes->links().link(from, to);
    return copies[net] * latency_us[link] + net_bytes[net] * us_per_byte[link];
  }

  // Units.
  std::vector<double> work;        // [unit * classes + class]; may be infinite
  std::vector<double> bytes;       // held throughout
  std::vector<DeviceSet> allowed;  // devices with kernels for all its ops

  // Nets: values with the same units (and, with links, the same producer) are
  // one net. All have two units or more, and a cost. Per net, its units, once
  // each; with links the producer's first.
  Rows<int32_t> pins;
  Rows<int32_t> nets;             // per unit
  std::vector<double> touch_us;   // touch rule: the time each one pays
  std::vector<double> copies;     // link rule: values in it ...
  std::vector<double> net_bytes;  // ... and their bytes
};

// Returns, per machine, its load when unit u is on device[u].
std::vector<double> machine_loads(const LoadProblem& problem,
                                  std::span<const int32_t> device);

// Returns the highest of them, or infinity when a unit is on a device that it
// does not allow or a limit is exceeded.
double load_value(const LoadProblem& problem, std::span<const int32_t> device);

// Returns the problem in which the units of one cluster, 0 to num_clusters - 1,
// go to one device. Plans that keep clusters together have the same loads.
LoadProblem contract(const LoadProblem& problem,
                     std::span<const int32_t> cluster, int32_t num_clusters);

}  // namespace berth

#endif  // BERTH_PLANNER_LOADS_H_
