// The throughput bound: packing in stages, each building on the last one.

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <functional>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include "base/infinity.h"
#include "planner/budget.h"
#include "planner/flow.h"
#include "planner/models.h"
#include "planner/packing.h"

namespace berth {

namespace {

constexpr int kMostFlows = 8;  // per unit and target
constexpr double kSection = 0.381966;
constexpr int kMovesPerUnit = 100;  // cost of its flows, in moves
constexpr int kLeastUnits = 200;    // when counting moves

// Unit sizes inflated by the copies that they cannot avoid.
//
// Let F_u(q) be the least paid(S) + q size(S) of all sets S that hold unit u:
// one minimum cut, for any q from 0 to 1. A set with size(S) + paid(S) <= T
// then has size(S) <= (T - F_u(q)) / (1 - q); so with
//
//   inflated_u = size_u (1 - q) / (1 - F_u(q) / T)
//
// every set that fits has inflated(S) <= T: plain packing that includes copies.
// If F_u(q) >= T for any q, u fits no device of the kind at all. A flow within
// a part of the graph is a flow, so F may be computed near u alone. refine()
// uses the threads of its budget.
class CutSizes {
  struct Line {  // F(q) >= least
    double q, least;
    double inflation(double target) const {
      return least < target ? (1 - q) / (1 - least / target) : kInfinity;
    }
  };
  using Known = std::vector<Line>;  // for a unit and kind
  // The network around one unit for one kind, and its flows.
  class Worker {
   public:
    explicit Worker(const CutSizes& of)
        : p_(of.p_),
          per_unit_(0x1p40 / of.scale_),
          ball_(of.ball_),
          local_(static_cast<size_t>(of.p_.num_units()), -1),
          seen_(static_cast<size_t>(of.p_.pins.size()), 0) {}

    // Finds the q that inflates the unit most: the inflation has one peak.
    void improve(size_t at, double target, Known& known) {
      unit_ = static_cast<int32_t>(at / p_.num_kinds());
      k_ = at % p_.num_kinds();
      target_ = target;
      build();
      double low = 0, high = 1, a = kSection, b = 1 - kSection;
      double at_a = inflation(known, a), at_b = inflation(known, b);
      for (int flows = 2; flows < kMostFlows; ++flows) {
        if (at_a < at_b) {
          low = std::exchange(a, b), at_a = at_b;
          b = high - kSection * (high - low);
          at_b = inflation(known, b);
        } else {
          high = std::exchange(b, a), at_b = at_a;
          a = low + kSection * (high - low);
          at_a = inflation(known, a);
        }
      }
      forget();
    }

   private:
    int64_t capacity(double us) const {
      const double units = us * per_unit_;
      return units < MaxFlow::kInfinite ? units : MaxFlow::kInfinite;
    }

    void build() {
      units_.assign(1, unit_);
      nets_.clear();
      local_[unit_] = 0;
      for (size_t i = 0; i < units_.size(); ++i) visit(units_[i]);
      flow_.reset(static_cast<int32_t>(units_.size()) + 1);
      const int32_t sink = units_.size();
      for (size_t i = 0; i < units_.size(); ++i) {
        flow_.add_arcs(static_cast<int32_t>(i), sink, 0, 0);  // arcs 2 i
      }
      for (const int32_t n : nets_) add_net(n);
    }

