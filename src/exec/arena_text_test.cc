#include "exec/arena_text.h"

#include <gtest/gtest.h>

#include "base/fresh_process_testing.h"
#include "berth/berth.h"

namespace berth {
namespace {

using fresh_process::refuses;

// Two buffers of 4 MiB live at once; the limit is below.
void full() {
  config::set_simulated_devices("GPU");
  const auto gpu = config::list_physical_devices("GPU")[0];
  config::set_logical_device_configuration(gpu, {{.memory_limit_mb = 11}});
  const auto on = device("/GPU:0");
  Variable kernel(zeros({1 << 19}), {.name = "kernel"});
  const auto step = function([](const Tensor& x) {
    const Tensor wide = matmul(reshape(x, {1024, 1}), reshape(x, {1, 1024}));
    const Tensor turned = transpose(wide);
    return math::reduce_sum(matmul(wide, turned));
  });
  const auto run = [&] { step(ones({1024})).item<float>(); };
  refuses<errors::ResourceExhausted>(run, "variable 'kernel'");
  refuses<errors::ResourceExhausted>(run, "asked for plan '");
  refuses<errors::ResourceExhausted>(run, "MatMul 4 MiB");
}
TEST(ArenaText, AFullDeviceSaysWhichOpsThePlanNeedsItFor) {
  IN_A_FRESH_PROCESS(full());
}

// Weights, slots and the arena of the step are 55 MiB; initial values are made
// between the weights and go.
void nearly_full() {
  config::set_simulated_devices("GPU");
  const auto gpu = config::list_physical_devices("GPU")[0];
  config::set_logical_device_configuration(gpu, {{.memory_limit_mb = 60}});
  const auto on = device("/GPU:0");
  auto model = keras::Sequential({keras::Dense(1500), keras::Dense(1000),
                                  keras::Dense(700), keras::Dense(10)});
  model.compile({.optimizer = "adam", .loss = "mse"});
  for (int i = 0; i < 2; ++i) {
    model.train_on_batch(ones({64, 900}), zeros({64, 10})).item<float>();
  }
}
TEST(Arena, AStepFitsALimitThatIsHardlyMoreThanItNeeds) {
  IN_A_FRESH_PROCESS(nearly_full());
}

TEST(ArenaText, NamesWhatLivesWhenMostDoes) {
  Program p;
  p.name = "train";
  OpDef* none = nullptr;
  for (const char* name : {"a", "b", "c"}) {
    PlanOp op;
    op.name = name;
    op.op = none;
    p.ops.push_back(std::move(op));
  }
  // a lives alone; b and c meet, and are more together.
  p.buffers.push_back({.device = 0, .bytes = 5 << 20, .begin = 0, .end = 1});
  p.buffers.push_back({.device = 0, .bytes = 2 << 20, .begin = 1, .end = 3});
  p.buffers.push_back({.device = 0, .bytes = 4 << 20, .begin = 2, .end = 3});
  p.buffers.push_back({.device = 1, .bytes = 9 << 20, .begin = 0, .end = 3});
  for (int i = 0; i < 3; ++i) {
    Operand o;
    o.buffer = i;
    p.operands.push_back(o);
    PlanCall call;
    call.op = i;
    call.first_view = i;
    call.num_out = 1;
    p.calls.push_back(call);
  }
  EXPECT_EQ(arena_text(p, 0), "plan 'train': c 4 MiB, b 2 MiB");
  EXPECT_EQ(arena_text(p, 1), "plan 'train': a result 9 MiB");
}

}  // namespace
}  // namespace berth
