#include "place/planner/cut_sizes.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <numeric>

#include "base/infinity.h"
#include "place/planner/flow.h"

namespace berth {

namespace {

constexpr int kMostSteps = 8;       // flows per unit and target
constexpr int kMovesPerUnit = 100;  // cost of its flows, in moves
constexpr int kLeastUnits = 200;    // when counting moves

}  // namespace

// The network around one unit for one kind, and its flows.
class CutSizes::Worker {
 public:
  explicit Worker(const CutSizes& of)
      : p_(of.p_),
        per_unit_(0x1p40 / of.scale_),
        ball_(of.ball_),
        local_(static_cast<size_t>(of.p_.num_units()), -1),
        seen_(static_cast<size_t>(of.p_.pins.size()), 0) {}

  // Returns the number of flows that it ran.
  int64_t improve(int32_t unit, size_t kind, double target, Known& known) {
    k_ = kind;
    target_ = target;
    built_ = false;
    unit_ = unit;
    int64_t flows = 0;
    if (known.lines.empty()) {
      add(known, 1.0);
      ++flows;
      // All of the part at once, without its copies.
      known.sets.push_back({0, total_});
    }
    for (; flows < kMostSteps; ++flows) {
      const double q = best_q(known);
      if (q < 0 || !add(known, q)) break;
    }
    if (built_) forget();
    return flows;
  }

 private:
  int64_t capacity(double us) const {
    const double units = us * per_unit_;
    return units < static_cast<double>(MaxFlow::kInfinite)
               ? static_cast<int64_t>(units)
               : MaxFlow::kInfinite;
  }

  void build() {
    built_ = true;
    total_ = 0;
    units_.assign(1, unit_);
    nets_.clear();
    local_[static_cast<size_t>(unit_)] = 0;
    for (size_t i = 0; i < units_.size(); ++i) visit(units_[i]);
    flow_.reset(static_cast<int32_t>(units_.size()) + 1);
    const auto sink = static_cast<int32_t>(units_.size());
    for (size_t i = 0; i < units_.size(); ++i) {
      flow_.add_arcs(static_cast<int32_t>(i), sink, 0, 0);  // arcs 2 i
      const double size = p_.size_on(units_[i], k_);
      if (std::isfinite(size)) total_ += size;
    }
    for (const int32_t n : nets_) add_net(n);
  }

  // Adds the nets of a unit that fit into the ball.
  void visit(int32_t unit) {
    for (const int32_t n : p_.nets[unit]) {
      if (seen_[static_cast<size_t>(n)]) continue;
      if (p_.in_of(n, k_) <= 0 && p_.out_of(n, k_) <= 0) continue;
      if (p_.pins[n].size() > static_cast<size_t>(ball_)) continue;
      size_t added = 0;
      for (const int32_t u : p_.pins[n]) added += local_[u] < 0;
      if (units_.size() + added > static_cast<size_t>(ball_)) continue;
      seen_[static_cast<size_t>(n)] = 1;
      nets_.push_back(n);
      for (const int32_t u : p_.pins[n]) {
        if (local_[u] >= 0) continue;
        local_[u] = static_cast<int32_t>(units_.size());
        units_.push_back(u);
      }
    }
  }

  void add_net(int32_t n) {
    const auto pins = p_.pins[n];
    const int64_t in = capacity(p_.in_of(n, k_));
    const int64_t out = capacity(p_.out_of(n, k_));
    const int32_t head = local_[pins[0]];
    if (pins.size() == 2) {
      flow_.add_arcs(head, local_[pins[1]], out, in);
      return;
    }
    const int32_t to_head = flow_.add_node(), from_head = flow_.add_node();
    flow_.add_arcs(to_head, head, in, 0);
    flow_.add_arcs(head, from_head, out, 0);
    for (size_t i = 1; i < pins.size(); ++i) {
      const int32_t other = local_[pins[i]];
      flow_.add_arcs(other, to_head, MaxFlow::kInfinite, 0);
      flow_.add_arcs(from_head, other, MaxFlow::kInfinite, 0);
    }
  }

  void forget() {
    for (const int32_t u : units_) local_[static_cast<size_t>(u)] = -1;
    for (const int32_t n : nets_) seen_[static_cast<size_t>(n)] = 0;
  }

