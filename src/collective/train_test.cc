// Whole training steps on GPUs, split over replicas: the results of
// one device, and the state after a device is lost.

#include <gtest/gtest.h>

#include <cmath>

#include "base/errors_testing.h"
#include "collective/gpu_testing.h"
#include "distribute/data_parallel/split_batch.h"
#include "function/graph_rewrite.h"
#include "ops/training.h"
#include "tensor/mirrors.h"
#include "tensor/variable_state.h"

namespace berth {
namespace {

using namespace collective_tests;

class Split final : public GraphRewrite {
 public:
  explicit Split(distribute::SplitPlan plan, double timeout_seconds = 0)
      : plan_(std::move(plan)), timeout_seconds_(timeout_seconds) {}
  void apply(Graph& graph) const override {
    distribute::split_batch(graph, plan_);
  }
  int slices() const override { return plan_.slices; }
  double timeout_seconds() const override { return timeout_seconds_; }

 private:
  const distribute::SplitPlan plan_;
  const double timeout_seconds_;
};

distribute::SplitPlan replicas(int n, const std::string& algorithm) {
  distribute::SplitPlan plan;
  for (const std::string& name : gpus(n)) plan.replicas.push_back({name});
  plan.algorithm = algorithm;
  return plan;
}

// Two dense layers and their momenta.
struct TwoLayers {
  std::vector<Variable> weights, slots;

  TwoLayers() {
    const auto on = device("/GPU:0");
    for (const Shape& s : {Shape{6, 9}, Shape{9}, Shape{9, 3}}) {
      weights.emplace_back(identity(numbers(s, static_cast<int>(s.rank()))));
      slots.emplace_back(zeros(s));
    }
  }

  Tensors step(const Tensor& x, const Tensor& y) const {
    GradientTape tape;
    const Tensor h = math::tanh(matmul(x, weights[0]) + weights[1]);
    const Tensor loss =
        math::reduce_mean(math::square(matmul(h, weights[2]) - y));
    const Tensors g = tape.gradient(loss, weights);
    for (size_t i = 0; i < weights.size(); ++i) {
      training::apply_momentum(weights[i].handle(), slots[i].handle(),
                               constant(0.1f), g[i], constant(0.9f), true);
    }
    return {loss};
  }

  auto compile(const std::shared_ptr<const Split>& split = nullptr) const {
    return function(
        [this](const Tensor& x, const Tensor& y) { return step(x, y); },
        {.rewrite = split});
  }

  std::vector<float> values() const {
    std::vector<float> all;
    for (const auto* list : {&weights, &slots}) {
      for (const Variable& v : *list) {
        const auto x = v.value().to_vector<float>();
        all.insert(all.end(), x.begin(), x.end());
      }
    }
    return all;
  }

