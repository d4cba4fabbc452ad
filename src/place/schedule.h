// Schedule: a placed and partitioned graph as work for streams.
//
// place() gives every node a device, partition() splits the graph between
// devices, make_schedule() orders the work and computes the waits. Pure
// functions over graphs; no device is touched.

#ifndef BERTH_PLACE_SCHEDULE_H_
#define BERTH_PLACE_SCHEDULE_H_

#include <string>
#include <vector>

#include "graph/graph.h"
#include "place/place.h"

namespace berth {

// Constants up to this size are duplicated instead of transferred.
inline constexpr size_t kMaxDuplicatedConstBytes = 64 << 10;

// Inserts one _Transfer per (value, destination), right after its producer and
// assigned to the destination; consumers there read it. CPU devices of one task
// share one memory: a value that goes from one to another becomes a _HandOver
// instead, an alias that copies nothing, unless it is a result of the graph.
// Operands and results that an op has in host memory (ArgDef::on_host,
// OpDef::output_on_host) belong to /CPU:0 of the task. A value read through a
// reference is sent to each reader separately, right before it. Small constants
// get a copy per device; handles of variables are never sent; control edges
// across devices stay and become waits. Transfers without a reader are removed,
// and a graph that is already partitioned stays as it is. Every node must be
// assigned. Names: "<node>/to_GPU:1"; sources are the producer's.
void partition(Graph& graph);

struct StreamRef {
  DeviceId device;    // full name
  bool copy = false;  // transfers run on the destination's copy stream
  bool operator==(const StreamRef&) const = default;
};

struct ScheduleStep {
  int32_t node = -1;
  int32_t stream = -1;         // index into Schedule::streams
  std::vector<int32_t> waits;  // earlier steps on other streams to wait for
};

struct Schedule {
  // The compute stream of every device that has a node, and the copy streams in
  // use.
  std::vector<StreamRef> streams;
  std::vector<ScheduleStep> steps;  // in launch order; one per node that runs
  // Per stream, waits after its last step so that the next run, or the caller,
  // finds all streams joined: steps on other streams, by compute stream. Work
  // launched later on a device's compute stream follows every step that read or
  // wrote memory of that device.
  std::vector<std::vector<int32_t>> final_waits;
  // Per stream, the compute streams (indices) whose earlier work must be done
  // before its first step. For a copy stream: that of its own device, whose
  // memory it writes, and those of the devices whose arguments it reads. For a
  // compute stream: those of the devices whose variables it uses.
  std::vector<std::vector<int32_t>> start_waits;
};

// Orders the nodes: program order, except that updates of variables run as soon
// as their inputs and controls are done, and transfers as soon as their input
// exists. _Arg, Const, VarHandleOp and _HandOver are not steps. Waits are
// transitively reduced: without any one of them, some edge is not covered.
// `in_order`: program order is a plan's; updates stay where they are, and
// transfers to CPUs, or of what CPUs compute, come right before their first
// reader.
Schedule make_schedule(const Graph& graph, bool in_order = false);

// One line per step: "3 GPU:0 dense/MatMul wait 1,2", "4 GPU:1/copy ..."; then
// for each stream with final waits "end GPU:0 wait 4".
std::string print(const Schedule& schedule, const Graph& graph);

}  // namespace berth

#endif  // BERTH_PLACE_SCHEDULE_H_
