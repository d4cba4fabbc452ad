// ReplicaPlaces: where the nodes and variables of replicas in run() are.
//
// Nothing is traced here. One thread.

#ifndef BERTH_DISTRIBUTE_RUN_REPLICA_PLACES_H_
#define BERTH_DISTRIBUTE_RUN_REPLICA_PLACES_H_

#include <string>
#include <vector>

#include "distribute/data_parallel/split_batch.h"
#include "graph/graph.h"

namespace berth::distribute {

class ReplicaPlaces {
 public:
  explicit ReplicaPlaces(const SplitPlan& plan);

  int replicas() const { return static_cast<int>(plan_.replicas.size()); }
  // The first device of a replica.
  DeviceId device(int replica) const {
    return plan_.replicas[static_cast<size_t>(replica)][0];
  }
  // The first replica of each memory, and the memory of a replica.
  const std::vector<int>& firsts() const { return firsts_; }
  int first_of(int replica) const {
    return first_of_[static_cast<size_t>(replica)];
  }

  // Whether each memory has its own copy and all copies are written alike.
  bool is_mirrored(const Tensor& handle) const;
  // The handle that a replica computes with.
  Tensor handle_for(const Tensor& handle, int replica) const;
  // Whether bodies of the node write variables of different kinds: with a copy
  // in each memory, with a part per replica, or neither.
  bool written_apart(const Graph& graph, const Node& node) const;
  // The replica that writes a variable which is not mirrored.
  int writer_of(const Tensor& handle) const;

  // Node `node` as a node of a replica, with its device request, its owner, and
  // the variables of its bodies. Throws errors::InvalidArgument for a device
  // that the replica does not have.
  Node in_replica(const Node& node, int replica) const;

 private:
  int number_of_device(const Tensor& handle) const;
  DeviceId request_of(const Node& node, int replica) const;

  const SplitPlan& plan_;
  std::vector<int> first_of_, firsts_;
};

}  // namespace berth::distribute

#endif  // BERTH_DISTRIBUTE_RUN_REPLICA_PLACES_H_
