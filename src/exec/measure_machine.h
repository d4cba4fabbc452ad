// What measuring rates, links and ops share. Internal to the room.

#ifndef BERTH_EXEC_MEASURE_MACHINE_H_
#define BERTH_EXEC_MEASURE_MACHINE_H_

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