    // Adds the nets of a unit that fit into the ball.
    void visit(int32_t unit) {
      for (const int32_t n : p_.nets[unit]) {
        if (seen_[n]) continue;
        if (p_.in_of(n, k_) <= 0 && p_.out_of(n, k_) <= 0) continue;
        if (p_.pins[n].size() > static_cast<size_t>(ball_)) continue;
        size_t added = 0;
        for (const int32_t u : p_.pins[n]) added += local_[u] < 0;
        if (units_.size() + added > static_cast<size_t>(ball_)) continue;
        seen_[n] = 1;
        nets_.push_back(n);
        for (const int32_t u : p_.pins[n]) {
          if (local_[u] >= 0) continue;
          local_[u] = units_.size();
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
      for (const int32_t u : units_) local_[u] = -1;
      for (const int32_t n : nets_) seen_[n] = 0;
    }

    // Runs a flow, for q = x^3: the best q is often close to 0.
    double inflation(Known& known, double x) {
      const double q = x * x * x;
      for (size_t i = 0; i < units_.size(); ++i) {
        const double size = p_.size_on(units_[i], k_);
        flow_.set_capacity(
            2 * i, std::isinf(size) ? MaxFlow::kInfinite : capacity(q * size));
      }
      const int32_t sink = units_.size();
      const int64_t flow = flow_.run(0, sink, capacity(2 * target_));
      known.push_back({q, static_cast<double>(flow) / per_unit_});
      return known.back().inflation(target_);
    }

    const PackingProblem& p_;
    const double per_unit_;  // integers per unit of time
    const int32_t ball_;
    std::vector<int32_t> local_;  // per unit: index in the network; -1
    std::vector<uint8_t> seen_;   // per net
    size_t k_ = 0;
    int32_t unit_ = 0;
    double target_ = 0;
    std::vector<int32_t> units_, nets_;  // in the network
    MaxFlow flow_;
  };

 public:
  // Explores up to `ball` units around each. The problem must outlive it;
  // `scale`: the approximate value of T.
  CutSizes(const PackingProblem& problem, double scale, int32_t ball)
      : p_(problem),
        scale_(scale),
        ball_(ball),
        by_size_(problem.num_units() * problem.num_kinds()),
        known_(by_size_.size()) {
    std::iota(by_size_.begin(), by_size_.end(), 0);
    std::erase_if(by_size_,
                  [&](int32_t at) { return std::isinf(p_.size[at]); });
    std::ranges::stable_sort(by_size_, std::greater<>(),
                             [&](int32_t at) { return p_.size[at]; });
  }

  // Finds the best q at T = `target` for all units and kinds, large units
  // first. Ends early once the share `until` of the budget is spent; when
  // counting moves it explores a number of units that takes about as much.
  void refine(double target, const Budget& budget, double until) {
    const bool counts = budget.counts_moves();
    // When counting moves this number is fixed: the same for any threads.
    const double moves =
        counts ? until * Budget::kStreams * budget.moves_per_stream() : 0;
    const size_t count =
        counts
            ? std::min(by_size_.size(),
                       static_cast<size_t>(kLeastUnits + moves / kMovesPerUnit))
            : by_size_.size();
    std::atomic<size_t> next = 0;
    const auto work = [&](int) {
      Worker worker(*this);
      for (size_t i = next++; i < count; i = next++) {
        if (!counts && budget.spent(0) >= until) return;
        const size_t at = by_size_[i];
        worker.improve(at, target, known_[at]);
      }
    };
    const int threads = budget.threads();
    run_streams(threads, threads, work);
  }

  // Returns the inflated size of the unit and kind `at` at T = `target`;
  // infinite: it does not fit. If q is not null, *q proves it; -1: no proof is
  // needed.
  double size(size_t at, double target, double* q = nullptr) const {
    const double size = p_.size[at];
    if (q) *q = -1;
    if (std::isinf(size)) return size;
    double best = 1;
    for (const Line& l : known_[at]) {
      const double rho = l.inflation(target);
      if (rho <= best) continue;
      best = rho;
      if (q) *q = l.q;
    }
    return best < kInfinity ? size * best : kInfinity;
  }

 private:
  const PackingProblem& p_;
  double scale_;
  int32_t ball_;
  std::vector<int32_t> by_size_;  // unit * kinds + kind, largest first
  std::vector<Known> known_;      // [unit * kinds + kind]
};

constexpr double kShaved = 1e-6;        // subtracted from values, for rounding
constexpr int32_t kMostCounted = 1000;  // units

class LoadsProver {
 public:
  LoadsProver(const PlanProblem& problem, const Budget& budget)
      : load_(problem), budget_(budget), p_(load_) {}

