// The parts of analyze(): pure functions of an index of events.

#ifndef BERTH_PROFILER_BUSY_H_
#define BERTH_PROFILER_BUSY_H_

#include <map>
#include <string>
#include <vector>

#include "profiler/event_index.h"

namespace berth::profiler {

// When a device computes, within the steps.
Intervals compute_of(const EventIndex& x, int32_t device);
OverlapShare overlap(const EventIndex& x, EventClass of);
std::vector<TaskLag> lags(const EventIndex& x);
std::vector<InputStageUse> stages(const EventIndex& x);
// Busy and idle time of all devices.
std::vector<DeviceTime> device_use(const EventIndex& x);
// Share of the steps in which something with a name happens.
double explained(const EventIndex& x);

std::vector<OpSummary> op_rows(const EventIndex& x);
// Roofs, and what they say of each op.
std::vector<DeviceRoof> add_limits(const EventIndex& x,
                                   std::vector<OpSummary>* ops);

// Follows each step's critical path: fills path, path_by_device, and the
// critical_us of the ops, which are in the order of the index.
void follow_critical_path(const EventIndex& x, Analysis* a);

std::vector<Advice> advice_for(const EventIndex& x, const Analysis& a);

// A stage that takes from a buffer: its time is a wait for the stage before.
bool is_prefetch(const std::string& stage);

// The value below which this share of the values lies; 0 of none.
double quantile(std::vector<double> of, double share);

}  // namespace berth::profiler

#endif  // BERTH_PROFILER_BUSY_H_
