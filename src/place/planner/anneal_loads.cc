#include "place/planner/anneal_loads.h"

#include <array>
#include <bit>
#include <cmath>
#include <numeric>

namespace berth {

namespace {

constexpr int64_t kBlock = 128;  // moves between budget checks
constexpr size_t kSimilar = 12;  // units of adjacent work that count as similar

// -ln(u) for u uniform in (0, 1), at equal steps.
const std::array<double, 1024>& exponentials() {
  static const std::array<double, 1024> table = [] {
    std::array<double, 1024> t{};
    for (size_t i = 0; i < t.size(); ++i) {
      t[i] = -std::log((static_cast<double>(i) + 0.5) / 1024);
    }
    return t;
  }();
  return table;
}

class Annealer {
 public:
  Annealer(LoadState& state, LoadStream& stream, LoadPlan& best)
      : s_(state),
        p_(state.problem()),
        stream_(stream),
        best_(best),
        units_(static_cast<uint32_t>(p_.num_units())),
        spread_(s_.root(static_cast<double>(p_.num_machines()))) {
    root_ = s_.root(s_.energy());
    noted_.assign(p_.bytes.size(), 0);
    rank_units();
    if (p_.num_units() <= kFewUnits) {
      cuts_ = 20;
      anywhere_ = 4;
    }
    note_best();
  }

  void run(const Cooling& c) {
    const double begin = stream_.spent();
    const int64_t first = stream_.moves();
    while (!stream_.enough(best_.value)) {
      const double now = stream_.spent();
      if (now >= c.end) break;
      const double by_share = (now - begin) / (c.end - begin);
      const auto tried = static_cast<double>(stream_.moves() - first);
      const double by_moves = tried / static_cast<double>(c.moves);
      const double gone = std::max(by_share, by_moves);
      if (!(gone < 1)) break;
      temperature_ = root_ * c.hot * std::pow(c.cold / c.hot, gone);
      const int64_t n = stream_.take(kBlock);
      if (n == 0) break;
      for (int64_t k = 0; k < n; ++k) try_one();
    }
  }

 private:
  void rank_units() {
    const auto work = [&](int32_t u) {
      return p_.work[static_cast<size_t>(u) * p_.num_classes];
    };
    by_work_.resize(units_);
    rank_.resize(units_);
    std::iota(by_work_.begin(), by_work_.end(), 0);
    std::ranges::sort(by_work_, [&](int32_t a, int32_t b) {
      return work(a) != work(b) ? work(a) < work(b) : a < b;
    });
    for (uint32_t k = 0; k < units_; ++k) {
      rank_[by_work_[k]] = static_cast<int32_t>(k);
    }
  }

  struct Step {
    int32_t unit, to;
  };

  void try_one() {
    const uint64_t bits = stream_.random.next();
    const double x = exponentials()[bits & 1023];
    const uint32_t what = bits >> 10 & 127;
    const auto unit = static_cast<int32_t>((bits >> 32) * units_ >> 32);
    threshold_ = s_.power(root_ + temperature_ * x);
    if (what < cuts_ && !s_.cut_nets().empty()) {
      try_cut();
    } else if (what < 92 || p_.nets[unit].empty()) {
      try_unit(unit, bits);
    } else if (what < 112) {
      try_similar(unit);
    } else if (what < 118) {
      try_swap(unit, static_cast<int32_t>(below(units_)));
    } else if (what < 125) {
      try_pair(unit);
    } else {
      try_net(unit);
    }
  }

  uint32_t below(size_t n) {
    return stream_.random.below(static_cast<uint32_t>(n));
  }

  int32_t neighbour(int32_t unit) {
    const auto nets = p_.nets[unit];
    const auto pins = p_.pins[nets[below(nets.size())]];
    return pins[below(pins.size())];
  }

  bool may(int32_t unit, int32_t to) const {
    return to != s_.device(unit) && p_.allowed[unit].has(to);
  }

  void try_move(int32_t unit, int32_t to) {
    if (!may(unit, to) || s_.price(unit, to) > threshold_) return;
    s_.apply();
    note(unit);
    accepted();
  }

