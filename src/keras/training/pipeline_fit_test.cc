// fit under a PipelineStrategy is fit on one device: variables after one step,
// losses after 21, under every schedule. Devices are configured once per
// process, so each test runs in one of its own.

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <iostream>
#include <map>
#include <regex>
#include <sstream>

#include "base/diagnostics_testing.h"
#include "base/fresh_process_testing.h"
#include "berth/berth.h"
#include "keras/training/strategy_testing.h"

namespace berth::keras {
namespace {

using distribute::OneDeviceStrategy;
using distribute::PipelineOptions;
using distribute::PipelineSchedule;
using distribute::PipelineStrategy;
using fresh_process::check;
using fresh_process::refuses;

Dense named_dense(int units, const char* name) {
  return Dense(units, {.activation = "tanh", .name = name});
}

std::vector<Task> pipeline_tasks() {
  return {
      {"dense",
       {6},
       [] {
         return Sequential({named_dense(8, "a"), named_dense(8, "b"),
                            named_dense(6, "c"), Dropout(0.3),
                            named_dense(8, "d"), Dense(3, {.name = "out"})});
       },
       [] { return Adam(0.01, {.global_clipnorm = 0.5}); }},
      {"conv",
       {8, 8, 2},
       [] {
         return Sequential(
             {Conv2D(4, {3, 3}, {.activation = "relu", .name = "a"}),
              MaxPooling2D({2, 2}), Flatten({.name = "b"}), named_dense(8, "c"),
              named_dense(8, "d"), Dense(3)});
       },
       [] { return optimizers::SGD(0.05, {.momentum = 0.9}); }},
      {"norm",
       {6},
       [] {
         return Sequential(
             {named_dense(8, "a"), LayerNormalization({.name = "b"}),
              named_dense(8, "c"), named_dense(4, "d"), Dense(3)});
       },
       [] { return optimizers::RMSprop(0.01); }},
  };
}

// The options of every schedule for two devices.
std::vector<PipelineOptions> schedules() {
  using enum PipelineSchedule;
  return {{.micro_batches = 4, .schedule = kGPipe, .stages = {"c"}},
          {.micro_batches = 4, .schedule = k1F1B, .stages = {"b"}},
          {.micro_batches = 4,
           .schedule = kInterleaved1F1B,
           .stages = {"b", "c", "d"}},
          {.micro_batches = 3, .schedule = kZbH1, .stages = {"c"}},
          {.micro_batches = 4, .schedule = kZbV, .stages = {"b", "c", "d"}}};
}

void pipeline_equals_one_device(const std::vector<std::string>& devices) {
  const OneDeviceStrategy one(devices[0]);
  for (const Task& t : pipeline_tasks()) {
    std::vector<PipelineOptions> all = schedules();
    all.push_back({.micro_batches = 4});  // the model is cut by itself
    all.push_back({.micro_batches = 4, .schedule = PipelineSchedule::kZbV});
    for (const PipelineOptions& options : all) {
      const std::string what =
          std::string(t.name) + ", schedule " +
          std::to_string(static_cast<int>(options.schedule));
      std::cerr << what << "\n";
      const auto run = [&](int epochs, int64_t examples) {
        return train(t, PipelineStrategy(devices, options), epochs, examples,
                     8);
      };
      // One step; 21 steps with a last batch of 6 of 8; one whose last batch
      // has one example.
      compare(what + ", one step", train(t, one, 1, 8, 8), run(1, 8), 1e-5);
      if (options.schedule == PipelineSchedule::kInterleaved1F1B) continue;
      compare(what + ", 21 steps", train(t, one, 7, 22, 8), run(7, 22), 2e-3);
      compare(what + ", one example", train(t, one, 1, 9, 8), run(1, 9), 1e-4);
    }
  }
}

TEST(PipelineFit, TwoCoreSetsEqualOneDevice) {
  IN_A_FRESH_PROCESS(pipeline_equals_one_device(cpus(2)));
}
TEST(PipelineFit, TwoSimulatedGpusEqualOne) {
  IN_A_FRESH_PROCESS(pipeline_equals_one_device(gpus(2)));
}

// Forward and weight passes of each stage, in the order in which its device
// runs them in the plan: "0F0 0F1 0B0 0B1". `layers`: one of each stage.
std::vector<std::string> passes_run(const std::string& plan,
                                    const std::vector<std::string>& layers,
                                    const std::string& backward) {
  std::map<std::string, std::string> by_stream;
  static const std::regex step(
      R"(step \d+ stream (\d+) (\w+)/(BiasAdd|BiasAddGrad)(/replica_(\d+))? .*)");
  std::istringstream lines(plan);
  for (std::string line; std::getline(lines, line);) {
    std::smatch m;
    if (!std::regex_match(line, m, step)) continue;
    const auto layer = std::find(layers.begin(), layers.end(), m[2].str());
    if (layer == layers.end()) continue;
    std::string& text = by_stream[m[1]];
    text += (text.empty() ? "" : " ") + std::to_string(layer - layers.begin()) +
            (m[3] == "BiasAdd" ? "F" : backward) +
            (m[5].matched ? m[5].str() : "0");
  }
  std::vector<std::string> lists;
  for (const auto& [stream, text] : by_stream) lists.push_back(text);
  return lists;
}

Sequential five_layers() {
  return Sequential({named_dense(8, "a"), named_dense(8, "b"),
                     named_dense(8, "c"), named_dense(8, "d"),
                     Dense(3, {.name = "out"})});
}

void fit_pipeline_once(Sequential& model, int64_t examples = 8) {
  model.compile({.optimizer = "sgd", .loss = loss()});
  model.fit(numbers({examples, 6}), classes(examples, 3),
            {.batch_size = examples, .verbose = 0});
}

void runs_as_instructed(std::vector<PipelineOptions> all) {
  const std::vector<std::string> devices = gpus(2);
  for (const PipelineOptions& options : all) {
    clear_session();
    const PipelineStrategy pipe(devices, options);
    const auto scope = pipe.scope();
    Sequential model = five_layers();
    fit_pipeline_once(model, options.micro_batches * 2);
    std::vector<std::string> layers{"a"};
    for (const std::string& s : options.stages) layers.push_back(s);
    // The weights' half of a backward pass is compared: the first stage has no
    // other, and a bias has its gradient there.
    std::istringstream lists(pipe.instructions());
    std::vector<std::string> expected;
    for (std::string line; std::getline(lists, line);) {
      expected.push_back(
          std::regex_replace(line, std::regex(R"( ?\d+I\d+)"), ""));
    }
    const bool halves = pipe.instructions().find('W') != std::string::npos;
    const auto ran =
        passes_run(model.train_plan_text(), layers, halves ? "W" : "B");
    for (const std::string& list : ran) std::cerr << list << "\n";
    check(ran == expected, "instructions " + pipe.instructions());
  }
}

TEST(PipelineFit, DevicesRunTheInstructionsInTheirOrder) {
  IN_A_FRESH_PROCESS(runs_as_instructed(schedules()));
}

TEST(PipelineFit, InstructionsOfOnesOwn) {
  const char* lists = "0F0 0F1 0B1 0F2 0B0 0B2\n1F0 1F1 1B1 1B0 1F2 1B2";
  IN_A_FRESH_PROCESS(runs_as_instructed(
      {{.micro_batches = 3, .stages = {"c"}, .instructions = lists}}));
}

// With slices the bits do not depend on devices, micro-batches or schedules.
void bits_are_equal() {
  const std::vector<std::string> devices = gpus(2);
  const Task task = pipeline_tasks()[0];
  const TrainedModel one =
      train(task, OneDeviceStrategy(devices[0]), 3, 22, 8, 8);
  for (PipelineOptions options : schedules()) {
    options.slices = 8;
    const int64_t examples =
        options.schedule == PipelineSchedule::kInterleaved1F1B ? 24 : 22;
    const TrainedModel want =
        examples == 22
            ? one
            : train(task, OneDeviceStrategy(devices[0]), 3, examples, 8, 8);
    const TrainedModel got =
        train(task, PipelineStrategy(devices, options), 3, examples, 8, 8);
    check(got.names == want.names && got.variables == want.variables,
          "bits under schedule " +
              std::to_string(static_cast<int>(options.schedule)));
  }
}

TEST(PipelineFit, SlicesGiveTheBitsOfOneDevice) {
  IN_A_FRESH_PROCESS(bits_are_equal());
}

// One device with as many groups as there are micro-batches.
void batch_norm_has_groups() {
  const std::vector<std::string> devices = gpus(2);
  const auto task = [](int64_t groups) {
    return Task{
        "batch norm",
        {6},
        [groups] {
          return Sequential({named_dense(8, "a"),
                             BatchNormalization({.statistics_groups = groups}),
                             named_dense(8, "c"), Dense(3)});
        },
        [] { return Adam(0.01); }};
  };
  for (PipelineOptions options : schedules()) {
    if (options.stages.size() > 1 || options.micro_batches != 4) continue;
    options.stages = {"c"};
    compare("4 groups", train(task(4), OneDeviceStrategy(devices[0]), 5, 24, 8),
            train(task(1), PipelineStrategy(devices, options), 5, 24, 8), 1e-4);
    // A batch of 6 has one group.
    compare("1 group", train(task(1), OneDeviceStrategy(devices[0]), 1, 6, 8),
            train(task(1), PipelineStrategy(devices, options), 1, 6, 8), 1e-4);
  }
}

TEST(PipelineFit, MicroBatchesAreGroupsOfBatchNormalization) {
  IN_A_FRESH_PROCESS(batch_norm_has_groups());
}

// A table of embeddings on the first device that the last one reads too, half
// precision with a scaled loss, and attention.
void tied_and_scaled() {
  const std::vector<std::string> devices = gpus(2);
  const auto fit = [&](const distribute::Strategy& strategy, bool half) {
    random::set_seed(3);
    clear_session();
    const auto scope = strategy.scope();
    const Embedding table(11, 8, {.name = "table"});
    const KerasTensor ids = Input({5}, {.dtype = int32});
    KerasTensor h = table(ids);
    h = LayerNormalization({.name = "norm"})(h);
    h = Add()({h, MultiHeadAttention(2, 4, {.name = "attention"})({h, h})});
    h = named_dense(8, "up")(h);
    h = Add()({h, table(ids)});
    h = Dense(11, {.name = "logits"})(h);
    Model model(ids, h);
    Optimizer optimizer = Adam(0.01);
    if (half) optimizer = LossScaleOptimizer(optimizer);
    model.compile({.optimizer = optimizer, .loss = loss()});
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
  };
  for (const PipelineOptions& schedule : schedules()) {
    if (schedule.stages.size() > 1) continue;
    PipelineOptions options = schedule;
    options.stages = {"up"};
    for (const bool half : {false, true}) {
      compare(half ? "scaled loss" : "tied table",
              fit(OneDeviceStrategy(devices[0]), half),
              fit(PipelineStrategy(devices, options), half), 1e-3);
    }
  }
}

TEST(PipelineFit, TiedTablesAttentionAndScaledLosses) {
  IN_A_FRESH_PROCESS(tied_and_scaled());
}

void scopes_divide() {
  const std::vector<std::string> devices = gpus(2);
  const auto made = [](const char* first, const char* second) {
    clear_session();
    const Dense a = with_device(first, [] { return named_dense(8, "a"); });
    const Dense b = with_device(second, [] { return Dense(3, {.name = "b"}); });
    return Sequential({a, b});
  };
  const PipelineStrategy pipe(devices, {.micro_batches = 2});
  {
    const auto scope = pipe.scope();
    Sequential model = made("/GPU:0", "/GPU:1");
    fit_pipeline_once(model);
    check(model.weights()[2].device().find("GPU:1") != std::string::npos,
          "the second layer's kernel is on GPU:1");
    const auto ran = passes_run(model.train_plan_text(), {"a", "b"}, "B");
    check(ran == std::vector<std::string>{"0F0 0F1 0B0 0B1", "1F0 1B0 1F1 1B1"},
          "the instructions of 1F1B");
  }
  const auto scope = pipe.scope();
  Sequential model = made("/GPU:1", "/GPU:0");
  refuses<errors::InvalidArgument>([&] { fit_pipeline_once(model); },
                                   "its input comes from device 1");
}

TEST(PipelineFit, DeviceScopesDivideTheModel) {
  IN_A_FRESH_PROCESS(scopes_divide());
}

void pipeline_refusals() {
  const std::vector<std::string> devices = gpus(2);
  const auto made = [&](PipelineOptions options) {
    return PipelineStrategy(devices, std::move(options));
  };
  using enum PipelineSchedule;
  refuses<errors::InvalidArgument>([&] { made({.micro_batches = 0}); },
                                   "micro_batches is 0");
  refuses<errors::InvalidArgument>(
      [&] {
        made({.stages = {"a", "b"}});
      },
      "3 stages on 2 devices; schedule 1f1b expects 2");
  refuses<errors::InvalidArgument>(
      [&] { made({.schedule = kZbV, .stages = {"a"}}); },
      "2 stages on 2 devices; schedule zb-v expects 4");
  refuses<errors::InvalidArgument>(
      [&] {
        made({.micro_batches = 3,
              .schedule = kInterleaved1F1B,
              .stages = {"a", "b", "c"}});
      },
      "3 micro-batches on 2 devices");
  refuses<errors::InvalidArgument>(
      [&] { made({.micro_batches = 4, .slices = 2}); },
      "2 slices for 4 micro-batches");
  refuses<errors::InvalidArgument>(
      [&] { made({.micro_batches = 1, .instructions = "0F0 0B0"}); },
      "instructions for 1 devices");
  refuses<errors::InvalidArgument>(
      [&] {
        PipelineStrategy({"/CPU:0", "/GPU:0"});
      },
      "of one type");
  {
    clear_session();
    const PipelineStrategy pipe = made({});
    const auto scope = pipe.scope();
    const auto on = device("/GPU:0");
    Sequential model = five_layers();
    refuses<errors::InvalidArgument>(
        [&] { fit_pipeline_once(model); },
        "nothing in the model asks for device 1 of 2; expected .stages");
  }
  {
    clear_session();
    const PipelineStrategy pipe = made({.schedule = kZbV});
    const auto scope = pipe.scope();
    Sequential model({named_dense(8, "a"), Dense(3, {.name = "out"})});
    refuses<errors::InvalidArgument>(
        [&] { fit_pipeline_once(model); },
        "4 stages for a model of 2 layers (a, out); expected at least as many");
  }
  {
    clear_session();
    const PipelineStrategy pipe = made({.schedule = kZbV});
    const auto scope = pipe.scope();
    const auto on = device("/GPU:0");
    Sequential model = five_layers();
    refuses<errors::InvalidArgument>(
        [&] { fit_pipeline_once(model); },
        "schedule zb-v has 2 stages on each device, which device scopes cannot "
        "say; expected .stages");
  }
  clear_session();
  const PipelineStrategy pipe = made({.stages = {"nowhere"}});
  const auto scope = pipe.scope();
  Sequential model = five_layers();
  refuses<errors::InvalidArgument>(
      [&] { fit_pipeline_once(model); },
      "begins with layer \"nowhere\", which the model does not call after "
      "\"its input\"; expected some of sequential, a, b, c, d, out");
}

// Nobody says where stages begin. 12 MiB of weights and twice that of gradients
// on GPUs of 28 MiB.
void cut_by_itself() {
  const config::PhysicalDevice gpu = [] {
    config::set_simulated_devices("GPUx1");
    return config::list_physical_devices("GPU")[0];
  }();
  config::set_logical_device_configuration(
      gpu, {{.memory_limit_mb = 28}, {.memory_limit_mb = 28}});
  const PipelineStrategy pipe({"/GPU:0", "/GPU:1"}, {.micro_batches = 2});
  const auto scope = pipe.scope();
  Sequential model({InputLayer({64}), named_dense(1024, "in"),
                    named_dense(1024, "a"), named_dense(1024, "b"),
                    named_dense(1024, "c"), Dense(3, {.name = "out"})});
  model.compile({.optimizer = "sgd", .loss = loss()});
  const distribute::StrategyPlan plan = pipe.plan(model, 8);
  const auto& stages = plan.pipeline->stages;
  check(stages.size() == 2, "two stages");
  check(stages[0].layers == std::vector<std::string>{"in", "a"} ||
            stages[0].layers == std::vector<std::string>{"in", "a", "b"},
        plan.str());
  model.fit(numbers({32, 64}), classes(32, 3), {.batch_size = 8, .verbose = 0});
  for (const Variable& v : model.trainable_weights()) {
    const std::string layer = v.name().substr(0, v.name().find('/'));
    const auto& first = stages[0].layers;
    const bool early =
        std::find(first.begin(), first.end(), layer) != first.end();
    check(v.device().ends_with(early ? "GPU:0" : "GPU:1"),
          v.name() + " on " + v.device());
  }
}
TEST(PipelineFit, CutsAModelThatNoDeviceHolds) {
  IN_A_FRESH_PROCESS(cut_by_itself());
}

TEST(PipelineFit, WhatDoesNotFitIsRefused) {
  IN_A_FRESH_PROCESS(pipeline_refusals());
}

void plans_say_what_runs() {
  const std::vector<std::string> devices = gpus(2);
  const auto plan_of = [&](PipelineSchedule schedule) {
    clear_session();
    const PipelineStrategy pipe(
        devices, {.micro_batches = 8, .schedule = schedule, .stages = {"c"}});
    const auto scope = pipe.scope();
    Sequential model({named_dense(64, "a"), named_dense(64, "b"),
                      named_dense(64, "c"), named_dense(64, "d")});
    model.build({{-1, 64}});
    model.compile({.optimizer = "sgd", .loss = "mse"});
    return pipe.plan(model, 256);
  };
  const distribute::StrategyPlan all = plan_of(PipelineSchedule::kGPipe);
  const distribute::StrategyPlan plan = plan_of(PipelineSchedule::k1F1B);
  check(plan.pipeline.has_value(), "the plan of a pipeline");
  const auto& p = *plan.pipeline;
  check(p.schedule == "1f1b" && p.micro_batches == 8, "the schedule");
  check(p.stages.size() == 2 &&
            p.stages[1].layers == std::vector<std::string>{"c", "d"},
        "the layers of the second stage");
  check(p.in_flight == std::vector<int>{2, 1}, "micro-batches held");
  check(
      p.peak_bytes.size() == 2 && p.peak_bytes[0] < all.pipeline->peak_bytes[0],
      "1F1B holds less than GPipe");
  check(p.stages[0].forward_us > 0 && p.stages[0].backward_us > 0, "times");
  check(std::abs(p.bubble_of_equal_stages - 1. / 9) < 1e-9, "closed form");
  check(p.bubble > 0 && p.bubble < 1, "waiting");
  check(plan.str().find("schedule 1f1b, 8 micro-batches") != std::string::npos,
        plan.str());
  check(plan.json().find("\"in_flight\":[2,1]") != std::string::npos,
        plan.json());
}

TEST(PipelineFit, PlansSayWhatRuns) {
  IN_A_FRESH_PROCESS(plans_say_what_runs());
}

}  // namespace
}  // namespace berth::keras
