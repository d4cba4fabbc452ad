// CheckNetwork: flows for the checkers of witnesses.
//
// Paths are augmented one by one, the shortest first. It shares no code with
// the provers, which have MaxFlow. A value; one thread.

#ifndef BERTH_PLANNER_CHECK_FLOW_H_
#define BERTH_PLANNER_CHECK_FLOW_H_

#include <algorithm>
#include <vector>

#include "base/infinity.h"

namespace berth {

struct CheckNetwork {
  struct Arc {
    int to;
    double room;
  };
  std::vector<Arc> arcs;             // a and a ^ 1: both directions
  std::vector<std::vector<int>> of;  // per node: arcs from it

  int node() { return of.emplace_back(), static_cast<int>(of.size()) - 1; }
  void add(int a, int b, double there, double back) {
    of[a].push_back(static_cast<int>(arcs.size()));
    of[b].push_back(static_cast<int>(arcs.size()) + 1);
    arcs.insert(arcs.end(), {{b, there}, {a, back}});
  }

  // Returns a flow of at least `enough`, or the greatest. Room up to `none`
  // counts as used up.
  double flow(int from, int to, double enough, double none) {
    double sum = 0;
    while (sum < enough) {
      std::vector<int> by(of.size(), -1), queue = {from};
      for (size_t i = 0; i < queue.size() && by[to] < 0; ++i) {
        for (const int a : of[queue[i]]) {
          const Arc& arc = arcs[a];
          if (arc.room <= none || by[arc.to] >= 0 || arc.to == from) continue;
          by[arc.to] = a;
          queue.push_back(arc.to);
        }
      }
      if (by[to] < 0) break;
      double part = kInfinity;
      for (int v = to; v != from; v = arcs[by[v] ^ 1].to) {
        part = std::min(part, arcs[by[v]].room);
      }
      if (part == kInfinity) return part;
      for (int v = to; v != from; v = arcs[by[v] ^ 1].to) {
        arcs[by[v]].room -= part;
        arcs[by[v] ^ 1].room += part;
      }
      sum += part;
    }
    return sum;
  }
};

}  // namespace berth

#endif  // BERTH_PLANNER_CHECK_FLOW_H_
