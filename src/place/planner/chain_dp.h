// ChainCutter: the best split of a linear order of units into one piece per
// device.
//
// Exact for the order and the touch rule: min-max over all splits and all
// assignments of equal devices to pieces; pieces may be empty. Heuristic if
// devices differ in too many ways or links differ. A start for annealing. One
// thread.

#ifndef BERTH_PLACE_PLANNER_CHAIN_DP_H_
#define BERTH_PLACE_PLANNER_CHAIN_DP_H_

#include <cstdint>
#include <span>
#include <vector>

#include "place/planner/budget.h"
#include "place/planner/loads.h"

namespace berth {

class ChainCutter {
 public:
  explicit ChainCutter(const LoadProblem& problem);

  // Returns the device per unit of the best split, or nothing if none (as far
  // as it can tell) has a value below `below` and keeps limits and masks, or
  // once the stream has spent the share `end` of its budget. Priced piece ends
  // count as moves, several as one.
  std::vector<int32_t> cut(std::span<const int32_t> order, double below,
                           SearchStream& stream, double end);

 private:
  // Devices that are equal in all that a piece's load depends on.
  struct Kind {
    std::vector<int32_t> devices;
    double latency_us = 0, us_per_byte = 0;  // mean over copies to it
  };
  // From a set of used devices to the set with one more of a kind.
  struct Arc {
    int32_t from, to, kind;
  };
  struct Cell {
    double value;
    int32_t begin;  // of the last piece; -1: none
    int32_t arc;    // -1: previous state, a device without a piece
  };
  // The cost of a piece, as units are added at its end.
  struct Piece {
    double touch_us = 0, bytes = 0;
    double in_copies = 0, in_bytes = 0, out_copies = 0, out_bytes = 0;
    DeviceSet allowed = ~DeviceSet{0};
    std::vector<double> work;  // per class
  };

  void make_arcs_by_counts();
  void make_arcs_by_list(StreamRandom& random);
  void grow(Piece& piece, int32_t unit, int32_t stamp);
  void add_net(Piece& piece, int32_t net, double sign) const;
  double load_of(const Piece& piece, const Kind& kind) const;
  bool relax(const Piece& piece, int32_t begin, int32_t end, double below);
  std::vector<int32_t> assignment(std::span<const int32_t> order,
                                  int32_t state);
  Cell& cell(int32_t position, int32_t state) {
    return cells_[static_cast<size_t>(position) * num_states_ + state];
  }

  const LoadProblem& p_;
  std::vector<Kind> kinds_;
  bool by_counts_ = true;
  size_t num_states_ = 1;
  std::vector<Arc> arcs_;
  std::vector<int32_t> open_arcs_;     // from states reached at this position
  std::vector<Cell> cells_;            // [position * states + state]
  std::vector<double> loads_;          // per kind, of a piece
  std::vector<int32_t> stamp_, seen_;  // per net: of the growing piece
  std::vector<uint8_t> sent_;          // per net: its producer is in the piece
};

}  // namespace berth

#endif  // BERTH_PLACE_PLANNER_CHAIN_DP_H_
