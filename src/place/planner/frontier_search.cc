// The sets with the greatest worth: labels of load and worth, state by state. A
// label goes if another in its state is no heavier and worth no less, or if at
// prices of load, which no completion beats, it cannot become worth enough.

#include <algorithm>

#include "base/infinity.h"
#include "place/planner/frontier.h"

namespace berth {

namespace {

constexpr uint32_t kIn = uint32_t{1} << 31;

}  // namespace

void FrontierSearch::reset(const FrontierGraph& graph) {
  g_ = &graph;
  const size_t steps = g_->order().size();
  load_out_.assign(g_->num_states(), kInfinity);
  for (int32_t s = g_->states_begin(steps); s < g_->states_end(steps); ++s) {
    load_out_[s] = 0;
  }
  for (int32_t s = g_->num_states() - 1; s > 0; --s) {
    for (const FrontierGraph::Edge& e : g_->edges_to(s)) {
      if (!e.in) load_out_[e.from] = load_out_[s] + e.load;
    }
  }
}

// Per state, an upper bound on the remaining worth, less `price` per load.
void FrontierSearch::find_rest(std::span<const double> worth, double price,
                               std::vector<double>& rest) const {
  rest.assign(g_->num_states(), -kInfinity);
  const size_t steps = g_->order().size();
  for (int32_t s = g_->states_begin(steps); s < g_->states_end(steps); ++s) {
    rest[s] = 0;
  }
  for (size_t step = steps; step > 0; --step) {
    const double w = worth[g_->order()[step - 1]];
    for (int32_t s = g_->states_begin(step); s < g_->states_end(step); ++s) {
      for (const FrontierGraph::Edge& e : g_->edges_to(s)) {
        const double r = rest[s] + (e.in ? w : 0) - price * e.load;
        if (r > rest[e.from]) rest[e.from] = r;
      }
    }
  }
}

// Any price is valid; good ones are near the price at which the whole is worth
// least, which changes little from run to run.
void FrontierSearch::choose_prices(const FrontierQuery& q) {
  if (price_ <= 0) {
    double all = 0;
    for (const double w : q.worth) all += std::max(w, 0.0);
    double least = kInfinity;
    double price = 8 * all / q.most + 1e-300;
    for (int i = 0; i < 24; ++i, price *= 0.75) {
      find_rest(q.worth, price, rest_[0]);
      const double at = price * q.most + rest_[0][0];
      if (at >= least) continue;
      least = at;
      price_ = price;
    }
  }
  constexpr double kSteps[kPrices] = {0.55, 0.75, 0.9, 1.1, 1.5};
  double least = kInfinity, best = price_;
  for (size_t i = 0; i < kPrices; ++i) {
    prices_[i] = price_ * kSteps[i];
    find_rest(q.worth, prices_[i], rest_[i]);
    const double at = prices_[i] * q.most + rest_[i][0];
    if (at >= least) continue;
    least = at;
    best = prices_[i];
  }
  work_ += static_cast<int64_t>(kPrices) * g_->num_states();
  price_ = best;
}

// Puts the labels of all edges to a state into buckets.
void FrontierSearch::gather(const FrontierQuery& q, int32_t state,
                            int32_t first, double worth) {
  const double per_load = q.grid / q.most;
  for (const FrontierGraph::Edge& e : g_->edges_to(state)) {
    const int32_t from = e.from - first;
    const double added = e.in ? worth : 0;
    const uint32_t bit = e.in ? kIn : 0;
    for (int32_t i = before_begin_[from]; i < before_begin_[from + 1]; ++i) {
      const double load = before_[i].load + e.load;
      if (load > q.most) break;
      const double value = before_[i].worth + added;
      const size_t b = load * per_load;
      Label& bucket = buckets_[b];
      if (!q.real && load < bucket.load) bucket.load = load;
      if (value > bucket.worth) {
        if (q.real) bucket.load = load;
        bucket.worth = value;
        bucket.from = (before_at_ + static_cast<uint32_t>(i)) | bit;
      }
      lowest_ = std::min(lowest_, b);
      highest_ = std::max(highest_, b);
    }
    work_ += before_begin_[from + 1] - before_begin_[from];
  }
}

void FrontierSearch::keep_best(const FrontierQuery& q, int32_t state) {
  double best = -kInfinity;
  if (highest_ > lowest_) {
    work_ += static_cast<int64_t>(highest_ - lowest_) / 4;
  }
  for (size_t b = lowest_; b <= highest_ && b < buckets_.size(); ++b) {
    Label& label = buckets_[b];
    if (label.worth > best) {
      best = label.worth;
      double rest = kInfinity;
      for (size_t i = 0; i < kPrices; ++i) {
        rest = std::min(rest,
                        prices_[i] * (q.most - label.load) + rest_[i][state]);
      }
      if (label.worth + rest >= q.least * (1 - 1e-12)) now_.push_back(label);
    }
    label = {kInfinity, -kInfinity, 0};
  }
}

// Sets whose last unit is that of step `number`, with no more units after it:
// the best of each part of the order.
void FrontierSearch::note_endings(const FrontierQuery& q, size_t number) {
  Ending& best = endings_[(number - 1) * kEndings / g_->order().size()];
  const int32_t first = g_->states_begin(number);
  for (size_t s = 0; s + 1 < now_begin_.size(); ++s) {
    const double out = load_out_[static_cast<size_t>(first) + s];
    for (int32_t i = now_begin_[s]; i < now_begin_[s + 1]; ++i) {
      const Label& l = now_[i];
      if (!(l.from & kIn) || l.load + out > q.most || l.worth <= best.worth) {
        continue;
      }
      best = {number, before_at_ + static_cast<uint32_t>(i), l.load + out,
              l.worth};
    }
  }
}

bool FrontierSearch::step(const FrontierQuery& q, size_t number) {
  const double w = q.worth[g_->order()[number - 1]];
  const int32_t first = g_->states_begin(number - 1);
  now_.clear();
  now_begin_.assign(1, 0);
  for (int32_t s = g_->states_begin(number); s < g_->states_end(number); ++s) {
    lowest_ = buckets_.size();
    highest_ = 0;
    gather(q, s, first, w);
    keep_best(q, s);
    now_begin_.push_back(now_.size());
    if (static_cast<int64_t>(parents_.size() + now_.size()) > q.most_labels) {
      return false;
    }
  }
  before_at_ = static_cast<uint32_t>(parents_.size());
  for (const Label& l : now_) parents_.push_back(l.from);
  note_endings(q, number);
  before_.swap(now_);
  before_begin_.swap(now_begin_);
  return !q.stop || !q.stop();
}

std::vector<Worth> FrontierSearch::run(const FrontierQuery& q) {
  choose_prices(q);
  // Those that were used have been emptied.
  const size_t buckets = static_cast<size_t>(q.grid) + 2;
  if (buckets_.size() < buckets) {
    buckets_.resize(buckets, {kInfinity, -kInfinity, 0});
  }
  before_.assign(1, {0, 0, 0});
  before_begin_ = {0, 1};
  before_at_ = 0;
  parents_.assign(1, 0);
  // Part by part, then over all.
  endings_.assign(kEndings + 1, {0, 0, 0, q.least});
  const size_t steps = g_->order().size();
  for (size_t i = 1; i <= steps; ++i) {
    if (!step(q, i)) {
      endings_.clear();
      return {};
    }
  }
  std::vector<Worth> stairs = {{0, q.least}};
  for (size_t i = 0; i < before_.size(); ++i) {
    const Label& l = before_[i];
    if (l.worth <= stairs.back().worth) continue;
    stairs.push_back({l.load, l.worth});
    endings_.back() = {steps, before_at_ + static_cast<uint32_t>(i), l.load,
                       l.worth};
  }
  return stairs;
}

std::vector<FoundSet> FrontierSearch::found() const {
  std::vector<FoundSet> sets;
  for (size_t i = endings_.size(); i-- > 0;) {
    const Ending& ending = endings_[i];
    if (ending.step == 0) continue;
    if (!sets.empty() && ending.worth == sets[0].worth) continue;
    FoundSet set{.load = ending.load, .worth = ending.worth};
    uint32_t at = ending.at;
    for (size_t step = ending.step; step > 0; --step) {
      const uint32_t from = parents_[at];
      if (from & kIn) set.units.push_back(g_->order()[step - 1]);
      at = from & ~kIn;
    }
    sets.push_back(std::move(set));
  }
  return sets;
}

}  // namespace berth
