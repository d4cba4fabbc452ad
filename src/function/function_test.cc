#include "berth/function.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <map>
#include <string>
#include <thread>

#include "berth/berth.h"
#include "op/dispatcher.h"

namespace berth {
namespace {

using Floats = std::vector<float>;

TEST(Function, ComputesWhatTheCallableComputes) {
  auto f = function(
      [](const Tensor& x, const Tensor& y) { return math::exp(x) * y + 1.0; });
  const Tensor x = constant({0.f, 1.f}), y = constant({2.f, 3.f});
  const Floats got = f(x, y).to_vector<float>();
  EXPECT_FLOAT_EQ(got[0], 3.f);
  EXPECT_FLOAT_EQ(got[1], 3.f * std::exp(1.f) + 1.f);
}

TEST(Function, TracesOncePerSignature) {
  int runs = 0;
  auto f = function([&](const Tensor& x, int power) {
    ++runs;
    Tensor y = x;
    for (int i = 1; i < power; ++i) y = y * x;
    return y;
  });
  const Tensor x = constant({2.f, 3.f});
  EXPECT_EQ(f(x, 3).to_vector<float>(), (Floats{8, 27}));
  EXPECT_EQ(f(x, 3).to_vector<float>(), (Floats{8, 27}));
  EXPECT_EQ(runs, 1);
  EXPECT_EQ(f(x, 2).to_vector<float>(), (Floats{4, 9}));
  EXPECT_EQ(runs, 2);
  EXPECT_EQ(f(constant({2.f}), 2).to_vector<float>(), (Floats{4}));
  EXPECT_EQ(runs, 3);
  EXPECT_EQ(f.num_traces(), 3);
}

TEST(Function, TakesAndReturnsNestedTrees) {
  using Tree = std::map<std::string, std::vector<Tensor>>;
  auto f = function([](const Tree& t, std::pair<Tensor, float> p) {
    Tree out;
    for (const auto& [name, list] : t) {
      for (const Tensor& x : list) {
        out[name].push_back(x * p.first + static_cast<double>(p.second));
      }
    }
    return std::make_tuple(out, p.first);
  });
  const Tree in{{"a", {constant(1.f), constant(2.f)}}, {"b", {constant(3.f)}}};
  const auto [out, same] = f(in, {constant(10.f), 0.5f});
  EXPECT_FLOAT_EQ(out.at("a")[1].item<float>(), 20.5f);
  EXPECT_FLOAT_EQ(out.at("b")[0].item<float>(), 30.5f);
  EXPECT_FLOAT_EQ(same.item<float>(), 10.f);
}

TEST(Function, EffectsOnAVariableKeepProgramOrder) {
  const Variable v(constant(1.f));
  auto f = function([&] {
    const Tensor before = v.value();
    v.assign_add(constant(10.f));
    const Tensor between = v.value();
    v.assign(v.value() * 2.0);
    return std::vector<Tensor>{before, between, v.value(), before * 100.0};
  });
  for (float start : {1.f, 5.f}) {
    v.assign(constant(start));
    const auto r = f();
    EXPECT_FLOAT_EQ(r[0].item<float>(), start);
    EXPECT_FLOAT_EQ(r[1].item<float>(), start + 10);
    EXPECT_FLOAT_EQ(r[2].item<float>(), (start + 10) * 2);
    EXPECT_FLOAT_EQ(r[3].item<float>(), start * 100);
  }
  EXPECT_FLOAT_EQ(v.value().item<float>(), 30.f);
}

TEST(Function, ResultsStayWhatTheyWereAfterTheNextRun) {
  const Variable v(constant({1.f, 2.f}));
  auto f = function([&](const Tensor& x) {
    v.assign_add(x);
    return std::vector<Tensor>{v.value(), x + 1.0, reshape(x * 2.0, {2, 1})};
  });
  const auto first = f(constant({1.f, 1.f}));
  const auto second = f(constant({5.f, 5.f}));
  EXPECT_EQ(first[0].to_vector<float>(), (Floats{2, 3}));
  EXPECT_EQ(first[1].to_vector<float>(), (Floats{2, 2}));
  EXPECT_EQ(first[2].to_vector<float>(), (Floats{2, 2}));
  EXPECT_EQ(second[0].to_vector<float>(), (Floats{7, 8}));
}

TEST(Function, OneTraceServesUnknownDimensions) {
  int runs = 0;
  auto f = function(
      [&](const Tensor& x) {
        ++runs;
        const Tensor flat = reshape(x, {-1, 4});
        return math::reduce_sum(flat * 2.0, {.axis = {{1}}});
      },
      {.input_signature = {{{-1, 2, 2}, float32}}});
  EXPECT_EQ(f(ones({3, 2, 2})).to_vector<float>(), (Floats{8, 8, 8}));
  EXPECT_EQ(f(ones({1, 2, 2})).to_vector<float>(), (Floats{8}));
  EXPECT_EQ(f(ones({5, 2, 2})).shape(), (Shape{5}));
  EXPECT_EQ(runs, 1);
  EXPECT_THROW(f(ones({5, 2, 3})), errors::InvalidArgument);
}

TEST(Function, GradientsInsideATraceWithUnknownBatch) {
  const Variable w(constant({{1.f}, {2.f}}));
  auto f = function(
      [&](const Tensor& x) {
        GradientTape tape;
        const Tensor loss = math::reduce_mean(math::square(matmul(x, w)));
        return tape.gradient(loss, w);
      },
      {.input_signature = {{{-1, 2}, float32}}});
  // d mean((x w)^2)/dw = 2/n x^T (x w)
  EXPECT_EQ(f(constant({{1.f, 1.f}})).to_vector<float>(), (Floats{6, 6}));
  EXPECT_EQ(f(constant({{1.f, 0.f}, {0.f, 1.f}})).to_vector<float>(),
            (Floats{1, 2}));
}

TEST(Function, ATapeDifferentiatesACall) {
  const Variable w(constant(3.f));
  auto f = function([&](const Tensor& x) {
    return std::make_pair(math::square(x) * w, x * 2.0);
  });
  const Tensor x = constant({1.f, 2.f});
  GradientTape tape;
  tape.watch(x);
  const auto [y, z] = f(x);
  const Tensor loss = math::reduce_sum(y) + math::reduce_sum(z * z);
  const Tensors g = tape.gradient(loss, {x, w});
  // 2 x w + 8 x; sum x^2
  EXPECT_EQ(g[0].to_vector<float>(), (Floats{14, 28}));
  EXPECT_FLOAT_EQ(g[1].item<float>(), 5.f);
}

TEST(Function, SecondOrderThroughACall) {
  auto f = function([](const Tensor& x) { return x * x * x; });
  const Tensor x = constant(2.f);
  GradientTape outer;
  outer.watch(x);
  GradientTape inner;
  inner.watch(x);
  const Tensor y = f(x);
  const Tensor first = inner.gradient(y, x);
  EXPECT_FLOAT_EQ(first.item<float>(), 12.f);
  EXPECT_FLOAT_EQ(outer.gradient(first, x).item<float>(), 12.f);
}

TEST(Function, IsInlinedInAnotherTrace) {
  auto square = function([](const Tensor& x) { return x * x; });
  auto f =
      function([&](const Tensor& x) { return square(x) + square(x + 1.0); });
  EXPECT_FLOAT_EQ(f(constant(3.f)).item<float>(), 25.f);
  EXPECT_EQ(square.num_traces(), 0);
}

TEST(Function, ReadingAValueBackSaysWhereAndWhatInstead) {
  auto f =
      function([](const Tensor& x) { return x.item<float>() > 0 ? x : -x; });
  try {
    f(constant(1.f));
    FAIL();
  } catch (const errors::FailedPrecondition& e) {
    const std::string what = e.what();
    EXPECT_NE(what.find("function_test.cc:"), std::string::npos) << what;
    EXPECT_NE(what.find("math::where"), std::string::npos) << what;
  }
}

TEST(Function, AFailedTraceLeavesTheThreadAsItWas) {
  auto f = function([](const Tensor& x) { return matmul(x, x); });
  EXPECT_THROW(f(constant({1.f, 2.f})), errors::InvalidArgument);
  EXPECT_EQ(t_state.top, nullptr);
  EXPECT_FLOAT_EQ((constant(1.f) + constant(2.f)).item<float>(), 3.f);
}

TEST(Function, AFailingRunTearsWhatItWrites) {
  const Variable v(constant({1.f, 2.f, 3.f}));
  auto f = function([&](const Tensor& index) {
    v.assign_add(constant({1.f, 1.f, 1.f}));
    v.assign_add(gather(v.value(), index));
  });
  // Asynchronous devices report it when the result is read.
  EXPECT_THROW((f(constant({0, 1, 7})), v.value().to_vector<float>()),
               errors::InvalidArgument);
  config::reset_device_error(v.device());
  EXPECT_THROW(v.value(), errors::FailedPrecondition);
  v.assign(constant({1.f, 2.f, 3.f}));
  f(constant({0, 1, 2}));
  EXPECT_EQ(v.value().to_vector<float>(), (Floats{4, 6, 8}));
}

TEST(Function, AFailingKernelNamesTheNodeAndTheLine) {
  const auto on = device("/CPU:0");
  auto f =
      function([](const Tensor& x, const Tensor& i) { return gather(x, i); });
  try {
    f(ones({2, 2}), constant({5}));
    FAIL();
  } catch (const errors::InvalidArgument& e) {
    const std::string what = e.what();
    EXPECT_NE(what.find("GatherV2"), std::string::npos) << what;
    EXPECT_NE(what.find("function_test.cc:"), std::string::npos) << what;
  }
}

TEST(Function, ConcurrentRunsDoNotDisturbEachOther) {
  auto f = function([](const Tensor& x) {
    Tensor y = x;
    for (int i = 0; i < 20; ++i) y = y + x;
    return y;
  });
  f(constant(0.f));
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 200; ++i) {
        const float value = static_cast<float>(t * 1000 + i);
        if (f(constant(value)).item<float>() != 21 * value) ++wrong;
      }
    });
  }
  for (auto& t : threads) t.join();
  EXPECT_EQ(wrong, 0);
}

