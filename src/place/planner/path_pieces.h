// What any plan of the third model needs along one path of ops.
//
// A path meets pieces one after another, each in ops that follow each other on
// it. A piece that has the ops i to j of the path also has all ops between them
// (pieces are contiguous), and none before op i - 1 or behind op j + 1: so it
// takes at least the work of those, and the transfer of each value that one of
// those and one of these read or make. It holds the bytes of their colour
// classes. The cheapest way to cut the path is a lower bound on any plan.
// Internal to the bound; pure.

#ifndef BERTH_PLACE_PLANNER_PATH_PIECES_H_
#define BERTH_PLACE_PLANNER_PATH_PIECES_H_

#include <cstdint>
#include <vector>

#include "place/planner/pieces.h"

namespace berth {

class PathPieces {
 public:
  explicit PathPieces(const PiecesProblem& problem);

  // Returns the longest path under weights per op.
  std::vector<int32_t> longest(const std::vector<double>& weight);

  // Returns the least time in which the ops of a path can be done: ops of the
  // PiecesProblem, each an input of the next, or reached from it.
  double least(const std::vector<int32_t>& path);

 private:
  struct Kind {  // accelerators that are alike
    int32_t device;
    DeviceMask devices;
  };

  enum class Border : uint8_t {
    kAny,
    kSameDevice,  // ops of one group
    kSamePiece,   // which, on an accelerator, are in one piece for certain
  };
  void add_kind(int32_t device);
  Border border(int32_t before, int32_t op, int32_t at) const;
  void mark(const std::vector<int32_t>& path);
  void pieces_from(int32_t begin, int32_t end, double before);
  void add_transfers(int32_t begin, int32_t end);

  const PiecesProblem& p_;
  std::vector<Kind> kinds_;
  std::vector<double> cpu_time_;  // per op, on the best CPU
  // Per op: the last op of the path that reaches it, and the first that it
  // reaches; -1 and the length of the path: none.
  std::vector<int32_t> from_, to_;
  std::vector<std::vector<int32_t>> met_at_;  // per op of the path: ops of to_
  std::vector<int32_t> last_from_;            // per value: of all its ends
  std::vector<double> transfers_;  // per end, of a piece that begins at one
  std::vector<int32_t> counted_;   // per group: in the piece that begins there
  // The least time of the ops before one, the last of them in a piece of an
  // accelerator or on a CPU.
  std::vector<double> in_piece_, on_cpu_;
};

}  // namespace berth

#endif  // BERTH_PLACE_PLANNER_PATH_PIECES_H_
