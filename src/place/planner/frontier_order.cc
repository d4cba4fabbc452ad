#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "base/infinity.h"
#include "place/planner/frontier.h"

namespace berth {

namespace {

constexpr int32_t kMostSteps = 60000;  // of all tries together

// Grows an order from one unit, each time by the unit that opens the fewest
// nets.
class OrderMaker {
 public:
  explicit OrderMaker(const PackingProblem& p) : p_(p) {
    for (int32_t n = 0; n < p.pins.size(); ++n) {
      bool paid = false;
      for (size_t k = 0; k < p.num_kinds(); ++k) {
        paid |= p.in_of(n, k) > 0 || p.out_of(n, k) > 0;
      }
      paid_.push_back(paid);
    }
  }

  // Returns about the sum of 2^open, or infinity once it is `most`.
  double grow(int32_t start, double most) {
    reset();
    reach(start);
    double sum = 0;
    int32_t open = 0, fresh = 0;
    while (order_.size() < place_.size()) {
      if (candidates_.empty()) {
        while (taken_[fresh]) ++fresh;
        reach(fresh);
      }
      open += take_best();
      sum += std::ldexp(1.0, std::clamp(open, 0, 500));
      if (most < kInfinity && sum >= most) return kInfinity;
    }
    return sum;
  }
  const std::vector<int32_t>& order() const { return order_; }

 private:
  void reset() {
    const size_t n = p_.num_units();
    order_.clear();
    reached_.clear();
    candidates_.clear();
    taken_.assign(n, 0);
    place_.assign(n, -1);
    change_.assign(n, 0);
    left_.clear();
    for (int32_t i = 0; i < p_.pins.size(); ++i) {
      left_.push_back(p_.pins[i].size());
      if (!paid_[i]) continue;
      for (const int32_t u : p_.pins[i]) change_[u] += change_of(i);
    }
  }

  // How many more nets are open if a unit of this one comes next.
  int32_t change_of(int32_t net) const {
    const int32_t size = p_.pins[net].size();
    return (left_[net] == size) - (left_[net] == 1);
  }

  // The first one reached among equals, and among those that open none.
  std::pair<int32_t, int32_t> key(int32_t unit) const {
    return {std::max(change_[unit], -1), place_[unit]};
  }

  void reach(int32_t unit) {
    place_[unit] = reached_.size();
    reached_.push_back(unit);
    candidates_.insert(key(unit));
  }

  // Returns how many more nets are open then.
  int32_t take_best() {
    const int32_t unit = reached_[candidates_.begin()->second];
    const int32_t change = change_[unit];
    candidates_.erase(candidates_.begin());
    taken_[unit] = 1;
    order_.push_back(unit);
    for (const int32_t n : p_.nets[unit]) {
      if (paid_[n]) take_pin(n);
    }
    return change;
  }

  void take_pin(int32_t net) {
    const bool first = left_[net] == static_cast<int32_t>(p_.pins[net].size());
    const int32_t before = change_of(net);
    --left_[net];
    const int32_t more = change_of(net) - before;
    if (more == 0 && !first) return;
    for (const int32_t u : p_.pins[net]) {
      const bool candidate = place_[u] >= 0 && !taken_[u];
      if (candidate) candidates_.erase(key(u));
      change_[u] += more;
      if (candidate) candidates_.insert(key(u));
      if (place_[u] < 0) reach(u);
    }
  }

  const PackingProblem& p_;
  std::vector<uint8_t> paid_, taken_;
  std::vector<int32_t> left_;    // per net: units not yet taken
  std::vector<int32_t> change_;  // per unit: in open nets, if it were next
  std::vector<int32_t> place_, reached_, order_;
  std::set<std::pair<int32_t, int32_t>> candidates_;  // keys
};

}  // namespace

std::vector<int32_t> frontier_order(const PackingProblem& p, int tries) {
  OrderMaker maker(p);
  std::vector<int32_t> best;
  double least = kInfinity;
  const int32_t n = p.num_units();
  tries = std::min(tries, kMostSteps / std::max(n, 1) + 1);
  const int32_t stride = std::max(n / std::max(tries, 1), 1);
  for (int32_t start = 0; start < n; start += stride) {
    const double sum = maker.grow(start, least);
    if (!(sum < least)) continue;
    least = sum;
    best = maker.order();
  }
  return best;
}

}  // namespace berth