TEST(Function, ConcurrentWritersOfAVariableExcludeEachOther) {
  const Variable v(constant(0.f));
  auto f = function([&] { v.assign_add(constant(1.f)); });
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 250; ++i) f();
    });
  }
  for (auto& t : threads) t.join();
  EXPECT_FLOAT_EQ(v.value().item<float>(), 1000.f);
}

TEST(Function, ATensorKeptFromATraceIsRefused) {
  Tensor kept;
  auto f = function([&](const Tensor& x) {
    kept = x * 2.0;
    return kept;
  });
  f(constant(1.f));
  EXPECT_THROW(kept + kept, errors::FailedPrecondition);
  auto g = function([&](const Tensor& x) { return x + kept; });
  EXPECT_THROW(g(constant(1.f)), errors::FailedPrecondition);
}

TEST(Function, RefusesSlicesThatNoForkHas) {
  auto identity = [](const Tensor& x) { return x; };
  EXPECT_THROW(function(identity, {.slices = -5}), errors::InvalidArgument);
  EXPECT_THROW(function(identity, {.slices = 33}), errors::InvalidArgument);
}

TEST(Function, AVariableIsNeverTakenForOneThatEnded) {
  int runs = 0;
  auto f = function([&](const Variable& v, const Tensor& x) {
    ++runs;
    return x * static_cast<double>(v.shape().rank() + 1);
  });
  const Tensor x = constant(1.f);
  for (int i = 1; i <= 5; ++i) {
    // Each is gone before the next, which may get its address.
    EXPECT_FLOAT_EQ(f(Variable(constant(1.f)), x).item<float>(), 1.f);
    EXPECT_EQ(runs, i);
  }
}

