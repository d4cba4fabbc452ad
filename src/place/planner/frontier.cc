#include "place/planner/frontier.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "base/infinity.h"

namespace berth {

namespace {

constexpr int32_t kMostSlots = 16;  // nets of 4 bits in a key
constexpr double kSure = 1 + 2e-5;  // margin of a proof, for its checker

// The pins of an open net so far; kSettled: it costs nothing more.
constexpr uint64_t kSettled = 15;

struct Step {
  uint64_t code;
  double paid;
};

// Adds a pin. If both directions cost the same, bits 0 and 1 tell if there are
// pins in, and out. Else they do so for the head, bits 2 and 3 for the others.
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

}  // namespace

class FrontierGraph::Builder {
 public:
  Builder(FrontierGraph& g, const PackingProblem& p, size_t kind)
      : g_(g), p_(p), k_(kind) {}

  void build(std::span<const double> size, double most, int32_t width,
             int64_t most_states) {
    most_ = most;
    choose_nets(std::min(width, kMostSlots));
    keys_.assign(1, 0);
    least_.assign(1, 0);
    g_.begin_ = {0, 1};
    g_.edges_begin_ = {0, 0};
    for (size_t step = 0; step < g_.order_.size(); ++step) {
      const int32_t unit = g_.order_[step];
      expand(step, size[unit]);
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

  // Gives every net a slot for as long as it is open; if there are too many,
  // drops the cheapest.
  void choose_nets(int32_t width) {
    const size_t nets = p_.pins.size();
    std::vector<int32_t> at(p_.num_units());
    for (size_t i = 0; i < g_.order_.size(); ++i) {
      at[g_.order_[i]] = static_cast<int32_t>(i);
    }
    std::vector<int32_t> last(nets, -1), slot(nets, -1);
    for (size_t n = 0; n < nets; ++n) {
      for (const int32_t u : p_.pins[static_cast<int32_t>(n)]) {
        last[n] = std::max(last[n], at[u]);
      }
    }
    const auto cost = [&](int32_t n) {
      return std::max(p_.in_of(n, k_), p_.out_of(n, k_));
    };
    std::vector<int32_t> open, dropped;
    std::vector<uint8_t> begun(nets, 0);
    uint32_t used = 0;
    std::vector<int32_t> slots(nets, -1);
    // First pass: which nets stay.
    std::vector<uint8_t> stays(nets, 1);
    for (const int32_t unit : g_.order_) {
      for (const int32_t n : p_.nets[unit]) {
        if (begun[n] || cost(n) <= 0) continue;
        begun[n] = 1;
        open.push_back(n);
        if (static_cast<int32_t>(open.size()) > width) {
          const auto cheapest = std::ranges::min_element(open, {}, cost);
          stays[*cheapest] = 0;
          g_.whole_ = false;
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

  void add_next(size_t step, size_t from, bool in, double load) {
    uint64_t key = keys_[from];
    for (const Pin& pin : pins_[step]) {
      const int at = 4 * pin.slot;
      const Step s = with_pin(key >> at & 15, pin.head, in, pin.in, pin.out);
      load += s.paid;
      key &= ~(uint64_t{15} << at);
      if (!pin.last) key |= s.code << at;
    }
    if (least_[from] + load > most_) return;
    next_.push_back({key, static_cast<int32_t>(from), in, load});
  }

  void expand(size_t step, double size) {
    next_.clear();
    for (size_t s = 0; s < keys_.size(); ++s) {
      add_next(step, s, false, 0);
      if (std::isfinite(size)) add_next(step, s, true, size);
    }
    std::ranges::stable_sort(next_, {}, &Next::key);
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
      least.back() = std::min(least.back(), least_[n.from] + n.load);
      g_.edges_.push_back({before + n.from, n.in, n.load});
    }
    if (!next_.empty()) end_state();
    least_ = std::move(least);
    g_.begin_.push_back(g_.begin_.back() + static_cast<int32_t>(keys_.size()));
  }
  void end_state() { g_.edges_begin_.push_back(g_.edges_.size()); }

  FrontierGraph& g_;
  const PackingProblem& p_;
  const size_t k_;
  double most_ = 0;
  std::vector<std::vector<Pin>> pins_;  // per step
  std::vector<uint64_t> keys_;          // of the states of a step
  std::vector<double> least_;           // least load to reach
  std::vector<Next> next_;
};

FrontierGraph::FrontierGraph(const PackingProblem& problem, size_t kind,
                             std::span<const int32_t> order,
                             std::span<const double> size, double most,
                             int32_t width, int64_t most_states)
    : order_(order.begin(), order.end()) {
  Builder(*this, problem, kind).build(size, most, width, most_states);
}

ProvedWorth proved_by(const std::vector<std::vector<Worth>>& stairs,
                      const std::vector<PackingKind>& kinds, double worth,
                      double most) {
  ProvedWorth proved;
  std::vector<size_t> next(stairs.size(), 0);
  std::vector<double> prices(stairs.size(), 0);
  while (true) {
    double value = most;
    for (size_t k = 0; k < stairs.size(); ++k) {
      if (next[k] < stairs[k].size()) {
        value = std::min(value, stairs[k][next[k]].load);
      }
    }
    // All steps below this value are taken.
    if (!(worth > price_of_all(kinds, prices) * kSure)) return proved;
    proved = {value, prices};
    if (value >= most) return proved;
    for (size_t k = 0; k < stairs.size(); ++k) {
      for (size_t& i = next[k];
           i < stairs[k].size() && stairs[k][i].load <= value; ++i) {
        prices[k] = stairs[k][i].worth;
      }
    }
  }
}

}  // namespace berth
