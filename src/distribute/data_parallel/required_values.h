// Which memories need which whole values of a split step.
//
// Walks back from the results, the effects and the parts, and repeats while
// variables turn out to be needed in more memories, since each copy of a
// variable is written wherever it lives.

#ifndef BERTH_DISTRIBUTE_DATA_PARALLEL_REQUIRED_VALUES_H_
#define BERTH_DISTRIBUTE_DATA_PARALLEL_REQUIRED_VALUES_H_

#include <cstdint>
#include <map>
#include <vector>

#include "distribute/data_parallel/replica_placement.h"
#include "distribute/data_parallel/sharding_analysis.h"

namespace berth::distribute {

// A set of memories, one bit each.
using MemorySet = uint64_t;
inline constexpr int kMaxMemories = 64;

// The device of a replica that a variable is on: where its home is in the first
// replica that has it, or a device with the same memory; -1: none.
int place_of_variable(const Node& handle, const SplitPlaces& places);

class SplitNeeds {
 public:
  SplitNeeds(const Graph& graph, const SplitStates& states,
             const SplitPlaces& places);

  MemorySet of(ValueRef v) const { return values_[v.node][v.output]; }
  // The memories in which a whole node is made.
  MemorySet node(int32_t i) const { return nodes_[i]; }
  // The first memory that has the same copy of a variable as `memory`.
  int copy_of(int32_t handle, int memory) const;
  // Whether the node is a cond or loop on variables of which some have copies
  // in more memories than others.
  bool written_apart(const Node& n) const;

 private:
  void walk();
  void want(ValueRef v, MemorySet where) { values_[v.node][v.output] |= where; }
  MemorySet made_at(int32_t i) const;
  MemorySet of_parts() const;

  const Graph& graph_;
  const SplitStates& states_;
  const SplitPlaces& places_;
  std::vector<std::vector<MemorySet>> values_;
  std::vector<MemorySet> nodes_;
  std::map<int32_t, MemorySet> variables_;  // by VarHandleOp: its copies
};

}  // namespace berth::distribute

#endif  // BERTH_DISTRIBUTE_DATA_PARALLEL_REQUIRED_VALUES_H_
