#include "berth/recompute_grad.h"

#include <gtest/gtest.h>

#include <atomic>

#include "berth/errors.h"
#include "berth/function.h"
#include "berth/gradient_tape.h"
#include "berth/ops/array.h"
#include "berth/ops/math.h"
#include "berth/ops/nn.h"
#include "berth/ops/random.h"
#include "berth/variable.h"

namespace berth {
namespace {

struct Weights {
  Variable a{random::normal({8, 8}, {.seed = 1})};
  Variable b{random::normal({8, 8}, {.seed = 2})};
  std::vector<Variable> all() const { return {a, b}; }
};

RecomputedFn block_of(const Weights& w) {
  return [&w](const Tensor& x) {
    return math::tanh(matmul(math::tanh(matmul(x, w.a.value())), w.b.value()));
  };
}

void expect_equal(const Tensors& a, const Tensors& b) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) {
    ASSERT_TRUE(a[i].defined() && b[i].defined()) << i;
    EXPECT_EQ(a[i].to_vector<float>(), b[i].to_vector<float>()) << i;
  }
}

// The loss, then its gradients with respect to x and the weights.
Tensors train(const RecomputedFn& f, const Weights& w, const Tensor& x) {
  GradientTape tape;
  tape.watch(x);
  const Tensor loss = math::reduce_sum(math::square(f(f(x))));
  Tensors all = tape.gradient(loss, std::vector<Source>{x, w.a, w.b});
  all.insert(all.begin(), loss);
  return all;
}

TEST(RecomputeGrad, EagerGradientsAreThoseOfTheFunctionToTheBit) {
  const Weights w;
  const Tensor x = random::normal({4, 8}, {.seed = 3});
  expect_equal(train(recompute_grad(block_of(w)), w, x),
               train(block_of(w), w, x));
}

TEST(RecomputeGrad, TracedGradientsAreThoseOfTheFunctionToTheBit) {
  const Weights w;
  const Tensor x = random::normal({4, 8}, {.seed = 3});
  const auto plain =
      function([&](const Tensor& t) { return train(block_of(w), w, t); });
  const auto again = function([&](const Tensor& t) {
    return train(recompute_grad(block_of(w)), w, t);
  });
  expect_equal(again(x), plain(x));
}

// Eight blocks of two tanh on [512, 8]: plain keeps 16 of their values.
TEST(RecomputeGrad, AStepTakesLessMemory) {
  const Weights w;
  const Tensor x = random::normal({512, 8}, {.seed = 3});
  const auto step_of = [&](RecomputedFn f) {
    return function([&, f](const Tensor& t) {
      GradientTape tape;
      Tensor y = t;
      for (int i = 0; i < 8; ++i) y = f(y);
      return tape.gradient(math::reduce_sum(y), w.all());
    });
  };
  const auto plain = step_of(block_of(w));
  const auto again = step_of(recompute_grad(block_of(w)));
  expect_equal(again(x), plain(x));
  const size_t value = 512 * 8 * sizeof(float);
  EXPECT_GT(plain.plan_info().peak_bytes, 14 * value);
  EXPECT_LT(again.plan_info().peak_bytes,
            plain.plan_info().peak_bytes - 4 * value);
}

TEST(RecomputeGrad, TheSecondRunDrawsTheSameNumbers) {
  const Tensor x = ones({1000});
  const auto drop = recompute_grad(
      [](const Tensor& t) { return math::square(nn::dropout(t, 0.5)); });
  const auto step = [&](const Tensor& t) {
    GradientTape tape;
    tape.watch(t);
    const Tensor y = drop(t);
    return Tensors{y, tape.gradient(math::reduce_sum(y), t)};
  };
  // y is 4 or 0, and its gradient 8 or 0 in the same places.
  for (const Tensors& r : {step(x), function(step)(x)}) {
    const auto y = r[0].to_vector<float>(), dx = r[1].to_vector<float>();
    int kept = 0;
    for (size_t i = 0; i < y.size(); ++i) {
      ASSERT_FLOAT_EQ(dx[i], 2 * y[i]) << i;
      kept += y[i] != 0;
    }
    EXPECT_GT(kept, 400);
    EXPECT_LT(kept, 600);
  }
}

