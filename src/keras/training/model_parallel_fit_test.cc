// fit under a ModelParallel is fit on one device, by the layouts that people
// use: columns then rows, heads, channels, vocabularies. What is split, what is
// held where, and what is refused by name. Devices are configured once per
// process, so each test runs in one of its own.

#include <gtest/gtest.h>

#include <filesystem>

#include "base/diagnostics_testing.h"
#include "base/fresh_process_testing.h"
#include "berth/berth.h"
#include "keras/training/strategy_testing.h"

namespace berth::keras {
namespace {

using distribute::AxisNames;
using distribute::LayoutMap;
using distribute::Mesh;
using distribute::ModelParallel;
using distribute::OneDeviceStrategy;
using fresh_process::check;
using fresh_process::refuses;

using Entries = std::vector<std::pair<std::string, AxisNames>>;

ModelParallel split_over(const std::vector<std::string>& devices,
                         const Entries& entries,
                         const distribute::Shares& shares = {},
                         int replicas = 1) {
  const int width = static_cast<int>(devices.size()) / replicas;
  LayoutMap map(Mesh({{"batch", replicas}, {"model", width}}, devices));
  for (const auto& [key, names] : entries) map[key] = names;
  return ModelParallel(map, {.batch_dim_name = "batch", .shares = shares});
}

struct SplitTask {
  Task task;
  Entries layouts;
};

const Entries kDense = {{"up/kernel", {"", "model"}},
                        {"up/bias", {"model"}},
                        {"down/kernel", {"model", ""}}};

std::vector<SplitTask> split_tasks() {
  const auto adam = [] { return Adam(0.01, {.global_clipnorm = 0.5}); };
  return {
      {{"dense",
        {6},
        [] {
          return Sequential({Dense(12, {.activation = "gelu", .name = "up"}),
                             Dense(6, {.name = "down"}), Dropout(0.2),
                             LayerNormalization(), Dense(3)});
        },
        adam},
       kDense},
      {{"conv",
        {8, 8, 2},
        [] {
          return Sequential({Conv2D(12, 3, {.use_bias = false, .name = "up"}),
                             BatchNormalization({.name = "norm"}), ReLU(),
                             Conv2D(4, 3, {.name = "down"}),
                             GlobalAveragePooling2D(), Dense(3)});
        },
        adam},
       {{"up/kernel", {"", "", "", "model"}},
        {"norm/(gamma|beta|moving_mean|moving_variance)", {"model"}},
        {"down/kernel", {"", "", "model", ""}}}},
  };
}

bool said_whole() { return debugging::diagnostic_counts()["runs-whole"] > 0; }

void equals_one_device(const std::vector<std::string>& devices,
                       const distribute::Shares& shares = {},
                       int replicas = 1) {
  const OneDeviceStrategy one(devices[0]);
  for (const SplitTask& t : split_tasks()) {
    const auto run = [&](int epochs, int64_t examples) {
      return train(t.task, split_over(devices, t.layouts, shares, replicas),
                   epochs, examples, 8);
    };
    const std::string what = t.task.name;
    compare(what + ", one step", train(t.task, one, 1, 8, 8), run(1, 8), 1e-5);
    check(!said_whole(), what + ": all ops on parts have split rules");
    compare(what + ", 21 steps", train(t.task, one, 7, 22, 8), run(7, 22),
            2e-3);
  }
}

TEST(ModelParallelFit, TwoCoreSetsEqualOneDevice) {
  IN_A_FRESH_PROCESS(equals_one_device(cpus(2)));
}
TEST(ModelParallelFit, TwoSimulatedGpusEqualOne) {
  IN_A_FRESH_PROCESS(equals_one_device(gpus(2)));
}
TEST(ModelParallelFit, ThreeUnequalSharesEqualOneDevice) {
  IN_A_FRESH_PROCESS(equals_one_device(gpus(3), {1, 2, 1}));
}

TEST(ModelParallelFit, BatchesAreDividedBesides) {
  IN_A_FRESH_PROCESS(equals_one_device(gpus(4), {}, 2));
}
TEST(ModelParallelFit, BatchesOverSixCoreSetsOfUnequalShares) {
  IN_A_FRESH_PROCESS(equals_one_device(cpus(6), {1, 2}, 3));
}

// A transformer of words: the table by vocabulary, heads, columns and rows.
TrainedModel train_words(const distribute::Strategy& strategy) {
  random::set_seed(3);
  clear_session();
  const auto scope = strategy.scope();
  const KerasTensor ids = Input({5}, {.dtype = int32});
  KerasTensor h = Embedding(12, 8, {.name = "table"})(ids);
  h = LayerNormalization({.name = "norm"})(h);
  h = Add()({h, MultiHeadAttention(4, 4, {.name = "attention"})({h, h})});
  KerasTensor wide = Dense(16, {.activation = "gelu", .name = "up"})(h);
  h = Add()({h, Dense(8, {.name = "down"})(wide)});
  h = Dense(12, {.name = "logits"})(h);
  Model model(ids, h);
  model.compile({.optimizer = Adam(0.01), .loss = loss()});
  std::vector<int32_t> words(8 * 5);
  for (size_t i = 0; i < words.size(); ++i) {
    words[i] = static_cast<int32_t>(i * 5 % 11);
  }
  const Tensor x = constant(std::span<const int32_t>(words), Shape{8, 5});
  TrainedModel r;
  r.losses = model.fit(x, x, {.epochs = 5, .batch_size = 8, .verbose = 0})
                 .history.at("loss");
  for (const Variable& v : model.weights()) {
    r.names.push_back(v.name());
    r.variables.push_back(v.value().to_vector<float>());
  }
  return r;
}

const Entries kWords = {
    {"table/embeddings", {"model", ""}},
    {"attention/(query|key|value)/kernel", {"", "model", ""}},
    {"attention/(query|key|value)/bias", {"model", ""}},
    {"attention/attention_output/kernel", {"model", "", ""}},
    {"up/kernel", {"", "model"}},
    {"up/bias", {"model"}},
    {"down/kernel", {"model", ""}},
    {"logits/kernel", {"", "model"}},
    {"logits/bias", {"model"}}};

void words_are_split() {
  const std::vector<std::string> four = gpus(4);
  const std::vector<std::string> devices = {four[1], four[3]};
  compare("words", train_words(OneDeviceStrategy(devices[0])),
          train_words(split_over(devices, kWords)), 1e-3);
  check(!said_whole(), "all ops on parts have split rules");
  compare("over batches", train_words(OneDeviceStrategy(four[0])),
          train_words(split_over(four, kWords, {}, 2)), 1e-3);
}

TEST(ModelParallelFit, ATransformerIsSplitByHeadsAndVocabulary) {
  IN_A_FRESH_PROCESS(words_are_split());
}

// Stages of two devices, which divide their layers.
void stages_are_split() {
  const std::vector<std::string> devices = gpus(4);
  const auto pipe = [&](const Entries& entries,
                        distribute::PipelineOptions options) {
    LayoutMap map(Mesh({{"stage", 2}, {"model", 2}}, devices));
    for (const auto& [key, names] : entries) map[key] = names;
    return distribute::PipelineStrategy(map, "stage", std::move(options));
  };
  const OneDeviceStrategy one(devices[0]);
  const Task dense = split_tasks()[0].task;
  const TrainedModel words = train_words(one);
  const TrainedModel want = train(dense, one, 7, 22, 8);
  using enum distribute::PipelineSchedule;
  for (const auto schedule : {kGPipe, k1F1B, kZbH1}) {
    const std::string what =
        "schedule " + std::to_string(static_cast<int>(schedule));
    compare(what + ", dense", want,
            train(dense,
                  pipe(kDense, {.micro_batches = 4,
                                .schedule = schedule,
                                .stages = {"down"}}),
                  7, 22, 8),
            2e-3);
    compare(what + ", words", words,
            train_words(pipe(
                kWords,
                {.micro_batches = 4, .schedule = schedule, .stages = {"up"}})),
            1e-3);
  }
  compare("cut by itself", words,
          train_words(pipe(kWords, {.micro_batches = 2})), 1e-3);
  check(!said_whole(), "all ops on parts have split rules");
  refuses<errors::InvalidArgument>(
      [&] {
        LayoutMap map(Mesh({{"stage", 2}, {"model", 2}}, devices));
        distribute::PipelineStrategy(map, "stages");
      },
      "axis of batches or stages is to be \"stages\"");
}

TEST(ModelParallelFit, StagesOfPipelinesDivideLayers) {
  IN_A_FRESH_PROCESS(stages_are_split());
}

Sequential wide_model() {
  Sequential model({Dense(512, {.activation = "relu", .name = "up"}),
                    Dense(256, {.name = "down"})});
  model.build({-1, 256});
  model.compile({.optimizer = "adam", .loss = "mse"});
  return model;
}

// Variables and slots: of two devices each has half, and no whole kernel.
void devices_hold_parts() {
  const std::vector<std::string> devices = gpus(2);
  const ModelParallel strategy = split_over(devices, kDense);
  const auto scope = strategy.scope();
  Sequential model = wide_model();
  const Tensor x = zeros({4, 256});
  model.train_on_batch(x, x);
  constexpr size_t kHalf = 3 * 4 * size_t{256} * 512;  // two kernels' halves
  for (const std::string& d : devices) {
    const size_t held = config::get_memory_info(d).current_bytes;
    check(held >= kHalf && held < kHalf * 3 / 2,
          d + " holds " + std::to_string(held) + " bytes");
  }
  const auto plan = strategy.plan(model, 4);
  check(plan.replicas.size() == 1 && plan.replicas[0].devices.size() == 2,
        "one replica on two devices");
  check(plan.whole.empty(), "nothing runs whole");
  check(strategy.num_replicas_in_sync() == 1, "one replica");
}

TEST(ModelParallelFit, DevicesHoldTheirPartsAlone) {
  IN_A_FRESH_PROCESS(devices_hold_parts());
}

// Read, assigned and restored whole, under this strategy and another.
void variables_are_whole() {
  const std::vector<std::string> devices = gpus(2);
  const Tensor x = numbers({4, 256});
  const auto steps = [&](Sequential& model, int n) {
    for (int i = 0; i < n; ++i) model.train_on_batch(x, x);
  };
  const auto made = [] {
    clear_session();
    random::set_seed(2);
    return wide_model();
  };
  const auto kernel = [](const Sequential& model) {
    TrainedModel r;
    for (const Variable& v : model.weights()) {
      r.names.push_back(v.name());
      r.variables.push_back(v.value().to_vector<float>());
    }
    return r;
  };
  const auto file = std::filesystem::temp_directory_path() /
                    ("berth_layers_" + std::to_string(::getpid()));
  const auto trained = [&](const distribute::Strategy& strategy, bool save) {
    const auto scope = strategy.scope();
    Sequential model = made();
    steps(model, 2);
    for (const Variable& v : model.weights()) v.assign(v.value() * 0.5);
    steps(model, 2);
    if (save) train::Checkpoint({{"model", model}}).save(file.string());
    return kernel(model);
  };
  const TrainedModel want = trained(OneDeviceStrategy(devices[0]), false);
  compare("assigned", want, trained(split_over(devices, kDense), true), 1e-5);
  for (const auto& strategy : std::vector<distribute::Strategy>{
           OneDeviceStrategy(devices[1]),
           split_over({devices[1], devices[0]}, {{"up/kernel", {"model", ""}}}),
           distribute::MirroredStrategy(devices, {})}) {
    const auto scope = strategy.scope();
    Sequential model = made();
    steps(model, 1);
    train::Checkpoint({{"model", model}}).restore(file.string() + "-1");
    compare("restored by " + strategy.name(), want, kernel(model), 1e-6);
    steps(model, 1);
  }
}

TEST(ModelParallelFit, VariablesAreReadAssignedAndRestoredWhole) {
  IN_A_FRESH_PROCESS(variables_are_whole());
}

void fit_once(Sequential& model) {
  const Tensor x = zeros({4, 256});
  model.fit(x, x, {.batch_size = 4, .verbose = 0});
}

void split_refusals() {
  const std::vector<std::string> devices = gpus(2);
  using errors::InvalidArgument;
  refuses<InvalidArgument>(
      [&] {
        Mesh({{"a", 3}}, devices);
      },
      "\"a\" 3, and there are 2 devices");
  refuses<InvalidArgument>(
      [&] {
        Mesh({{"a", 1}, {"a", 2}}, devices);
      },
      "names of their own");
  refuses<InvalidArgument>(
      [&] {
        split_over(devices, {{"k", {"", "rows"}}});
      },
      "the name of an axis of the mesh");
  refuses<InvalidArgument>(
      [&] {
        split_over(devices, {{"k", {"model", "model"}}});
      },
      "at most once");
  refuses<InvalidArgument>(
      [&] {
        split_over(devices, {{"(", {"model"}}});
      },
      "no regular expression");
  refuses<InvalidArgument>(
      [&] {
        split_over(devices, {}, {0.5, 1});
      },
      "a whole number");
  refuses<InvalidArgument>([&] { split_over(devices, {}, distribute::Auto); },
                           "Auto");
  const auto builds = [&](const Entries& entries,
                          const distribute::Shares& shares = {}) {
    const ModelParallel strategy = split_over(devices, entries, shares);
    const auto scope = strategy.scope();
    clear_session();
    Sequential model = wide_model();
    fit_once(model);
  };
  refuses<InvalidArgument>(
      [&] {
        builds({{"up/kernel", {"model"}}});
      },
      "a name or \"\" for each of its axes");
  refuses<InvalidArgument>(
      [&] {
        builds({{"up/kernel", {"model", ""}}}, {1, 2});
      },
      "a multiple of the sum of shares");
  refuses<InvalidArgument>(
      [&] {
        builds({{"u.*", {"", "model"}}, {".*kernel", {"", "model"}}});
      },
      "both match");
  refuses<InvalidArgument>(
      [&] {
        builds({{"upp/kernel", {"", "model"}}});
      },
      "\"upp/kernel\" of the layout map matches no");
  const ModelParallel strategy = split_over(devices, kDense);
  refuses<errors::Unimplemented>(
      [&] { strategy.run([](const Tensor& x) { return x; }, ones({2})); },
      "run()");
  const auto scope = strategy.scope();
  Sequential model = wide_model();
  model.compile({.optimizer = "adam", .loss = "mse", .slices = 4});
  refuses<errors::Unimplemented>([&] { fit_once(model); }, "slices = 4");
}

TEST(ModelParallelFit, WhatCannotBeSplitIsRefusedByName) {
  IN_A_FRESH_PROCESS(split_refusals());
}

}  // namespace
}  // namespace berth::keras
