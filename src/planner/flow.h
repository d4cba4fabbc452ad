// MaxFlow: the maximum flow of a small network, in integers.
//
// Dinic's algorithm. Capacities are integers, so proofs by flows are free of
// rounding. Reused for many networks; one thread per object.

#ifndef BERTH_PLANNER_FLOW_H_
#define BERTH_PLANNER_FLOW_H_

#include <algorithm>
#include <cstdint>
#include <vector>

namespace berth {

class MaxFlow {
 public:
  // Sums of a few thousand stay far from overflow.
  static constexpr int64_t kInfinite = int64_t{1} << 50;

  // Begins a network of `nodes` nodes without arcs.
  void reset(int32_t nodes) {
    first_.assign(nodes, -1);
    arcs_.clear();
    given_.clear();
  }

  int32_t add_node() {
    first_.push_back(-1);
    return static_cast<int32_t>(first_.size()) - 1;
  }

  // Adds arcs with these capacities, 0 or more, in both directions. Returns an
  // index for set_capacity().
  int32_t add_arcs(int32_t a, int32_t b, int64_t there, int64_t back) {
    const int32_t number = arcs_.size();
    arcs_.push_back({b, first_[a]});
    arcs_.push_back({a, first_[b]});
    first_[a] = number;
    first_[b] = number + 1;
    given_.push_back(there);
    given_.push_back(back);
    return number;
  }

  void set_capacity(int32_t arcs, int64_t there) { given_[arcs] = there; }

  // Returns the flow from source to sink, or one of at least `enough`.
  int64_t run(int32_t source, int32_t sink, int64_t enough) {
    room_ = given_;
    int64_t flow = 0;
    while (flow < enough && find_levels(source, sink)) {
      current_ = first_;
      flow += push(source, sink, enough - flow);
    }
    return flow;
  }

 private:
  bool find_levels(int32_t source, int32_t sink) {
    level_.assign(first_.size(), -1);
    queue_.clear();
    queue_.push_back(source);
    level_[source] = 0;
    for (size_t k = 0; k < queue_.size(); ++k) {
      const int32_t node = queue_[k];
      for (int32_t a = first_[node]; a >= 0; a = arcs_[a].next) {
        const int32_t to = arcs_[a].to;
        if (room_[a] == 0 || level_[to] >= 0) continue;
        level_[to] = level_[node] + 1;
        queue_.push_back(to);
      }
      // Nodes farther than the sink are useless in this round.
      if (level_[sink] >= 0 && level_[node] >= level_[sink]) break;
    }
    return level_[sink] >= 0;
  }

  // Depth: at most the number of nodes, which callers limit to a few thousand.
  int64_t push(int32_t node, int32_t sink, int64_t most) {
    if (node == sink) return most;
    int64_t pushed = 0;
    for (int32_t& a = current_[node]; a >= 0; a = arcs_[a].next) {
      const int32_t to = arcs_[a].to;
      if (room_[a] == 0 || level_[to] != level_[node] + 1) continue;
      const int64_t part = push(to, sink, std::min(most - pushed, room_[a]));
      room_[a] -= part;
      room_[a ^ 1] += part;
      pushed += part;
      if (pushed == most) return pushed;
    }
    return pushed;
  }

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