  std::vector<Tensor> saved() const {
    std::vector<Tensor> all;
    for (const auto* list : {&weights, &slots}) {
      for (const Variable& v : *list) {
        const auto on = device("/CPU:0");
        all.push_back(constant(v.value().to_vector<float>(), v.shape()));
      }
    }
    return all;
  }
  void restore(const std::vector<Tensor>& from) const {
    for (size_t i = 0; i < from.size(); ++i) {
      (i < weights.size() ? weights[i] : slots[i - weights.size()])
          .assign(from[i]);
    }
  }
};

void expect_close(const std::vector<float>& a, const std::vector<float>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) {
    ASSERT_NEAR(a[i], b[i], 1e-5f * (1 + std::abs(b[i]))) << "element " << i;
  }
}

class ReplicasOnGpus : public FourGpus {
 protected:
  static Tensor x(int i, int64_t batch = 12) { return numbers({batch, 6}, i); }
  static Tensor y(int i, int64_t batch = 12) {
    return numbers({batch, 3}, i + 50);
  }
};

TEST_F(ReplicasOnGpus, TrainLikeOneDevice) {
  for (const char* algorithm : kAlgorithms) {
    for (int n = 2; n <= kGpus; ++n) {
      SCOPED_TRACE(fmt::format("{} on {}", algorithm, n));
      const TwoLayers one, many;
      const auto step = one.compile();
      const auto split =
          many.compile(std::make_shared<Split>(replicas(n, algorithm)));
      for (int i = 0; i < 6; ++i) {
        set_seed(static_cast<uint64_t>(i * n));
        // Includes an uneven batch and one with an empty share.
        const int64_t batch = i == 2 ? 7 : i == 4 ? 1 : 12;
        const float want = step(x(i, batch), y(i, batch))[0].item<float>();
        const float got = split(x(i, batch), y(i, batch))[0].item<float>();
        EXPECT_NEAR(got, want, 1e-5f);
      }
      expect_close(many.values(), one.values());
      for (const Variable& v : many.weights) {
        EXPECT_EQ(mirrors_of(v.handle()).size(), static_cast<size_t>(n - 1));
        for (const Tensor& m : mirrors_of(v.handle())) {
          expect_close(read_variable(m).to_vector<float>(),
                       v.value().to_vector<float>());
        }
      }
    }
  }
}

// A step that is traced when mirrors exist finds them.
TEST_F(ReplicasOnGpus, TracedAgainTheyWriteEachMirrorOnce) {
  const auto on = device("/GPU:0");
  const Variable total(zeros({3}));
  const auto compile = [&] {
    return function(
        [&](const Tensor& v) {
          const Tensor y = v * total.value();
          total.assign_add(math::reduce_sum(v, {.axis = {{0}}}));
          return y;
        },
        {.rewrite = std::make_shared<Split>(replicas(3, "auto"))});
  };
  const auto first = compile(), second = compile();
  const Tensor v = ones({6, 3});
  EXPECT_EQ(first(v).to_vector<float>(), std::vector<float>(18, 0));
  ASSERT_EQ(mirrors_of(total.handle()).size(), 2u);
  EXPECT_EQ(second(v).to_vector<float>(), std::vector<float>(18, 6));
  EXPECT_EQ(first(v).to_vector<float>(), std::vector<float>(18, 12));
  for (const Tensor& m : mirrors_of(total.handle())) {
    EXPECT_EQ(read_variable(m).to_vector<float>(), std::vector<float>(3, 18));
  }
}

TEST_F(ReplicasOnGpus, SendNothingButTheAllReduceWhenMirrorsAreFresh) {
  const TwoLayers model;
  const auto split =
      model.compile(std::make_shared<Split>(replicas(3, "ring")));
  split(x(0), y(0));
  const Tensor m = mirrors_of(model.weights[0].handle()).at(1);
  const uint64_t before = variable_state(m).version;
  for (int i = 0; i < 4; ++i) split(x(i), y(i));
  EXPECT_EQ(variable_state(m).version, before + 4);  // only its updates
}

// Whatever a device was doing when it was lost, the step fails by name, and
// training continues once the device is back and the variables are restored.
TEST_F(ReplicasOnGpus, ALostDeviceIsNamedAndTrainingGoesOn) {
  SKIP_ON_GPUS_OF_MACHINE("it makes a device fail");
  for (const char* algorithm : kAlgorithms) {
    const TwoLayers one, many;
    const auto step = one.compile();
    const auto split =
        many.compile(std::make_shared<Split>(replicas(4, algorithm)));
    for (int i = 0; i < 2; ++i) {
      step(x(i), y(i));
      split(x(i), y(i));
    }
    const std::vector<Tensor> saved = many.saved();
    const auto want = [&] {
      step(x(2), y(2));
      return one.values();
    }();
    for (int lost = 0; lost < 4; lost += 2) {
      for (uint64_t launch = 1; launch <= 60; launch += 7) {
        SCOPED_TRACE(fmt::format("{}: GPU:{} at its launch {}", algorithm, lost,
                                 launch));
        set_seed(launch);
        sim::lose_device(gpu(lost), launch);
        const std::string message = message_of<errors::Error>([&] {
          for (int i = 0; i < 3; ++i) split(x(i), y(i))[0].item<float>();
        });
        EXPECT_TRUE(says(message, fmt::format("GPU:{}", lost)));
        EXPECT_TRUE(says(message, "lost"));
        clear_faults();
        // Torn or whole, but never silently incomplete.
        many.restore(saved);
        split(x(2), y(2))[0].item<float>();
        expect_close(many.values(), want);
      }
    }
  }
}

TEST_F(ReplicasOnGpus, ALaunchThatFailsIsNamed) {
  SKIP_ON_GPUS_OF_MACHINE("it makes a device fail");
  for (const char* algorithm : kAlgorithms) {
    const TwoLayers model;
    const auto split =
        model.compile(std::make_shared<Split>(replicas(3, algorithm)));
    split(x(0), y(0))[0].item<float>();
    const std::vector<Tensor> saved = model.saved();
    for (uint64_t launch = 1; launch <= 25; launch += 4) {
      SCOPED_TRACE(fmt::format("{}, launch {}", algorithm, launch));
      sim::fail_launch(gpu(1), launch);
      const std::string message = message_of<errors::Error>([&] {
        for (int i = 0; i < 3; ++i) split(x(i), y(i))[0].item<float>();
      });
      EXPECT_TRUE(says(message, "on GPU:1"));
      clear_faults();
      model.restore(saved);
      EXPECT_GT(split(x(1), y(1))[0].item<float>(), 0);
    }
  }
}

// A device that hangs delays others no longer than the deadline; they continue
// once it is given up.
TEST_F(ReplicasOnGpus, ADeviceThatHangsIsNamedInTimeSlow) {
  SKIP_ON_GPUS_OF_MACHINE("it makes a device fail");
  for (const char* algorithm : kAlgorithms) {
    const TwoLayers one, many;
    const auto step = one.compile();
    const auto split =
        many.compile(std::make_shared<Split>(replicas(3, algorithm)));
    const auto limited =
        many.compile(std::make_shared<Split>(replicas(3, algorithm), 0.2));
    step(x(0), y(0));
    split(x(0), y(0));
    const std::vector<Tensor> saved = many.saved();
    limited(x(1), y(1));  // compiles
    step(x(2), y(2));
    const auto want = one.values();
    for (const uint64_t launch : {1, 33}) {
      SCOPED_TRACE(fmt::format("{}, launch {}", algorithm, launch));
      sim::hang_device(gpu(1), launch);
      const std::string message = message_of<errors::DeadlineExceeded>([&] {
        for (int i = 0; i < 3; ++i) limited(x(i), y(i));
      });
      EXPECT_TRUE(says(message, "has not ended within 0.2 s: GPU:1"));
      EXPECT_TRUE(says(message, "waiting for it: "));
      // The device hangs on, or a variable is half-made.
      EXPECT_THROW(split(x(0), y(0)), errors::Error);
      clear_faults();
      many.restore(saved);
      split(x(2), y(2));
      expect_close(many.values(), want);
    }
  }
}

// Hanging work uses the memory of its run until it ends.
TEST_F(ReplicasOnGpus, AStepThatHangsMayOutliveItsFunction) {
  SKIP_ON_GPUS_OF_MACHINE("it makes a device fail");
  {
    const TwoLayers model;
    const auto split =
        model.compile(std::make_shared<Split>(replicas(2, "direct"), 0.2));
    split(x(0), y(0));  // compiles
    sim::hang_device(gpu(1), 3);
    EXPECT_THROW(split(x(0), y(0)), errors::DeadlineExceeded);
  }
  clear_faults();  // and work continues
  const TwoLayers model;
  const auto split =
      model.compile(std::make_shared<Split>(replicas(2, "direct"), 100));
  EXPECT_GT(split(x(0), y(0))[0].item<float>(), 0);
}

TEST_F(ReplicasOnGpus, FailuresAreThrownByTheStepThatHasADeadline) {
  SKIP_ON_GPUS_OF_MACHINE("it makes a device fail");
  const TwoLayers model;
  const auto split =
      model.compile(std::make_shared<Split>(replicas(2, "direct"), 100));
  split(x(0), y(0));
  sim::lose_device(gpu(1), 5);
  EXPECT_TRUE(says(message_of<errors::Unavailable>([&] { split(x(0), y(0)); }),
                   "GPU:1"));
}

}  // namespace
}  // namespace berth
