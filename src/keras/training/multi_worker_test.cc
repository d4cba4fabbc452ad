// fit, evaluate and predict over several tasks: what one device gives. Tasks
// are threads here, with core sets of their own.

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <map>
#include <numeric>

#include "base/fresh_process_testing.h"
#include "distribute/multi_worker/tasks_testing.h"
#include "distribute/strategy/strategy_core.h"
#include "keras/training/strategy_testing.h"
#include "ops/random_key.h"

namespace berth::keras {
namespace {

using distribute::core_sets;
using distribute::MultiWorkerMirroredStrategy;
using distribute::on_tasks;

struct Trained {
  std::vector<float> weights, predictions;
  std::vector<double> losses, accuracies, validated;
};

Sequential dense_model() {
  return Sequential({InputLayer({12}), Dense(16, {.activation = "tanh"}),
                     Dropout(0.3), Dense(3, {.activation = "softmax"})});
}
Sequential image_model() {
  return Sequential({InputLayer({8, 8, 1}), Conv2D(4, 3), BatchNormalization(),
                     ReLU(), MaxPooling2D(2), Flatten(), Dropout(0.25),
                     Dense(3, {.activation = "softmax"})});
}

struct Case {
  const char* name;
  Sequential (*model)();
  Shape example;
  // A bias before a batch norm has no gradient but noise, of which Adam would
  // make steps.
  const char* optimizer;
};
const Case kDenseCase{"dense", &dense_model, {12}, "adam"};
const Case kImages{"images", &image_model, {8, 8, 1}, "sgd"};

Tensor inputs_of(const Case& c, int64_t n) {
  Shape shape = c.example;
  std::vector<int64_t> dims{n};
  for (const int64_t d : shape) dims.push_back(d);
  return numbers(Shape(dims), 0.05f);
}
Tensor labels_of(int64_t n) {
  std::vector<int32_t> y(static_cast<size_t>(n));
  for (int64_t i = 0; i < n; ++i) y[i] = static_cast<int32_t>(i * 7 % 3);
  return constant(std::span<const int32_t>(y), Shape{n});
}

// 50 examples in batches of 20: the last one has 10.
Trained train(Sequential& model, const Case& c, int64_t examples = 50) {
  const Tensor x = inputs_of(c, examples), y = labels_of(examples);
  const History h = model.fit(x, y,
                              {.epochs = 2,
                               .batch_size = 20,
                               .verbose = 0,
                               .validation_data = ValidationData(x, y),
                               .shuffle = false});
  Trained t;
  t.losses = h.history.at("loss");
  t.accuracies = h.history.at("accuracy");
  t.validated = h.history.at("val_loss");
  for (const Tensor& w : model.get_weights()) {
    for (const float v : w.to_vector<float>()) t.weights.push_back(v);
  }
  t.predictions =
      model.predict(inputs_of(c, 7), {.batch_size = 4}).to_vector<float>();
  return t;
}

void compile(Sequential& model, int slices, const char* optimizer = "adam") {
  model.compile({.optimizer = optimizer,
                 .loss = "sparse_categorical_crossentropy",
                 .metrics = {"accuracy"},
                 .slices = slices});
}

Trained on_one(const Case& c, int slices) {
  random::set_seed(3);
  Sequential model = c.model();
  compile(model, slices, c.optimizer);
  return train(model, c);
}

std::vector<std::string> devices_of(const std::vector<int>& devices, int rank) {
  const auto mine = devices.begin() + rank;
  return core_sets(std::accumulate(devices.begin(), mine, 0), *mine);
}

// `devices`: of each task. Plans of several core sets take turns in a process,
// so at most one task here has several.
std::vector<Trained> on_many(const Case& c, int slices,
                             const std::vector<int>& devices) {
  cluster::FakeCluster cluster({.workers = static_cast<int>(devices.size())});
  return on_tasks<Trained>(
      cluster, [&](const std::shared_ptr<cluster::Member>& member) {
        const MultiWorkerMirroredStrategy strategy(
            member,
            {.devices = devices_of(devices, member->rank()), .slices = slices});
        member->barrier("ready");
        // Random calls are numbered by process: here the chief's alone count.
        std::optional<UncountedRandomKeys> others;
        if (member->rank() > 0) others.emplace();
        if (member->rank() == 0) random::set_seed(3);
        const auto scope = strategy.scope();
        Sequential model = c.model();
        compile(model, 0, c.optimizer);
        return train(model, c);
      });
}

void expect_near(const std::vector<float>& a, const std::vector<float>& b,
                 const std::string& what) {
  ASSERT_EQ(a.size(), b.size()) << what;
  for (size_t i = 0; i < a.size(); ++i) {
    ASSERT_NEAR(a[i], b[i], 1e-5 + 1e-4 * std::abs(b[i])) << what << " " << i;
  }
}

void check_near(const Case& c, const std::vector<int>& devices) {
  const Trained one = on_one(c, 0);
  for (const Trained& t : on_many(c, 0, devices)) {
    const std::string name =
        fmt::format("{} {}", c.name, fmt::join(devices, "+"));
    expect_near(t.weights, one.weights, name + " weights");
    expect_near(t.predictions, one.predictions, name + " predictions");
    for (size_t e = 0; e < one.losses.size(); ++e) {
      EXPECT_NEAR(t.losses[e], one.losses[e], 1e-5) << name;
      EXPECT_NEAR(t.accuracies[e], one.accuracies[e], 1e-6) << name;
      EXPECT_NEAR(t.validated[e], one.validated[e], 1e-5) << name;
    }
  }
}

void check_same(const Case& c, const std::vector<int>& devices) {
  const Trained one = on_one(c, 4);
  for (const Trained& t : on_many(c, 4, devices)) {
    EXPECT_EQ(t.weights, one.weights) << c.name;
    EXPECT_EQ(t.predictions, one.predictions) << c.name;
    EXPECT_EQ(t.losses, one.losses) << c.name;
    EXPECT_EQ(t.validated, one.validated) << c.name;
  }
}

// In a process of its own, with so many core sets; failures count here.
void in_process(int devices, const std::function<void()>& body) {
  IN_A_FRESH_PROCESS(cpus(devices); body();
                     if (testing::Test::HasFailure()) std::_Exit(1));
}

TEST(MultiWorker, TwoTasksGiveWhatOneDeviceGives) {
  in_process(2, [] {
    check_near(kDenseCase, {1, 1});
    check_near(kImages, {1, 1});
  });
}

TEST(MultiWorker, TasksOfUnequalSizeGiveWhatOneDeviceGives) {
  in_process(4, [] {
    check_near(kDenseCase, {2, 1});
    check_near(kImages, {1, 2, 1});
  });
}

TEST(MultiWorker, SlicesGiveTheSameBits) {
  in_process(4, [] {
    check_same(kDenseCase, {1, 1});
    check_same(kDenseCase, {1, 2});
    check_same(kImages, {1, 1, 1});
    check_same(kImages, {2, 1});
  });
}

// Rows of the data of a task, batch by batch.
using Rows = std::vector<std::pair<int64_t, int64_t>>;  // begin, count

data::Dataset batches_of(const Rows& rows) {
  const Tensor x = inputs_of(kDenseCase, 60), y = labels_of(60);
  return data::Dataset::from_generator(
      [=]() {
        return [=, at = size_t{0}]() mutable -> std::optional<Tensors> {
          if (at == rows.size()) return std::nullopt;
          const auto [begin, count] = rows[at++];
          const auto part = slice(begin, begin + count);
          return Tensors{x[{part}], y[{part}]};
        };
      },
      {TensorSpec{Shape{-1, 12}, float32, {}},
       TensorSpec{Shape{-1}, int32, {}}});
}

TEST(MultiWorkerData, TasksMayEndAtDifferentTimes) {
  in_process(2, [] {
    // The second task has less, and ends first.
    const Rows first = {{0, 8}, {14, 8}, {26, 6}, {32, 5}};
    const Rows second = {{8, 6}, {22, 4}};
    const Rows all = {{0, 14}, {14, 12}, {26, 6}, {32, 5}};
    const auto fit = [](Sequential& model, auto&& dataset) {
      Trained t;
      t.losses =
          model.fit(dataset, {.epochs = 2, .verbose = 0}).history.at("loss");
      for (const Tensor& w : model.get_weights()) {
        for (const float v : w.to_vector<float>()) t.weights.push_back(v);
      }
      return t;
    };
    random::set_seed(3);
    Sequential alone = dense_model();
    compile(alone, 0);
    const Trained one = fit(alone, batches_of(all));
    cluster::FakeCluster cluster({.workers = 2});
    for (const Trained& t : on_tasks<Trained>(cluster, [&](const auto& member) {
           const int rank = member->rank();
           const MultiWorkerMirroredStrategy strategy(
               member, {.devices = core_sets(rank, 1)});
           member->barrier("ready");
           std::optional<UncountedRandomKeys> others;
           if (rank > 0) others.emplace();
           if (rank == 0) random::set_seed(3);
           const auto scope = strategy.scope();
           Sequential model = dense_model();
           compile(model, 0);
           return fit(model,
                      strategy.distribute_datasets_from_function(
                          [&](const distribute::InputContext& c) {
                            EXPECT_EQ(c.num_input_pipelines, 2);
                            EXPECT_EQ(c.input_pipeline_id, rank);
                            return batches_of(rank == 0 ? first : second);
                          }));
         })) {
      expect_near(t.weights, one.weights, "weights");
      EXPECT_NEAR(t.losses[1], one.losses[1], 1e-5);
    }
  });
}

// What fit throws in each of two tasks.
std::vector<std::string> errors_of(
    const std::function<void(Sequential&, int rank)>& fit,
    const std::function<Sequential(int rank)>& make) {
  cluster::FakeCluster cluster({.workers = 2});
  return on_tasks<std::string>(cluster, [&](const auto& member) {
    const MultiWorkerMirroredStrategy strategy(
        member, {.devices = core_sets(member->rank(), 1)});
    const auto scope = strategy.scope();
    Sequential model = make(member->rank());
    compile(model, 0);
    try {
      fit(model, member->rank());
    } catch (const errors::Error& e) {
      return std::string(e.what());
    }
    return std::string();
  });
}

TEST(MultiWorkerFailures, AnotherModelInOneTaskIsRefusedInAll) {
  in_process(2, [] {
    const auto errors = errors_of(
        [](Sequential& model, int) {
          model.fit(inputs_of(kDenseCase, 20), labels_of(20), {.verbose = 0});
        },
        [](int rank) {
          return Sequential({InputLayer({12}), Dense(rank == 0 ? 16 : 17),
                             Dense(3, {.activation = "softmax"})});
        });
    EXPECT_EQ(errors[0], errors[1]);
    EXPECT_NE(errors[0].find("different steps: worker:0 has"),
              std::string::npos)
        << errors[0];
    EXPECT_NE(errors[0].find("worker:1 has"), std::string::npos);
  });
}

TEST(MultiWorkerFailures, AStepThatFailsInOneTaskFailsInAll) {
  in_process(2, [] {
    const auto errors = errors_of(
        [](Sequential& model, int) {
          std::vector<int32_t> y(40, 1);
          y[39] = 7;  // of three classes: in the second task's rows
          model.fit(inputs_of(kDenseCase, 40),
                    constant(std::span<const int32_t>(y), Shape{40}),
                    {.batch_size = 20, .verbose = 0, .shuffle = false});
        },
        [](int) { return dense_model(); });
    EXPECT_EQ(errors[0], errors[1]);
    EXPECT_NE(errors[0].find("worker:1"), std::string::npos) << errors[0];
    EXPECT_NE(errors[0].find("step 1"), std::string::npos) << errors[0];
  });
}

std::vector<float> weights_of(const Model& model) {
  std::vector<float> weights;
  for (const Tensor& w : model.get_weights()) {
    for (const float v : w.to_vector<float>()) weights.push_back(v);
  }
  return weights;
}

// Weights of the chief after two epochs of three batches, with backups; the
// second task fails once, after so many batches; 0: never. Its disk fails, too.
std::vector<float> after_failure(
    int fails_after, const std::string& folder,
    const std::function<void(const std::string& its)>& spoil = {}) {
  std::filesystem::remove_all(folder);
  cluster::FakeCluster cluster({.workers = 2});
  return on_tasks<std::vector<float>>(cluster, [&](const auto& member) {
    const int rank = member->rank();
    const MultiWorkerMirroredStrategy strategy(member,
                                               {.devices = core_sets(rank, 1)});
    member->barrier("ready");
    std::optional<UncountedRandomKeys> others;
    if (rank > 0) others.emplace();
    if (rank == 0) random::set_seed(3);
    const auto scope = strategy.scope();
    Sequential model = dense_model();
    compile(model, 0);
    int left = rank == 1 ? fails_after : 0;
    strategy.wait_and_restore([&] {
      const Callback stumbles{.on_train_batch_end = [&](Model&, int64_t) {
        if (left == 0 || --left > 0) return;
        if (spoil) spoil(folder + "/task_1");
        throw errors::Internal("it stumbled");
      }};
      model.fit(
          inputs_of(kDenseCase, 50), labels_of(50),
          {.epochs = 2,
           .batch_size = 20,
           .verbose = 0,
           .callbacks = {callbacks::BackupAndRestore(folder, {.save_freq = 2}),
                         stumbles},
           .shuffle = false});
    });
    return weights_of(model);
  })[0];
}

TEST(MultiWorkerFailures, TrainingGoesOnFromTheLastBackupWithTheSameBits) {
  const std::string folder =
      fmt::format("{}/multi_worker_{}", testing::TempDir(), getpid());
  in_process(2, [&] {
    const auto whole = after_failure(0, folder);
    EXPECT_EQ(after_failure(5, folder), whole);
    const auto cut = [](const std::string& ending) {
      return [ending](const std::string& its) {
        for (const auto& f : std::filesystem::directory_iterator(its)) {
          if (!f.path().string().ends_with(ending)) continue;
          std::filesystem::resize_file(f.path(), f.file_size() / 2);
        }
      };
    };
    const auto gone = [](const std::string& its) {
      std::filesystem::remove_all(its);
    };
    EXPECT_EQ(after_failure(5, folder, gone), whole);
    EXPECT_EQ(after_failure(5, folder, cut(".json")), whole);
    EXPECT_EQ(after_failure(5, folder, cut(".safetensors")), whole);
    // Before the first backup there is nothing to go on from.
    EXPECT_THROW(after_failure(1, folder), errors::Error);
  });
}

// Three tasks, of which `lost` die after so many batches of theirs, for good.
// The weights of the first.
struct Dead {};
struct Shrunk {
  std::vector<float> weights;
  std::vector<double> losses;
  int replicas = 0;
  std::vector<int> shares;
};
Shrunk after_losses(const std::map<int, int>& lost, const std::string& folder,
                    distribute::StrategyOptions options) {
  std::filesystem::remove_all(folder);
  cluster::FakeCluster cluster({.workers = 3});
  return on_tasks<Shrunk>(cluster, [&](const auto& member) {
    const int rank = member->rank();
    distribute::StrategyOptions mine = options;
    mine.devices = core_sets(rank, 1);
    const MultiWorkerMirroredStrategy strategy(member, mine);
    member->barrier("ready");
    std::optional<UncountedRandomKeys> others;
    if (rank > 0) others.emplace();
    if (rank == 0) random::set_seed(3);
    const auto scope = strategy.scope();
    Sequential model = dense_model();
    compile(model, 0);
    int left = lost.contains(rank) ? lost.at(rank) : 0;
    const Callback dies{.on_train_batch_end = [&](Model&, int64_t) {
      if (left > 0 && --left == 0) {
        cluster.lose(member->task());
        throw Dead();
      }
    }};
    Shrunk s;
    const auto fit = [&] {
      s.losses = model
                     .fit(inputs_of(kDenseCase, 50), labels_of(50),
                          {.epochs = 2,
                           .batch_size = 20,
                           .verbose = 0,
                           .callbacks = {callbacks::BackupAndRestore(
                                             folder, {.save_freq = 1}),
                                         dies},
                           .shuffle = false})
                     .history.at("loss");
    };
    try {
      strategy.shrink_and_restore(fit);
      EXPECT_FALSE(lost.contains(rank));
    } catch (const Dead&) {
      return s;
    }
    s.weights = weights_of(model);
    s.replicas = strategy.num_replicas_in_sync();
    s.shares = strategy.core()->shares();
    return s;
  })[0];
}

TEST(MultiWorkerFailures, ThoseThatAreLeftGoOnWithTheSameBits) {
  const std::string folder =
      fmt::format("{}/shrunk_{}", testing::TempDir(), getpid());
  in_process(3, [&] {
    random::set_seed(3);
    Sequential alone = dense_model();
    compile(alone, 4);
    const Trained one = train(alone, kDenseCase);
    // Slices: it does not matter which task computes them.
    for (const std::map<int, int>& lost :
         {std::map<int, int>{{1, 2}}, {{2, 4}}, {{1, 2}, {2, 3}}}) {
      const Shrunk s = after_losses(lost, folder, {.slices = 4});
      EXPECT_EQ(s.weights, one.weights);
      EXPECT_EQ(s.replicas, 3 - static_cast<int>(lost.size()));
    }
    // Weights of shares stay those of the replicas that are left.
    const Shrunk s =
        after_losses({{1, 2}}, folder, {.shares = {1, 2, 3}, .slices = 8});
    EXPECT_EQ(s.weights.size(), one.weights.size());
    EXPECT_EQ(s.shares, (std::vector<int>{2, 6}));
  });
}

// Twelve batches of 4 rows, dealt out to the tasks that are there. Samples of
// the fit that came to the end; the second of three dies after so many batches.
int64_t samples_of_last_fit(int dies_after, const std::string& folder) {
  std::filesystem::remove_all(folder);
  cluster::FakeCluster cluster({.workers = 3});
  return on_tasks<int64_t>(cluster, [&](const auto& member) {
    const int rank = member->rank();
    const MultiWorkerMirroredStrategy strategy(member,
                                               {.devices = core_sets(rank, 1)});
    const auto scope = strategy.scope();
    Sequential model = dense_model();
    compile(model, 0);
    int left = rank == 1 ? dies_after : 0;
    const Callback dies{.on_train_batch_end = [&](Model&, int64_t) {
      if (left > 0 && --left == 0) {
        cluster.lose(member->task());
        throw Dead();
      }
    }};
    int64_t samples = 0;
    try {
      strategy.shrink_and_restore([&] {
        const auto dataset = strategy.distribute_datasets_from_function(
            [&](const distribute::InputContext& c) {
              Rows rows;
              for (int b = c.input_pipeline_id; b < 12;
                   b += c.num_input_pipelines) {
                rows.emplace_back(b * 4, 4);
              }
              return batches_of(rows);
            });
        const History h = model.fit(
            dataset,
            {.epochs = 2,
             .verbose = 0,
             .callbacks = {
                 callbacks::BackupAndRestore(folder, {.save_freq = 1}), dies}});
        samples = h.tasks->samples;
        EXPECT_EQ(h.tasks->duplicates(), 0);
      });
    } catch (const Dead&) {
    }
    return samples;
  })[0];
}

TEST(MultiWorkerFailures, DataOfTasksIsDealtOutAnewFromTheBeginOfTheEpoch) {
  const std::string folder =
      fmt::format("{}/dealt_{}", testing::TempDir(), getpid());
  in_process(3, [&] {
    // An epoch is 48 examples: 4 steps of three tasks, 6 of two.
    EXPECT_EQ(samples_of_last_fit(2, folder), 2 * 48);
    EXPECT_EQ(samples_of_last_fit(6, folder), 48);
  });
}

TEST(MultiWorkerData, EveryExampleIsComputedOnOnceAndThatIsReported) {
  in_process(3, [] {
    cluster::FakeCluster cluster({.workers = 3});
    const auto reports = on_tasks<TaskReport>(cluster, [&](const auto& member) {
      const MultiWorkerMirroredStrategy strategy(
          member, {.devices = core_sets(member->rank(), 1)});
      const auto scope = strategy.scope();
      Sequential model = dense_model();
      compile(model, 0);
      const Callback dawdles{
          .on_train_batch_begin = [rank = member->rank()](Model&, int64_t) {
            if (rank == 2) ::usleep(1000);
          }};
      return *model
                  .fit(inputs_of(kDenseCase, 50), labels_of(50),
                       {.epochs = 3,
                        .batch_size = 20,
                        .verbose = 0,
                        .callbacks = {dawdles}})
                  .tasks;
    });
    for (const TaskReport& r : reports) {
      EXPECT_EQ(r.steps, 9);
      EXPECT_EQ(r.samples, 150);
      EXPECT_EQ(r.duplicates(), 0);
      ASSERT_EQ(r.tasks.size(), 3u);
      int64_t sum = 0;
      for (const TaskReport::Task& t : r.tasks) sum += t.samples;
      EXPECT_EQ(sum, 150);
      // 20, 20 and 10 in three parts, the larger ones last.
      EXPECT_EQ(r.tasks[0].samples, 3 * (6 + 6 + 3));
      EXPECT_EQ(r.tasks[2].samples, 3 * (7 + 7 + 4));
      EXPECT_EQ(r.tasks[1].name, "worker:1");
      EXPECT_LT(r.tasks[0].network_us, 0);
      EXPECT_GT(r.tasks[1].network_us, 0);
    }
  });
}

TEST(TaskReport, NamesWhoIsBehindByHowMuchAndWhy) {
  TaskReport r;
  r.samples = 30;
  r.tasks = {{"worker:0", 10, 9000, 3000, 100, -1},
             {"worker:1", 10, 9000, 500, 100, 400},
             {"worker:2", 10, 9000, 3000, 2000, 4000},
             {"worker:3", 10, 9000, 2500, 100, 500}};
  EXPECT_EQ(r.duplicates(), 10);
  EXPECT_EQ(r.stragglers(),
            "straggler: worker:1 computes 8.50 ms per step, the others 6.00 ms "
            "(median; 42 % more): they wait for it\n"
            "straggler: worker:2 waits 2.00 ms per step for its input, the "
            "others 0.10 ms (median; 1900 % more)\n"
            "straggler: the network of worker:2: 64 KiB to the first task and "
            "back take 4.00 ms, those of the others 0.50 ms (median; 700 % "
            "more)\n");
  r.tasks[1].waited_us = 2900;
  r.tasks.resize(2);
  EXPECT_EQ(r.stragglers(), "");
}

// What the replicas of a strategy say of themselves and of each other.
struct Said {
  float sum = 0, mean = 0;
  std::vector<float> gathered, inside, gathered_inside, first;
  bool operator==(const Said&) const = default;
};

Said ask(const distribute::Strategy& strategy) {
  using distribute::ReduceOp;
  Variable total = [&] {
    const auto scope = strategy.scope();
    return Variable(constant(0.f), {.name = "total",
                                    .aggregation = VariableAggregation::kMean});
  }();
  Variable led = [&] {
    const auto scope = strategy.scope();
    return Variable(
        constant(0.f),
        {.name = "led", .aggregation = VariableAggregation::kOnlyFirstReplica});
  }();
  auto speak = function([&] {
    const auto context = distribute::get_replica_context();
    const auto id = static_cast<float>(context->replica_id_in_sync_group() + 1);
    const Tensor mine = constant({id, 2 * id});
    total.assign_add(constant(id));
    led.assign(constant(10 * id));
    return Tensors{mine, context->all_reduce(ReduceOp::kSum, mine),
                   context->all_gather(mine, 0)};
  });
  const auto results = strategy.run(speak);
  Said said;
  said.sum = strategy.reduce(ReduceOp::kSum, results[0], 0).item<float>();
  said.mean = math::reduce_sum(strategy.reduce(ReduceOp::kMean, results[0]))
                  .item<float>();
  said.gathered = strategy.gather(results[0], 0).to_vector<float>();
  said.inside = results[1][0].to_vector<float>();
  said.gathered_inside = results[2][0].to_vector<float>();
  said.first = {total.value().item<float>(), led.value().item<float>()};
  return said;
}

TEST(MultiWorkerRun, ReplicasOfTwoTasksMeetAsThoseOfOne) {
  in_process(3, [] {
    const Said one =
        ask(distribute::MirroredStrategy({"/CPU:0", "/CPU:1", "/CPU:2"}));
    EXPECT_EQ(one.sum, 18);
    EXPECT_EQ(one.gathered, (std::vector<float>{1, 2, 2, 4, 3, 6}));
    EXPECT_EQ(one.first, (std::vector<float>{2, 10}));
    cluster::FakeCluster cluster({.workers = 2});
    for (const Said& said : on_tasks<Said>(cluster, [](const auto& member) {
           return ask(MultiWorkerMirroredStrategy(
               member, {.devices = devices_of({2, 1}, member->rank())}));
         })) {
      EXPECT_TRUE(said == one) << said.sum << " " << said.mean;
    }
  });
}

struct Looped {
  std::vector<float> losses, weights;
};

// The loop of docs/distribute.md; batches of 32, 32 and 6.
Looped loop(const distribute::Strategy& strategy) {
  std::optional<Sequential> model;
  std::optional<Optimizer> optimizer;
  {
    const auto scope = strategy.scope();
    model.emplace(std::vector<Layer>{InputLayer({4}), Dense(8), Dense(1)});
    optimizer.emplace(Adam(0.1));
  }
  const auto loss_of = losses::MeanSquaredError();
  auto step = function([&](const Tensor& x, const Tensor& y) {
    GradientTape tape;
    const Tensor loss = loss_of(y, (*model)(x, true));
    const auto weights = model->trainable_variables();
    optimizer->apply_gradients(tape.gradient(loss, weights), weights);
    return loss;
  });
  const auto batches =
      data::Dataset::from_tensor_slices({numbers({70, 4}), zeros({70, 1})})
          .batch(32);
  Looped l;
  for (int epoch = 0; epoch < 2; ++epoch) {
    for (const auto& b : strategy.experimental_distribute_dataset(batches)) {
      const auto losses = strategy.run(step, b[0], b[1]);
      l.losses.push_back(
          strategy.reduce(distribute::ReduceOp::kSum, losses).item<float>());
    }
  }
  for (const Tensor& w : model->get_weights()) {
    for (const float v : w.to_vector<float>()) l.weights.push_back(v);
  }
  return l;
}

TEST(MultiWorkerRun, LoopsOfOnesOwnTrainAsOnOneTask) {
  in_process(3, [] {
    random::set_seed(5);
    const Looped one =
        loop(distribute::MirroredStrategy({"/CPU:0", "/CPU:1", "/CPU:2"}));
    cluster::FakeCluster cluster({.workers = 2});
    for (const Looped& l : on_tasks<Looped>(cluster, [](const auto& member) {
           const MultiWorkerMirroredStrategy strategy(
               member, {.devices = devices_of({2, 1}, member->rank())});
           member->barrier("ready");
           std::optional<UncountedRandomKeys> others;
           if (member->rank() > 0) others.emplace();
           if (member->rank() == 0) random::set_seed(5);
           return loop(strategy);
         })) {
      expect_near(l.losses, one.losses, "losses");
      expect_near(l.weights, one.weights, "weights");
    }
  });
}

}  // namespace
}  // namespace berth::keras
