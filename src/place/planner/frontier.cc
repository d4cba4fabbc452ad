#include "place/planner/frontier.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

namespace berth {

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr int32_t kMostSlots = 16;  // nets of 4 bits in a key

// What the pins of an open net are so far; kSettled: it costs nothing more.
constexpr uint64_t kSettled = 15;

struct Step {
  uint64_t code;
  double paid;
};

// A further pin. Both ways alike: bits 0 and 1 say that there are pins in, and
// out. Else they do so for the head, and bits 2 and 3 for the others.
Step with_pin(uint64_t code, bool head, bool is_in, double in, double out) {
  if (code == kSettled) return {code, 0};
  if (in == out) {
    code |= is_in ? 1 : 2;
    return code == 3 ? Step{kSettled, in} : Step{code, 0};
  }
  code |= (is_in ? 1U : 2U) << (head ? 0 : 2);
  if (code & 1) {
    if (out == 0) return {kSettled, 0};
    if (code & 8) return {kSettled, out};
    code &= ~uint64_t{4};
  } else if (code & 2) {
    if (in == 0) return {kSettled, 0};
    if (code & 4) return {kSettled, in};
    code &= ~uint64_t{8};
  }
  return {code, 0};
}

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

  // Returns the sum of 2^open, or infinity once it is `most`.
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
      sum += std::ldexp(1.0, std::min(open, 1000));
      if (sum >= most) return kInfinity;
    }
    return sum;
  }
  const std::vector<int32_t>& order() const { return order_; }

 private:
  int32_t change(int32_t unit) const {
    int32_t c = 0;
    for (const int32_t n : p_.nets[unit]) {
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
    for (size_t i = 0; i < candidates_.size(); ++i) {
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
      --left_[n];
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
  const int32_t stride = std::max(n / std::max(tries, 1), 1);
  for (int32_t start = 0; start < n; start += stride) {
    const double sum = maker.grow(start, least);
    if (sum < least || best.empty()) {
      if (best.empty() && !(sum < least)) continue;
      least = sum;
      best = maker.order();
    }
  }
  return best;
}

class FrontierGraph::Builder {
 public:
  Builder(FrontierGraph& g, const PackingProblem& p, size_t kind)
      : g_(g), p_(p), k_(kind) {}

  void build(std::span<const double> size, bool with_nets, double most,
             int32_t width, int64_t most_states) {
    most_ = most;
    if (with_nets) choose_nets(std::min(width, kMostSlots));
    keys_.assign(1, 0);
    least_.assign(1, 0);
    g_.begin_ = {0, 1};
    g_.edges_begin_ = {0, 0};
    for (size_t step = 0; step < g_.order_.size(); ++step) {
      const int32_t unit = g_.order_[step];
      expand(step, size[static_cast<size_t>(unit)], with_nets);
      if (static_cast<int64_t>(g_.edges_begin_.size()) > most_states) {
        g_.complete_ = false;
        return;
      }
    }
  }

 private:
  struct Pin {  // of the unit of a step
    int32_t slot;
    bool head, last;
    double in, out;
  };
  struct Next {
    uint64_t key;
    int32_t from;
    bool in;
    double load;
  };

  // Gives every net a slot for as long as it is open; the cheapest go where
  // there are too many.
  void choose_nets(int32_t width) {
    const auto nets = static_cast<size_t>(p_.pins.size());
    std::vector<int32_t> at(static_cast<size_t>(p_.num_units()));
    for (size_t i = 0; i < g_.order_.size(); ++i) {
      at[static_cast<size_t>(g_.order_[i])] = static_cast<int32_t>(i);
    }
    std::vector<int32_t> last(nets, -1), slot(nets, -1);
    for (size_t n = 0; n < nets; ++n) {
      for (const int32_t u : p_.pins[static_cast<int32_t>(n)]) {
        last[n] = std::max(last[n], at[static_cast<size_t>(u)]);
      }
    }
    const auto cost = [&](int32_t n) {
      return std::max(p_.in_of(n, k_), p_.out_of(n, k_));
    };
    std::vector<int32_t> open, dropped;
    std::vector<uint8_t> begun(nets, 0);
    uint32_t used = 0;
    std::vector<int32_t> slots(nets, -1);
    // First pass: who stays.
    std::vector<uint8_t> stays(nets, 1);
    for (const int32_t unit : g_.order_) {
      for (const int32_t n : p_.nets[unit]) {
        if (begun[n] || cost(n) <= 0) continue;
        begun[n] = 1;
        open.push_back(n);
        if (static_cast<int32_t>(open.size()) > width) {
          const auto cheapest = std::min_element(
              open.begin(), open.end(),
              [&](int32_t a, int32_t b) { return cost(a) < cost(b); });
          stays[*cheapest] = 0;
          open.erase(cheapest);
        }
      }
      std::erase_if(open, [&](int32_t n) { return last[n] <= at[unit]; });
    }
    for (size_t i = 0; i < g_.order_.size(); ++i) {
      const int32_t unit = g_.order_[i];
      pins_.emplace_back();
      uint32_t freed = 0;
      for (const int32_t n : p_.nets[unit]) {
        if (!stays[n] || cost(n) <= 0) continue;
        if (slots[n] < 0) {
          slots[n] = std::countr_one(used);
          used |= 1U << slots[n];
        }
        const bool ends = last[n] == static_cast<int32_t>(i);
        pins_.back().push_back({slots[n], p_.pins[n][0] == unit, ends,
                                p_.in_of(n, k_), p_.out_of(n, k_)});
        if (ends) freed |= 1U << slots[n];
      }
      used &= ~freed;
    }
  }

  void add_next(size_t step, size_t from, bool in, double load,
                bool with_nets) {
    uint64_t key = keys_[from];
    if (with_nets) {
      for (const Pin& pin : pins_[step]) {
        const int at = 4 * pin.slot;
        const Step s = with_pin(key >> at & 15, pin.head, in, pin.in, pin.out);
        load += s.paid;
        key &= ~(uint64_t{15} << at);
        if (!pin.last) key |= s.code << at;
      }
    }
    if (least_[from] + load > most_) return;
    next_.push_back({key, static_cast<int32_t>(from), in, load});
  }

  void expand(size_t step, double size, bool with_nets) {
    next_.clear();
    for (size_t s = 0; s < keys_.size(); ++s) {
      add_next(step, s, false, 0, with_nets);
      if (std::isfinite(size)) add_next(step, s, true, size, with_nets);
    }
    std::stable_sort(
        next_.begin(), next_.end(),
        [](const Next& a, const Next& b) { return a.key < b.key; });
    const int32_t before = g_.begin_[step];
    std::vector<double> least;
    keys_.clear();
    for (size_t i = 0; i < next_.size(); ++i) {
      const Next& n = next_[i];
      if (i == 0 || n.key != keys_.back()) {
        if (i > 0) end_state();
        keys_.push_back(n.key);
        least.push_back(kInfinity);
      }
      least.back() =
          std::min(least.back(), least_[static_cast<size_t>(n.from)] + n.load);
      g_.edges_.push_back({before + n.from, n.in, n.load});
    }
    if (!next_.empty()) end_state();
    least_ = std::move(least);
    g_.begin_.push_back(g_.begin_.back() + static_cast<int32_t>(keys_.size()));
  }
  void end_state() {
    g_.edges_begin_.push_back(static_cast<int32_t>(g_.edges_.size()));
  }

  FrontierGraph& g_;
  const PackingProblem& p_;
  const size_t k_;
  double most_ = 0;
  std::vector<std::vector<Pin>> pins_;  // per step
  std::vector<uint64_t> keys_;          // of the states of a step
  std::vector<double> least_;           // load to be there
  std::vector<Next> next_;
};

FrontierGraph::FrontierGraph(const PackingProblem& problem, size_t kind,
                             std::span<const int32_t> order,
                             std::span<const double> size, bool with_nets,
                             double most, int32_t width, int64_t most_states)
    : order_(order.begin(), order.end()) {
  Builder(*this, problem, kind)
      .build(size, with_nets, most, width, most_states);
}

// Per state, what is to come is worth at most, less `price` per load.
void FrontierSearch::find_rest(std::span<const double> worth, double price,
                               std::vector<double>& rest) const {
  rest.assign(static_cast<size_t>(g_.num_states()), -kInfinity);
  const size_t steps = g_.order().size();
  for (int32_t s = g_.states_begin(steps); s < g_.states_end(steps); ++s) {
    rest[s] = 0;
  }
  for (size_t step = steps; step > 0; --step) {
    const double w = worth[static_cast<size_t>(g_.order()[step - 1])];
    for (int32_t s = g_.states_begin(step); s < g_.states_end(step); ++s) {
      for (const FrontierGraph::Edge& e : g_.edges_to(s)) {
        const double r = rest[s] + (e.in ? w : 0) - price * e.load;
        if (r > rest[e.from]) rest[e.from] = r;
      }
    }
  }
}

std::vector<Worth> FrontierSearch::run(std::span<const double> worth,
                                       double most, int grid, double least,
                                       bool real) {
  constexpr int kPrices = 3;
  const double per_load = grid / most;
  const size_t steps = g_.order().size();
  // The price at which what is left over is worth least, from the start.
  std::vector<double> rest[kPrices];
  double prices[kPrices] = {0, 0, 0};
  double low = 0, high = 0;
  for (const double w : worth) high += std::max(w, 0.0);
  high = 4 * high / most;
  for (int i = 0; i < 12; ++i) {
    const double a = low + (high - low) / 3, b = high - (high - low) / 3;
    find_rest(worth, a, rest[0]);
    const double at_a = a * most + rest[0][0];
    find_rest(worth, b, rest[0]);
    const double at_b = b * most + rest[0][0];
    (at_a < at_b ? high : low) = at_a < at_b ? b : a;
  }
  prices[0] = (low + high) / 2;
  prices[1] = prices[0] * 0.75;
  prices[2] = prices[0] * 1.5;
  for (int i = 0; i < kPrices; ++i) find_rest(worth, prices[i], rest[i]);

  std::vector<Label> before = {{0, 0, 0}}, now;
  std::vector<int32_t> before_begin = {0, 1}, now_begin;
  parents_.assign(1, 0);
  struct Bucket {
    double load, worth;
    uint32_t from;
  };
  std::vector<Bucket> buckets(static_cast<size_t>(grid) + 2,
                              {kInfinity, -kInfinity, 0});
  uint32_t before_at = 0;  // of the labels before, in parents_
  for (size_t step = 1; step <= steps; ++step) {
    const double w = worth[static_cast<size_t>(g_.order()[step - 1])];
    now.clear();
    now_begin.assign(1, 0);
    const int32_t first = g_.states_begin(step - 1);
    for (int32_t s = g_.states_begin(step); s < g_.states_end(step); ++s) {
      size_t lowest = buckets.size(), highest = 0;
      for (const FrontierGraph::Edge& e : g_.edges_to(s)) {
        const auto from = static_cast<size_t>(e.from - first);
        const double add = e.in ? w : 0;
        for (int32_t i = before_begin[from]; i < before_begin[from + 1]; ++i) {
          const double load = before[i].load + e.load;
          if (load > most) break;
          const double value = before[i].worth + add;
          const auto b = static_cast<size_t>(load * per_load);
          Bucket& bucket = buckets[b];
          if (load < bucket.load && !real) bucket.load = load;
          if (value > bucket.worth) {
            if (real) bucket.load = load;
            bucket.worth = value;
            bucket.from =
                (before_at + static_cast<uint32_t>(i)) | (e.in ? 1U << 31 : 0);
          }
          lowest = std::min(lowest, b);
          highest = std::max(highest, b);
        }
      }
      double best = -kInfinity;
      for (size_t b = lowest; b <= highest && b < buckets.size(); ++b) {
        Bucket& bucket = buckets[b];
        if (bucket.worth > best) {
          best = bucket.worth;
          double most_rest = kInfinity;
          for (int i = 0; i < kPrices; ++i) {
            most_rest = std::min(most_rest,
                                 prices[i] * (most - bucket.load) + rest[i][s]);
          }
          if (bucket.worth + most_rest >= least) {
            now.push_back({bucket.load, bucket.worth, bucket.from});
          }
        }
        bucket = {kInfinity, -kInfinity, 0};
      }
      now_begin.push_back(static_cast<int32_t>(now.size()));
    }
    before_at = static_cast<uint32_t>(parents_.size());
    for (const Label& l : now) parents_.push_back(l.from);
    before.swap(now);
    before_begin.swap(now_begin);
  }
  std::vector<Worth> result = {{0, least}};
  for (const Label& l : before) {
    if (l.worth > result.back().worth) result.push_back({l.load, l.worth});
  }
  last_labels_ = static_cast<uint32_t>(before.size());
  return result;
}

std::vector<int32_t> FrontierSearch::best_set(size_t step_from_last) const {
  std::vector<int32_t> set;
  if (step_from_last >= last_labels_) return set;
  auto at = static_cast<uint32_t>(parents_.size() - 1 - step_from_last);
  for (size_t step = g_.order().size(); step > 0; --step) {
    const uint32_t from = parents_[at];
    if (from >> 31) set.push_back(g_.order()[step - 1]);
    at = from & ~(1U << 31);
  }
  return set;
}

}  // namespace berth
