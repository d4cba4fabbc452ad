// Trains a network on /device:SKELETON:0 and on /CPU:0: same losses.

#include <berth/berth.h>

#include <cmath>
#include <cstdio>
#include <vector>

namespace keras = berth::keras;

namespace {

std::vector<float> losses_on(const char* device) {
  berth::random::set_seed(7);
  const auto on = berth::device(device);
  auto model = keras::Sequential({keras::Dense(16, {.activation = "relu"}),
                                  keras::Dropout(0.25f),
                                  keras::Dense(2, {.activation = "softmax"})});
  model.compile({.optimizer = keras::Adam(0.01),
                 .loss = "sparse_categorical_crossentropy"});
  auto x = berth::random::uniform({256, 4}, {.minval = -1, .maxval = 1});
  auto y = berth::math::cast(berth::math::reduce_sum(x, {.axis = {{1}}}) > 0,
                             berth::int32);
  const auto history =
      model.fit(x, y, {.epochs = 4, .batch_size = 32, .verbose = 0});
  std::vector<float> losses;
  for (const double loss : history.history.at("loss")) {
    losses.push_back(static_cast<float>(loss));
  }
  return losses;
}

}  // namespace

int main() {
  const auto there = losses_on("/device:SKELETON:0");
  const auto here = losses_on("/CPU:0");
  bool equal = there.size() == 4 && there[3] < there[0];
  for (size_t i = 0; i < there.size(); ++i) {
    std::printf("epoch %zu: loss %.6f on SKELETON:0, %.6f on CPU:0\n", i + 1,
                there[i], here[i]);
    equal = equal && std::abs(there[i] - here[i]) < 1e-4f;
  }
  std::puts(equal ? "the same training" : "DIFFERENT");
  return equal ? 0 : 1;
}
