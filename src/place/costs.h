// CostTable: what a step would cost, for a graph on given devices.
//
// Times belong to ops per device class, bytes to values, limits and rates to
// devices and links (one transfer per value and destination). Plain arrays with
// dense indices: the simulator and searches read them without lookups. Values;
// pure data; nothing here touches a device.

#ifndef BERTH_PLACE_COSTS_H_
#define BERTH_PLACE_COSTS_H_

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "graph/graph.h"
#include "place/rows.h"

namespace berth {

struct NodeCost;  // graph/graph_text.h

enum class CostOrigin : uint8_t { kNone, kEstimated, kMeasured, kDeclared };
const char* origin_name(CostOrigin origin);  // "estimated"

inline constexpr double kNoKernel = std::numeric_limits<double>::infinity();

struct OpTime {
  double us = kNoKernel;  // infinite: no kernel
  float spread = 0;       // share of `us`: half the interquartile range
  CostOrigin origin = CostOrigin::kNone;
};

// Devices that are equally fast and have the same kernels.
struct DeviceClass {
  std::string name;  // "CPU, 4 cores of <cpu model>": the key in the store
  std::string type;  // "CPU"
  double flops_per_us = 1e5;
  double bytes_per_us = 1e4;  // of its memory
  // Rate for the first `cache_bytes` that an op moves; 0: no caches.
  double cached_bytes_per_us = 1e5;
  double cache_bytes = 0;
  double launch_us = 1;                        // per op
  CostOrigin origin = CostOrigin::kEstimated;  // of these rates

  double moving_us(double bytes) const {
    const double cached = bytes < cache_bytes ? bytes : cache_bytes;
    return cached / cached_bytes_per_us + (bytes - cached) / bytes_per_us;
  }
};

// What a device cannot compute while a copy arrives or leaves.
enum class CopyRule : uint8_t {
  kOverlap,    // incoming copies run on their own stream: a GPU
  kReceiving,  // it makes incoming copies itself: CPU cores
  kBoth,       // copies in and out keep it busy
  kFree,       // a copy neither waits nor keeps a device busy
};

struct DeviceCost {
  std::string name;  // full name
  int32_t device_class = 0;
  int64_t memory_limit = 0;  // bytes; 0: none
  CopyRule copies = CopyRule::kOverlap;
  int32_t bus = -1;  // its memory's bus in Machine::buses; -1: its own
};

// A memory that several devices read and write: the rate for all of them
// together. Each alone gets the rate of its class.
struct BusCost {
  double bytes_per_us = 1e4;
  CostOrigin origin = CostOrigin::kEstimated;
};

// The numbers of what a transfer occupies for its whole time besides devices: a
// bus, a network card, the uplink of a rack. Each carries one transfer at a
// time. Ascending; a negative number alone is none.
class SharedLinks {
 public:
  static constexpr size_t kMost = 4;

  SharedLinks() = default;
  SharedLinks(int32_t number) { add(number); }  // NOLINT: one as a number

  // Adds a number; false if there is no room for it.
  bool add(int32_t number) {
    if (number < 0 || has(number)) return true;
    if (numbers_.back() >= 0) return false;
    *end_of() = number;
    std::sort(numbers_.begin(), end_of());
    return true;
  }
  bool has(int32_t number) const {
    return std::find(begin(), end(), number) != end();
  }
  bool meet(const SharedLinks& other) const {
    return std::any_of(begin(), end(), [&](int32_t n) { return other.has(n); });
  }
  bool empty() const { return numbers_[0] < 0; }
  const int32_t* begin() const { return numbers_.data(); }
  const int32_t* end() const {
    size_t n = 0;
    while (n < kMost && numbers_[n] >= 0) ++n;
    return begin() + n;
  }
  bool operator==(const SharedLinks&) const = default;

 private:
  int32_t* end_of() { return numbers_.data() + (end() - begin()); }

  std::array<int32_t, kMost> numbers_ = {-1, -1, -1, -1};
};

// From one device to another.
struct LinkCost {
  double latency_us = 5;
  double bytes_per_us = 1e4;
  SharedLinks shared = {};
  CostOrigin origin = CostOrigin::kEstimated;
  float spread = 0;  // as in OpTime

  double time_us(int64_t bytes) const {
    return latency_us + static_cast<double>(bytes) / bytes_per_us;
  }
};

// Devices, their speed and their links.
struct Machine {
  std::vector<DeviceClass> classes;
  std::vector<DeviceCost> devices;
  // [from * devices + to]; one: for any pair. With `host`: [host of from *
  // hosts + host of to], where each of a host with itself is that inside it.
  std::vector<LinkCost> links;
  std::vector<int32_t> host;  // per device; empty: links are those of devices
  int32_t num_hosts = 0;
  std::vector<std::string> shared_names;  // of SharedLinks; "", missing: none
  std::vector<BusCost> buses;

