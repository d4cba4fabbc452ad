// Lower bounds from one path of ops, for any plan of the third model.
//
// A path meets pieces one after another, each in consecutive ops of the path. A
// piece with the ops i to j of the path also has all ops between them (pieces
// are contiguous), and none before op i - 1 or behind op j + 1. So it takes at
// least the work of those, and the transfer of each value that one of those and
// one of these read or make. It holds the bytes of their colour classes. What
// else it has is optional: a least cut gives the minimum cost of that, work and
// transfers together (piece_cut.h). The cheapest split of the path is a lower
// bound on any plan. Internal to the bound; one thread.

#ifndef BERTH_CLI_PLANNER_PATH_PIECES_H_
#define BERTH_CLI_PLANNER_PATH_PIECES_H_

#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "cli/planner/piece_cut.h"
#include "cli/planner/pieces.h"

namespace berth {

class PathPieces {
 public:
  explicit PathPieces(const PiecesProblem& problem);

  // Weights by which paths may be long: rule number modulo kRules selects least
  // time, bytes, time and transfers, or ops.
  static constexpr int kRules = 4;
  double weight(int32_t op, int rule) const;

  // Returns the longest path under weights per op.
  std::vector<int32_t> longest(const std::vector<double>& weight) const;

  // Returns a lower bound on the time for the ops of a path: ops of the
  // PiecesProblem, each an input of the next. Computes cuts while they help and
  // more(), called before each, returns true. Excludes the time of `others`,
  // which may be in the same pieces.
  double least(const std::vector<int32_t>& path,
               const std::function<bool()>& more,
               const std::vector<int32_t>& others = {});

  // Returns the time of an op at its best place.
  double least_time(int32_t op) const;

  // The pieces whose cuts the last least() used.
  struct Cut {
    int32_t begin, last;  // places on the path
    double price;         // per byte
  };
  const std::vector<Cut>& cuts() const { return cuts_; }

  // Returns the pieces of the last least()'s cheapest solution, with all ops
  // that belong to them at the price of their cut. Not a plan: pieces may
  // exceed limits and share ops.
  std::vector<std::vector<int32_t>> cheapest_pieces();

 private:
  struct Kind {  // accelerators that are equal
    int32_t device;
    DeviceSet devices;
  };
  struct Piece {
    double cost;
    bool is_cut;
  };
  struct Step {
    double cost;
    int32_t begin;   // of the piece that ends here
    bool after_cpu;  // a CPU precedes it, or the op on a CPU
  };

  void add_kind(int32_t device);
  void add_pieces(int32_t begin);
  void add_transfers(int32_t begin);
  double cheapest();
  // Returns the pieces of the cheapest solution, last first: their first and
  // last places on the path.
  std::vector<std::pair<int32_t, int32_t>> cheapest_way() const;
  bool cut_cheapest(const std::function<bool()>& more);

  const PiecesProblem& p_;
  std::vector<Kind> kinds_;
  std::vector<double> cpu_time_;  // per op, on the best CPU
  PathLabels labels_;
  PieceCut piece_cut_;

  std::vector<int32_t> path_;
  std::vector<std::vector<int32_t>> met_at_;  // ops by labels_.to
  std::vector<int32_t> last_from_;            // per value: over all its ends
  std::vector<double> transfers_;             // of a piece, at its last op
  std::vector<int32_t> counted_;              // per group: in the current piece
  std::vector<std::vector<Piece>> pieces_;    // [begin][last - begin]
  std::vector<Step> in_piece_, on_cpu_;       // by the number of ops done
  std::vector<Cut> cuts_;
};

}  // namespace berth

#endif  // BERTH_CLI_PLANNER_PATH_PIECES_H_
