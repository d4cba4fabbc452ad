// Trains the model of a row and keeps what can be compared.

#ifndef BERTH_CONFORMANCE_STRATEGY_TRAINING_H_
#define BERTH_CONFORMANCE_STRATEGY_TRAINING_H_

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "conformance/strategy/models.h"
#include "conformance/strategy/row.h"

namespace berth::strategy_suite {

// Values by name, as they are (a float has one double).
using Values = std::vector<std::pair<std::string, std::vector<double>>>;

struct Trained {
  // Every variable: weights, slots and counters of the optimizer. After one
  // step a slot of a momentum is the gradient times the rate.
  Values start, after_one, after_all;
  std::vector<double> losses;  // after each step: the mean of the epoch so far
  Values outputs;              // of predict() afterwards
  std::map<std::string, double> evaluated;
  // From the training step: its plans for the first and the last batch as text,
  // and the devices that computed.
  std::string plan, last_plan;
  std::vector<std::string> devices;
};

inline constexpr int kEpochs = 7;  // of 3 batches: 21 steps

// Trains under the strategy of the row.
Trained train(const Row& row);
// Trains on the first device of the row, without a strategy. Kept.
const Trained& on_one_device(const Row& row);

// The values of these variables.
Values values_of(const std::vector<Variable>& variables);

// "" when equal: bit for bit, or each element within `tolerance` times the
// largest of its tensor.
std::string difference(const Values& got, const Values& want, double tolerance);
inline constexpr double kBits = 0;
// Expects the bits of all but the start.
void expect_equal_bits(const Trained& got, const Trained& want);

// Seeds the order of what simulated devices may do in any order.
void seed_devices(uint64_t seed);

// Ids and texts of what the library said since the last call.
std::string said();
void listen();

}  // namespace berth::strategy_suite

#endif  // BERTH_CONFORMANCE_STRATEGY_TRAINING_H_
