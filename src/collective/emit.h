// Emit: adds nodes anywhere in a graph and removes others.
//
// While it lives the graph is out of order; finish() sorts it. One thread.

#ifndef BERTH_COLLECTIVE_EMIT_H_
#define BERTH_COLLECTIVE_EMIT_H_

#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "collective/reduction.h"
#include "graph/graph.h"

namespace berth {

class Emit {
 public:
  explicit Emit(Graph& graph);

  const Graph& graph() const { return graph_; }
  Node& operator[](int32_t node) { return graph_[node]; }

  // Adds a node that requests `device`, with the sources of node `like`; its
  // name is that of `like` with the suffix "/<what>". Returns output 0. Throws
  // errors::InvalidArgument from the shape rule.
  ValueRef node(const char* op, std::vector<ValueRef> inputs, AttrsRef attrs,
                DeviceId device, int32_t like, const char* what);
  // The value as one dimension.
  ValueRef flat(ValueRef v, DeviceId device, int32_t like);
  // Elements [begin, begin + count) of the first axis.
  ValueRef rows(ValueRef v, int64_t begin, int64_t count, DeviceId device,
                int32_t like);
  ValueRef reshape(ValueRef v, const Shape& shape, DeviceId device,
                   int32_t like);
  ValueRef add(ValueRef a, ValueRef b, DeviceId device, int32_t like);
  // v / n; v itself if n is 1.
  ValueRef divide(ValueRef v, int n, DeviceId device, int32_t like);
  // A copy of node `like` for a part: other inputs, and a new name.
  int32_t copy(int32_t like, std::vector<ValueRef> inputs, DeviceId device,
               const char* what);

  // Nodes added for a device belong to this replica.
  void set_replica(DeviceId device, int replica) {
    replicas_.try_emplace(device, replica);
  }

  // For nodes added from now on: if several are ready, those of lower turns
  // come first; within a turn, in the order in which they were added.
  void set_turn(int turn) { turn_ = turn; }

  // `after` runs after `before`.
  void order(int32_t before, int32_t after);
  // Makes readers of an output read `by` instead.
  void replace(int32_t node, int output, ValueRef by) {
    values_[{node, output}] = by;
  }
  // Removes the node; nodes that waited for it wait for all of `by`.
  void drop(int32_t node, std::vector<int32_t> by) {
    dropped_[node] = std::move(by);
  }

  // Nodes added from now on are placed as late as possible, next to their
  // readers: if nothing is sent, waiting early hides nothing.
  void set_late(bool late) { late_now_ = late; }

  // Sorts: added nodes come right after the last node that they need, other
  // nodes keep their order as far as possible. Throws errors::Internal for a
  // cycle.
  void finish();

 private:
  std::string name(int32_t like, const char* what);
  int32_t insert(Node node);
  void redirect();
  void sort();

  Graph& graph_;
  const int32_t first_;  // node that was added
  bool late_now_ = false;
  std::vector<bool> late_;  // by node that was added
  int turn_ = 0;
  std::vector<int> turns_;  // by node that was added
  std::unordered_map<DeviceId, int> replicas_;
  std::map<ValueRef, ValueRef> values_;
  std::map<int32_t, std::vector<int32_t>> dropped_;
};

// The device that the maker of a value requests; what only renames or reshapes
// a value requests none.
DeviceId device_of_maker(const Graph& graph, ValueRef v);

// Sorts the pieces of a whole reduction by start and fills in their ends.
void find_ends(std::vector<Addend>& pieces);

// Adds pieces on `device`, along the binary tree over slices: the node of width
// w at slice s is the sum of those of width w / 2 at s and s + w / 2. Without
// starts, pieces count as slices in their order, and one sum is returned;
// otherwise the roots of the subtrees that these pieces form, in order.
std::vector<Addend> add_up(Emit& emit, std::vector<Addend> pieces,
                           DeviceId device, int32_t like);

}  // namespace berth

#endif  // BERTH_COLLECTIVE_EMIT_H_
