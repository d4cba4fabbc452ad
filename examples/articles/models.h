// Models of articles 000 and 001, for programs that train one or the other.

#ifndef EXAMPLES_ARTICLES_MODELS_H_
#define EXAMPLES_ARTICLES_MODELS_H_

#include <string>
#include <utility>

#include "article.h"

namespace article {

// Returns the model of example 1 of article 000: its layers on two GPUs.
inline berth::keras::Model model_of_000_1() {
  using namespace berth;
  const auto input = keras::Input({784}, {.name = "input"});
  const auto hidden = with_device("/GPU:0", [&] {
    return keras::Dense(128, {.activation = "relu", .name = "dense1"})(input);
  });
  const auto narrow = with_device("/GPU:1", [&] {
    return keras::Dense(64, {.activation = "relu", .name = "dense2"})(hidden);
  });
  const auto output = with_device("/GPU:0", [&] {
    return keras::Dense(10,
                        {.activation = "softmax", .name = "output"})(narrow);
  });
  return {input, output};
}

// Returns the model of example 2 of article 001; it takes 100 features.
inline berth::keras::Sequential model_of_001_2() {
  using namespace berth;
  return keras::Sequential({
      keras::InputLayer({100}),
      keras::Dense(64, {.activation = "relu"}),
      keras::Dense(10, {.activation = "softmax"}),
  });
}

// Returns the model of examples 2 and 3 of article 003, or that of --model.
inline berth::keras::Model model_of_003() {
  using namespace berth;
  if (model_name() == "000_1") return model_of_000_1();
  if (model_name() == "001_2") return model_of_001_2();
  return keras::Sequential({
      keras::Dense(128, {.activation = "relu"}),
      keras::Dense(10, {.activation = "softmax"}),
  });
}

// The features that the model takes: pixels, or 100 of the middle rows.
inline int64_t features_of_003() { return model_name() == "001_2" ? 100 : 784; }

// Examples for model_of_003().
inline std::pair<berth::Tensor, berth::Tensor> prepared_for_003(
    const berth::keras::datasets::Split& split) {
  using namespace berth;
  Tensor x = math::cast(reshape(split.x, {-1, 784}), float32) / 255.0;
  if (features_of_003() == 100) x = x[{All, slice(350, 450)}];
  return {x, math::cast(split.y, int32)};
}

// model_of_003(), compiled in the scope of the strategy.
inline berth::keras::Model compiled_for_003(
    const berth::distribute::Strategy& strategy) {
  const auto scope = strategy.scope();
  berth::keras::Model model = model_of_003();
  model.compile({.optimizer = "adam",
                 .loss = "sparse_categorical_crossentropy",
                 .metrics = {"accuracy"}});
  return model;
}

}  // namespace article

#endif  // EXAMPLES_ARTICLES_MODELS_H_
