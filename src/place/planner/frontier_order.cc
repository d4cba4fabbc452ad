#include <algorithm>
#include <cmath>
#include <limits>

#include "place/planner/frontier.h"

namespace berth {

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr size_t kMostLooked = 256;    // candidates, or nets of one
constexpr int32_t kMostSteps = 60000;  // of all tries together

// Grows an order from one unit, each time by the one that opens the fewest
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
    const auto n = static_cast<size_t>(p_.num_units());
    order_.clear();
    taken_.assign(n, 0);
    near_.assign(n, 0);
    left_.clear();
    for (int32_t i = 0; i < p_.pins.size(); ++i) {
      left_.push_back(static_cast<int32_t>(p_.pins[i].size()));
    }
    candidates_.assign(1, start);
    near_[start] = 1;
    double sum = 0;
    int32_t open = 0;
    size_t fresh = 0;
    while (order_.size() < n) {
      if (candidates_.empty()) {
        while (taken_[fresh]) ++fresh;
        candidates_.push_back(static_cast<int32_t>(fresh));
        near_[fresh] = 1;
      }
      open += take_best();
      sum += std::ldexp(1.0, std::clamp(open, 0, 500));
      if (most < kInfinity && sum >= most) return kInfinity;
    }
    return sum;
  }
  const std::vector<int32_t>& order() const { return order_; }

 private:
  int32_t change(int32_t unit) const {
    int32_t c = 0;
    const auto nets = p_.nets[unit];
    for (const int32_t n : nets.first(std::min(nets.size(), kMostLooked))) {
      if (!paid_[n]) continue;
      const int32_t size = static_cast<int32_t>(p_.pins[n].size());
      c += (left_[n] == size) - (left_[n] == 1);
    }
    return c;
  }

  // Of equal ones the one that was reached first.
  int32_t take_best() {
    size_t best = 0;
    int32_t least = std::numeric_limits<int32_t>::max();
    for (size_t i = 0; i < std::min(candidates_.size(), kMostLooked); ++i) {
      const int32_t c = change(candidates_[i]);
      if (c >= least) continue;
      least = c;
      best = i;
      if (c < 0) break;
    }
    const int32_t unit = candidates_[best];
    candidates_.erase(candidates_.begin() + static_cast<std::ptrdiff_t>(best));
    taken_[unit] = 1;
    order_.push_back(unit);
    for (const int32_t n : p_.nets[unit]) {
      if (!paid_[n]) continue;
      if (left_[n]-- < static_cast<int32_t>(p_.pins[n].size())) continue;
      for (const int32_t u : p_.pins[n]) {
        if (near_[u]) continue;
        near_[u] = 1;
        candidates_.push_back(u);
      }
    }
    return least;
  }

  const PackingProblem& p_;
  std::vector<uint8_t> paid_, taken_, near_;
  std::vector<int32_t> left_, candidates_, order_;
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
