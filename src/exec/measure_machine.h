// What measuring rates, links and ops share. Internal to the module.

#ifndef BERTH_EXEC_MEASURE_MACHINE_H_
#define BERTH_EXEC_MEASURE_MACHINE_H_

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "device/device.h"
#include "place/costs.h"

namespace berth {

// What the CostStore knows a link by.
std::string link_key(const DeviceClass& from, const DeviceClass& to);

// Returns latency and bandwidth that fit (bytes, us) samples best; `spread` is
// the median relative error of the fit.
LinkCost fit_link(const std::vector<std::pair<double, double>>& samples);

// A measurement: of what size, and what it took; us < 0: there is none.
struct SizedTime {
  int64_t size = 0;
  double us = -1;
};

// Measures `first`, and sizes `factor` times as large each, up to `most`, until
// one takes `enough_us`: below that, a launch is all that one sees of a fast
// device. Returns the last one that could be measured (us_of: < 0 when not).
SizedTime measure_large_enough(int64_t first, int64_t factor, int64_t most,
                               double enough_us,
                               const std::function<double(int64_t)>& us_of);

// Returns the rates of a device: declared, kept, else assumed.
DeviceClass rates_of(Device& device);

// Returns what the second-level caches of a device's cores hold; 0: unknown.
double cache_bytes_of(Device& device);

// Puts the core sets of a machine on one bus when what it gives them together
// has been measured.
void add_bus(Machine& machine);

// Returns the first device of a class, which measurements are made on.
Device& device_of_class(const Machine& machine, int32_t device_class);

}  // namespace berth

#endif  // BERTH_EXEC_MEASURE_MACHINE_H_
