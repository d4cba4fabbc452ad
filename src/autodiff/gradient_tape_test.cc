#include "berth/gradient_tape.h"

#include <gtest/gtest.h>

#include <cmath>
#include <thread>

#include "base/diagnostics.h"
#include "berth/berth.h"

namespace berth {
namespace {

using Floats = std::vector<float>;

TEST(GradientTape, OfASquareIsTwiceTheValue) {
  const Tensor x = constant({1.f, -2.f, 3.f});
  GradientTape tape;
  tape.watch(x);
  const Tensor y = math::square(x);
  EXPECT_EQ(tape.gradient(y, x).to_vector<float>(), (Floats{2, -4, 6}));
}

// The error of `call` on a thread of its own.
std::string error_elsewhere(const std::function<void()>& call) {
  std::string text = "no error";
  std::thread([&] {
    try {
      call();
    } catch (const errors::FailedPrecondition& e) {
      text = e.what();
    }
  }).join();
  return text;
}

TEST(GradientTape, RecordsAgainAfterResumeAndStaysWhilePersistent) {
  const Tensor x = constant(3.f);
  GradientTape tape;
  tape.watch(x);
  const Tensor y = x * x;
  tape.stop();
  const Tensor z = y * y;
  tape.resume();
  const Tensor u = y + x;
  tape.stop();
  tape.set_persistent(true);
  EXPECT_EQ(tape.gradient(y, x).item<float>(), 6);
  EXPECT_FALSE(tape.gradient(z, x).defined());
  tape.set_persistent(false);
  EXPECT_EQ(tape.gradient(u, x).item<float>(), 7);
  EXPECT_THROW(tape.gradient(u, x), errors::FailedPrecondition);
}

TEST(GradientTape, OnAnotherThreadIsAnErrorThatNamesTheRuleAndTheLine) {
  const Tensor x = constant(3.f);
  const Variable w(constant(2.f));
  GradientTape tape({.persistent = true});
  tape.watch(x);
  const Tensor y = x * x;
  const std::string here = "gradient_tape_test.cc";
  for (const auto& call : std::vector<std::function<void()>>{
           [&] { tape.watch(y); }, [&] { tape.watch(w); }, [&] { tape.stop(); },
           [&] { tape.gradient(y, x); },
           [&] { tape.gradient(Tensors{y}, {x}); }}) {
    const std::string text = error_elsewhere(call);
    EXPECT_NE(text.find("a thread owns its tapes"), text.npos) << text;
    EXPECT_NE(text.find(here), text.rfind(here)) << text;  // call and tape
  }
  // The tape goes on where it belongs.
  EXPECT_FLOAT_EQ(tape.gradient(y, x).item<float>(), 6.f);
  const Tensor z = y * x;
  EXPECT_FLOAT_EQ(tape.gradient(z, x).item<float>(), 27.f);
}

// Tapes that end elsewhere must leave the list of their thread as it is.
TEST(GradientTape, EndsOnAnotherThreadWithAWarningAndWithoutHarm) {
  reset_diagnostics_for_testing();
  const Tensor x = constant(3.f);
  auto outer = std::make_unique<GradientTape>();
  outer->watch(x);
  auto lost = std::make_unique<GradientTape>();
  lost->watch(x);
  GradientTape inner;
  inner.watch(x);
  const Tensor y = x * x;
  std::thread([&] { lost.reset(); }).join();
  EXPECT_EQ(debugging::diagnostic_counts()["tape-thread"], 1);
  const Tensor z = y * x;
  EXPECT_FLOAT_EQ(inner.gradient(z, x).item<float>(), 27.f);
  EXPECT_FLOAT_EQ(outer->gradient(z, x).item<float>(), 27.f);
  outer.reset();
  GradientTape next;
  next.watch(x);
  EXPECT_FLOAT_EQ(next.gradient(x * x, x).item<float>(), 6.f);
}

TEST(GradientTape, OfAnEndedThreadOrStoppedEndsAnywhereWithoutAWarning) {
  reset_diagnostics_for_testing();
  auto stopped = std::make_unique<GradientTape>();
  stopped->stop();
  std::unique_ptr<GradientTape> orphan;
  std::thread([&] {
    stopped.reset();
    orphan = std::make_unique<GradientTape>();
  }).join();
  orphan.reset();
  EXPECT_EQ(debugging::diagnostic_counts()["tape-thread"], 0);
}

TEST(GradientTape, SumsContributionsOfAllUses) {
  const Tensor x = constant(3.f);
  GradientTape tape;
  tape.watch(x);
  const Tensor y = x * x * x + x * 5.0 - x;  // 3x^2 + 4
  EXPECT_FLOAT_EQ(tape.gradient(y, x).item<float>(), 31.f);
}

TEST(GradientTape, ReducesBroadcastOperandsToTheirShape) {
  const Tensor x = constant({{1.f, 2.f, 3.f}, {4.f, 5.f, 6.f}});
  const Tensor b = constant({10.f, 20.f, 30.f});
  GradientTape tape;
  tape.watch(b);
  const Tensor y = x * b;
  EXPECT_EQ(tape.gradient(y, b).to_vector<float>(), (Floats{5, 7, 9}));
}

TEST(GradientTape, OfAMatMulFollowsBothOperands) {
  const Tensor a = constant({{1.f, 2.f}, {3.f, 4.f}});
  const Tensor b = constant({{5.f, 6.f}, {7.f, 8.f}});
  GradientTape tape;
  tape.watch(a);
  tape.watch(b);
  const Tensor y = matmul(a, b);
  const Tensors g = tape.gradient(y, {a, b});
  EXPECT_EQ(g[0].to_vector<float>(), (Floats{11, 15, 11, 15}));
  EXPECT_EQ(g[1].to_vector<float>(), (Floats{4, 4, 6, 6}));
}

// A matrix that multiplies many rows: its gradient is the sum over all rows.
TEST(GradientTape, OfOneMatrixSumsOverAllRows) {
  constexpr int64_t kBatch = 3, kSteps = 2, kIn = 2, kOut = 3;
  std::vector<float> a, dy;
  for (int64_t i = 0; i < kBatch * kSteps * kIn; ++i) a.push_back(i % 5 - 2);
  for (int64_t i = 0; i < kBatch * kSteps * kOut; ++i) dy.push_back(i % 7 - 3);
  Floats expected(kIn * kOut), transposed(kIn * kOut);
  for (int64_t r = 0; r < kBatch * kSteps; ++r) {
    for (int64_t i = 0; i < kIn; ++i) {
      for (int64_t o = 0; o < kOut; ++o) {
        expected[i * kOut + o] += a[r * kIn + i] * dy[r * kOut + o];
        transposed[o * kIn + i] += a[r * kIn + i] * dy[r * kOut + o];
      }
    }
  }
  const Tensor x = constant(a, {kBatch, kSteps, kIn});
  const Tensor weight = constant(dy, {kBatch, kSteps, kOut});
  for (const bool transpose : {false, true}) {
    const Tensor b = ones(transpose ? Shape{kOut, kIn} : Shape{kIn, kOut});
    GradientTape tape;
    tape.watch(b);
    const Tensor y = matmul(x, b, {.transpose_b = transpose}) * weight;
    EXPECT_EQ(tape.gradient(y, b).to_vector<float>(),
              transpose ? transposed : expected);
  }
}

TEST(GradientTape, NestedTapesGiveSecondOrder) {
  const Tensor x = constant(2.f);
  GradientTape outer;
  outer.watch(x);
  Tensor first;
  {
    GradientTape inner;
    inner.watch(x);
    const Tensor y = x * x * x;
    first = inner.gradient(y, x);
  }
  EXPECT_FLOAT_EQ(first.item<float>(), 12.f);
  EXPECT_FLOAT_EQ(outer.gradient(first, x).item<float>(), 12.f);
}

TEST(GradientTape, APersistentTapeGivesSecondOrderByItself) {
  const Tensor x = constant(2.f);
  GradientTape tape({.persistent = true});
  tape.watch(x);
  const Tensor y = math::exp(x * 3.0);
  const Tensor first = tape.gradient(y, x);
  const Tensor second = tape.gradient(first, x);
  EXPECT_NEAR(first.item<double>(), 3 * std::exp(6.0), 1e-2);
  EXPECT_NEAR(second.item<double>(), 9 * std::exp(6.0), 1e-2);
}

TEST(GradientTape, RefusesASecondGradientUnlessPersistent) {
  const Tensor x = constant(2.f);
  GradientTape tape;
  tape.watch(x);
  const Tensor y = x * x;
  tape.gradient(y, x);
  EXPECT_THROW(tape.gradient(y, x), errors::FailedPrecondition);
}

TEST(GradientTape, UnconnectedIsEmptyOrZero) {
  const Tensor x = constant({1.f, 2.f}), z = constant({1.f, 2.f, 3.f});
  GradientTape tape({.persistent = true});
  tape.watch(x);
  tape.watch(z);
  const Tensor y = x * 2.0;
  EXPECT_FALSE(tape.gradient(y, z).defined());
  const Tensor zero = tape.gradient(
      y, z, {.unconnected_gradients = UnconnectedGradients::kZero});
  EXPECT_EQ(zero.to_vector<float>(), (Floats{0, 0, 0}));
}

TEST(GradientTape, OfATargetThatIsTheSourceIsOne) {
  const Tensor x = constant({5.f, 6.f});
  GradientTape tape;
  tape.watch(x);
  EXPECT_EQ(tape.gradient(x, x).to_vector<float>(), (Floats{1, 1}));
}

TEST(GradientTape, OfAnIntermediateValueStopsThere) {
  const Tensor x = constant(3.f);
  GradientTape tape({.persistent = true});
  tape.watch(x);
  const Tensor y = x * x;
  const Tensor z = y * y;
  const Tensors g = tape.gradient(z, {y, x});
  EXPECT_FLOAT_EQ(g[0].item<float>(), 18.f);
  EXPECT_FLOAT_EQ(g[1].item<float>(), 108.f);
}

TEST(GradientTape, WeighsByOutputGrad) {
  const Tensor x = constant({1.f, 2.f});
  GradientTape tape;
  tape.watch(x);
  const Tensor y = math::square(x);
  const Tensor g =
      tape.gradient(y, x, {.output_grad = constant({10.f, 100.f})});
  EXPECT_EQ(g.to_vector<float>(), (Floats{20, 400}));
}

TEST(GradientTape, WatchesTrainableVariablesWhenRead) {
  const Variable w(constant({1.f, 2.f}), {.name = "w"});
  const Variable fixed(constant(3.f), {.name = "c", .trainable = false});
  GradientTape tape;
  const Tensor y = w * fixed;
  const Tensors g = tape.gradient(y, std::vector<Variable>{w, fixed});
  EXPECT_EQ(g[0].to_vector<float>(), (Floats{3, 3}));
  EXPECT_FALSE(g[1].defined());
}

TEST(GradientTape, UsesTheValueThatTheForwardPassRead) {
  const Variable w(constant(3.f));
  GradientTape tape;
  const Tensor y = w * w;
  w.assign(constant(100.f));
  EXPECT_FLOAT_EQ(tape.gradient(y, w).item<float>(), 6.f);
  EXPECT_FLOAT_EQ(w.value().item<float>(), 100.f);
}

TEST(GradientTape, RefusesIntegers) {
  GradientTape tape;
  EXPECT_THROW(tape.watch(constant(3)), errors::InvalidArgument);
  EXPECT_THROW(tape.gradient(constant(3), constant(1.f)),
               errors::InvalidArgument);
}

TEST(GradientTape, TapesMayCloseInAnyOrder) {
  const Tensor x = constant(2.f);
  auto first = std::make_unique<GradientTape>();
  auto second = std::make_unique<GradientTape>();
  first->watch(x);
  second->watch(x);
  const Tensor y = x * x;
  EXPECT_FLOAT_EQ(first->gradient(y, x).item<float>(), 4.f);
  first.reset();
  const Tensor z = y * x;
  EXPECT_FLOAT_EQ(second->gradient(z, x).item<float>(), 12.f);
}

TEST(GradientTape, ThreadsMayWatchTheSameTensor) {
  const Tensor x = constant(2.f);
  std::vector<float> results(4);
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&, i] {
      for (int round = 0; round < 200; ++round) {
        GradientTape tape;
        tape.watch(x);
        const Tensor y = x * static_cast<double>(i + round);
        results[i] = tape.gradient(y, x).item<float>();
      }
    });
  }
  for (auto& t : threads) t.join();
  EXPECT_EQ(results, (Floats{199, 200, 201, 202}));
}

TEST(GradientTape, AConstantUnderATapeFollowsTheScope) {
  GradientTape tape;
  config::set_soft_device_placement(false);
  EXPECT_THROW(with_device("/GPU:7", [] { return constant(1.f); }),
               errors::InvalidArgument);
  config::set_soft_device_placement(true);
}

TEST(GradientTape, StopEndsRecording) {
  const Tensor x = constant(2.f);
  GradientTape tape;
  tape.watch(x);
  const Tensor y = x * x;
  tape.stop();
  const Tensor z = y * x;
  EXPECT_FALSE(tape.gradient(z, x).defined());
}

}  // namespace
}  // namespace berth
