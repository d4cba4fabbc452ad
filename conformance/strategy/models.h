// The models that the rows train, by name, each with data of its own.

#ifndef BERTH_CONFORMANCE_STRATEGY_MODELS_H_
#define BERTH_CONFORMANCE_STRATEGY_MODELS_H_

#include <functional>
#include <string>
#include <vector>

#include "berth/keras.h"

namespace berth::strategy_suite {

// A component of the data: numbers in [-1, 1), or whole numbers in [0, below).
struct Part {
  Shape shape;  // of one example
  int below = 0;
};

// Where a model's parts go when it lies on two devices; "" and "": no scopes.
struct Places {
  std::string first, second;
};

struct ModelSpec {
  std::string name;
  std::vector<Part> inputs, targets;
  std::vector<keras::Loss> losses;  // one per target
  std::function<keras::Model(const Places&)> make;
  // Only rows that name it train it: it needs batches or devices of its own.
  bool special = false;
};

const std::vector<ModelSpec>& models();
// Those that are not special.
std::vector<std::string> names_of_models();
// Throws errors::NotFound.
const ModelSpec& model_named(const std::string& name);

// "sgd", "momentum", "nesterov", "adam", "adamw", "rmsprop", "adagrad", with
// rates at which twenty steps change something.
keras::Optimizer optimizer_named(const std::string& name);

// Components [examples, shape...], inputs, then targets; the same at each call.
Tensors data_for(const ModelSpec& model, int64_t examples);

}  // namespace berth::strategy_suite

#endif  // BERTH_CONFORMANCE_STRATEGY_MODELS_H_
