#include "place/planner/layer_keys.h"

#include <algorithm>
#include <limits>

namespace berth {

namespace {

class KeyMaker {
 public:
  explicit KeyMaker(const StepUnits& units)
      : units_(units), p_(units.problem), order_(order_of_ops(p_)) {
    position_.assign(static_cast<size_t>(p_.num_ops()), 0);
    for (size_t k = 0; k < order_.size(); ++k) {
      position_[order_[k]] = static_cast<int32_t>(k);
    }
    find_backward();
  }

  LayerKeys folded() const {
    LayerKeys keys = plain();
    for (const int32_t i : order_) {
      if (!backward_[i]) continue;
      double forward = -1, back = std::numeric_limits<double>::infinity();
      bool all_end = !ends(i);
      for (const int32_t b : units_.before[i]) {
        if (backward_[b]) {
          back = std::min(back, keys.key[b]);
        } else {
          forward = std::max(forward, keys.key[b]);
        }
      }
      for (const int32_t a : units_.after[i]) all_end = all_end && ends(a);
      keys.of_weight[i] = all_end;
      if (forward >= 0) {
        keys.key[i] = forward;
      } else if (back < std::numeric_limits<double>::infinity()) {
        keys.key[i] = back;
      }
    }
    return keys;
  }

  LayerKeys plain() const {
    LayerKeys keys{std::vector<double>(position_.begin(), position_.end()),
                   std::vector<uint8_t>(position_.size(), 0)};
    return keys;
  }

  LayerKeys by_depth() const {
    LayerKeys keys = plain();
    for (const int32_t i : order_) {
      double depth = 0;
      for (const int32_t b : units_.before[i]) {
        depth = std::max(depth, keys.key[b] + 1);
      }
      keys.key[i] = depth;
    }
    return keys;
  }

 private:
  bool ends(int32_t op) const { return units_.after[op].empty(); }

  // What the problem says, else all ops after the point at which the most
  // values wait for a reader. (Those that only updates read may wait for long.)
  // The first few gradients may count as forward: they stay in the last stage.
  void find_backward() {
    backward_ = p_.backward;
    if (std::find(backward_.begin(), backward_.end(), 1) != backward_.end()) {
      return;
    }
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
};

}  // namespace

LayerKeys layer_keys(const StepUnits& units, LayerOrder order) {
  const KeyMaker maker(units);
  switch (order) {
    case LayerOrder::kFolded:
      return maker.folded();
    case LayerOrder::kPlain:
      return maker.plain();
    case LayerOrder::kDepth:
      return maker.by_depth();
  }
  return {};
}

}  // namespace berth
