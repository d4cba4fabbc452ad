// The least cost of a piece beyond what it surely contains, given where it
// meets a path: a least cut. Internal to path_pieces.h; one thread per object.

#ifndef BERTH_CLI_PLANNER_PIECE_CUT_H_
#define BERTH_CLI_PLANNER_PIECE_CUT_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "cli/planner/pieces.h"
#include "place/planner/flow.h"

namespace berth {

// Per op, the last op of a path that reaches it (-1: none) and the first that
// it reaches (the path's length: none).
struct PathLabels {
  std::vector<int32_t> from, to;

  enum class Side : uint8_t { kFree, kInside, kOutside };
  // For a piece that has the ops `begin` to `last` of the path and no others.
  Side side(int32_t op, int32_t begin, int32_t last) const {
    if (from[op] >= begin && to[op] <= last) return Side::kInside;
    if (to[op] < begin || from[op] > last) return Side::kOutside;
    return Side::kFree;
  }
};

PathLabels labels_of(const PiecesProblem& problem,
                     const std::vector<int32_t>& path);

// Returns whether `op` always shares the accelerator piece of `input`. True if
// all else that it reads is a source or is read by `input` too: then no path
// leaves the piece behind `input` and returns to `op`.
bool in_one_piece(const PiecesProblem& problem, int32_t input, int32_t op);

class PieceCut {
 public:
  explicit PieceCut(const PiecesProblem& problem);

  // Makes the work of these ops free from now on: it is counted elsewhere.
  void set_counted(const std::vector<int32_t>& ops);

  // Returns the least that the free ops add to the cost of a piece: their work,
  // or the transfers that cut them off. Each byte over the limit of any
  // accelerator costs `price` more, and each byte below it as much less. Sets
  // the bytes that the cheapest such piece holds.
  double least(const PathLabels& labels, int32_t begin, int32_t last,
               double price, double* bytes);

  // Returns the ops of the last least()'s cheapest piece.
  std::vector<int32_t> members() const;

  // The same at the price with the largest result.
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
  std::vector<std::pair<int32_t, int32_t>> ties_;  // ops that share a piece
  double most_bytes_ = 0;                          // of any accelerator
  double scale_ = 1;                               // per unit of flow
  MaxFlow flow_;
  std::vector<int32_t> node_;  // per op
  std::vector<int32_t> seen_;  // per group: inside, in cut
  int32_t cuts_ = 0;
  double inside_bytes_ = 0;
};

}  // namespace berth

#endif  // BERTH_CLI_PLANNER_PIECE_CUT_H_
