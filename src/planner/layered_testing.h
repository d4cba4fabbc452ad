// Layered problems: what a compiler that splits matrices into tiles makes of
// matrix chains, feed-forward networks and transformer blocks.
//
// For tests and benches of latency plans. A matrix is a grid of ops, one per
// tile; a product is one large op per pair of tiles and the sums of these; ops
// between products are small. Sending a large output takes `ratio` times its
// op's time.

#ifndef BERTH_PLANNER_LAYERED_TESTING_H_
#define BERTH_PLANNER_LAYERED_TESTING_H_

#include <cmath>
#include <string>
#include <vector>

#include "planner/problem_testing.h"

namespace berth::testing {

struct LayeredShape {
  enum class What { kChain, kFeedForward, kBlock, kLayer };
  What what = What::kBlock;
  int devices = 4;
  int rows = 2, columns = 2;  // tiles of an activation
  int depth = 2;              // successive, of chains and feed-forwards
  bool rows_meet = false;     // attention reads the tiles of all rows
  double ratio = 4;           // time to send a large output over its op's time
  CopyRule copies = CopyRule::kFree;
};

class Layered {
 public:
  explicit Layered(const LayeredShape& s) : s_(s), maker_(PlanModel::kStep) {
    const int gpu = maker_.device_class("GPU");
    for (int d = 0; d < s.devices; ++d) {
      maker_.device("GPU:" + std::to_string(d), gpu, 0, s.copies);
    }
    maker_.links(0, 1);
  }

  PlanProblem make() {
    using What = LayeredShape::What;
    Grid x = fresh(s_.what == What::kChain ? kLarge : kSmall);
    if (s_.what == What::kChain || s_.what == What::kFeedForward) {
      for (int k = 0; k < s_.depth; ++k) x = map(product(x, kMiddle), kTiny);
    } else {
      x = block(x);
      if (s_.what == What::kLayer) {
        x = normed(x);
        x = map(product(x, kTiny * 20), kTiny);
      }
    }
    PlanProblem p = maker_.make();
    p.name = "layered";
    return p;
  }

 private:
  using Grid = std::vector<std::vector<int>>;
  static constexpr double kLarge = 18000, kMiddle = 7000, kSmall = 20,
                          kTiny = 2;

  int op(double us, const std::vector<int>& inputs) {
    return maker_.op("op" + std::to_string(number_++), {us}, inputs,
                     static_cast<int64_t>(std::llround(us * s_.ratio)));
  }
  Grid fresh(double us) {
    Grid g(static_cast<size_t>(s_.rows));
    for (std::vector<int>& row : g) {
      for (int c = 0; c < s_.columns; ++c) row.push_back(op(us, {}));
    }
    return g;
  }
  Grid map(Grid x, double us) {
    for (std::vector<int>& row : x) {
      for (int& tile : row) tile = op(us, {tile});
    }
    return x;
  }
  Grid map(Grid x, const Grid& y, double us) {
    for (size_t i = 0; i < x.size(); ++i) {
      for (size_t c = 0; c < x[i].size(); ++c)
        x[i][c] = op(us, {x[i][c], y[i][c]});
    }
    return x;
  }
  // Times constants that are everywhere.
  Grid product(const Grid& x, double us) {
    Grid y(x.size());
    for (size_t i = 0; i < x.size(); ++i) {
      for (int c = 0; c < s_.columns; ++c) {
        std::vector<int> parts;
        for (const int tile : x[i]) parts.push_back(op(us, {tile}));
        y[i].push_back(op(kSmall, parts));
      }
    }
    return y;
  }
  // Scales the tiles of a row by a value computed from all of them.
  Grid normed(Grid x) {
    for (std::vector<int>& row : x) {
      std::vector<int> parts;
      for (const int tile : row) parts.push_back(op(kSmall, {tile}));
      const int all = op(kTiny, {op(kTiny, parts)});
      for (int& tile : row) tile = op(kSmall, {tile, all});
    }
    return x;
  }
  Grid attention(const Grid& x) {
    const Grid q = product(x, kMiddle), k = product(x, kMiddle),
               v = product(x, kMiddle);
    Grid y = x;
    for (size_t i = 0; i < x.size(); ++i) {
      for (size_t c = 0; c < x[i].size(); ++c) {
        std::vector<int> keys = {q[i][c]}, values;
        for (size_t j = 0; j < x.size(); ++j) {
          if (!s_.rows_meet && j != i) continue;
          keys.push_back(k[j][c]);
          values.push_back(v[j][c]);
        }
        const int scores = op(kSmall * 8, {op(kMiddle, keys)});
        const int most = op(kTiny, {scores});
        const int exps = op(kSmall * 8, {scores, most});
        values.push_back(op(kSmall * 8, {exps, op(kTiny, {exps})}));
        y[i][c] = op(kSmall, {op(kMiddle, values)});
      }
    }
    return product(y, kMiddle);
  }
  Grid block(const Grid& x) {
    const Grid y = map(attention(normed(x)), x, kSmall);
    const Grid z = normed(y);
    const Grid gate = product(z, kLarge), up = product(z, kLarge);
    return map(product(map(gate, up, kSmall), kLarge), y, kSmall);
  }

  LayeredShape s_;
  ProblemMaker maker_;
  int number_ = 0;
};

// The six that benches plan: 4 and 8 devices, 76 to 367 ops.
inline std::vector<LayeredShape> layered_shapes() {
  using What = LayeredShape::What;
  std::vector<LayeredShape> s(6);
  s[0] = {What::kChain, 4, 4, 2, 3};
  s[1] = {What::kFeedForward, 4, 4, 2, 7};
  s[2] = {What::kBlock, 4, 2, 2, 0, true};
  s[3] = {What::kLayer, 4, 3, 2};
  s[4] = {What::kBlock, 8, 4, 2, 0, true};
  s[5] = {What::kLayer, 8, 3, 3};
  return s;
}

}  // namespace berth::testing

#endif  // BERTH_PLANNER_LAYERED_TESTING_H_
