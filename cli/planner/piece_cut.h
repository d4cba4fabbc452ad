// The least that a piece costs beyond what it surely has, given where it meets
// a path: a least cut. Internal to path_pieces.h; one thread per object.

#ifndef BERTH_CLI_PLANNER_PIECE_CUT_H_
#define BERTH_CLI_PLANNER_PIECE_CUT_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "cli/planner/pieces.h"
#include "place/planner/flow.h"

namespace berth {

// Where ops stand to a path: per op the last op of the path that reaches it
// (-1: none) and the first that it reaches (the path's length: none).
struct PathLabels {
  std::vector<int32_t> from, to;

  enum class Side : uint8_t { kFree, kInside, kOutside };
  // In a piece that has the ops `begin` to `last` of the path and no other.
  Side side(int32_t op, int32_t begin, int32_t last) const {
    const auto at = static_cast<size_t>(op);
    if (from[at] >= begin && to[at] <= last) return Side::kInside;
    if (to[at] < begin || from[at] > last) return Side::kOutside;
    return Side::kFree;
  }
};

PathLabels labels_of(const PiecesProblem& problem,
                     const std::vector<int32_t>& path);

// Is `op` on an accelerator in the piece of `input` whenever both are there
// together? When whatever else it reads is a source or read by `input` too: no
// path then leaves the piece behind `input` and comes back to `op`.
bool in_one_piece(const PiecesProblem& problem, int32_t input, int32_t op);

class PieceCut {
 public:
  explicit PieceCut(const PiecesProblem& problem);

  // From here on the work of these ops is free: it is counted elsewhere.
  void set_counted(const std::vector<int32_t>& ops);

  // Returns what the free ops add at least to the cost of a piece: their work,
  // or the transfers that cut them off; where each byte that the piece holds
  // over the limit of any accelerator costs `price` more, and each below it as
  // much less. Sets the bytes that the cheapest such piece holds.
  double least(const PathLabels& labels, int32_t begin, int32_t last,
               double price, double* bytes);

  // Of the last least(): the ops of the cheapest piece.
  std::vector<int32_t> members() const;

  // The same at the price that gives most.
  double best(const PathLabels& labels, int32_t begin, int32_t last,
              double* price);

 private:
  void add_ops(const PathLabels& labels, int32_t begin, int32_t last,
               double price);
  void add_values(const PathLabels& labels, int32_t begin, int32_t last);
  void add_ties();
  int64_t units(double cost) const;

  const PiecesProblem& p_;
  std::vector<double> work_;  // per op, on the best accelerator
  std::vector<char> counted_;
  std::vector<std::pair<int32_t, int32_t>> ties_;  // ops of one piece
  double most_bytes_ = 0;                          // of any accelerator
  double scale_ = 1;                               // units of the flow
  MaxFlow flow_;
  std::vector<int32_t> node_;  // per op
  std::vector<int32_t> seen_;  // per group: inside, in cut
  int32_t cuts_ = 0;
  double inside_bytes_ = 0;
};

}  // namespace berth

#endif  // BERTH_CLI_PLANNER_PIECE_CUT_H_
