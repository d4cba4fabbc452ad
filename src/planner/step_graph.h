// StepGraph: what bounds on a step's time see of a problem.
//
// Which op waits for which, the least time of every op on every kind of device,
// and the least time that a value takes when its reader is on another device
// than its producer. All numbers are minima over what is allowed, so what is
// proved with them holds for every plan: contention only adds. Made once per
// problem; then read-only.

#ifndef BERTH_PLANNER_STEP_GRAPH_H_
#define BERTH_PLANNER_STEP_GRAPH_H_

#include <cstdint>
#include <functional>
#include <vector>

#include "planner/packing.h"

namespace berth {

struct StepGraph {
  // A reader and what it waits for. Copies take the least time of the links
  // between the two ops' devices.
  struct Edge {
    int32_t from, to;
    int64_t bytes;  // of the largest value; -1: nothing is sent
    double cross;   // least time to send the value; infinite: never sent
  };

  explicit StepGraph(const PlanProblem& problem);

  int32_t num_ops() const { return static_cast<int32_t>(group.size()); }
  size_t num_kinds() const { return kind_devices.size(); }
  double time_on(int32_t op, size_t kind) const {
    return time[static_cast<size_t>(op) * num_kinds() + kind];
  }

  // Indistinguishable devices: of one class, and allowed to the same ops.
  std::vector<DeviceSet> kind_devices;

  // Per op. Ops that take no time, and are followed by none that do, are left
  // out: they have no edges.
  std::vector<DeviceSet> kinds;  // that it may run on, as bits
  std::vector<double> time;      // [op * kinds + kind]; infinite: not allowed
  std::vector<int32_t> group;
  int32_t num_groups = 0;

  std::vector<Edge> edges;
  Rows<int32_t> in, out;       // per op: edges
  std::vector<int32_t> order;  // ops, none before what it waits for

  // Returns, per op and kind [op * kinds + kind], the earliest that it can
  // start there (`back`: the least time from its end to the step's) by chains
  // of ops, each on the kind of device that is best for the chain. Infinite:
  // not allowed. `raise` may raise the starts of each op by what is known
  // otherwise; those of what it waits for are final then.
  std::vector<double> by_path(
      bool back,
      const std::function<void(int32_t op, std::vector<double>& start)>& raise)
      const;

  // Returns the least time to send `bytes` from a device of one kind to another
  // device of a kind.
  double copy_us(size_t from, size_t to, int64_t bytes) const;

 private:
  void find_kinds(const PlanProblem& problem);
  void find_links(const PlanProblem& problem);
  void find_edges(const PlanProblem& problem);
  void add_edge(const Edge& e, bool back, const std::vector<double>& end,
                std::vector<double>& ready) const;

  Rows<FastLink> links_;  // [from * kinds + to]: links that no other beats
};

// Joined starts: when ops can start, by chains and by what shares their device.
//
// A value that changed devices on the way to an op may come too late for it:
// then its producer is on the op's device, and so may be what that waits for.
// Ops on one device run one after the other, which takes longer than the chains
// that they form. Considers the nearest ops only, so its time is linear in the
// size of the graph. A pure function.
//
// Returns, per op and kind [op * kinds + kind], a time before which it cannot
// start there (`back`: the least time from its end to the step's); infinite:
// not allowed. At least StepGraph::by_path().
std::vector<double> joined_starts(const StepGraph& graph, bool back);

}  // namespace berth

#endif  // BERTH_PLANNER_STEP_GRAPH_H_
