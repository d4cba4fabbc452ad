// What training does when the machine is about to be taken away.

#include "berth/preemption.h"

#include <gtest/gtest.h>

#include <csignal>

#include "base/fresh_process_testing.h"
#include "berth/errors.h"
#include "berth/keras.h"
#include "distribute/multi_worker/tasks_testing.h"
#include "io/temp_dir_testing.h"
#include "keras/training/strategy_testing.h"
#include "ops/random_key.h"

namespace berth::keras {
namespace {

using distribute::MultiWorkerMirroredStrategy;
using distribute::PreemptionCheckpointHandler;
using distribute::TerminationConfig;
using io::testing::TempDir;

struct Gone {};

Sequential preempted_model() {
  Sequential model({InputLayer({6}), Dense(8, {.activation = "tanh"}),
                    Dropout(0.25), Dense(1)});
  model.compile({.optimizer = "adam", .loss = "mse"});
  return model;
}
Tensor preempted_inputs() { return numbers({24, 6}, 0.1f); }

std::vector<float> floats_of_weights(const Model& model) {
  std::vector<float> all;
  for (const Tensor& w : model.get_weights()) {
    for (const float v : w.to_vector<float>()) all.push_back(v);
  }
  return all;
}

// Six steps in two epochs; `more` runs after each.
void fit_preempted(Sequential& model, std::vector<Callback> more) {
  const Tensor x = preempted_inputs();
  model.fit(x, math::reduce_sum(x, {.axis = 1, .keepdims = true}),
            {.epochs = 2,
             .batch_size = 8,
             .verbose = 0,
             .callbacks = std::move(more)});
}

Sequential fresh_preempted_model() {
  random::set_seed(4);
  return preempted_model();
}

Callback after_batch(int number, const std::function<void()>& fn) {
  auto left = std::make_shared<int>(number);
  return {.on_train_batch_end = [left, fn](Model&, int64_t) {
    if (--*left == 0) fn();
  }};
}

Callback saving_backup(const std::string& folder,
                       const TerminationConfig& config) {
  return callbacks::BackupAndRestore(
      folder, {.save_before_preemption = true, .termination_config = config});
}

TEST(Preemption, FitGoesOnWithTheSameBitsAfterSigterm) {
  const TempDir dir;
  Sequential whole = fresh_preempted_model();
  fit_preempted(whole, {});
  const TerminationConfig config{.exit_fn = [] { throw Gone(); }};
  Sequential model = fresh_preempted_model();
  int steps = 0;
  const Callback counts{
      .on_train_batch_end = [&](Model&, int64_t) { ++steps; }};
  EXPECT_THROW(
      fit_preempted(model, {after_batch(2, [] { std::raise(SIGTERM); }), counts,
                            saving_backup(dir / "b", config)}),
      Gone);
  EXPECT_EQ(steps, 2);
  random::set_seed(99);  // another process has drawn otherwise
  Sequential again = preempted_model();
  fit_preempted(again, {counts, saving_backup(dir / "b", config)});
  EXPECT_EQ(steps, 6);
  EXPECT_EQ(floats_of_weights(again), floats_of_weights(whole));
}

TEST(Preemption, SigtermDoesAfterwardsWhatItDidBefore) {
  const TempDir dir;
  Sequential model = fresh_preempted_model();
  struct sigaction before = {}, after = {};
  sigaction(SIGTERM, nullptr, &before);
  fit_preempted(model, {saving_backup(dir / "b", {})});
  sigaction(SIGTERM, nullptr, &after);
  EXPECT_EQ(before.sa_handler, after.sa_handler);
}

TEST(Preemption, TheProcessExitsWithTheCodeThatLaunchersRestart) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const TempDir dir;
  const auto preempted = [&](const TerminationConfig& config) {
    Sequential model = fresh_preempted_model();
    fit_preempted(model, {after_batch(1, [] { std::raise(SIGTERM); }),
                          saving_backup(dir / "b", config)});
  };
  EXPECT_EXIT(preempted({}), testing::ExitedWithCode(143),
              "this task is to end; saved as");
  EXPECT_EXIT(preempted({.restart_code = 42}), testing::ExitedWithCode(42), "");
}

TEST(Preemption, RefusesConfigsThatMakeNoSense) {
  const TempDir dir;
  Sequential model = fresh_preempted_model();
  const auto refused = [&](const TerminationConfig& config,
                           const std::string& part) {
    try {
      fit_preempted(model, {saving_backup(dir / "b", config)});
      FAIL();
    } catch (const errors::InvalidArgument& e) {
      EXPECT_NE(std::string(e.what()).find(part), std::string::npos)
          << e.what();
    }
  };
  refused({.restart_code = 0}, "restart_code is 0; expected 1 to 255");
  refused({.grace_period_seconds = -1}, "grace_period_seconds is -1");
}

TEST(Preemption, AnExitFunctionThatReturnsIsAnError) {
  const TempDir dir;
  Sequential model = fresh_preempted_model();
  EXPECT_THROW(
      fit_preempted(model, {saving_backup(dir / "b", {.termination_watcher_fn =
                                                          [] { return true; },
                                                      .exit_fn = [] {}})}),
      errors::Cancelled);
}

// A loop of one's own counts calls of run(), those before the restart too.
TEST(Preemption, AnOwnLoopGoesOnWhereItWas) {
  const TempDir dir;
  const auto loop = [&](int64_t notice_at) {
    Variable sum(constant(0.f), {.name = "sum"});
    const distribute::OneDeviceStrategy strategy("/CPU:0");
    train::CheckpointManager manager(train::Checkpoint({{"sum", sum}}),
                                     dir / "loop");
    int64_t calls = 0;
    PreemptionCheckpointHandler handler(
        strategy, manager,
        {.termination_watcher_fn = [&] { return calls == notice_at; },
         .exit_fn = [] { throw Gone(); }});
    const int64_t first = handler.total_run_calls();
    while (handler.total_run_calls() < 10) {
      handler.run([&] {
        ++calls;
        sum.assign_add(
            constant(static_cast<float>(handler.total_run_calls() + 1)));
      });
    }
    return std::pair(first, sum.value().item<float>());
  };
  EXPECT_THROW(loop(4), Gone);
  EXPECT_EQ(loop(-1), (std::pair<int64_t, float>(4, 55)));
}

void check_that_tasks_save_after_the_same_step() {
  fresh_process::need_cores(2);
  config::set_device_list("CPUx2");
  const TempDir dir;
  // Steps of each task, and the chief's weights; 0: nobody is told.
  const auto train = [&](int told_after) {
    cluster::FakeCluster cluster({.workers = 2});
    return distribute::on_tasks<std::pair<int, std::vector<float>>>(
        cluster, [&](const auto& member) {
          const int rank = member->rank();
          const MultiWorkerMirroredStrategy strategy(
              member, {.devices = distribute::core_sets(rank, 1)});
          member->barrier("ready");
          std::optional<UncountedRandomKeys> others;
          if (rank > 0) others.emplace();
          if (rank == 0) random::set_seed(4);
          const auto scope = strategy.scope();
          Sequential model = preempted_model();
          int steps = 0;
          const Callback counts{
              .on_train_batch_end = [&](Model&, int64_t) { ++steps; }};
          const TerminationConfig config{
              .termination_watcher_fn =
                  [&] { return rank == 1 && steps == told_after; },
              .exit_fn = [] { throw Gone(); }};
          try {
            const Tensor x = preempted_inputs();
            model.fit(x, math::reduce_sum(x, {.axis = 1, .keepdims = true}),
                      {.epochs = 2,
                       .batch_size = 8,
                       .verbose = 0,
                       .callbacks = {counts, saving_backup(dir / "b", config)},
                       .shuffle = false});
          } catch (const Gone&) {
            fresh_process::check(told_after > 0, "somebody was told");
          }
          return std::pair(steps, floats_of_weights(model));
        });
  };
  const auto whole = train(-1);
  const auto first = train(4);
  fresh_process::check(first[0].first == 4 && first[1].first == 4,
                       "both made four steps");
  const auto rest = train(-1);
  fresh_process::check(rest[0].first == 2, "two were left");
  fresh_process::check(rest[0].second == whole[0].second, "the same bits");
}

// The second task is told; both save after the same step, whatever their speed.
TEST(Preemption, AllTasksSaveAfterTheSameStep) {
  IN_A_FRESH_PROCESS(check_that_tasks_save_after_the_same_step());
}

}  // namespace
}  // namespace berth::keras