  Bound prove() {
    if (!prove_simply()) return {};
    prove_by_count();
    prove_by_cuts(1);
    return std::move(bound_);
  }

 private:
  // The largest unit, and total work over devices. False: no unit takes time,
  // or one fits nowhere, which is reported elsewhere.
  bool prove_simply() {
    double largest = 0;
    int32_t unit = -1;
    for (int32_t u = 0; u < p_.num_units(); ++u) {
      const auto sizes = sizes_of(p_.size, u);
      const double least = *std::min_element(sizes.begin(), sizes.end());
      if (std::isinf(least)) return false;
      if (least <= largest) continue;
      largest = least;
      unit = u;
    }
    const SumProof sum = prove_by_sum(p_.size, p_.kinds);
    if (!(std::max(sum.worth, largest) > 0)) return false;
    worth_ = worth_of_all(p_.size, sum.prices);
    if (sum.worth >= largest) {
      state(sum.worth, "work of all devices");
      // As shares of the target: together slightly more than all devices.
      std::vector<double> worth = worth_;
      for (double& w : worth) w /= sum.worth * (1 - kShaved / 2);
      add_sizes(std::move(worth), sum.prices, {});
    } else {
      state(largest, "largest op");
      std::vector<double> worth(worth_.size(), 0);
      worth[unit] = 1;
      add_sizes(worth, std::vector<double>(p_.num_kinds(), 0),
                std::vector<double>(p_.size.size(), 1));
    }
    return true;
  }

  // Sizes inflated by copies, until targets and cuts agree.
  void prove_by_cuts(double until) {
    const int32_t n = p_.num_units();
    // Cuts that matter hold roughly one device's work.
    const int32_t devices = load_.limit.size();
    CutSizes cuts(p_, lower_,
                  n <= 1000 ? n : std::clamp(2 * n / devices, 400, 1000));
    for (int round = 0; round < 3 && budget_.spent(0) < until; ++round) {
      const double before = lower_, begun = budget_.spent(0);
      cuts.refine(lower_ * 1.01, budget_, begun + 0.75 * (until - begun));
      const double proved = greatest(cuts, lower_, until);
      // A smaller gain does not justify a much longer proof.
      if (proved > lower_ * (1 + 1e-4)) note_cuts(cuts, proved);
      if (lower_ <= before * (1 + 1e-3)) break;
    }
  }

  // The greatest T that the known cuts prove; `from`: none. Close to it if time
  // runs out.
  double greatest(const CutSizes& cuts, double from, double until) const {
    const auto proved = [&](double target) {
      return prove_by_sum(shares_at(cuts, target), p_.kinds).worth > 1;
    };
    double low = from, high = from * 1.02;
    while (proved(high)) {
      low = high;
      high *= 1.1;
    }
    while (high > low * (1 + 1e-5) && budget_.spent(0) < until) {
      const double middle = (low + high) / 2;
      (proved(middle) ? low : high) = middle;
    }
    return low;
  }

  void note_cuts(const CutSizes& cuts, double target) {
    const std::vector<double> share = shares_at(cuts, target);
    SumProof sum = prove_by_sum(share, p_.kinds);
    std::vector<double> worth = worth_of_all(share, sum.prices);
    for (double& w : worth) {
      if (std::isfinite(w)) continue;
      // This one fits nowhere: no other is needed.
      w = 1;
      for (double& other : worth) other = &other == &w ? 1 : 0;
      sum.prices.assign(p_.num_kinds(), 0);
      break;
    }
    std::vector<double> q(share.size());
    for (size_t at = 0; at < q.size(); ++at) cuts.size(at, target, &q[at]);
    state(target, "cut-inflated packing");
    add_sizes(worth, sum.prices, q);
    worth_ = std::move(worth);
  }

