#include "planner/layer_keys.h"

#include <algorithm>

namespace berth {

namespace {

// Ops that a gradient's home is looked for among, by what each may read.
constexpr size_t kMostCandidates = 64;

class KeyMaker {
 public:
  explicit KeyMaker(const StepUnits& units)
      : units_(units), p_(units.problem), order_(order_of_ops(p_)) {
    position_.assign(p_.num_ops(), 0);
    for (size_t k = 0; k < order_.size(); ++k) {
      position_[order_[k]] = static_cast<int32_t>(k);
    }
    find_backward();
  }

  // A gradient has the key of its forward op: see home_of().
  LayerKeys folded() {
    LayerKeys keys = plain();
    keys.backward = backward_;
    home_.resize(position_.size());
    for (const int32_t i : order_) {
      home_[i] = i;
      if (!backward_[i]) continue;
      home_[i] = home_of(i);
      keys.key[i] = position_[home_[i]];
      keys.of_weight[i] =
          !ends(i) && std::ranges::all_of(units_.after[i],
                                          [&](int32_t a) { return ends(a); });
    }
    return keys;
  }

  LayerKeys plain() const {
    return {std::vector<double>(position_.begin(), position_.end()),
            std::vector<uint8_t>(position_.size(), 0),
            std::vector<uint8_t>(position_.size(), 0)};
  }

 private:
  struct Candidate {
    int32_t op;
    int votes = 0;  // of gradients that are read
    int fit = 0;
  };

  bool ends(int32_t op) const { return units_.after[op].empty(); }
  bool reads_forward(int32_t op) const {
    return std::ranges::any_of(units_.before[op],
                               [&](int32_t b) { return !backward_[b]; });
  }

  // Returns the forward op that a gradient belongs to. It goes back from the
  // homes of the gradients that it reads: to what they read, where it is their
  // next, or to one itself, where their sum is read. Which one of several, the
  // forward values say that it reads: inputs of its op, or what that gave.
  int32_t home_of(int32_t op) {
    int32_t forward = -1, same = -1;
    bool one_home = true;
    candidates_.clear();
    for (const int32_t b : units_.before[op]) {
      if (!backward_[b]) {
        if (forward < 0 || position_[b] > position_[forward]) forward = b;
        continue;
      }
      one_home = one_home && (same < 0 || same == home_[b]);
      same = home_[b];
      const bool of_sum = !reads_forward(b);
      vote(op, home_[b], of_sum ? 3 : 1);
      if (candidates_.size() > kMostCandidates) continue;
      if (units_.before[home_[b]].size() > kMostCandidates) continue;
      for (const int32_t c : units_.before[home_[b]]) {
        if (!backward_[c]) vote(op, c, of_sum ? 2 : 4);
      }
    }
    if (same < 0) return forward < 0 ? op : forward;
    if (forward < 0 && one_home) return same;
    const Candidate* best = &candidates_[0];
    for (const Candidate& c : candidates_) {
      if (c.votes != best->votes ? c.votes > best->votes
          : c.fit != best->fit   ? c.fit > best->fit
                                 : position_[c.op] < position_[best->op]) {
        best = &c;
      }
    }
    return forward >= 0 && best->fit == 0 ? forward : best->op;
  }

  // `weight`: how likely such a candidate is.
  void vote(int32_t gradient, int32_t op, int weight) {
    auto c = std::ranges::find(candidates_, op, &Candidate::op);
    if (c == candidates_.end()) c = candidates_.insert(c, {op});
    ++c->votes;
    for (const int32_t f : units_.before[gradient]) {
      if (backward_[f]) continue;
      const auto inputs = units_.before[op];
      const bool is_input = std::ranges::find(inputs, f) != inputs.end();
      if (is_input) c->fit = std::max(c->fit, 2 * weight);
      if (f == op) c->fit = std::max(c->fit, 2 * weight - 1);
    }
  }

  // What the problem says, else all ops after the point at which the most
  // values wait for a reader. (Those that only updates read may wait for long.)
  // The first few gradients may count as forward: they stay in the last stage.
  void find_backward() {
    backward_ = p_.backward;
    if (std::ranges::count(backward_, 1) > 0) return;
    std::vector<int32_t> change(order_.size() + 1, 0);
    for (const int32_t i : order_) {
      int32_t last = -1;
      for (const int32_t a : units_.after[i]) {
        if (!ends(a)) last = std::max(last, position_[a]);
      }
      if (last < 0) continue;
      ++change[position_[i]];
      --change[last];
    }
    int32_t alive = 0, most = 0;
    size_t turn = order_.size();
    for (size_t k = 0; k < order_.size(); ++k) {
      alive += change[k];
      if (alive > most) most = alive, turn = k;
    }
    for (size_t k = turn + 1; k < order_.size(); ++k) backward_[order_[k]] = 1;
  }

  const StepUnits& units_;
  const PlanProblem& p_;
  std::vector<int32_t> order_, position_;
  std::vector<uint8_t> backward_;
  std::vector<int32_t> home_;  // per op that takes time: a forward one
  std::vector<Candidate> candidates_;
};

}  // namespace

LayerKeys layer_keys(const StepUnits& units, LayerOrder order) {
  KeyMaker maker(units);
  return order == LayerOrder::kFolded ? maker.folded() : maker.plain();
}

}  // namespace berth