TEST(Function, TheCallableMayWaitForAThreadThatCallsTheFunction) {
  std::function<Tensor(const Tensor&, bool)> call;
  auto f = function([&](const Tensor& x, bool outer) {
    if (outer) std::thread([&] { call(constant(2.f), false); }).join();
    return x * 3.0;
  });
  call = [&](const Tensor& x, bool outer) { return f(x, outer); };
  EXPECT_FLOAT_EQ(call(constant(1.f), true).item<float>(), 3.f);
  EXPECT_EQ(f.num_traces(), 2);
}

TEST(Function, EveryStageDumpsAsText) {
  auto f = function([](const Tensor& x) { return math::exp(x * 1.0) * 1.0; },
                    {.name = "tiny"});
  EXPECT_THROW(f.text("plan"), errors::FailedPrecondition);
  f(constant({1.f, 2.f}));
  for (const char* stage : {"trace", "optimize", "place", "plan"}) {
    EXPECT_NE(f.text(stage).find("Exp"), std::string::npos) << stage;
  }
  EXPECT_THROW(f.text("nonsense"), errors::InvalidArgument);
  EXPECT_EQ(f.plan_info().regions, 1);
  EXPECT_GE(f.plan_info().ops_traced, 3);
}

// The text of the error that `fn` throws.
template <class Fn>
std::string error_of(const Fn& fn) {
  try {
    fn();
  } catch (const errors::Error& e) {
    return e.what();
  }
  return "";
}

