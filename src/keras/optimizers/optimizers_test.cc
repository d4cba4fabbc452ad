// Optimizers and schedules: values, slots, options.

#include <gtest/gtest.h>

#include <cmath>
#include <utility>

#include "berth/berth.h"

namespace berth::keras {
namespace {

using Floats = std::vector<float>;

// The update of one number, written out once more in double.
struct ByHand {
  double x, m = 0, v = 0, mean = 0;
  int t = 0;

  void sgd(double g, double rate, double momentum, bool nesterov) {
    m = momentum * m - rate * g;
    x += nesterov ? momentum * m - rate * g : m;
  }
  void adam(double g, double rate, double b1, double b2, double epsilon) {
    ++t;
    m = b1 * m + (1 - b1) * g;
    v = b2 * v + (1 - b2) * g * g;
    const double step =
        rate * std::sqrt(1 - std::pow(b2, t)) / (1 - std::pow(b1, t));
    x -= step * m / (std::sqrt(v) + epsilon);
  }
  void rms_prop(double g, double rate, double rho, double momentum,
                double epsilon, bool centered) {
    v = rho * v + (1 - rho) * g * g;
    mean = rho * mean + (1 - rho) * g;
    const double spread = centered ? v - mean * mean : v;
    m = momentum * m + rate * g / std::sqrt(spread + epsilon);
    x -= m;
  }
  void adagrad(double g, double rate, double epsilon) {
    v += g * g;
    x -= rate * g / (std::sqrt(v) + epsilon);
  }
};

// Gradients of ten steps.
double gradient(int t) { return std::sin(1.0 + 2.0 * t) * (t % 3 + 1); }

TEST(SGD, FollowsItsFormula) {
  for (const double momentum : {0.0, 0.9}) {
    for (const bool nesterov : {false, true}) {
      const SGD optimizer(0.1, {.momentum = momentum, .nesterov = nesterov});
      const Variable x(constant({1.f}));
      ByHand want{1};
      for (int t = 0; t < 10; ++t) {
        const double g = gradient(t);
        optimizer.apply_gradients({constant({static_cast<float>(g)})}, {x});
        if (momentum == 0) {
          want.x -= 0.1 * g;
        } else {
          want.sgd(g, 0.1, momentum, nesterov);
        }
        EXPECT_NEAR(x.value().item<float>(), want.x, 2e-6);
      }
      EXPECT_EQ(optimizer.iterations().value().item<int64_t>(), 10);
    }
  }
}

TEST(Adam, FollowsItsFormula) {
  const Adam optimizer(0.01, {.beta_1 = 0.8, .beta_2 = 0.99, .epsilon = 1e-3});
  const Variable x(constant({1.f, 1.f}));
  ByHand a{1}, b{1};
  for (int t = 0; t < 10; ++t) {
    const double g = gradient(t);
    optimizer.apply_gradients(
        {constant({static_cast<float>(g), static_cast<float>(-g / 2)})}, {x});
    a.adam(g, 0.01, 0.8, 0.99, 1e-3);
    b.adam(-g / 2, 0.01, 0.8, 0.99, 1e-3);
    const Floats got = x.value().to_vector<float>();
    EXPECT_NEAR(got[0], a.x, 1e-6) << t;
    EXPECT_NEAR(got[1], b.x, 1e-6) << t;
  }
}

TEST(Adam, TakesItsRateAmongTheOptionsToo) {
  const Optimizer adam = optimizers::Adam({.learning_rate = 0.25});
  EXPECT_EQ(adam.learning_rate().value().item<double>(), 0.25);
  const Optimizer sgd =
      optimizers::SGD({.learning_rate = 0.5, .momentum = 0.9});
  EXPECT_EQ(sgd.learning_rate().value().item<double>(), 0.5);
  const Optimizer in_front = optimizers::AdamW(0.125, {.weight_decay = 0.1});
  EXPECT_EQ(in_front.learning_rate().value().item<double>(), 0.125);
}

TEST(Adam, OfFloat64IsAsExact) {
  const Adam optimizer(0.01);
  const Variable x(constant(1.0));
  ByHand want{1};
  for (int t = 0; t < 10; ++t) {
    optimizer.apply_gradients({constant(gradient(t))}, {x});
    // The rate is a float32 variable.
    want.adam(gradient(t), double{0.01f}, 0.9, 0.999, 1e-7);
    EXPECT_NEAR(x.value().item<double>(), want.x, 1e-12);
  }
}

TEST(AdamW, DecaysTheWeightAndThenFollowsAdam) {
  const AdamW optimizer(
      0.01,
      {.weight_decay = 0.3, .beta_1 = 0.8, .beta_2 = 0.99, .epsilon = 1e-3});
  const Variable x(constant({3.f, -2.f}));
  ByHand a{3}, b{-2};
  for (int t = 0; t < 10; ++t) {
    const double g = gradient(t);
    optimizer.apply_gradients(
        {constant({static_cast<float>(g), static_cast<float>(-g / 2)})}, {x});
    for (auto [want, grad] : {std::pair{&a, g}, std::pair{&b, -g / 2}}) {
      want->x *= 1 - 0.01 * 0.3;
      want->adam(grad, 0.01, 0.8, 0.99, 1e-3);
    }
    const Floats got = x.value().to_vector<float>();
    EXPECT_NEAR(got[0], a.x, 2e-6) << t;
    EXPECT_NEAR(got[1], b.x, 2e-6) << t;
  }
}

TEST(AdamW, DecaysByKerasDefault) {
  const AdamW optimizer(0.5);
  const Variable x(constant(1.0));
  optimizer.apply_gradients({constant(0.0)}, {x});
  EXPECT_NEAR(x.value().item<double>(), 1 - 0.5 * 0.004, 1e-12);
}

TEST(RMSprop, FollowsItsFormula) {
  for (const double momentum : {0.0, 0.9}) {
    for (const bool centered : {false, true}) {
      const RMSprop optimizer(0.01, {.rho = 0.8,
                                     .momentum = momentum,
                                     .epsilon = 1e-3,
                                     .centered = centered});
      const Variable x(constant(1.0));
      ByHand want{1};
      for (int t = 0; t < 10; ++t) {
        optimizer.apply_gradients({constant(gradient(t))}, {x});
        want.rms_prop(gradient(t), double{0.01f}, 0.8, momentum, 1e-3,
                      centered);
        EXPECT_NEAR(x.value().item<double>(), want.x, 1e-12) << t;
        // The last slot is the mean of gradients, or the momentum.
        EXPECT_NEAR(optimizer.variables().back().value().item<double>(),
                    centered ? want.mean : want.m, 1e-12);
      }
    }
  }
}

TEST(Adagrad, FollowsItsFormulaFromTheInitialSum) {
  const Adagrad optimizer(0.1,
                          {.initial_accumulator_value = 0.5, .epsilon = 1e-3});
  const Variable x(constant(1.0));
  ByHand want{1};
  want.v = 0.5;
  for (int t = 0; t < 10; ++t) {
    optimizer.apply_gradients({constant(gradient(t))}, {x});
    want.adagrad(gradient(t), double{0.1f}, 1e-3);
    EXPECT_NEAR(x.value().item<double>(), want.x, 1e-12) << t;
  }
}

TEST(Optimizers, ACompiledStepIsTracedOnceAndFollowsTheRate) {
  const SGD optimizer(0.5);
  const Variable x(constant(1.f));
  auto step =
      function([&](const Tensor& g) { optimizer.apply_gradients({g}, {x}); });
  step(constant(1.f));
  EXPECT_FLOAT_EQ(x.value().item<float>(), 0.5f);
  optimizer.learning_rate().assign(0.25);  // a number takes its dtype
  step(constant(1.f));
  EXPECT_FLOAT_EQ(x.value().item<float>(), 0.25f);
  EXPECT_EQ(step.num_traces(), 1);
}

TEST(Optimizers, BuildMakesTheSlotsThatTheFirstStepWould) {
  const Variable a(constant(1.f)), b(constant(1.f));
  const Adam built(0.1), fresh(0.1);
  const size_t before = built.variables().size();
  built.build({a});
  EXPECT_EQ(built.variables().size(), before + 2);  // both moments
  built.apply_gradients({constant(3.f)}, {a});
  fresh.apply_gradients({constant(3.f)}, {b});
  EXPECT_EQ(built.variables().size(), fresh.variables().size());
  EXPECT_EQ(a.value().item<float>(), b.value().item<float>());
}

TEST(Optimizers, ACompiledOneEqualsTheEagerOne) {
  for (const char* name : {"sgd", "adam", "adamw", "rmsprop", "adagrad"}) {
    SCOPED_TRACE(name);
    const Optimizer compiled(name), eager(name);
    EXPECT_EQ(eager.name(), name);
    const Variable a(constant({1.f, 2.f})), b(constant({1.f, 2.f}));
    auto step =
        function([&](const Tensor& g) { compiled.apply_gradients({g}, {a}); });
    for (int t = 0; t < 20; ++t) {
      const auto g = static_cast<float>(gradient(t));
      step(constant({g, -g}));
      eager.apply_gradients({constant({g, -g})}, {b});
    }
    EXPECT_EQ(step.num_traces(), 1);
    const Floats x = a.value().to_vector<float>(),
                 y = b.value().to_vector<float>();
    EXPECT_NE(x[0], 1);
    EXPECT_NEAR(x[0], y[0], 1e-6);
    EXPECT_NEAR(x[1], y[1], 1e-6);
  }
}

TEST(Optimizers, SkipVariablesWithoutAGradient) {
  const SGD optimizer(1);
  const Variable x(constant(1.f)), y(constant(1.f));
  optimizer.apply_gradients({Tensor(), constant(1.f)}, {x, y});
  EXPECT_FLOAT_EQ(x.value().item<float>(), 1);
  EXPECT_FLOAT_EQ(y.value().item<float>(), 0);
  EXPECT_THROW(optimizer.apply_gradients({Tensor()}, {x}),
               errors::InvalidArgument);
  EXPECT_THROW(optimizer.apply_gradients({constant(1.f)}, {x, y}),
               errors::InvalidArgument);
  EXPECT_THROW(optimizer.apply_gradients({constant({1.f, 2.f})}, {x}),
               errors::InvalidArgument);
}

TEST(Optimizers, RefuseBadOptions) {
  EXPECT_THROW(SGD(-1), errors::InvalidArgument);
  EXPECT_THROW(SGD(0.1, {.momentum = 2}), errors::InvalidArgument);
  EXPECT_THROW(Adam(0.1, {.beta_1 = 1}), errors::InvalidArgument);
  EXPECT_THROW(AdamW(0.1, {.weight_decay = -1}), errors::InvalidArgument);
  EXPECT_THROW(AdamW(0.1, {.beta_2 = 1}), errors::InvalidArgument);
  EXPECT_THROW(RMSprop(0.1, {.rho = 2}), errors::InvalidArgument);
  EXPECT_THROW(RMSprop(0.1, {.momentum = std::nan("")}),
               errors::InvalidArgument);
  EXPECT_THROW(Adagrad(0.1, {.initial_accumulator_value = -1}),
               errors::InvalidArgument);
  EXPECT_THROW(Optimizer("adamx"), errors::InvalidArgument);
}

TEST(Optimizers, VariablesAreCountersAndSlots) {
  const Adam optimizer;
  const Variable x(constant({1.f, 2.f}), {.name = "w"});
  optimizer.apply_gradients({constant({1.f, 1.f})}, {x});
  const auto list = optimizer.variables();
  ASSERT_EQ(list.size(), 6u);  // rate, iterations, two powers, m, v
  EXPECT_EQ(list[4].name(), "adam/w/m");
  EXPECT_EQ(list[4].shape(), (Shape{2}));
  for (const Variable& v : list) EXPECT_FALSE(v.trainable());
}

TEST(Optimizers, SlotsAreNamedByTheirOptimizer) {
  const Variable x(constant({1.f, 2.f}), {.name = "w"});
  const auto last_name = [&](const Optimizer& optimizer) {
    optimizer.apply_gradients({constant({1.f, 1.f})}, {x});
    return optimizer.variables().back().name();
  };
  EXPECT_EQ(last_name(AdamW()), "adamw/w/v");
  EXPECT_EQ(AdamW().variables()[2].name(), "adamw/beta_1_power");
  EXPECT_EQ(last_name(RMSprop(0.1, {.centered = true})),
            "rmsprop/w/average_gradient");
  EXPECT_EQ(last_name(Adagrad()), "adagrad/w/accumulator");
}

}  // namespace
}  // namespace berth::keras
