// Parameter servers on a cluster of threads: scheduled functions give the
// results of one device, whichever tasks are lost.

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <thread>

#include "berth/berth.h"
#include "distribute/parameter_server/parameter_server_testing.h"
#include "distribute/parameter_server/server.h"
#include "distribute/parameter_server/step_program.h"

namespace berth::distribute {
namespace {

using cluster::FakeCluster;
using Floats = std::vector<float>;

Tensor numbers_of(const Shape& shape, float scale) {
  Floats v(static_cast<size_t>(shape.num_elements()));
  for (size_t i = 0; i < v.size(); ++i) {
    v[i] = scale * static_cast<float>(static_cast<int>(i * 37 % 101) - 50);
  }
  return constant(std::span<const float>(v), shape);
}

Floats all_of(const Variable& v) { return v.value().to_vector<float>(); }

TEST(Partitioners, AreTheClosedForms) {
  using namespace partitioners;  // NOLINT
  const auto fixed = FixedShardsPartitioner(3);
  EXPECT_EQ(fixed(Shape{10, 4}, float32), (std::vector<int64_t>{3, 1}));
  EXPECT_EQ(fixed(Shape{2, 4}, float32), (std::vector<int64_t>{2, 1}));
  EXPECT_EQ(fixed(Shape{2, 4}, float32, 1), (std::vector<int64_t>{1, 3}));
  // max(1, min(rows, max_shards, ceil(bytes / min_shard_bytes)))
  EXPECT_EQ(MinSizePartitioner()(Shape{1 << 20, 4}, float32)[0], 1);
  const auto least =
      MinSizePartitioner({.min_shard_bytes = 4, .max_shards = 3});
  EXPECT_EQ(least(Shape{10}, float32)[0], 3);
  EXPECT_EQ(least(Shape{2}, float32)[0], 2);
  EXPECT_EQ(MinSizePartitioner({.min_shard_bytes = 256 << 10,
                                .max_shards = 10})(Shape{6 << 16}, float32)[0],
            6);
  // ceil(rows / max(1, floor(max_shard_bytes / row bytes)))
  EXPECT_EQ(
      MaxSizePartitioner({.max_shard_bytes = 16})(Shape{10, 2}, float32)[0], 5);
  EXPECT_EQ(MaxSizePartitioner({.max_shard_bytes = 1})(Shape{7, 2}, float32)[0],
            7);
  EXPECT_EQ(MaxSizePartitioner({.max_shard_bytes = 16, .max_shards = 3})(
                Shape{10, 2}, float32)[0],
            3);
  EXPECT_EQ(
      MaxSizePartitioner({.max_shard_bytes = 1024})(Shape{64}, string_)[0], 1);
  EXPECT_THROW(FixedShardsPartitioner(0), errors::InvalidArgument);
  EXPECT_THROW(fixed(Shape{}, float32), errors::InvalidArgument);
}

TEST(ParameterServer, CountsEveryScheduledFunctionOnce) {
  ServerTasks tasks(3, 2);
  const ClusterCoordinator coordinator(tasks.strategy());
  const Variable sum(zeros({4}), {.name = "sum"});
  const Variable calls(constant(int64_t{0}),
                       {.name = "calls", .trainable = false});
  const auto add = function([&](const Tensor& x) {
    sum.assign_add(x);
    calls.assign_add(constant(int64_t{1}));
  });
  for (int i = 0; i < 60; ++i) coordinator.schedule(add, ones({4}));
  coordinator.join();
  EXPECT_EQ(all_of(sum), Floats(4, 60));
  EXPECT_EQ(calls.value().item<int64_t>(), 60);
  EXPECT_TRUE(coordinator.done());
  EXPECT_EQ(coordinator.statistics().done, 60);
}

TEST(ParameterServer, FetchesWhatAFunctionReturns) {
  ServerTasks tasks(2, 1);
  const ClusterCoordinator coordinator(tasks.strategy());
  const Variable v(constant(2.0f), {.name = "v"});
  const auto both = [&](const Tensor& x, const std::vector<Tensor>& more) {
    return std::pair(x * v.value(), more[0] + more[1]);
  };
  const auto r = coordinator.schedule(
      both, constant(3.0f), std::vector{constant(1.0f), constant(4.0f)});
  EXPECT_EQ(r.fetch().first.item<float>(), 6);
  EXPECT_EQ(coordinator.fetch(r).second.item<float>(), 5);
  // A write in the chief reaches functions scheduled afterwards.
  v.assign(constant(5.0f));
  const auto next = coordinator.schedule(
      both, constant(3.0f), std::vector{constant(1.0f), constant(4.0f)});
  EXPECT_EQ(next.get().first.item<float>(), 15);
  const std::vector list{r, next};
  EXPECT_EQ(coordinator.fetch(list)[1].first.item<float>(), 15);
}

TEST(ParameterServer, ReadsWhatWasWrittenBefore) {
  ServerTasks tasks(1, 2);
  const ClusterCoordinator coordinator(tasks.strategy());
  const Variable a(constant({1.0f, 2.0f}), {.name = "a"});
  const Variable b(constant({0.0f, 0.0f}), {.name = "b"});
  const auto r = coordinator.schedule(
      [&](const Tensor& x) {
        const Tensor old = a.value();
        a.assign(x * 2.0f);
        b.assign(a.value() + old);
        a.assign_add(b.value());
        return Tensors{old, a.value()};
      },
      constant({10.0f, 20.0f}));
  EXPECT_EQ(r.fetch()[0].to_vector<float>(), (Floats{1, 2}));
  EXPECT_EQ(r.fetch()[1].to_vector<float>(), (Floats{41, 82}));
  coordinator.join();
  EXPECT_EQ(all_of(b), (Floats{21, 42}));
}

// Two layers with a hand-written training step.
struct Mlp {
  Variable w1{numbers_of({6, 8}, 0.01f), {.name = "w1"}};
  Variable b1{zeros({8}), {.name = "b1"}};
  Variable w2{numbers_of({8, 3}, 0.01f), {.name = "w2"}};
  Variable b2{zeros({3}), {.name = "b2"}};
  keras::Optimizer optimizer;

