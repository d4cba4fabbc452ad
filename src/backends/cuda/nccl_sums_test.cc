// Sums between fake GPUs by a fake NCCL: numbers, choice of NCCL, threads.

#include <gtest/gtest.h>
#include <pthread.h>

#include <thread>

#include "backends/cuda/nccl_testing.h"
#include "collective/device_allreduce.h"
#include "place/costs.h"

namespace berth::cuda {
namespace {

class NcclSumsOfCards : public FourCards {
 protected:
  static void TearDownTestSuite() { unsetenv("BERTH_COLLECTIVES"); }
  void TearDown() override {
    unsetenv("BERTH_COLLECTIVES");
    FourCards::TearDown();
  }
};

TEST_F(NcclSumsOfCards, AreThoseOfAllCardsOnEachOfThem) {
  for (int n = 2; n <= 4; ++n) {
    for (const int64_t size : {1, 2, 1000}) {
      const SumStep step{.devices = gpus(n), .sizes = {size}};
      const auto plan = step.plan();
      const auto ops = count_ops(*plan);
      EXPECT_EQ(ops.at("_AllReduceStart"), n);
      EXPECT_EQ(ops.at("_AllReduceEnd"), n);
      EXPECT_FALSE(ops.contains("_Transfer")) << "copies between GPUs";
      expect_sums(step, *plan);
      const long made = kNccl->communicators();
      for (int run = 0; run < 2; ++run) expect_sums(step, *plan);
      EXPECT_EQ(kNccl->communicators(), made) << "they are kept";
    }
  }
  EXPECT_EQ(kNccl->sums(), 3 * 3 * 3);
}

TEST_F(NcclSumsOfCards, AreOfEveryDtype) {
  for (const DType dtype : {float32, float64, bfloat16, float16, int8, uint8,
                            int32, int64, complex64}) {
    SCOPED_TRACE(name_of(dtype));
    const SumStep step{.devices = gpus(3), .sizes = {6}, .dtype = dtype};
    const auto plan = step.plan();
    EXPECT_EQ(count_ops(*plan)["_AllReduceStart"], 3);
    expect_sums(step, *plan);
  }
}

TEST_F(NcclSumsOfCards, WorkWhereNcclAnswersLate) {
  kNccl->begin("later=3");
  kFake->begin("devices=4,later=2");
  const SumStep step{.devices = gpus(2), .sizes = {7}};
  const auto plan = step.plan();
  for (int run = 0; run < 5; ++run) expect_sums(step, *plan);
}

TEST_F(NcclSumsOfCards, AreOnePerBucket) {
  SumStep step{.devices = gpus(2), .sizes = {100, 20, 30, 40}};
  step.options.pack_bytes = 400;
  const auto plan = step.plan();
  EXPECT_EQ(count_ops(*plan)["_AllReduceStart"], 2 * 2);
  for (const Tensor& t : run_plan(*plan, step.arguments())) on_host(t);
  EXPECT_EQ(kNccl->sums(), 2);
}

TEST_F(NcclSumsOfCards, DivideForMeansBehindThem) {
  SumStep step{.devices = gpus(2)};
  step.options.reduction = "mean";
  EXPECT_EQ(count_ops(*step.plan())["RealDiv"], 2);
}

TEST_F(NcclSumsOfCards, GoByCopiesWhereOneTakesNoPart) {
  SumStep step{.devices = gpus(2)};
  step.devices[1] = collective_tests::full_name("CPU", 0);
  EXPECT_EQ(count_ops(*step.plan())["_AllReduceStart"], 0);
}

TEST_F(NcclSumsOfCards, GoByCopiesWhereTheirOrderIsAskedFor) {
  SumStep step{.devices = gpus(2)};
  step.options.starts = {0, 1};
  EXPECT_EQ(count_ops(*step.plan())["_AllReduceStart"], 0);
  step.options.algorithm = "nccl";  // by name: the user accepts other bits
  EXPECT_EQ(count_ops(*step.plan())["_AllReduceStart"], 2);
}

TEST_F(NcclSumsOfCards, FollowTheEnvironment) {
  SumStep step{.devices = gpus(2)};
  step.options.algorithm = "nccl";
  setenv("BERTH_COLLECTIVES", "own", 1);
  EXPECT_EQ(count_ops(*step.plan())["_AllReduceStart"], 0);
  step.options.algorithm = "ring";
  setenv("BERTH_COLLECTIVES", "auto", 1);
  EXPECT_EQ(count_ops(*step.plan())["_AllReduceStart"], 0);
  setenv("BERTH_COLLECTIVES", "nccl", 1);
  EXPECT_EQ(count_ops(*step.plan())["_AllReduceStart"], 2);
  setenv("BERTH_COLLECTIVES", "gloo", 1);
  EXPECT_THROW(step.plan(), errors::InvalidArgument);
}

TEST_F(NcclSumsOfCards, AreChosenForDistinctCardsAlone) {
  const auto id = [](int i) { return DeviceId(gpu_name(i)); };
  EXPECT_TRUE(share_library({id(0), id(1), id(3)}, float32));
  EXPECT_FALSE(share_library({id(0)}, float32)) << "one";
  EXPECT_FALSE(share_library({id(0), id(0)}, float32)) << "the same";
  EXPECT_FALSE(share_library({id(0), id(7)}, float32)) << "not here";
  EXPECT_FALSE(share_library({id(0), id(1)}, bool_)) << "no numbers";
}

// Two programs run at once, on shared cards in different orders.
TEST_F(NcclSumsOfCards, OfSeveralThreadsDoNotCross) {
  const SumStep a{.devices = gpus(4), .sizes = {64}};
  const SumStep b{.devices = {gpu_name(2), gpu_name(1), gpu_name(0)},
                  .sizes = {33}};
  const auto plan_a = a.plan(), plan_b = b.plan();
  const auto runs = [](const SumStep& step, Plan& plan) {
    for (int i = 0; i < 30; ++i) {
      // Results are read after the other program's sums.
      const Tensors out = run_plan(plan, step.arguments());
      for (const Tensor& t : out) EXPECT_EQ(on_host(t), step.sum(0));
    }
  };
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back(
        [&, i] { i % 2 == 0 ? runs(a, *plan_a) : runs(b, *plan_b); });
  }
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(kNccl->sums(), 4 * 30);
}

// Else one card waits in a sum before work of the other program, for whose sum
// the other card waits.
TEST_F(NcclSumsOfCards, BeginInOneOrderOnAllCards) {
  kFake->begin("devices=4,pause=100");
  const SumStep step{.devices = gpus(2), .sizes = {8}};
  std::vector<std::thread> threads;
  for (const char* name : {"A", "B"}) {
    threads.emplace_back([&step, name] {
      pthread_setname_np(pthread_self(), name);
      const auto plan = step.plan();
      for (int i = 0; i < 200; ++i) run_plan(*plan, step.arguments());
    });
  }
  for (std::thread& t : threads) t.join();
  const auto order = [](int card) {
    std::string all = kFake->recorded(card);
    std::erase_if(all, [](char c) { return c != 'A' && c != 'B'; });
    return all;
  };
  EXPECT_EQ(order(0).size(), 400u);
  EXPECT_EQ(order(0), order(1));
}

TEST_F(NcclSumsOfCards, AreWhatStrategiesAddBy) {
  const distribute::MirroredStrategy strategy({.devices = gpus(2)});
  const auto sums = strategy.run(
      [](const Tensor& x) {
        return distribute::get_replica_context()->all_reduce(
            distribute::ReduceOp::kSum, x);
      },
      on_cards({{1, 2}, {30, 40}}));
  for (const Tensor& t : sums.values()) {
    EXPECT_EQ(on_host(t), (std::vector<float>{31, 42}));
  }
  EXPECT_EQ(kNccl->sums(), 1);
}

// A sum costs 2 (N - 1) / N of the bytes over the slowest link.
TEST_F(NcclSumsOfCards, CostWhatTheyTakeOfALink) {
  const auto plan = SumStep{.devices = gpus(4), .sizes = {1 << 20}}.plan();
  Machine machine = assumed_machine(gpus(4));
  machine.links[0] = {.latency_us = 3, .bytes_per_us = 1000};
  const CostTable costs = estimate_costs(plan->graph(), machine);
  int ends = 0;
  for (int32_t i = 0; i < plan->graph().size(); ++i) {
    const std::string& op = plan->graph()[i].op->name();
    const double launch = machine.classes[0].launch_us;
    if (op == "_AllReduceStart") {
      EXPECT_EQ(costs.time(i, 0).us, launch);
    }
    if (op != "_AllReduceEnd") continue;
    ++ends;
    EXPECT_NEAR(costs.time(i, 0).us,
                launch + 3 + 2 * 3.0 / 4 * (4 << 20) / 1000, 0.1);
  }
  EXPECT_EQ(ends, 4);
}

}  // namespace
}  // namespace berth::cuda