  const DeviceClass& class_of(int32_t device) const {
    return classes[static_cast<size_t>(devices[device].device_class)];
  }
  // The index of a link in `links`.
  size_t link_number(int32_t from, int32_t to) const {
    if (links.size() == 1) return 0;
    if (host.empty()) return static_cast<size_t>(from) * devices.size() + to;
    return static_cast<size_t>(host[from]) * num_hosts + host[to];
  }
  const LinkCost& link(int32_t from, int32_t to) const {
    return links[link_number(from, to)];
  }
  // Returns the link to be modified: afterwards each pair has its own.
  LinkCost& link_of(int32_t from, int32_t to);
  // Returns the device with this full name; -1: none.
  int32_t find(const std::string& full_name) const;
};

// The indices of links as a sum, and what each occupies, renumbered from
// `first` as it appears: the numbers of a file have gaps.
struct LinkNumbers {
  LinkNumbers() = default;
  LinkNumbers(const Machine& machine, int32_t first);

  size_t link(int32_t from, int32_t to) const {
    return static_cast<size_t>(row[from]) + static_cast<size_t>(column[to]);
  }
  const SharedLinks& between(int32_t from, int32_t to) const {
    return shared[link(from, to)];
  }

  std::vector<int32_t> row, column;  // per device
  std::vector<SharedLinks> shared;   // per link
  int32_t end = 0;                   // the number after the last
};

// Returns devices with these full names, about which nothing else is known:
// round rates per device type (a GPU is 20 times a CPU), estimated, one class
// per type; GPUs overlap copies. For plans on hypothetical devices.
Machine assumed_machine(const std::vector<std::string>& full_names);

struct CostTable : Machine {
  std::vector<OpTime> times;       // [node * classes + class]
  Rows<int64_t> bytes;             // per node: per output; 0 for handles
  std::vector<int64_t> workspace;  // [node * classes + class]
  // Bytes that an op moves over its device's bus; empty: none.
  std::vector<double> bus_bytes;  // per node
  // Measured error of predictions on this machine, as a share; negative: never
  // measured.
  double error = -1;

  const OpTime& time(int32_t node, int32_t device) const {
    return times[static_cast<size_t>(node) * classes.size() +
                 devices[device].device_class];
  }
  int64_t bytes_of(ValueRef v) const { return bytes[v.node][v.output]; }
};

struct EstimateOptions {
  // False: a class has no kernel for the op. Null: every class has all.
  std::function<bool(const OpDef& op, DType dtype, const DeviceClass& on)> runs;
  // What a graph text declares, per node; null or empty: nothing.
  const std::vector<NodeCost>* declared = nullptr;
};

// Returns the times and bytes of a graph on a machine, from the flops and bytes
// of its ops: launch + the longer of computing and moving, spread 0.5. Declared
// costs take precedence. Ops without a kernel take infinitely long;
// placeholders, aliases and reads of variables take no time; a call or a
// condition takes the time of its bodies, a loop that of its maximum number of
// iterations. An unknown dimension counts as 1, spread 1.
CostTable estimate_costs(const Graph& graph, const Machine& machine,
                         const EstimateOptions& options = {});

// True for an op that meets nodes on other devices when it runs, so it cannot
// be measured alone. Its data goes over the slowest link between two devices of
// its class; the device waits for it.
bool meets_others(const OpDef& op);

// Returns launch + the longer of computing and moving.
double estimate_us(const Cost& cost, const DeviceClass& on);

// Returns the longer of computing and moving on one of `cores` cores that share
// these rates: beyond the caches, memory serves one core as fast as all.
double core_us(const Cost& cost, const DeviceClass& on, int cores);

// Returns the flops and bytes of a node; unknown dimensions count as 1. Zero
// for nodes that compute nothing. `*known` tells whether all dimensions are
// known.
Cost cost_of(const Graph& graph, int32_t node, bool* known = nullptr);

// What it would cost to run ops elsewhere (simulate.h, price_move).
struct Price {
  double step_us = -1;      // of the whole step after the move; -1: unknown
  double delta_us = 0;      // compared with the current step
  int64_t delta_bytes = 0;  // sent between devices per step
};

}  // namespace berth

#endif  // BERTH_PLACE_COSTS_H_
