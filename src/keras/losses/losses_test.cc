// Losses, metrics of them, and their gradients.

#include <gtest/gtest.h>

#include <cmath>

#include "berth/berth.h"

namespace berth::keras {
namespace {

using Floats = std::vector<float>;

// Rows of std::log(p) and p itself.
const Floats kP{0.7f, 0.2f, 0.1f, 0.25f, 0.25f, 0.5f};
Tensor probabilities() { return constant(kP, {2, 3}); }
Tensor logits() {
  // Any shift leaves the probabilities as they are.
  return math::log(probabilities()) + 3.0;
}
const double kLoss = -(std::log(0.2) + std::log(0.5)) / 2;

TEST(Losses, MeanSquaredErrorOfEachSample) {
  const Tensor y = constant({{0.f, 1.f}, {2.f, 2.f}});
  const Tensor p = constant({{1.f, 1.f}, {0.f, 5.f}});
  const Loss loss = "mse";
  EXPECT_EQ(loss.per_sample(y, p).to_vector<float>(), (Floats{0.5, 6.5}));
  EXPECT_FLOAT_EQ(loss(y, p).item<float>(), 3.5f);
}

TEST(Losses, TargetsOfOneAxisLessAreNotBroadcast) {
  const Tensor y = constant({1.f, 2.f});
  const Tensor p = constant({{1.f}, {4.f}});
  EXPECT_FLOAT_EQ(Loss("mse")(y, p).item<float>(), 2.f);
  EXPECT_THROW(Loss("mse")(constant({1.f, 2.f, 3.f}), p),
               errors::InvalidArgument);
}

TEST(Losses, SparseCrossentropyOfLogitsAndProbabilities) {
  const Loss of_logits =
      losses::SparseCategoricalCrossentropy({.from_logits = true});
  const Loss of_p = "sparse_categorical_crossentropy";
  for (const Tensor& y :
       {constant({1, 2}), constant({{1}, {2}}), constant({1.f, 2.f}),
        math::cast(constant({1, 2}), uint8)}) {
    EXPECT_NEAR(of_logits(y, logits()).item<float>(), kLoss, 1e-6);
    EXPECT_NEAR(of_p(y, probabilities()).item<float>(), kLoss, 1e-6);
  }
}

TEST(Losses, CategoricalCrossentropyOfLogitsAndProbabilities) {
  const Tensor y = constant({{0, 1, 0}, {0, 0, 1}});
  EXPECT_NEAR(
      Loss("categorical_crossentropy")(y, probabilities()).item<float>(), kLoss,
      1e-6);
  EXPECT_NEAR(
      losses::CategoricalCrossentropy({.from_logits = true})(y, logits())
          .item<float>(),
      kLoss, 1e-6);
}

TEST(Losses, OfImpossibleAndCertainProbabilitiesAreFinite) {
  const Tensor p = constant({{0.f, 1.f}});
  const float loss =
      Loss("sparse_categorical_crossentropy")(constant({0}), p).item<float>();
  EXPECT_NEAR(loss, -std::log(1e-7), 0.2);
  EXPECT_NEAR(
      Loss("categorical_crossentropy")(constant({{1, 0}}), p).item<float>(),
      -std::log(1e-7), 0.2);
}

TEST(Losses, OneHotTargetsOfASparseLossAreRefused) {
  try {
    Loss("sparse_categorical_crossentropy")(constant({{0, 1, 0}, {0, 0, 1}}),
                                            probabilities());
    FAIL();
  } catch (const errors::InvalidArgument& e) {
    EXPECT_NE(std::string(e.what()).find("categorical_crossentropy)"),
              std::string::npos)
        << e.what();
  }
}

TEST(Losses, UnknownNamesSayTheKnownOnes) {
  EXPECT_THROW(Loss("hings"), errors::InvalidArgument);
  EXPECT_THROW(Loss(""), errors::InvalidArgument);
  EXPECT_THROW(Loss(static_cast<const char*>(nullptr)),
               errors::InvalidArgument);
  EXPECT_THROW(Metric("f1"), errors::InvalidArgument);
  EXPECT_THROW(Optimizer("lions"), errors::InvalidArgument);
}

TEST(Losses, OneOfYourOwn) {
  const Loss l1(
      "l1", [](const Tensor& y, const Tensor& p) { return math::abs(y - p); });
  EXPECT_FLOAT_EQ(l1(constant({1.f, 2.f}), constant({3.f, 1.f})).item<float>(),
                  1.5f);
}

using Doubles = std::vector<double>;
using OfRow = double (*)(const Doubles& y, const Doubles& p);

double mean_over(const Doubles& y, const Doubles& p,
                 double (*fn)(double y, double p)) {
  double sum = 0;
  for (size_t i = 0; i < y.size(); ++i) sum += fn(y[i], p[i]);
  return sum / static_cast<double>(y.size());
}

struct Formula {
  const char* name;
  OfRow of_row;
};

// What Keras' documentation says each is, on rows of probabilities.
const Formula kFormulas[] = {
    {"mae",
     [](const Doubles& y, const Doubles& p) {
       return mean_over(y, p,
                        [](double a, double b) { return std::fabs(a - b); });
     }},
    {"mape",
     [](const Doubles& y, const Doubles& p) {
       return mean_over(
           y, p, [](double a, double b) { return 100 * std::fabs(a - b) / a; });
     }},
    {"msle",
     [](const Doubles& y, const Doubles& p) {
       return mean_over(y, p, [](double a, double b) {
         return std::pow(log((1 + a) / (1 + b)), 2);
       });
     }},
    {"huber",
     [](const Doubles& y, const Doubles& p) {
       return mean_over(y, p, [](double a, double b) {
         const double e = std::fabs(a - b);
         return e > 1 ? e - 0.5 : e * e / 2;
       });
     }},
    {"log_cosh",
     [](const Doubles& y, const Doubles& p) {
       return mean_over(
           y, p, [](double a, double b) { return std::log(std::cosh(a - b)); });
     }},
    {"binary_crossentropy",
     [](const Doubles& y, const Doubles& p) {
       return mean_over(y, p, [](double a, double b) {
         return -a * std::log(b) - (1 - a) * std::log(1 - b);
       });
     }},
    {"hinge",
     [](const Doubles& y, const Doubles& p) {
       return mean_over(
           y, p, [](double a, double b) { return std::fmax(1 - a * b, 0); });
     }},
    {"squared_hinge",
     [](const Doubles& y, const Doubles& p) {
       return mean_over(y, p, [](double a, double b) {
         return std::pow(fmax(1 - a * b, 0), 2);
       });
     }},
    {"categorical_hinge",
     [](const Doubles& y, const Doubles& p) {
       double right = 0, wrong = -1e9;
       for (size_t i = 0; i < y.size(); ++i) {
         right += y[i] * p[i];
         wrong = std::fmax(wrong, (1 - y[i]) * p[i]);
       }
       return std::fmax(wrong - right + 1, 0);
     }},
    {"kl_divergence",
     [](const Doubles& y, const Doubles& p) {
       return static_cast<double>(y.size()) *
              mean_over(y, p,
                        [](double a, double b) { return a * std::log(a / b); });
     }},
    {"poisson",
     [](const Doubles& y, const Doubles& p) {
       return mean_over(y, p,
                        [](double a, double b) { return b - a * std::log(b); });
     }},
    {"cosine_similarity",
     [](const Doubles& y, const Doubles& p) {
       double yy = 0, pp = 0, yp = 0;
       for (size_t i = 0; i < y.size(); ++i) {
         yy += y[i] * y[i];
         pp += p[i] * p[i];
         yp += y[i] * p[i];
       }
       return -yp / std::sqrt(yy * pp);
     }},
};

TEST(Losses, EachIsItsFormulaOfEachRow) {
  const Doubles y{0.5, 0.3, 0.2, 0.1, 0.1, 0.8};
  const Doubles p{0.7, 0.2, 0.1, 0.25, 0.3, 0.45};
  for (const Formula& f : kFormulas) {
    SCOPED_TRACE(f.name);
    const Doubles got =
        Loss(f.name)
            .per_sample(constant(y, {2, 3}), constant(p, {2, 3}))
            .to_vector<double>();
    ASSERT_EQ(got.size(), 2u);
    for (size_t row : {0, 1}) {
      const auto at = static_cast<ptrdiff_t>(3 * row);
      const double want = f.of_row(Doubles(y.begin() + at, y.begin() + at + 3),
                                   Doubles(p.begin() + at, p.begin() + at + 3));
      EXPECT_NEAR(got[row], want, 1e-6 * std::abs(want) + 1e-7) << row;
    }
  }
}

TEST(Losses, HingesTakeLabelsOfZeroAndOne) {
  const Tensor p = constant({{0.5, -2.0}, {0.1, 3.0}});
  const Tensor bits = constant({{0, 1}, {1, 0}});
  const Tensor signs = constant({{-1, 1}, {1, -1}});
  for (const char* name : {"hinge", "squared_hinge"}) {
    EXPECT_EQ(Loss(name)(bits, p).item<double>(),
              Loss(name)(signs, p).item<double>());
  }
  EXPECT_NEAR(Loss("hinge")(bits, p).item<double>(), (1.5 + 3 + 0.9 + 4) / 4,
              1e-12);
}

TEST(Losses, HuberAndLogCoshGrowLikeLines) {
  const Tensor y = constant({{0.0}}), p = constant({{1000.0}});
  EXPECT_NEAR(losses::Huber({.delta = 2})(y, p).item<double>(), 1998, 1e-9);
  EXPECT_NEAR(Loss("logcosh")(y, p).item<double>(), 1000 - std::log(2.0), 1e-9);
  EXPECT_NEAR(Loss("logcosh")(p, y).item<double>(), 1000 - std::log(2.0), 1e-9);
  EXPECT_THROW(losses::Huber({.delta = 0}), errors::InvalidArgument);
}

TEST(Losses, BinaryCrossentropyOfLogitsIsThatOfProbabilities) {
  const Tensor y = constant({{0.0, 1.0, 0.3}});
  const Tensor x = constant({{0.5, -2.0, 3.0}});
  const Loss of_logits = losses::BinaryCrossentropy({.from_logits = true});
  EXPECT_NEAR(of_logits(y, x).item<double>(),
              Loss("bce")(y, math::sigmoid(x)).item<double>(), 1e-12);
}

TEST(Losses, SmoothingMovesLabelsTowardsEqualShares) {
  const Tensor y = constant({{0.0, 1.0, 0.0, 0.0}});
  const Tensor p = constant({{0.1, 0.6, 0.2, 0.1}});
  const losses::CrossentropyOptions o{.label_smoothing = 0.2};
  EXPECT_NEAR(
      losses::CategoricalCrossentropy(o)(y, p).item<double>(),
      Loss("categorical_crossentropy")(constant({{0.05, 0.85, 0.05, 0.05}}), p)
          .item<double>(),
      1e-12);
  EXPECT_NEAR(losses::BinaryCrossentropy(o)(y, p).item<double>(),
              Loss("bce")(constant({{0.1, 0.9, 0.1, 0.1}}), p).item<double>(),
              1e-12);
  EXPECT_THROW(losses::SparseCategoricalCrossentropy(o),
               errors::InvalidArgument);
  EXPECT_THROW(losses::BinaryCrossentropy({.label_smoothing = 2}),
               errors::InvalidArgument);
}

TEST(Losses, AreReducedAsAsked) {
  const Tensor y = constant({{0.0, 0.0}, {0.0, 0.0}});
  const Tensor p = constant({{1.0, 3.0}, {2.0, 6.0}});
  EXPECT_EQ(losses::MeanAbsoluteError()(y, p).item<double>(), 3);
  EXPECT_EQ(
      losses::MeanAbsoluteError({.reduction = "sum"})(y, p).item<double>(), 6);
  EXPECT_EQ(losses::MeanAbsoluteError({.reduction = "none"})(y, p)
                .to_vector<double>(),
            (Doubles{2, 4}));
  EXPECT_THROW(losses::MeanAbsoluteError({.reduction = "avg"}),
               errors::InvalidArgument);
}

TEST(Losses, SampleWeightsMultiplyTheValuesAndNotTheirNumber) {
  const Tensor y = constant({{0.0, 0.0}, {0.0, 0.0}});
  const Tensor p = constant({{1.0, 3.0}, {2.0, 6.0}});
  const Loss mae = "mae";
  for (const Tensor& w : {constant({2.0, 0.5}), constant({{2.0}, {0.5}}),
                          math::cast(constant({2.0, 0.5}), float32)}) {
    EXPECT_EQ(mae(y, p, w).item<double>(), 3);  // (2 * 2 + 0.5 * 4) / 2
  }
  EXPECT_EQ(mae(y, p, constant(2.0)).item<double>(), 6);
  EXPECT_THROW(mae(y, p, ones({2, 2}, float64)), errors::InvalidArgument);
  EXPECT_THROW(mae(y, p, ones({3}, float64)), errors::InvalidArgument);
  // Values of several axes take weights of their first.
  const Tensor deep = reshape(p, {2, 2, 1});
  EXPECT_EQ(
      mae(zeros({2, 2, 1}, float64), deep, constant({1.0, 0.0})).item<double>(),
      1);
}

TEST(Losses, AllHaveGradientsThatAreFinite) {
  const Tensor y = constant({{0.0, 1.0, 0.0}, {0.0, 0.0, 1.0}});
  for (const char* name : {"mse", "mae", "mape", "msle", "huber", "log_cosh",
                           "binary_crossentropy", "categorical_crossentropy",
                           "hinge", "squared_hinge", "categorical_hinge", "kld",
                           "poisson", "cosine_similarity"}) {
    const Tensor p = math::cast(probabilities(), float64);
    GradientTape tape;
    tape.watch(p);
    const Doubles d = tape.gradient(Loss(name)(y, p), p).to_vector<double>();
    double size = 0;
    for (const double v : d) size += std::abs(v);
    EXPECT_TRUE(std::isfinite(size) && size > 0) << name;
  }
}

}  // namespace
}  // namespace berth::keras