  explicit Mlp(keras::Optimizer o) : optimizer(std::move(o)) {}
  std::vector<Variable> variables() const { return {w1, b1, w2, b2}; }
  Tensor step(const Tensor& x, const Tensor& y) const {
    GradientTape tape;
    const Tensor h = math::tanh(matmul(x, w1) + b1);
    const Tensor loss = math::reduce_mean(math::square(matmul(h, w2) + b2 - y));
    optimizer.apply_gradients(tape.gradient(loss, variables()), variables());
    return loss;
  }
};

struct NamedRule {
  const char* name;
  keras::Optimizer (*make)();
};
std::vector<NamedRule> rules() {
  using namespace keras::optimizers;  // NOLINT
  return {
      {"sgd", [] { return keras::Optimizer(SGD(0.1)); }},
      {"momentum",
       [] { return keras::Optimizer(SGD(0.1, {.momentum = 0.9})); }},
      {"adam", [] { return keras::Optimizer(Adam(0.01)); }},
      {"amsgrad",
       [] { return keras::Optimizer(Adam(0.01, {.amsgrad = true})); }},
      {"adamw", [] { return keras::Optimizer(AdamW(0.01)); }},
      {"adamax", [] { return keras::Optimizer(Adamax(0.01)); }},
      {"nadam", [] { return keras::Optimizer(Nadam(0.01)); }},
      {"lamb", [] { return keras::Optimizer(Lamb(0.01)); }},
      {"lion", [] { return keras::Optimizer(Lion(0.01)); }},
      {"rmsprop", [] { return keras::Optimizer(RMSprop(0.01)); }},
      {"adagrad", [] { return keras::Optimizer(Adagrad(0.01)); }},
      {"adadelta", [] { return keras::Optimizer(Adadelta(0.5)); }},
      {"adafactor", [] { return keras::Optimizer(Adafactor(0.01)); }},
      {"ftrl", [] { return keras::Optimizer(Ftrl(0.05)); }},
      {"decay",
       [] {
         return keras::Optimizer(SGD(schedules::ExponentialDecay(0.1, 2, 0.5),
                                     {.weight_decay = 0.01}));
       }},
  };
}

// Servers keep every optimizer's state, and a single worker updates it exactly
// as a program without servers does.
void equals_one_device(ParameterServerOptions options) {
  for (const NamedRule& rule : rules()) {
    SCOPED_TRACE(rule.name);
    const Tensor x = numbers_of({5, 6}, 0.02f), y = numbers_of({5, 3}, 0.03f);
    const Mlp alone(rule.make());
    const auto local = function(
        [&](const Tensor& a, const Tensor& b) { return alone.step(a, b); });
    Floats losses;
    for (int i = 0; i < 6; ++i) losses.push_back(local(x, y).item<float>());

    ServerTasks tasks(1, 2, options);
    const ClusterCoordinator coordinator(tasks.strategy());
    const Mlp remote(rule.make());
    const auto step = function(
        [&](const Tensor& a, const Tensor& b) { return remote.step(a, b); });
    std::vector<RemoteValue<Tensor>> results;
    for (int i = 0; i < 6; ++i) {
      results.push_back(coordinator.schedule(step, x, y));
    }
    coordinator.join();
    for (size_t i = 0; i < results.size(); ++i) {
      EXPECT_EQ(results[i].fetch().item<float>(), losses[i]) << i;
    }
    for (size_t i = 0; i < 4; ++i) {
      EXPECT_EQ(all_of(remote.variables()[i]), all_of(alone.variables()[i]));
    }
    EXPECT_EQ(remote.optimizer.iterations().value().item<int64_t>(), 6);
    const auto slots = remote.optimizer.variables();
    const auto expected = alone.optimizer.variables();
    ASSERT_EQ(slots.size(), expected.size());
    for (size_t i = 0; i < slots.size(); ++i) {
      EXPECT_EQ(slots[i].value().to_vector<double>(),
                expected[i].value().to_vector<double>())
          << slots[i].name();
    }
  }
}

TEST(ParameterServer, OneWorkerGivesTheBitsOfOneDevice) {
  equals_one_device({});
}
TEST(ParameterServer, ShardsGiveTheBitsOfOneDevice) {
  equals_one_device(
      {.variable_partitioner = partitioners::FixedShardsPartitioner(3)});
}

TEST(ParameterServer, DealsOutShardsInTurn) {
  ServerTasks tasks(
      1, 2, {.variable_partitioner = partitioners::FixedShardsPartitioner(3)});
  const ClusterCoordinator coordinator(tasks.strategy());
  const Variable v(numbers_of({7, 2}, 1), {.name = "v"});
  const Variable u(numbers_of({2, 2}, 1), {.name = "u"});
  EXPECT_EQ(tasks.strategy().servers_of(v), std::vector<std::string>{""});
  const auto r = coordinator.schedule([&] {
    u.assign_add(ones({2, 2}));
    v.assign_add(ones({7, 2}));
    return v.value();
  });
  Floats expected = numbers_of({7, 2}, 1).to_vector<float>();
  for (float& f : expected) f += 1;
  EXPECT_EQ(r.fetch().to_vector<float>(), expected);
  EXPECT_EQ(tasks.strategy().servers_of(v),
            (std::vector<std::string>{"/job:ps/task:0", "/job:ps/task:1",
                                      "/job:ps/task:0"}));
  EXPECT_EQ(tasks.strategy().servers_of(u),
            (std::vector<std::string>{"/job:ps/task:1", "/job:ps/task:0"}));
}

// y = 3 x - 1, learned by workers that do not wait for each other.
TEST(ParameterServer, ManyWorkersFindTheClosedForm) {
  ServerTasks tasks(3, 2);
  const ClusterCoordinator coordinator(tasks.strategy());
  const Variable w(constant({0.0f}), {.name = "w"});
  const Variable b(constant({0.0f}), {.name = "b"});
  keras::optimizers::SGD sgd(0.05);
  const auto step = function([&](const Tensor& x) {
    GradientTape tape;
    const Tensor error = x * w + b - (x * 3.0f - 1.0f);
    const Tensor loss = math::reduce_mean(math::square(error));
    const std::vector<Variable> all{w, b};
    sgd.apply_gradients(tape.gradient(loss, all), all);
  });
  for (int i = 0; i < 400; ++i) {
    const float at = static_cast<float>(i % 5) - 2;
    coordinator.schedule(step, constant({at, at + 0.5f, 1 - at}));
  }
  coordinator.join();
  EXPECT_NEAR(all_of(w)[0], 3, 0.02);
  EXPECT_NEAR(all_of(b)[0], -1, 0.02);
}

// A table of which each step reads and changes a few rows.
TEST(ParameterServer, RowsOfATableGiveWhatTheWholeTableGives) {
  for (const int shards : {1, 3}) {
    const auto train = [&](const ClusterCoordinator* coordinator, Floats* out) {
      const Variable table(numbers_of({40, 4}, 0.01f), {.name = "table"});
      const Variable w(numbers_of({4, 1}, 0.05f), {.name = "w"});
      keras::optimizers::Adam adam(0.02);
      const auto step = function([&](const Tensor& ids) {
        GradientTape tape;
        const Tensor rows = gather(table.value(), ids);
        const Tensor loss = math::reduce_sum(math::square(matmul(rows, w)));
        const std::vector<Variable> all{table, w};
        adam.apply_gradients(tape.gradient(loss, all), all);
        return loss;
      });
      for (const auto& ids :
           {std::vector{3, 39, 3}, {0, 13, 14}, {26, 27, 5}}) {
        const Tensor t = constant(std::span<const int>(ids), Shape{3});
        if (coordinator) {
          coordinator->schedule(step, t);
        } else {
          step(t);
        }
      }
      if (coordinator) coordinator->join();
      *out = all_of(table);
    };
    Floats alone, served;
    train(nullptr, &alone);
    ServerTasks tasks(
        1, 2,
        {.variable_partitioner = partitioners::FixedShardsPartitioner(shards)});
    const ClusterCoordinator coordinator(tasks.strategy());
    train(&coordinator, &served);
    EXPECT_EQ(served, alone) << shards;
  }
}

TEST(ParameterServer, ScattersReachTheirShards) {
  ServerTasks tasks(
      1, 2, {.variable_partitioner = partitioners::FixedShardsPartitioner(3)});
  const ClusterCoordinator coordinator(tasks.strategy());
  const Variable table(zeros({10, 2}), {.name = "table"});
  const auto add = [&](const Tensor& ids, const Tensor& rows) {
    table.scatter_add({rows, ids});
  };
  coordinator.schedule(
      add, constant({9, 0, 4, 9}),
      constant({{1.0f, 2.0f}, {3.0f, 4.0f}, {5.0f, 6.0f}, {7.0f, 8.0f}}));
  coordinator.join();
  Floats expected(20, 0);
  expected[0] = 3, expected[1] = 4, expected[8] = 5, expected[9] = 6;
  expected[18] = 8, expected[19] = 10;
  EXPECT_EQ(all_of(table), expected);
  coordinator.schedule(add, constant({10}), constant({{1.0f, 2.0f}}));
  EXPECT_THROW(coordinator.join(), errors::InvalidArgument);
}

TEST(ParameterServer, StalenessIsBounded) {
  for (const int64_t bound : {0, 2}) {
    ServerTasks tasks(4, 1, {.max_staleness = bound});
    const ClusterCoordinator coordinator(tasks.strategy());
    const Variable v(constant(1.0), {.name = "v"});
    const auto step = function([&](const Tensor& x) {
      // The result depends on the order unless every step sees all before it.
      v.assign(v.value() * 0.5 + x);
    });
    double expected = 1;
    for (int i = 0; i < 40; ++i) {
      coordinator.schedule(step, constant(static_cast<double>(i)));
      expected = expected * 0.5 + i;
    }
    coordinator.join();
    EXPECT_LE(coordinator.statistics().max_staleness, bound);
    if (bound == 0) {
      EXPECT_EQ(v.value().item<double>(), expected);
    }
  }
}

TEST(ParameterServer, TheFirstErrorIsRaisedOnceAndTheRestIsCancelled) {
  ServerTasks tasks(1, 1, {.max_staleness = 0});
  const ClusterCoordinator coordinator(tasks.strategy());
  const Variable table(zeros({3, 2}), {.name = "table"});
  const auto rows =
      function([&](const Tensor& ids) { return gather(table.value(), ids); });
  const auto bad = coordinator.schedule(rows, constant({7}));
  std::vector<RemoteValue<Tensor>> later;
  try {
    for (int i = 0; i < 200; ++i) {
      later.push_back(coordinator.schedule(rows, constant({1})));
    }
    coordinator.join();
    ADD_FAILURE() << "no error";
  } catch (const errors::InvalidArgument& e) {
    EXPECT_NE(std::string(e.what()).find("7"), std::string::npos) << e.what();
    EXPECT_NE(std::string(e.what()).find("worker:0"), std::string::npos);
  }
  EXPECT_THROW(bad.fetch(), errors::InvalidArgument);
  coordinator.join();  // raised once
  EXPECT_EQ(coordinator.schedule(rows, constant({1})).fetch().shape(),
            (Shape{1, 2}));
  EXPECT_EQ(coordinator.statistics().failed, 1);
}

TEST(ParameterServer, WhatAWorkerLosesRunsAgain) {
  ServerTasks tasks(2, 1);
  const ClusterCoordinator coordinator(tasks.strategy());
  const Variable calls(constant({0.0f}), {.name = "calls"});
  const auto step = function([&](const Tensor& x) { calls.assign_add(x); });
  coordinator.schedule(step, ones({1}));
  coordinator.join();
  tasks.kill({"worker", 1});
  for (int i = 0; i < 30; ++i) coordinator.schedule(step, ones({1}));
  coordinator.join();
  // At least once: work that the worker did before it was lost counts, too.
  EXPECT_GE(all_of(calls)[0], 31);
  EXPECT_LE(all_of(calls)[0], 32);
  // The process that replaces it has no state and gets it again.
  tasks.begin({"worker", 1});
  tasks.kill({"worker", 0});
  tasks.cluster().come_back({"worker", 1});
  for (int i = 0; i < 10; ++i) coordinator.schedule(step, ones({1}));
  coordinator.join();
  EXPECT_GE(all_of(calls)[0], 41);
}

TEST(ParameterServer, ALostServerIsNamedWithWhatItHad) {
  ServerTasks tasks(1, 2);
  const ClusterCoordinator coordinator(tasks.strategy());
  const Variable a(zeros({8}), {.name = "a"}), b(zeros({8}), {.name = "b"});
  const auto step = function([&](const Tensor& x) {
    a.assign_add(x);
    b.assign_add(x * 2.0f);
  });
  train::Checkpoint checkpoint({{"a", a}, {"b", b}});
  const auto folder = std::filesystem::temp_directory_path() /
                      ("ps_lost_" + std::to_string(getpid()));
  coordinator.schedule(step, ones({8}));
  coordinator.join();
  const std::string path = checkpoint.save((folder / "ckpt").string());
  coordinator.schedule(step, ones({8}));
  coordinator.join();
  EXPECT_EQ(all_of(a), Floats(8, 2));

  tasks.kill({"ps", 1});
  coordinator.schedule(step, ones({8}));
  try {
    coordinator.join();
    ADD_FAILURE() << "no error";
  } catch (const errors::Unavailable& e) {
    const std::string text = e.what();
    for (const char* part : {"ps:1", "\"b\"", "32 bytes", "checkpoint"}) {
      EXPECT_NE(text.find(part), std::string::npos) << text;
    }
    EXPECT_EQ(text.find("\"a\""), std::string::npos) << text;
  }
  // A new process replaces it and the last checkpoint is restored.
  tasks.begin({"ps", 1});
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  tasks.cluster().come_back({"ps", 1});
  checkpoint.restore(path);
  coordinator.schedule(step, ones({8}));
  coordinator.join();
  EXPECT_EQ(all_of(a), Floats(8, 2));
  EXPECT_EQ(all_of(b), Floats(8, 4));
  std::filesystem::remove_all(folder);
}

TEST(ParameterServer, CheckpointsDoNotKnowShards) {
  const auto folder = std::filesystem::temp_directory_path() /
                      ("ps_shards_" + std::to_string(getpid()));
  std::string path;
  const auto add = [](const Variable& v) {
    return [v](const Tensor& x) { v.assign_add(x); };
  };
  {
    ServerTasks tasks(
        1, 2,
        {.variable_partitioner = partitioners::FixedShardsPartitioner(3)});
    const ClusterCoordinator coordinator(tasks.strategy());
    const Variable v(numbers_of({7, 2}, 1), {.name = "v"});
    coordinator.schedule(add(v), ones({7, 2}));
    coordinator.join();
    path = train::Checkpoint({{"v", v}}).save((folder / "ckpt").string());
  }
  ServerTasks tasks(
      1, 2, {.variable_partitioner = partitioners::FixedShardsPartitioner(2)});
  const ClusterCoordinator coordinator(tasks.strategy());
  const Variable v(zeros({7, 2}), {.name = "v"});
  coordinator.schedule(add(v), ones({7, 2}));
  coordinator.join();
  train::Checkpoint({{"v", v}}).restore(path);
  coordinator.schedule(add(v), ones({7, 2}));
  coordinator.join();
  Floats expected = numbers_of({7, 2}, 1).to_vector<float>();
  for (float& f : expected) f += 2;
  EXPECT_EQ(all_of(v), expected);
  std::filesystem::remove_all(folder);
}

TEST(ParameterServer, EachWorkerHasItsOwnDataset) {
  register_dataset("numbers", [](const InputContext& c) {
    const int first = 100 * c.input_pipeline_id;
    return data::Dataset::from_tensor_slices(
               {constant({first, first + 1, first + 2})})
        .batch(1);
  });
  ServerTasks tasks(2, 1);
  const ClusterCoordinator coordinator(tasks.strategy());
  const auto take = function([](const Tensors& e) { return e[0]; });
  const auto on_chief = [](const InputContext& c) {
    return data::Dataset::from_tensor_slices(
               {constant({10 * c.input_pipeline_id, 5})})
        .batch(1)
        .repeat();
  };
  for (const PerWorkerDataset& dataset :
       {coordinator.create_per_worker_dataset("numbers"),
        coordinator.create_per_worker_dataset(on_chief)}) {
    const PerWorkerIterator it = dataset.make_iterator();
    const auto first = coordinator.schedule(take, it).fetch().item<int>();
    EXPECT_TRUE(first == 0 || first == 100 || first == 10) << first;
  }
  const PerWorkerIterator it =
      coordinator.create_per_worker_dataset("numbers").make_iterator();
  EXPECT_THROW(
      {
        for (int i = 0; i < 7; ++i) coordinator.schedule(take, it);
        coordinator.join();
      },
      errors::OutOfRange);
  EXPECT_THROW(coordinator.create_per_worker_dataset("others"),
               errors::NotFound);
  const PerWorkerResource resource = coordinator.create_per_worker_resource(
      [] { return Tensors{constant(7.0f) * 3.0f}; });
  EXPECT_EQ(coordinator.schedule(take, resource).fetch().item<float>(), 21);
}

TEST(ParameterServer, RunsReplicasInsideOfFunctions) {
  ServerTasks tasks(1, 1);
  const ClusterCoordinator coordinator(tasks.strategy());
  const Variable v(constant(2.0f), {.name = "v"});
  const auto replica = function([&](const Tensor& x) { return x * v; });
  const auto r = coordinator.schedule(
      [&](const Tensor& x) {
        return tasks.strategy().reduce(ReduceOp::kSum,
                                       tasks.strategy().run(replica, x));
      },
      constant(3.0f));
  EXPECT_EQ(r.fetch().item<float>(), 6);
}

TEST(ParameterServer, ServersKeepWhatABranchReadBeforeItWrote) {
  ServerTasks tasks(1, 1);
  const ClusterCoordinator coordinator(tasks.strategy());
  const Variable v(constant(1.0f), {.name = "v"});
  const Variable table(zeros({4, 2}), {.name = "table"});
  const auto step = function([&](const Tensor& x) {
    const Tensor old = v.value();
    v.assign(x);
    v.assign(v.value() * 10.f + old);
    return cond(
        math::greater(x, constant(2.f)),
        [&] {
          table.scatter_add({constant({{1.f, 2.f}}), constant({3})});
          return v.value();
        },
        [&] {
          v.assign_sub(constant(1.f));
          return x;
        });
  });
  EXPECT_EQ(coordinator.schedule(step, constant(2.f)).fetch().item<float>(), 2);
  EXPECT_EQ(coordinator.schedule(step, constant(3.f)).fetch().item<float>(),
            3 * 10 + 20);
  coordinator.join();
  EXPECT_EQ(all_of(table), (Floats{0, 0, 0, 0, 0, 0, 1, 2}));
}

TEST(ParameterServer, WhatCannotBeCutIsNamed) {
  ServerTasks tasks(1, 1);
  const ClusterCoordinator coordinator(tasks.strategy());
  const Variable v(constant(1.0f), {.name = "v"});
  try {
    coordinator.schedule(
        [&](const Tensor& x) {
          while_loop([&](const Tensor& i) { return i < 3.f; },
                     [&](const Tensor& i) {
                       v.assign(x);
                       return i + 1.f;
                     },
                     x);
        },
        constant(1.0f));
    ADD_FAILURE() << "no error";
  } catch (const errors::Unimplemented& e) {
    EXPECT_NE(std::string(e.what()).find("While"), std::string::npos)
        << e.what();
  }
}

// The second write needs the old value beside one that the worker makes of the
// new value, so the server would have to do the first write before itself.
TEST(ParameterServer, TheWriteThatCannotBeCutIsNamed) {
  ServerTasks tasks(1, 1);
  const ClusterCoordinator coordinator(tasks.strategy());
  const Variable v(ones({2, 2}), {.name = "v"});
  const Variable other(ones({2, 2}), {.name = "other"});
  try {
    coordinator.schedule(
        [&](const Tensor& x) {
          const Tensor old = v.value();
          v.assign_add(x);
          v.assign_sub(old * matmul(v.value(), x));
          other.assign_add(x);
          return other.value() + x;
        },
        ones({2, 2}));
    FAIL() << "it was cut";
  } catch (const errors::Unimplemented& e) {
    const std::string m = e.what();
    EXPECT_NE(m.find("AssignAddVariableOp \"AssignAddVariableOp\""), m.npos)
        << m;
    EXPECT_NE(m.find("reads and writes variables in turns"), m.npos) << m;
  }
}

TEST(ParameterServer, ANewChiefFindsServersEmpty) {
  PsServer server;
  const auto ask = [&](const std::string& text, Tensors tensors = {}) {
    Request request(text);
    return server.handle(request, tensors);
  };
  const std::string incarnation = ask("hello").text;
  ask("create v0/p0", {ones({2})});
  EXPECT_EQ(ask("read v0/p0").tensors.at(0).to_vector<float>(), Floats(2, 1));
  EXPECT_EQ(ask("begin").text, incarnation);
  EXPECT_THROW(ask("read v0/p0"), errors::NotFound);
  EXPECT_THROW(ask("dance"), errors::InvalidArgument);
}

TEST(ParameterServer, NeedsAChief) {
  for (const auto& jobs :
       {std::map<std::string, std::vector<std::string>>{
            {"worker", {"127.0.0.1:1"}}, {"ps", {"127.0.0.1:2"}}},
        {{"chief", {"127.0.0.1:1"}}, {"worker", {"127.0.0.1:2"}}}}) {
    ClusterResolver r;
    r.spec = ClusterSpec(jobs);
    r.task = {"worker", 0};
    EXPECT_THROW(ParameterServerStrategy{r}, errors::InvalidArgument);
  }
  FakeCluster cluster({.workers = 1, .ps = 1, .chief = true});
  EXPECT_THROW(ParameterServerStrategy(cluster.member({"worker", 0})),
               errors::InvalidArgument);
}

TEST(ParameterServer, ProgramsThatAreDamagedAreRefused) {
  StepProgram p;
  p.num_args = p.num_values = 1;
  p.results = {0};
  p.stages.emplace_back();
  cluster::Message m = encode_program(p);
  EXPECT_EQ(decode_program(m).results, p.results);
  for (size_t i = 0; i < m.text.size(); ++i) {
    for (const char c : {'9', '-', '{', 'x'}) {
      cluster::Message bad = m;
      bad.text[i] = c;
      try {
        decode_program(bad);
      } catch (const errors::InvalidArgument&) {
      }
      bad.text.resize(i);
      EXPECT_THROW(decode_program(bad), errors::InvalidArgument);
    }
  }
}

}  // namespace
}  // namespace berth::distribute
