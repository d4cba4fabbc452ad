// MaxFlow: the maximum flow of a small network, in integers.
//
// Dinic's algorithm. Capacities are integers, so proofs by flows are free of
// rounding. Reused for many networks; one thread per object.

#ifndef BERTH_PLANNER_FLOW_H_
#define BERTH_PLANNER_FLOW_H_

#include <cstdint>
#include <vector>

namespace berth {

class MaxFlow {
 public:
  // Sums of a few thousand stay far from overflow.
  static constexpr int64_t kInfinite = int64_t{1} << 50;

  // Begins a network of `nodes` nodes without arcs.
  void reset(int32_t nodes);
  int32_t add_node() {
    first_.push_back(-1);
    return static_cast<int32_t>(first_.size()) - 1;
  }

  // Adds arcs with these capacities, 0 or more, in both directions. Returns an
  // index for set_capacity().
  int32_t add_arcs(int32_t a, int32_t b, int64_t there, int64_t back);
  void set_capacity(int32_t arcs, int64_t there) { given_[arcs] = there; }

  // Returns the flow from source to sink, or one of at least `enough`.
  int64_t run(int32_t source, int32_t sink, int64_t enough);

 private:
  bool find_levels(int32_t source, int32_t sink);
  int64_t push(int32_t node, int32_t sink, int64_t most);

  struct Arc {
    int32_t to, next;
  };
  std::vector<int32_t> first_;  // per node, its first arc
  std::vector<Arc> arcs_;       // arc a and a ^ 1 are a pair
  std::vector<int64_t> given_;  // capacities
  std::vector<int64_t> room_;   // what is left of them
  std::vector<int32_t> level_, current_, queue_;
};

}  // namespace berth

#endif  // BERTH_PLANNER_FLOW_H_