  // Adds the result of a flow at `q`. Returns whether it was new.
  bool add(Known& known, double q) {
    if (!built_) build();
    for (size_t i = 0; i < units_.size(); ++i) {
      const double size = p_.size_on(units_[i], k_);
      flow_.set_capacity(static_cast<int32_t>(2 * i), std::isinf(size)
                                                          ? MaxFlow::kInfinite
                                                          : capacity(q * size));
    }
    const int64_t enough = capacity(2 * target_);
    const auto sink = static_cast<int32_t>(units_.size());
    const int64_t flow = flow_.run(0, sink, enough);
    const double least = static_cast<double>(flow) / per_unit_;
    known.lines.push_back({q, least});
    if (flow >= enough) return false;
    double size = 0;
    for (size_t i = 0; i < units_.size(); ++i) {
      if (flow_.on_source_side(static_cast<int32_t>(i))) {
        size += p_.size_on(units_[i], k_);
      }
    }
    const double paid = std::max(least - q * size, 0.0);
    const bool news =
        std::none_of(known.sets.begin(), known.sets.end(), [&](const Set& s) {
          return std::abs(s.size - size) <= 1e-9 * size &&
                 std::abs(s.paid - paid) <= 1e-6 * target_;
        });
    if (news) known.sets.push_back({paid, size});
    return news;
  }

  // The q where the known sets allow the greatest inflation; -1: a flow has
  // been run there, or there is none.
  double best_q(const Known& known) const {
    double best = -1, most = 0;
    const auto try_q = [&](double q) {
      if (!(q > 0 && q < 1)) return;
      double least = kInfinity;
      for (const Set& s : known.sets) {
        least = std::min(least, s.paid + q * s.size);
      }
      const double rho =
          least < target_ ? (1 - q) / (1 - least / target_) : kInfinity;
      if (rho <= most) return;
      most = rho;
      best = q;
    };
    for (const Set& a : known.sets) {
      if (a.size + a.paid > target_) continue;
      for (const Set& b : known.sets) {
        if (b.size + b.paid <= target_ || b.size <= a.size) continue;
        try_q((a.paid - b.paid) / (b.size - a.size));
      }
    }
    const bool been =
        std::any_of(known.lines.begin(), known.lines.end(),
                    [&](const Line& l) { return std::abs(l.q - best) < 1e-9; });
    return been ? -1 : best;
  }

  const PackingProblem& p_;
  const double per_unit_;  // integers per unit of time
  const int32_t ball_;
  std::vector<int32_t> local_;  // per unit: index in the network; -1
  std::vector<uint8_t> seen_;   // per net
  size_t k_ = 0;
  int32_t unit_ = 0;
  double target_ = 0, total_ = 0;
  bool built_ = false;
  std::vector<int32_t> units_, nets_;  // in the network
  MaxFlow flow_;
};

CutSizes::CutSizes(const PackingProblem& problem, double scale, int32_t ball)
    : p_(problem),
      scale_(scale),
      ball_(ball),
      by_size_(static_cast<size_t>(problem.num_units()) * problem.num_kinds()),
      known_(by_size_.size()) {
  std::iota(by_size_.begin(), by_size_.end(), 0);
  std::erase_if(by_size_, [&](int32_t at) {
    return std::isinf(p_.size[static_cast<size_t>(at)]);
  });
  std::stable_sort(by_size_.begin(), by_size_.end(), [&](int32_t a, int32_t b) {
    return p_.size[static_cast<size_t>(a)] > p_.size[static_cast<size_t>(b)];
  });
}

int64_t CutSizes::refine(double target, const Budget& budget, double until) {
  constexpr size_t kChunk = 4;
  const bool counts = budget.counts_moves();
  // When counting moves this number is fixed: the same for any threads.
  const double moves = counts
                           ? until * Budget::kStreams *
                                 static_cast<double>(budget.moves_per_stream())
                           : 0;
  const size_t count =
      counts
          ? std::min(by_size_.size(),
                     static_cast<size_t>(kLeastUnits + moves / kMovesPerUnit))
          : by_size_.size();
  const size_t chunks = (count + kChunk - 1) / kChunk;
  std::atomic<size_t> next = 0;
  std::atomic<int64_t> flows = 0;
  const auto work = [&](int) {
    Worker worker(*this);
    while (true) {
      const size_t chunk = next++;
      if (chunk >= chunks) return;
      const size_t end = std::min((chunk + 1) * kChunk, count);
      for (size_t i = chunk * kChunk; i < end; ++i) {
        if (!counts && budget.spent(0) >= until) return;
        const auto at = static_cast<size_t>(by_size_[i]);
        flows += worker.improve(static_cast<int32_t>(at / p_.num_kinds()),
                                at % p_.num_kinds(), target, known_[at]);
      }
    }
  };
  const int threads = budget.threads();
  run_streams(threads, threads, work);
  return flows;
}

double CutSizes::size(int32_t unit, size_t kind, double target,
                      double* q) const {
  const double size = p_.size_on(unit, kind);
  if (q) *q = -1;
  if (std::isinf(size)) return size;
  const size_t at = static_cast<size_t>(unit) * p_.num_kinds() + kind;
  double best = 1;
  for (const Line& l : known_[at].lines) {
    const double rho =
        l.least < target ? (1 - l.q) / (1 - l.least / target) : kInfinity;
    if (rho <= best) continue;
    best = rho;
    if (q) *q = l.q;
  }
  return best < kInfinity ? size * best : kInfinity;
}

}  // namespace berth
