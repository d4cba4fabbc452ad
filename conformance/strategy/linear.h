// A linear model trained by hand in double precision on one device: what
// custom loops under any strategy must reach.

#ifndef BERTH_CONFORMANCE_STRATEGY_LINEAR_H_
#define BERTH_CONFORMANCE_STRATEGY_LINEAR_H_

#include <cstdint>
#include <string>
#include <vector>

#include "berth/tensor.h"

namespace berth::strategy_suite {

inline constexpr int64_t kIn = 6, kOut = 2;

// x [n, kIn], y [n, kOut], w [kIn, kOut], b [kOut], row by row.
struct LinearTask {
  int64_t examples = 0;
  std::vector<double> x, y, w, b;

  Tensor tensor_x() const;
  Tensor tensor_y() const;
  Tensor tensor_w() const;
  Tensor tensor_b() const;
};
LinearTask linear_task(int64_t examples);

struct LinearState {
  std::vector<double> w, b;
  std::vector<double> losses;  // of each step, before it
};

// Steps over batches of kBatch, epoch after epoch: loss = mean of
// (x w + b - y)^2 over the batch and kOut, then an update by "sgd",
// "momentum" or "adam" with the rates of optimizer_named().
LinearState train_by_hand(const LinearTask& task, const std::string& optimizer,
                          int steps);

}  // namespace berth::strategy_suite

#endif  // BERTH_CONFORMANCE_STRATEGY_LINEAR_H_
