// A model of the planner's: latency as the authors of dnn-partitioning define
// it.
//
//  - An accelerator's ops are split into contiguous pieces by depth: along any
//    path that leaves the accelerator and returns, a new piece begins. An op on
//    a CPU (a device that is free of touch) is a separate piece.
//  - A piece starts when everything that it reads from others has ended. It
//    receives these values one after another, computes its ops, and sends what
//    others read: touch_us for each value, once. CPUs pay nothing for
//    transfers.
//  - Pieces wait only for what they read: those of one accelerator may overlap,
//    and a CPU stands for as many cores as needed.
//  - The value is the end of the last piece. If pieces wait for each other,
//    there is no plan. An accelerator holds the bytes of all its ops.
//
// The problem is only read; each evaluator is used by one thread.

#ifndef BERTH_CLI_PLANNER_PIECES_H_
#define BERTH_CLI_PLANNER_PIECES_H_

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "place/planner/models.h"

namespace berth {

Evaluation evaluate_pieces(const PlanProblem& problem, const PlacePlan& plan);
Found search_pieces(const PlanProblem& problem, const Budget& budget,
                    uint64_t seed);
Bound bound_pieces(const PlanProblem& problem, const Budget& budget,
                   double upper);
inline constexpr ModelRules kPiecesRules{
    "pieces", "all placements, each device's contiguous pieces run whole",
    &evaluate_pieces, &search_pieces, &bound_pieces};

// Makes the problem use this model.
inline void use_pieces(PlanProblem& problem) {
  problem.model = PlanModel::kOther;
  problem.rules = &kPiecesRules;
}
inline bool has_pieces(const PlanProblem& problem) {
  return problem.rules == &kPiecesRules;
}

// Checks a witness of bound_pieces(), see check.h.
std::string check_pieces(const PlanProblem& problem, const Witness& witness);

// A problem of this model in flat arrays, with ops numbered so that none
// precedes what it reads. Throws errors::InvalidArgument for ops with several
// outputs or with controls, which the model does not support.
struct PiecesProblem {
  explicit PiecesProblem(const PlanProblem& problem);

  int32_t num_ops = 0, num_devices = 0, num_groups = 0;
  std::vector<int32_t> original;   // per op: its number in the problem
  Rows<int32_t> inputs, readers;   // per op: ops
  std::vector<double> touch;       // per op: of its value
  std::vector<double> time;        // [op * devices + device]; may be infinite
  std::vector<double> bytes;       // per op
  std::vector<double> limit;       // per device; infinite: none
  std::vector<uint8_t> is_cpu;     // per device
  std::vector<int32_t> group;      // per op
  Rows<int32_t> ops_of;            // per group
  std::vector<DeviceSet> allowed;  // per group
  std::vector<double> group_bytes;

  double time_of(int32_t op, int32_t device) const {
    return time[static_cast<size_t>(op) * static_cast<size_t>(num_devices) +
                static_cast<size_t>(device)];
  }
};

// Values of many plans of one problem; stops allocating once its arrays have
// grown.
class PiecesEvaluator {
 public:
  explicit PiecesEvaluator(const PiecesProblem& problem);

  // Returns the value; infinite: pieces wait for each other, or an op cannot
  // run there. `device`: per op of the PiecesProblem.
  double value(std::span<const int32_t> device);

  // The last plan's pieces by number: their devices, starts and ends, and each
  // op's piece.
  int32_t num_pieces() const { return num_pieces_; }
  int32_t piece_of(int32_t op) const { return piece_[op]; }
  int32_t device_of(int32_t piece) const { return pieces_[piece].device; }
  double start_of(int32_t piece) const { return pieces_[piece].start; }
  // Returns the time of receiving, computing and sending.
  double length_of(int32_t piece) const { return pieces_[piece].length; }
  // Return whether a piece could not be reached, and whether all could.
  bool is_waiting(int32_t piece) const { return pieces_[piece].waits > 0; }
  bool followed() const { return num_followed_ == num_pieces_; }

 private:
  struct Piece {
    int32_t device;
    int32_t waits;       // for this many edges
    int32_t first_edge;  // -1: none
    double length, start;
  };
  struct Edge {
    int32_t to, next;
  };

  template <class Depth>
  void cut(std::span<const int32_t> device, std::vector<Depth>& depths);
  void connect();
  double follow();
  int32_t new_piece(int32_t device);

  const PiecesProblem& p_;
  size_t width_;  // of a row of depths
  // [op * width + device]; the short ones where there are few ops.
  std::vector<int16_t> short_depths_;
  std::vector<int32_t> depths_;
  std::vector<int32_t> piece_;  // per op
  // Pieces of a device by depth; -1: none.
  std::vector<std::vector<int32_t>> by_depth_;
  std::vector<Piece> pieces_;
  std::vector<int32_t> seen_by_;  // per piece: last op it read
  std::vector<Edge> edges_;
  std::vector<int32_t> ready_;
  int32_t num_pieces_ = 0, num_followed_ = 0;
};

}  // namespace berth

#endif  // BERTH_CLI_PLANNER_PIECES_H_
