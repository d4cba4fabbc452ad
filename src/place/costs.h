// CostTable: what a step would cost, for a graph on given devices.
//
// Times belong to ops per device class, bytes to values, limits and rates to
// devices and links (one transfer per value and destination). Plain arrays by
// dense numbers: the simulator and a search read them without lookups. Values;
// pure data.

#ifndef BERTH_PLACE_COSTS_H_
#define BERTH_PLACE_COSTS_H_

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "graph/graph.h"

namespace berth {

enum class CostOrigin : uint8_t { kNone, kEstimated, kMeasured, kDeclared };

inline constexpr double kNoKernel = std::numeric_limits<double>::infinity();

struct OpTime {
  double us = kNoKernel;  // infinite: no kernel
  float spread = 0;       // share of `us`: half the distance of the quartiles
  CostOrigin origin = CostOrigin::kNone;
};

// Devices that are equally fast: "4 cores of <cpu model>", "simulated GPU".
struct DeviceClass {
  std::string name;
  std::string type;  // "CPU"
  double flops_per_us = 1e5;
  double bytes_per_us = 1e4;  // of its memory
  double launch_us = 1;       // of one op
};

struct DeviceCost {
  std::string name;  // full name
  int32_t device_class = 0;
  int64_t memory_limit = 0;  // bytes; 0: none
  // True: copies run beside compute on a stream of their own; false: a copy
  // keeps both of its devices busy.
  bool overlaps_copies = true;
};

// Devices `from` -> `to`. Links of one `shared` group (a bus, a root port) are
// used by one transfer at a time; -1: alone.
struct LinkCost {
  double latency_us = 5;
  double bytes_per_us = 1e4;
  int32_t shared = -1;
  CostOrigin origin = CostOrigin::kNone;
};

struct CostTable {
  std::vector<DeviceClass> classes;
  std::vector<DeviceCost> devices;
  std::vector<LinkCost> links;              // [from * devices + to]
  std::vector<OpTime> times;                // [node * classes + class]
  std::vector<std::vector<int64_t>> bytes;  // [node][output]
  std::vector<int64_t> workspace;           // [node * classes + class]
  // Measured error of such predictions on this machine, as a share; negative:
  // never measured.
  double error = -1;

  const OpTime& time(int32_t node, int32_t device) const {
    return times[static_cast<size_t>(node) * classes.size() +
                 devices[device].device_class];
  }
  const LinkCost& link(int32_t from, int32_t to) const {
    return links[static_cast<size_t>(from) * devices.size() + to];
  }
};

}  // namespace berth

#endif  // BERTH_PLACE_COSTS_H_
