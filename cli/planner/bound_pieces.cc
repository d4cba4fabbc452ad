// The bound of the third model: many paths; what any plan needs along each.

#include <algorithm>
#include <cmath>
#include <functional>
#include <utility>

#include "cli/planner/path_pieces.h"

namespace berth {

namespace {

constexpr uint64_t kSeed = 1;
// Moves that count for the cut of a piece, and for a path.
constexpr int64_t kMovesOfCut = 10, kMovesOfPath = 10;
constexpr int kVain = 30;  // paths without gain before it ends
// Limit of pieces of a path times ops and edges: bounds the checker's work.
constexpr double kWork = 3e9;
constexpr double kSumRounding = 3e-10;  // of sums; subtracted

class PiecesProver {
 public:
  explicit PiecesProver(const PiecesProblem& p)
      : p_(p),
        paths_(p),
        weight_(static_cast<size_t>(p.num_ops)),
        most_(static_cast<int32_t>(
            std::sqrt(kWork / (p.num_ops + p.inputs.num_items() + 1)))) {}

  // Tries paths that are long in time, in bytes, in transfers and in ops, then
  // in random mixtures of these.
  void run(const Budget& budget) {
    StreamRandom random(kSeed, 0);
    const auto more = [&] { return budget.spent(moves_ += kMovesOfCut) < 1; };
    for (int k = 0; k == 0 || budget.spent(moves_ += kMovesOfPath) < 1; ++k) {
      if (k > PathPieces::kRules + 2 * better_at_ + kVain) return;
      for (int32_t v = 0; v < p_.num_ops; ++v) {
        const double some = k < PathPieces::kRules ? 1 : random.uniform();
        weight_[v] = some * paths_.weight(v, k);
      }
      if (try_path(paths_.longest(weight_), random, more)) better_at_ = k;
    }
  }

  double value() const { return value_; }
  Witness witness() const {
    std::vector<double> path, cuts;
    for (const int32_t v : path_) path.push_back(p_.original[v]);
    for (const PathPieces::Cut& c : cuts_) {
      cuts.insert(cuts.end(), {static_cast<double>(c.begin),
                               static_cast<double>(c.last), c.price});
    }
    return {"pieces",
            value_ * (1 - kSumRounding),
            {{"path", std::move(path)},
             {"part", {part_.first * 1.0, part_.second * 1.0}},
             {"cuts", std::move(cuts)}}};
  }

 private:
  // If a path is too long to consider all its pieces, takes a part of it, and
  // the least time of its other ops.
  bool try_path(std::vector<int32_t> path, StreamRandom& random,
                const std::function<bool()>& more) {
    const int32_t length = std::min(path.size(), static_cast<size_t>(most_));
    const auto most_begin = static_cast<int32_t>(path.size()) - length;
    const int32_t begin = random.below(static_cast<uint32_t>(most_begin) + 1);
    const auto from = path.begin() + begin, to = from + length;
    std::vector<int32_t> others(path.begin(), from);
    others.insert(others.end(), to, path.end());
    double value = paths_.least({from, to}, more, others);
    for (const int32_t v : others) value += paths_.least_time(v);
    if (value <= value_) return false;
    value_ = value;
    path_ = std::move(path);
    part_ = {begin, begin + length};
    cuts_ = paths_.cuts();
    return true;
  }

  const PiecesProblem& p_;
  PathPieces paths_;
  std::vector<double> weight_;
  const int32_t most_;  // ops of a path
  std::vector<int32_t> path_;
  std::pair<int32_t, int32_t> part_;
  std::vector<PathPieces::Cut> cuts_;
  int64_t moves_ = 0;
  int better_at_ = 0;  // index of the best path
  double value_ = 0;
};

}  // namespace

Bound bound_pieces(const PlanProblem& problem, const Budget& budget, double) {
  const PiecesProblem p(problem);
  PiecesProver prover(p);
  prover.run(budget);
  Bound b;
  // Infinite means no plan at all; other bounds prove that.
  if (!std::isfinite(prover.value())) return b;
  b.how = "least cuts of the pieces along a path, prices of memory";
  b.witness = prover.witness();
  b.value = b.witness.target;
  return b;
}

}  // namespace berth
