// The bound of the third model: many paths, each by what any plan needs along
// it.

#include <algorithm>
#include <cmath>
#include <limits>

#include "place/planner/models.h"
#include "place/planner/path_pieces.h"

namespace berth {

namespace {

constexpr uint64_t kSeed = 1;
constexpr int64_t kMovesOfPath = 100;  // that one path counts as
constexpr double kRounding = 1e-9;     // of sums; shaved off

class Prover {
 public:
  explicit Prover(const PiecesProblem& p)
      : p_(p), paths_(p), weight_(static_cast<size_t>(p.num_ops)) {}

  // Paths that are long in time, in bytes, in transfers and in ops; then in
  // random mixtures of these.
  void run(const Budget& budget) {
    StreamRandom random(kSeed, 0);
    for (int k = 0; k < 4 || budget.spent(k * kMovesOfPath) < 1; ++k) {
      if (k > 0 && budget.seconds_left() <= 0) break;
      for (int32_t v = 0; v < p_.num_ops; ++v) {
        const double some = k < 4 ? 1 : random.uniform();
        weight_[static_cast<size_t>(v)] = some * weight(v, k % 4);
      }
      std::vector<int32_t> path = paths_.longest(weight_);
      const double value = paths_.least(path);
      if (value <= value_) continue;
      value_ = value;
      path_ = std::move(path);
    }
  }

  double value() const { return value_; }
  const std::vector<int32_t>& path() const { return path_; }

 private:
  double weight(int32_t v, int rule) const {
    const auto at = static_cast<size_t>(v);
    if (rule == 1) return p_.bytes[at];
    if (rule == 3) return 1;
    double least = std::numeric_limits<double>::infinity();
    for (int32_t d = 0; d < p_.num_devices; ++d) {
      least = std::min(least, p_.time_of(v, d));
    }
    if (!std::isfinite(least)) least = 0;
    return rule == 0 ? least : least + p_.touch[at];
  }

  const PiecesProblem& p_;
  PathPieces paths_;
  std::vector<double> weight_;
  std::vector<int32_t> path_;
  double value_ = 0;
};

}  // namespace

Bound bound_pieces(const PlanProblem& problem, const Budget& budget, double) {
  const PiecesProblem p(problem);
  Prover prover(p);
  prover.run(budget);
  Bound b;
  // Infinite: no plan at all, which is for others to prove.
  if (!std::isfinite(prover.value())) return b;
  b.value = prover.value() * (1 - kRounding);
  b.how = "pieces along a path";
  b.witness.kind = "pieces";
  b.witness.target = b.value;
  std::vector<double> path;
  for (const int32_t v : prover.path()) path.push_back(p.original[v]);
  b.witness.arrays.emplace_back("path", std::move(path));
  return b;
}

}  // namespace berth
