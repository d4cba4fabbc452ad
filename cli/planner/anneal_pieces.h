// Annealing of plans of the third model. Internal to its search; one thread per
// object.

#ifndef BERTH_CLI_PLANNER_ANNEAL_PIECES_H_
#define BERTH_CLI_PLANNER_ANNEAL_PIECES_H_

#include <cstdint>
#include <functional>
#include <limits>
#include <vector>

#include "cli/planner/chain_pieces.h"
#include "cli/planner/pieces.h"
#include "place/planner/budget.h"

namespace berth {

// A device per group, and its value; infinite: none keeps all limits.
struct PiecesPlan {
  std::vector<int32_t> device;
  double value = std::numeric_limits<double>::infinity();
};

class PiecesAnneal {
 public:
  PiecesAnneal(const PiecesProblem& problem, const PiecesChain& chain);

  // Starts from a plan, which may exceed memory limits. Returns its value, with
  // a penalty for that.
  double start(const std::vector<int32_t>& device);

  // Tries moves from there while spent(), called every few moves, is below 1.
  // That share of the budget also sets the temperature, from `hot` (a share of
  // the value) to a thousandth of it. Returns the moves tried.
  int64_t run(StreamRandom& random, double hot,
              const std::function<double(int64_t moves)>& spent);

  // The best plan since construction.
  const PiecesPlan& best() const { return best_; }

 private:
  struct Change {
    int32_t group, device;
  };

  bool propose(StreamRandom& random);
  bool propose_cluster(StreamRandom& random);
  bool propose_window(StreamRandom& random);
  bool propose_piece(StreamRandom& random);
  bool propose_swap(StreamRandom& random);
  uint32_t random_size(StreamRandom& random) const;
  int32_t device_nearby(int32_t group, StreamRandom& random) const;
  int32_t any_of(DeviceSet mask, StreamRandom& random) const;
  int32_t roomiest(DeviceSet mask) const;
  void apply();
  void undo();
  void put(int32_t group, int32_t device);
  double energy();
  void keep_best();

  const PiecesProblem& p_;
  const PiecesChain& chain_;
  PiecesEvaluator evaluator_;
  Rows<int32_t> neighbours_;    // per group
  std::vector<int32_t> order_;  // groups, in a graph order

  std::vector<int32_t> device_;  // per group
  std::vector<int32_t> on_;      // per op
  std::vector<double> held_;     // bytes, per device
  std::vector<Change> changes_;  // of the move being tried
  std::vector<int32_t> seen_;    // per group: in the cluster of this move
  int32_t tried_ = 0;
  double value_ = 0, over_ = 0;  // of the last energy()
  PiecesPlan best_;
};

}  // namespace berth

#endif  // BERTH_CLI_PLANNER_ANNEAL_PIECES_H_
