// Schedule: a placed and partitioned graph as work for streams.
//
// place() gives every node a device, partition() cuts the edges between
// devices, make_schedule() orders the work and says who waits for whom.
// Pure functions over graphs; no device is touched.

#ifndef BERTH_PLACE_SCHEDULE_H_
#define BERTH_PLACE_SCHEDULE_H_

#include <string>
#include <vector>

#include "graph/graph.h"

namespace berth {

class KernelTable;

// What place() knows about a device. The executor uses the real ones; text
// tests and the command line use hypothetical ones.
struct PlaceDevice {
  std::string name;  // full name
  const KernelTable* kernels = nullptr;
};

struct PlaceOptions {
  std::vector<PlaceDevice> devices;  // in order of preference
};

// Sets `assigned` of every node. Rules, in order:
//   variables decide for the ops that touch them (VarHandleOp: the device of
//   its variable, else its request, else the default);
//   an explicit request; a colocation (gradients follow their forward op);
//   constants and other ops without inputs follow their only consumer device;
//   aliases and metadata ops follow their input when nobody asked;
//   otherwise the first GPU, else /CPU:0, that has a kernel.
// Throws errors::InvalidArgument (no such device, conflicting variables) and
// errors::Unimplemented (no kernel on the device asked for), each naming node,
// source line, request and what would be possible.
void place(Graph& graph, const PlaceOptions& options);

// Inserts one _Transfer per (value, destination device), assigned to the
// destination; consumers there read it. Control edges across devices stay.
void partition(Graph& graph);

struct StreamRef {
  std::string device;  // full name
  bool copy = false;   // transfers run on the destination's copy stream
  bool operator==(const StreamRef&) const = default;
};

struct ScheduleStep {
  int32_t node = -1;
  int32_t stream = -1;         // index into Schedule::streams
  std::vector<int32_t> waits;  // earlier steps, on other streams, to wait for
};

struct Schedule {
  std::vector<StreamRef> streams;
  std::vector<ScheduleStep> steps;  // in launch order; one per node that runs
  // Per stream, waits after its last step so that the next run, or the caller,
  // finds all streams joined: steps on other streams, by compute stream.
  std::vector<std::vector<int32_t>> final_waits;
};

// Orders the nodes: program order, except that updates of variables run as
// soon as their gradient exists. _Arg, Const and VarHandleOp are no steps.
// Waits are transitively reduced.
Schedule make_schedule(const Graph& graph);

// One line per step: "3 GPU:0 dense/MatMul" with " wait 1,2".
std::string print(const Schedule& schedule, const Graph& graph);

}  // namespace berth

#endif  // BERTH_PLACE_SCHEDULE_H_
