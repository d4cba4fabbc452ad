// random::set_seed() covers what keras draws: weights, dropout, noise, random
// layers, the order of fit's batches, and helpers that shuffle.

#include <gtest/gtest.h>

#include "berth/berth.h"

namespace berth::keras {
namespace {

using Drawn = std::vector<float>;

Drawn weights_drawn(const Sequential& model) {
  Drawn all;
  for (const Variable& v : model.weights()) {
    for (const float f : v.value().to_vector<float>()) all.push_back(f);
  }
  return all;
}

struct RandomThing {
  const char* name;
  std::function<Drawn()> draw;
};

Tensor series_rows() { return reshape(range(0, 96, 1, float32), {24, 4}); }

RandomThing drawn_by(const char* name, const std::function<Layer()>& make) {
  return {name, [make] {
            const Tensor x = ones({2, 6, 6, 3});
            return make()(x, true).to_vector<float>();
          }};
}

std::vector<RandomThing> random_things() {
  return {
      {"weights",
       [] {
         Sequential model({InputLayer({4}), Dense(3)});
         return weights_drawn(model);
       }},
      {"the order of fit",
       [] {
         Sequential model(
             {InputLayer({4}), Dense(1, {.kernel_initializer = "zeros"})});
         model.compile({.optimizer = SGD(1e-6), .loss = "mse"});
         model.fit(series_rows(), ones({24, 1}),
                   {.batch_size = 1, .verbose = 0});
         return weights_drawn(model);
       }},
      {"split_dataset",
       [] {
         const auto parts = utils::split_dataset(
             data::Dataset::range(50), {.left_size = 25, .shuffle = true});
         Drawn all;
         for (const auto& e : parts.first) {
           all.push_back(static_cast<float>(e[0].item<int64_t>()));
         }
         return all;
       }},
      {"timeseries_dataset_from_array",
       [] {
         Drawn all;
         for (const auto& e : utils::timeseries_dataset_from_array(
                  range(0, 50, 1, float32), {}, 2, {.shuffle = true})) {
           for (const float f : e[0].to_vector<float>()) all.push_back(f);
         }
         return all;
       }},
      drawn_by("Dropout", [] { return Dropout(0.5); }),
      drawn_by("SpatialDropout2D", [] { return SpatialDropout2D(0.5); }),
      drawn_by("GaussianNoise", [] { return GaussianNoise(0.5); }),
      drawn_by("GaussianDropout", [] { return GaussianDropout(0.5); }),
      drawn_by("AlphaDropout", [] { return AlphaDropout(0.5); }),
      drawn_by("RandomBrightness", [] { return RandomBrightness(0.5); }),
  };
}

TEST(SetSeed, CoversWhatKerasDraws) {
  for (const RandomThing& r : random_things()) {
    const auto two = [&](int64_t seed) {
      random::set_seed(seed);
      const Drawn first = r.draw();
      return std::pair(first, r.draw());
    };
    const auto a = two(3);
    EXPECT_FALSE(a.first.empty()) << r.name;
    EXPECT_EQ(a, two(3)) << r.name;
    EXPECT_NE(a, two(4)) << r.name;
    EXPECT_NE(a.first, a.second) << r.name;
  }
}

}  // namespace
}  // namespace berth::keras
