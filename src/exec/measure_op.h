// One op, or one copy, timed on a device.
//
// It runs as a plan does it: a plan of that node alone, on scratch that no
// program sees; what running such a plan takes without the node is subtracted.
// Time is the process's, or the device's where it has a clock of its own.
// Thread-safe.

#ifndef BERTH_EXEC_MEASURE_OP_H_
#define BERTH_EXEC_MEASURE_OP_H_

#include <optional>

#include "device/device.h"
#include "exec/measure_costs.h"
#include "graph/graph.h"
#include "place/costs.h"

namespace berth {

// Inputs larger than this together are not allocated for a measurement.
inline constexpr int64_t kMostMeasuredBytes = int64_t{1} << 29;

// Returns the median of warm runs of a node of `graph` on `device`, with the
// spread of the quartiles. Empty when it cannot be measured: a control-flow
// op, strings, unknown dimensions, no kernel, no memory, or an op that
// refuses made-up inputs.
std::optional<OpTime> measure_op(const Graph& graph, int32_t node,
                                 Device& device, const MeasureOptions& options);

// Returns the median of copying `bytes` from one device to another.
std::optional<OpTime> measure_copy(Device& from, Device& to, int64_t bytes,
                                   double budget_ms);

// Returns what running a plan that does nothing takes.
double empty_run_us(Device& device);

}  // namespace berth

#endif  // BERTH_EXEC_MEASURE_OP_H_
