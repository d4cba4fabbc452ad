// Plans whose pieces are recorded and replayed (BERTH_OPENCL_RECORD=1) must
// equal runs step by step, bit for bit, on kernels that compute.

#include "backends/gpu/replay.h"

#include <functional>
#include <thread>

#include "backends/opencl/opencl_testing.h"
#include "base/fresh_process_testing.h"
#include "berth/config.h"
#include "berth/device.h"
#include "berth/distribute.h"
#include "berth/errors.h"
#include "berth/function.h"
#include "berth/gradient_tape.h"
#include "berth/keras/layers.h"
#include "berth/keras/models.h"
#include "berth/keras/optimizers.h"
#include "berth/ops/array.h"
#include "berth/ops/control_flow.h"
#include "berth/ops/indexing.h"
#include "berth/ops/linalg.h"
#include "berth/ops/math.h"
#include "berth/ops/nn.h"
#include "berth/ops/random.h"
#include "berth/variable.h"

namespace berth::opencl {
namespace {

using Floats = std::vector<float>;

// Read when a plan is built.
void set_recording(bool on) {
  setenv("BERTH_OPENCL_RECORD", on ? "1" : "0", 1);
}

class Replays : public OpenClTest {
 protected:
  void TearDown() override { set_recording(false); }
};

// Checks that `run` returns the same step by step and recorded.
Floats same_either_way(const std::function<Floats()>& run) {
  set_recording(false);
  const Floats want = run();
  set_recording(true);
  const Floats got = run();
  set_recording(false);
  EXPECT_EQ(got, want);
  return got;
}

// Some of the first runs are timed step by step instead of replayed.
constexpr int kRuns = 12;

Tensor numbers(const Shape& shape, int seed) {
  return random::stateless_normal(shape, {seed, 3});
}

void add(Floats& to, const Tensor& t) {
  for (const float v : t.to_vector<float>()) to.push_back(v);
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST_F(Replays, StepsOfTrainingHaveTheBitsOfStepsOneByOne) {
  std::string plan;
  const Floats got = same_either_way([&] {
    random::set_seed(7);
    const auto on = device("/GPU:0");
    auto model = keras::Sequential(
        {keras::Dense(16, {.activation = "relu"}), keras::Dropout(0.25f),
         keras::Dense(3, {.activation = "softmax"})});
    model.compile({.optimizer = keras::Adam(0.01),
                   .loss = "sparse_categorical_crossentropy"});
    // A new batch each time, as from a pipeline.
    Floats out;
    for (int i = 0; i < 3 * kRuns; ++i) {
      const Tensor x = numbers({32, 8}, i);
      const Tensor y = math::cast(
          math::floor(random::stateless_uniform({32}, {i, 5}) * 3.f), int32);
      add(out, model.train_on_batch(x, y));
    }
    for (const Variable& w : model.weights()) add(out, w.value());
    plan = model.train_plan_text();
    return out;
  });
  EXPECT_TRUE(has(plan, "\nreplay steps 0-")) << plan;
  EXPECT_TRUE(has(plan, " recorded ")) << plan;
  EXPECT_NE(got[0], got[1]);
}

TEST_F(Replays, DrawNewNumbersInEachRun) {
  const Floats got = same_either_way([] {
    random::set_seed(3);
    const auto on = device("/GPU:0");
    const auto noise = function(
        [](const Tensor& x) {
          return math::tanh(x + random::uniform({4})) * 2.f;
        },
        {});
    Floats out;
    const Tensor x = zeros({4});
    for (int i = 0; i < kRuns; ++i) add(out, noise(x));
    return out;
  });
  for (size_t i = 4; i < got.size(); ++i) EXPECT_NE(got[i], got[i - 4]);
}

TEST_F(Replays, ReadNewArgumentsAndKeepOldResults) {
  same_either_way([] {
    const auto on = device("/GPU:0");
    const auto f = function(
        [](const Tensor& x, const Tensor& y) {
          const Tensor h = linalg::matmul(math::tanh(x), y);
          return Tensors{math::exp(h * 0.1f), math::reduce_sum(h), x};
        },
        {});
    std::vector<Tensors> kept;
    std::vector<Tensor> in;
    for (int i = 0; i < 2 * kRuns; ++i) {
      // Sometimes at an old address, sometimes at a new one.
      if (i % 3 != 1) in.push_back(numbers({8, 8}, i));
      kept.push_back(f(in.back(), in.front()));
    }
    Floats out;
    for (const Tensors& results : kept) {
      for (const Tensor& t : results) add(out, t);
    }
    return out;
  });
}

TEST_F(Replays, SeeWhatVariablesAreAssigned) {
  same_either_way([] {
    const auto on = device("/GPU:0");
    Variable w(numbers({6}, 1));
    const auto f = function(
        [&](const Tensor& x) {
          w.assign_add(x * 0.5f);
          return math::sin(w.value()) + x;
        },
        {});
    Floats out;
    const Tensor x = numbers({6}, 2);
    std::vector<Tensor> snapshots;
    for (int i = 0; i < 2 * kRuns; ++i) {
      add(out, f(x));
      if (i % 4 == 3) w.assign(numbers({6}, i));
      if (i % 5 == 3) snapshots.push_back(w.value());
      if (i % 7 == 3) w.assign_sub(x);
    }
    for (const Tensor& s : snapshots) add(out, s);
    return out;
  });
}

TEST_F(Replays, AreRecordedAgainWhenTheArenaHasMoved) {
  std::string plan;
  int64_t width = 64;   // of a plan whose arena grows
  int64_t floats = 64;  // of the arena before
  same_either_way([&] {
    const auto on = device("/GPU:0");
    const auto chain = [](const Tensor& x) {
      const Tensor a = linalg::matmul(x, x);
      return linalg::matmul(math::tanh(a), a) + x;
    };
    const auto small = function(chain, {});
    const Tensor x = numbers({8, 8}, 1) * 0.1f;
    Floats out;
    for (int turn = 0; turn < 3; ++turn, width += 64) {
      for (int i = 0; i < kRuns; ++i) add(out, small(x));
      // Needs a larger arena, which replaces the only one.
      const auto large = function(chain, {});
      large(zeros({width, width}));
      // New owners of the old arena's memory must not be overwritten.
      std::vector<Tensor> others;
      std::vector<Floats> again;
      for (int i = 0; i < 8; ++i) {
        others.push_back(numbers({floats}, i));
        again.push_back(others.back().to_vector<float>());
      }
      const std::string text = large.text("plan");
      floats = std::stoll(text.substr(text.find(" arena ") + 7)) / 4;
      for (int i = 0; i < 3; ++i) add(out, small(x));
      for (size_t i = 0; i < others.size(); ++i) {
        const Floats now = others[i].to_vector<float>();
        EXPECT_TRUE(now == again[i]);
      }
    }
    plan = small.text("plan");
    return out;
  });
  EXPECT_TRUE(has(plan, "replay steps 0-3 stream 0 recorded ")) << plan;
}

TEST_F(Replays, GoOnAroundStepsOfTheHost) {
  std::string plan;
  same_either_way([&] {
    const auto on = device("/GPU:0");
    Variable w(numbers({5}, 4));
    const auto f = function(
        [&](const Tensor& x) {
          const Tensor a = math::exp(linalg::matmul(x, x) * 0.1f);
          const Tensor s = math::reduce_sum(a, {.axis = {{0}}});
          Tensor there;
          {
            const auto host = device("/CPU:0");
            there = math::cumsum(s) + 1.f;
          }
          w.assign_add(math::tanh(there));
          const Tensor b = linalg::matmul(a, x) + w.value();
          return math::reduce_max(b * b, {.axis = {{1}}});
        },
        {});
    Floats out;
    for (int i = 0; i < kRuns; ++i) add(out, f(numbers({5, 5}, i)));
    plan = f.text("plan");
    return out;
  });
  EXPECT_TRUE(has(plan, "why \"CPU:0 computes it\"")) << plan;
  EXPECT_TRUE(has(plan, "why \"a copy between devices\"")) << plan;
  EXPECT_TRUE(has(plan, " recorded ")) << plan;
}

TEST_F(Replays, OfBodiesOfLoops) {
  same_either_way([] {
    const auto on = device("/GPU:0");
    const auto f = function(
        [](const Tensor& x) {
          return while_loop(
              [](const Tensors& v) { return v[0] < 9; },
              [](const Tensors& v) {
                return Tensors{v[0] + 1, math::tanh(linalg::matmul(v[1], v[2])),
                               v[2] * 0.5f + v[1]};
              },
              Tensors{constant(0), x, x + 1.f});
        },
        {});
    Floats out;
    for (int i = 0; i < 4; ++i) {
      const Tensors results = f(numbers({4, 4}, i) * 0.3f);
      add(out, results[1]);
      add(out, results[2]);
    }
    return out;
  });
}

TEST_F(Replays, OfSeveralThreadsAtOnce) {
  const auto on = device("/GPU:0");
  const auto run = [](bool records) {
    set_recording(records);
    const auto f = function(
        [](const Tensor& x) {
          const Tensor h = math::tanh(linalg::matmul(x, x));
          return linalg::matmul(h, x) + h;
        },
        {});
    f(numbers({16, 16}, 0)).to_vector<float>();  // the plan is built
    std::vector<Floats> out(4);
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([&f, &out, t] {
        const auto here = device("/GPU:0");
        std::vector<Tensor> results;
        for (int i = 0; i < 3 * kRuns; ++i) {
          results.push_back(f(numbers({16, 16}, 100 * t + i)));
        }
        for (const Tensor& r : results) add(out[static_cast<size_t>(t)], r);
      });
    }
    for (std::thread& t : threads) t.join();
    return out;
  };
  EXPECT_EQ(run(true), run(false));
}

TEST_F(Replays, NameTheOpThatReportsAFault) {
  const auto message = [](bool records) {
    set_recording(records);
    const auto on = device("/GPU:0");
    const auto f = function(
        [](const Tensor& x, const Tensor& i, const Tensor& j) {
          const Tensor a = math::exp(gather(x, i));
          return math::sin(gather(a, j)) * 2.f;
        },
        {});
    const Tensor x = numbers({6}, 1);
    const auto places = [](int last) { return constant({0, 3, last, 1}); };
    Floats before;
    for (int i = 0; i < kRuns; ++i)
      before = f(x, places(5), places(2)).to_vector<float>();
    std::string what;
    try {
      f(x, places(5), places(7)).to_vector<float>();
    } catch (const errors::InvalidArgument& e) {
      what = e.what();
    }
    config::reset_device_error("GPU:0");
    EXPECT_EQ((f(x, places(5), places(2)).to_vector<float>()), before);
    if (records) {
      EXPECT_TRUE(has(f.text("plan"), " recorded ")) << f.text("plan");
    }
    return what;
  };
  const std::string want = message(false);
  EXPECT_TRUE(has(want, "index 7")) << want;
  EXPECT_EQ(message(true), want);
}

TEST_F(Replays, ManyMayBeOnTheirWay) {
  std::string plan;
  same_either_way([&] {
    const auto on = device("/GPU:0");
    Variable w(zeros({64, 64}));
    const auto f = function(
        [&](const Tensor& x) {
          const Tensor h = linalg::matmul(x, w.value() + 1.f);
          w.assign_add(math::tanh(h) * 0.01f);
          return math::reduce_sum(h, {.axis = {{1}}});
        },
        {});
    std::vector<Tensor> results;
    for (int i = 0; i < 150; ++i) results.push_back(f(numbers({64, 64}, i)));
    Floats out;
    for (const Tensor& r : results) add(out, r);
    plan = f.text("plan");
    return out;
  });
  EXPECT_TRUE(has(plan, "replay ")) << plan;
  EXPECT_FALSE(has(plan, "has moved")) << plan;
}

// Trains on two logical GPUs that exchange gradients; returns the weights.
Floats trained_on_two(std::string* plan) {
  random::set_seed(5);
  const distribute::MirroredStrategy strategy({"/GPU:0", "/GPU:1"});
  const auto scope = strategy.scope();
  auto model = keras::Sequential(
      {keras::Dense(16, {.activation = "tanh"}), keras::Dense(2)});
  model.compile({.optimizer = keras::Adam(0.01), .loss = "mse"});
  model.fit(numbers({96, 6}, 1), numbers({96, 2}, 2),
            {.epochs = 3, .batch_size = 8, .verbose = 0});
  Floats out;
  for (const Variable& w : model.weights()) add(out, w.value());
  *plan = model.train_plan_text();
  return out;
}

void train_both_ways() {
  using fresh_process::check;
  const auto gpu = config::list_physical_devices("GPU").at(0);
  config::set_logical_device_configuration(
      gpu, {{.memory_limit_mb = 256}, {.memory_limit_mb = 256}});
  std::string plan;
  set_recording(false);
  const Floats want = trained_on_two(&plan);
  set_recording(true);
  check(trained_on_two(&plan) == want, "the same weights");
  // Streams of the two GPUs; the host prepares the batches.
  for (const char* stream : {" stream 1 recorded ", " stream 2 recorded "}) {
    check(has(plan, stream), plan);
  }
  check(!has(plan, "lies elsewhere"), plan);
}

using ReplaysDeathTest = Replays;

TEST_F(ReplaysDeathTest, OfSeveralGpusHaveTheBitsOfStepsOneByOne) {
  IN_A_FRESH_PROCESS(train_both_ways());
}

TEST_F(Replays, NoneUnlessAskedFor) {
  const auto on = device("/GPU:0");
  const auto f =
      function([](const Tensor& x) { return math::tanh(x) * x + 1.f; }, {});
  f(ones({4}));
  EXPECT_FALSE(has(f.text("plan"), "replay")) << f.text("plan");
}

}  // namespace
}  // namespace berth::opencl