// Optimisation drops stop_gradient and may fold what is 0 for every x; a tape
// must see both.
TEST(Function, ATapeSeesWhatOptimisationRemoves) {
  auto f = function(
      [](const Tensor& x) { return stop_gradient(x) * x + zeros_like(x) * x; });
  const Tensor x = constant({2.f, 3.f});
  GradientTape tape;
  tape.watch(x);
  EXPECT_EQ(tape.gradient(f(x), x).to_vector<float>(), (Floats{2, 3}));
}

TEST(Function, SecondOrderKeepsWhatIsNotDifferentiated) {
  auto f = function([](const Tensor& x) { return stop_gradient(x) * x * x; });
  const Tensor x = constant({2.f, 3.f});
  GradientTape outer;
  outer.watch(x);
  GradientTape inner;
  inner.watch(x);
  const Tensor first = inner.gradient(f(x), x);  // 2 stop(x) x
  EXPECT_EQ(first.to_vector<float>(), (Floats{8, 18}));
  EXPECT_EQ(outer.gradient(first, x).to_vector<float>(), (Floats{4, 6}));
}

TEST(Function, ARecursionThatDoesNotEndIsAnError) {
  std::function<Tensor(const Tensor&)> again;
  auto f = function([&](const Tensor& x) { return again(x) + 1.0; });
  again = f;
  const std::string error = error_of([&] { f(ones({2})); });
  EXPECT_NE(error.find("inside each other"), std::string::npos) << error;
  again = [](const Tensor& x) { return x; };
  EXPECT_EQ(f(ones({2})).to_vector<float>(), (Floats{2, 2}));
}

TEST(Function, ARecursionThatEndsIsInlined) {
  std::function<Tensor(const Tensor&, int)> again;
  auto f = function([&](const Tensor& x, int n) -> Tensor {
    return n == 0 ? x : again(x, n - 1) * 2.0;
  });
  again = [&](const Tensor& x, int n) { return f(x, n); };
  EXPECT_EQ(f(ones({1}), 10).item<float>(), 1024.f);
}

// A list of ints may hold a symbol of the signature or a position counted from
// the end; they must not be confused.
TEST(Function, NegativePlacesAreNotUnknownDimensions) {
  auto f = function(
      [](const Tensor& x) {
        return Tensors{x[{slice(0, -2)}], x[{slice(), slice(-2, -1)}],
                       math::reduce_sum(x, {.axis = std::vector<int64_t>{-2}})};
      },
      {.input_signature = {{{kUnknownDim, kUnknownDim}, float32}}});
  const Tensors y =
      f(constant({{1.f, 2.f, 3.f}, {4.f, 5.f, 6.f}, {7.f, 8.f, 9.f}}));
  EXPECT_EQ(y[0].to_vector<float>(), (Floats{1, 2, 3}));
  EXPECT_EQ(y[1].to_vector<float>(), (Floats{2, 5, 8}));
  EXPECT_EQ(y[2].to_vector<float>(), (Floats{12, 15, 18}));
}

TEST(Function, HandlesAreNeitherArgumentsNorResults) {
  const Variable v(ones({2}));
  auto same = function([](const Tensor& x) { return x; });
  EXPECT_THROW(same(v.handle()), errors::InvalidArgument);
  auto leak = function([&](const Tensor&) { return v.handle(); });
  EXPECT_THROW(leak(ones({2})), errors::InvalidArgument);
}

TEST(Function, AnOpThatFailsInAPlanNamesTheUsersLine) {
  const auto on = device("/CPU:0");
  auto f = function([](const Tensor& i) { return gather(ones({3}), i); });
  const std::string line = "function_test.cc:" + std::to_string(__LINE__ - 1);
  const std::string error = error_of([&] { f(constant({7})); });
  EXPECT_NE(error.find("index 7"), std::string::npos) << error;
  EXPECT_NE(error.find(line), std::string::npos) << error;
}

}  // namespace
}  // namespace berth