TEST(RecomputeGrad, WritesHappenOnce) {
  const Variable count(constant(0.0f), {.trainable = false});
  const Weights w;
  const auto f = recompute_grad([&](const Tensor& x) {
    count.assign_add(constant(1.0f));
    return math::tanh(matmul(x, w.a.value()));
  });
  const Tensor x = random::normal({4, 8}, {.seed = 3});
  const auto step = [&](const Tensor& t) {
    GradientTape tape;
    return tape.gradient(math::reduce_sum(f(t)), w.a);
  };
  step(x);
  EXPECT_EQ(count.value().item<float>(), 1);
  const auto traced = function(step);
  traced(x);
  traced(x);
  EXPECT_EQ(count.value().item<float>(), 3);
}

TEST(RecomputeGrad, VariablesThatChangeMeanwhileCountAsTheyWere) {
  const Variable v(constant(2.0f));
  const Tensor x = constant(3.0f);
  GradientTape tape;
  tape.watch(x);
  const Tensor y = recompute_grad(
      [&](const Tensor& t) { return math::square(t * v.value()); })(x);
  v.assign(constant(100.0f));
  EXPECT_EQ(tape.gradient(y, x).item<float>(), 2 * 3 * 4);
}

TEST(RecomputeGrad, TensorsOfTheClosureHaveGradients) {
  const Tensor a = random::normal({3}, {.seed = 1}),
               x = random::normal({3}, {.seed = 2});
  GradientTape tape;
  tape.watch(a);
  const Tensor y =
      recompute_grad([&](const Tensor& t) { return t * math::exp(a); })(x);
  const auto d = tape.gradient(math::reduce_sum(y), a).to_vector<float>();
  const auto expected = (x * math::exp(a)).to_vector<float>();
  for (size_t i = 0; i < 3; ++i) EXPECT_FLOAT_EQ(d[i], expected[i]);
}

TEST(RecomputeGrad, SecondDerivatives) {
  const Tensor x = constant(2.0f);
  GradientTape outer;
  outer.watch(x);
  Tensor dy;
  {
    GradientTape inner;
    inner.watch(x);
    const Tensor y =
        recompute_grad([](const Tensor& t) { return t * t * t; })(x);
    dy = inner.gradient(y, x);
  }
  EXPECT_FLOAT_EQ(dy.item<float>(), 12);
  EXPECT_FLOAT_EQ(outer.gradient(dy, x).item<float>(), 12);
}

TEST(RecomputeGrad, SeveralInputsAndOutputs) {
  const Tensor x = constant(2.0f), n = constant(int64_t{3});
  const auto f = recompute_grad([](const Tensors& in) {
    return Tensors{in[0] * in[0], in[1] + int64_t{1}, math::exp(in[0])};
  });
  GradientTape tape;
  tape.watch(x);
  const Tensors y = f({x, n});
  EXPECT_EQ(y[1].item<int64_t>(), 4);
  EXPECT_FLOAT_EQ(tape.gradient(y[0], x).item<float>(), 4);
}

TEST(RecomputeGrad, RefusesWhatCannotBeComputedAgain) {
  const Variable v(constant(1.0f));
  const auto f = recompute_grad([&](const Tensor& t) {
    v.assign_add(constant(1.0f));
    return t * v.value();
  });
  const Tensor x = constant(2.0f);
  GradientTape tape;
  tape.watch(x);
  const Tensor y = f(x);
  EXPECT_THROW(tape.gradient(y, x), errors::Unimplemented);
  EXPECT_THROW(recompute_grad(RecomputedFn()), errors::InvalidArgument);
}

TEST(RecomputeGrad, RunsWithoutATape) {
  std::atomic<int> calls = 0;
  const auto f = recompute_grad([&](const Tensor& t) {
    ++calls;
    return t + 1.0;
  });
  EXPECT_EQ(f(constant(1.0f)).item<float>(), 2);
  EXPECT_EQ(calls, 1);
}

}  // namespace
}  // namespace berth