  // Moves a unit of a split value to another device of that value.
  void try_cut() {
    const auto nets = s_.cut_nets();
    const auto pins = p_.pins[nets[below(nets.size())]];
    const int32_t unit = pins[below(pins.size())];
    try_move(unit, s_.device(pins[below(pins.size())]));
  }

  // Moves a unit to where a neighbour is, sometimes anywhere.
  void try_unit(int32_t unit, uint64_t bits) {
    const bool anywhere = (bits >> 17 & 7) < anywhere_ || p_.nets[unit].empty();
    try_move(unit, anywhere ? static_cast<int32_t>(below(p_.limit.size()))
                            : s_.device(neighbour(unit)));
  }

  // Exchanges units of nearly equal work, to balance loads that differ by less
  // than any unit.
  void try_similar(int32_t unit) {
    const size_t at = static_cast<size_t>(rank_[unit]) + 1 + below(kSimilar);
    if (at < by_work_.size()) try_swap(unit, by_work_[at]);
  }

  void try_swap(int32_t unit, int32_t other) {
    const int32_t a = s_.device(unit), b = s_.device(other);
    if (!may(unit, b) || !may(other, a)) return;
    steps_.assign({{unit, b}, {other, a}});
    try_steps();
  }

  void try_pair(int32_t unit) {
    const int32_t other = neighbour(unit);
    const int32_t to = s_.device(neighbour(neighbour(other)));
    steps_.clear();
    if (may(unit, to)) steps_.push_back({unit, to});
    if (other != unit && may(other, to)) steps_.push_back({other, to});
    try_steps();
  }

  void try_net(int32_t unit) {
    const auto nets = p_.nets[unit];
    const int32_t n = nets[below(nets.size())];
    if (p_.pins[n].size() > 64) return;
    const int32_t to = s_.device(neighbour(unit));
    steps_.clear();
    for (const int32_t u : p_.pins[n]) {
      if (may(u, to)) steps_.push_back({u, to});
    }
    try_steps();
  }

  // Makes all of the moves, or none.
  void try_steps() {
    if (steps_.empty()) return;
    for (Step& step : steps_) {
      const int32_t from = s_.device(step.unit);
      s_.move(step.unit, step.to);
      step.to = from;
    }
    if (s_.energy() <= threshold_) {
      for (const Step& step : steps_) note(step.unit);
      accepted();
      return;
    }
    for (size_t k = steps_.size(); k-- > 0;) {
      s_.move(steps_[k].unit, steps_[k].to);
    }
  }

  void accepted() {
    root_ = s_.root(s_.energy());
    // The highest load is at least the norm divided by this.
    if (root_ * s_.scale() < best_.value * spread_) note_best();
  }

  // Notes a unit that may differ from the best plan.
  void note(int32_t unit) {
    if (noted_[unit]) return;
    noted_[unit] = 1;
    changed_.push_back(unit);
  }

  void note_best() {
    if (!s_.keeps_limits() || s_.highest() >= best_.value * (1 - 1e-12)) return;
    best_.value = s_.highest();
    if (!mine_) {
      best_.device.assign(s_.devices().begin(), s_.devices().end());
      mine_ = true;
    }
    for (const int32_t u : changed_) {
      best_.device[u] = s_.device(u);
      noted_[u] = 0;
    }
    changed_.clear();
  }

  LoadState& s_;
  const LoadProblem& p_;
  LoadStream& stream_;
  LoadPlan& best_;
  uint32_t units_;
  double spread_;
  uint32_t cuts_ = 70, anywhere_ = 1;  // shares of moves: of 128 and of 8
  double root_ = 0, temperature_ = 0, threshold_ = 0;
  std::vector<Step> steps_;
  std::vector<int32_t> by_work_, rank_;  // units, and each one's rank
  bool mine_ = false;                    // this stream found the best plan
  std::vector<int32_t> changed_;
  std::vector<uint8_t> noted_;
};

}  // namespace

void anneal_loads(LoadState& state, const Cooling& cooling, LoadStream& stream,
                  LoadPlan& best) {
  Annealer(state, stream, best).run(cooling);
}

}  // namespace berth