  // Whole units: of some of the largest, one device holds more than its share,
  // however small these are.
  void prove_by_count() {
    std::vector<std::pair<double, int32_t>> units;  // least size, unit
    for (int32_t u = 0; u < p_.num_units(); ++u) {
      const auto sizes = sizes_of(p_.size, u);
      units.emplace_back(-*std::min_element(sizes.begin(), sizes.end()), u);
    }
    std::sort(units.begin(), units.end());
    units.resize(std::min<size_t>(units.size(), kMostCounted));
    double proved = lower_ * (1 + kShaved);
    std::vector<std::vector<double>> sizes(p_.num_kinds()),
        counted;  // ascending
    for (size_t n = 0; n < units.size(); ++n) {
      for (size_t k = 0; k < sizes.size(); ++k) {
        const double size = p_.size_on(units[n].second, k);
        sizes[k].insert(std::ranges::upper_bound(sizes[k], size), size);
      }
      if (fits(sizes, proved)) continue;
      counted = sizes;
      double high = 2 * proved;
      while (!fits(sizes, high)) high *= 2;
      while (high > proved * (1 + kShaved / 10)) {
        const double middle = (proved + high) / 2;
        (fits(sizes, middle) ? high : proved) = middle;
      }
    }
    if (counted.empty()) return;
    state(proved, "whole ops");
    std::vector<double> worth(worth_.size(), 0), prices;
    for (size_t n = 0; n < counted[0].size(); ++n) worth[units[n].second] = 1;
    for (const std::vector<double>& kind : counted) {
      prices.push_back(most_within(kind, bound_.value));
    }
    add("worth", std::move(worth));
    add("price", std::move(prices));
  }

  // How many units, the smallest first, a device holds within `target`.
  static double most_within(const std::vector<double>& sizes, double target) {
    double sum = 0, count = 0;
    for (const double size : sizes) {
      if ((sum += size) > target) break;
      ++count;
    }
    return count;
  }
  bool fits(const std::vector<std::vector<double>>& sizes,
            double target) const {
    double room = 0;
    for (size_t k = 0; k < sizes.size(); ++k) {
      room += p_.kinds[k].count() * most_within(sizes[k], target);
    }
    return room >= static_cast<double>(sizes[0].size());
  }

  std::vector<double> shares_at(const CutSizes& cuts, double target) const {
    std::vector<double> share(p_.size.size());
    for (size_t at = 0; at < share.size(); ++at) {
      share[at] = cuts.size(at, target) / target;
    }
    return share;
  }
  std::span<const double> sizes_of(const std::vector<double>& of_all,
                                   int32_t unit) const {
    return std::span(of_all).subspan(unit * p_.num_kinds(), p_.num_kinds());
  }
  std::vector<double> worth_of_all(const std::vector<double>& share,
                                   const std::vector<double>& prices) const {
    std::vector<double> worth;
    for (int32_t u = 0; u < p_.num_units(); ++u) {
      worth.push_back(worth_of(sizes_of(share, u), prices));
    }
    return worth;
  }

  // Records what is proved, and begins its witness (docs/formats.md).
  void state(double value, const char* how) {
    lower_ = value;
    bound_.value = value * (1 - kShaved);
    bound_.how = how;
    bound_.witness = {"packing", bound_.value, {}};
    std::vector<double> kind(load_.limit.size());
    for (size_t k = 0; k < p_.num_kinds(); ++k) {
      for (DeviceSet m = p_.kinds[k]; m; m.drop_first()) {
        kind[m.first()] = static_cast<double>(k);
      }
    }
    add("kind", std::move(kind));
  }
  void add(const char* name, std::vector<double> array) {
    bound_.witness.arrays.emplace_back(name, std::move(array));
  }
  void add_sizes(std::vector<double> worth, std::vector<double> prices,
                 std::vector<double> q) {
    q.resize(p_.size.size(), -1);
    add("worth", std::move(worth));
    add("price", std::move(prices));
    add("q", std::move(q));
  }

  const LoadProblem load_;
  const Budget& budget_;
  PackingProblem p_;
  double lower_ = 0;           // proved
  std::vector<double> worth_;  // per unit, by sizes
  Bound bound_;
};

}  // namespace

Bound bound_loads(const PlanProblem& problem, const Budget& budget) {
  return LoadsProver(problem, budget).prove();
}

}  // namespace berth
