// fit under an AutoStrategy is fit on one device, whatever it chooses; what it
// predicts is what the chosen strategy plans. Devices are configured once per
// process, so each test runs in one of its own.

#include "berth/auto_strategy.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <map>
#include <sstream>

#include "base/fresh_process_testing.h"
#include "berth/berth.h"
#include "keras/training/strategy_testing.h"

namespace berth::keras {
namespace {

using distribute::AutoStrategy;
using distribute::AutoStrategyOptions;
using distribute::ParallelKind;
using distribute::ParallelPlan;
using distribute::PlannedStrategy;
using fresh_process::check;
using fresh_process::refuses;

// Simulated GPUs with so many MiB each.
std::vector<std::string> gpus_of(const std::vector<int>& mebibytes) {
  const std::vector<std::string> names =
      gpus(static_cast<int>(mebibytes.size()));
  for (size_t d = 0; d < names.size(); ++d) {
    config::set_logical_device_configuration(
        {"/physical_device:GPU:" + std::to_string(d), "GPU"},
        {{.memory_limit_mb = mebibytes[d]}});
  }
  return names;
}

Layer wide_layer(const char* name, const char* activation = "tanh") {
  return Dense(256, {.activation = activation, .name = name});
}

// 1.6 MiB of variables: 6.5 MiB with gradients and what Adam keeps.
Task wide_task() {
  return {
      "wide",
      {64},
      [] {
        return Sequential({wide_layer("a"), wide_layer("b"), wide_layer("c"),
                           wide_layer("d"), wide_layer("e"), wide_layer("f"),
                           wide_layer("g"), Dense(3, {.name = "out"})});
      },
      [] { return Adam(0.001); }};
}

struct Forced {
  AutoStrategyOptions options;
  ParallelKind kind;
};

AutoStrategyOptions only(bool replicas, bool layers, bool pipelines,
                         int64_t bytes = 5'800'000) {
  return {.memory_bytes_per_device = bytes,
          .most_micro_batches = 8,
          .replicas = replicas,
          .divided_layers = layers,
          .pipelines = pipelines};
}

// One device has too little, so that each kind in turn is chosen.
void each_kind_equals_one_device() {
  const std::vector<std::string> devices = gpus_of({24, 32});
  const distribute::OneDeviceStrategy one("/CPU:0");
  const Task task = wide_task();
  const TrainedModel step = train(task, one, 1, 64, 64);
  const TrainedModel steps = train(task, one, 3, 128, 64);
  for (const Forced& f :
       {Forced{only(false, true, false), ParallelKind::kModelParallel},
        Forced{only(false, false, true), ParallelKind::kPipeline},
        Forced{{}, ParallelKind::kOneDevice}}) {
    const AutoStrategy first(devices, f.options), second(devices, f.options);
    compare("a step", step, train(task, first, 1, 64, 64), 1e-5);
    std::cerr << first.chosen().str();
    check(first.chosen().choice.kind == f.kind, "another kind");
    compare("steps", steps, train(task, second, 3, 128, 64), 2e-3);
  }
  ParallelPlan sharded;
  sharded.choice = {.kind = ParallelKind::kSharded,
                    .devices = devices,
                    .sharding = distribute::Sharding::kParameters};
  compare("sharded", step, train(task, PlannedStrategy(sharded), 1, 64, 64),
          1e-5);
}

TEST(AutoStrategy, SlowEachKindEqualsOneDevice) {
  IN_A_FRESH_PROCESS(each_kind_equals_one_device());
}

// What the search says of its choice is what plan() says of the strategy that
// runs it: its time, and peaks that are hardly less, and not far more.
void search_is_what_plan_says() {
  const std::vector<std::string> devices = gpus_of({24, 32});
  for (const AutoStrategyOptions& options :
       {only(true, false, false, 0), only(false, true, false),
        only(false, false, true)}) {
    clear_session();
    const AutoStrategy automatic(devices, options);
    const auto scope = automatic.scope();
    Sequential model = wide_task().model();
    model.build({-1, 64});
    model.compile({.optimizer = Adam(0.001), .loss = loss()});
    const ParallelPlan plan = automatic.choose(model, 64);
    const distribute::StrategyPlan real = automatic.plan(model, 64);
    std::cerr << plan.str() << real.str();
    check(std::abs(plan.step_us / real.step_us - 1) < 0.1, "time");
    check(real.too_small.empty(), "it does not fit");
    int64_t most = 0, real_most = 0;
    for (const int64_t b : plan.peak_bytes) most = std::max(most, b);
    for (const auto& r : real.replicas) {
      const auto devices_of_it = static_cast<int64_t>(r.devices.size());
      real_most = std::max(real_most, r.peak_bytes / devices_of_it);
    }
    if (real.pipeline) {
      for (const int64_t b : real.pipeline->peak_bytes) {
        real_most = std::max(real_most, b);
      }
    }
    const double ratio =
        static_cast<double>(most) / static_cast<double>(real_most);
    std::cerr << "peak " << most << " and " << real_most << "\n";
    check(ratio > 0.8 && ratio < 2, "peak");
  }
}

TEST(AutoStrategy, SaysWhatThePlanOfItsChoiceSays) {
  IN_A_FRESH_PROCESS(search_is_what_plan_says());
}

// Whatever the limit, the plan of the chosen step keeps it, and the choice says
// what that holds; where something fits, something is chosen.
void choices_fit() {
  const std::vector<std::string> devices = gpus_of({24, 32});
  int chosen = 0;
  for (int64_t bytes = 2'000'000; bytes < 8'000'000; bytes += 400'000) {
    clear_session();
    const AutoStrategy automatic(
        devices, {.memory_bytes_per_device = bytes, .most_micro_batches = 8});
    const auto scope = automatic.scope();
    Sequential model = wide_task().model();
    model.build({-1, 64});
    model.compile({.optimizer = Adam(0.001), .loss = loss()});
    try {
      const auto before = debugging::diagnostic_counts();
      const ParallelPlan plan = automatic.choose(model, 64);
      check(debugging::diagnostic_counts() == before, "a trial reports");
      const FitsReport held = model.fits(64, bytes);
      std::cerr << bytes << ": " << plan.choice.str() << "\n";
      check(held.fits, "it does not fit: " + held.str());
      for (size_t d = 0; d < plan.choice.devices.size(); ++d) {
        for (const FitsReport::Device& real : held.devices) {
          if (real.device != plan.choice.devices[d]) continue;
          const auto said = static_cast<double>(plan.peak_bytes[d]);
          check(std::abs(said / static_cast<double>(real.peak_bytes) - 1) < .03,
                "it says another peak");
        }
      }
      ++chosen;
    } catch (const errors::ResourceExhausted&) {
      check(chosen == 0, "less memory was enough");
    }
  }
  check(chosen > 5, "little was chosen");
}

TEST(AutoStrategy, SlowWhatItChoosesFits) { IN_A_FRESH_PROCESS(choices_fit()); }

// Shoeybi et al. 2019, section 3, from the split rules alone, of layers that
// take far longer than launches.
void layouts_of_a_transformer() {
  const std::vector<std::string> devices = gpus_of({500, 500});
  const AutoStrategy automatic(devices, only(false, true, false, 0));
  const auto scope = automatic.scope();
  const KerasTensor ids = Input({64}, {.dtype = int32});
  KerasTensor h = Embedding(64, 512, {.name = "table"})(ids);
  KerasTensor n = LayerNormalization({.name = "before"})(h);
  h = Add()({h, MultiHeadAttention(8, 64, {.name = "attention"})({n, n})});
  n = LayerNormalization({.name = "between"})(h);
  n = Dense(2048, {.activation = "gelu", .name = "up"})(n);
  h = Add()({h, Dense(512, {.name = "down"})(n)});
  h = Dense(64, {.name = "logits"})(h);
  Model model(ids, h);
  model.compile({.optimizer = "adam", .loss = loss()});
  const ParallelPlan plan = automatic.choose(model, 32);
  std::cerr << plan.str();
  std::map<std::string, int> axis;
  for (const auto& [name, axes] : plan.choice.layouts) {
    const auto at = std::find(axes.begin(), axes.end(), "model");
    axis[name] = static_cast<int>(at - axes.begin());
    std::cerr << name << " " << axis[name] << "\n";
  }
  const std::map<std::string, int> expected = {{"attention/query/kernel", 1},
                                               {"attention/query/bias", 0},
                                               {"attention/key/kernel", 1},
                                               {"attention/key/bias", 0},
                                               {"attention/value/kernel", 1},
                                               {"attention/value/bias", 0},
                                               {"up/kernel", 1},
                                               {"up/bias", 0},
                                               {"down/kernel", 0}};
  for (const auto& [name, a] : expected) {
    check(axis.contains(name) && axis.at(name) == a, name);
  }
  for (const char* whole : {"before/gamma", "between/beta"}) {
    check(!axis.contains(whole), whole);
  }
}

TEST(AutoStrategy, FindsTheLayoutsOfATransformer) {
  IN_A_FRESH_PROCESS(layouts_of_a_transformer());
}

void saved_plan_runs() {
  const std::vector<std::string> devices = gpus_of({24, 32});
  const Task task = wide_task();
  const AutoStrategy automatic(devices, only(false, false, true));
  refuses<errors::FailedPrecondition>([&] { automatic.chosen(); },
                                      "nothing is chosen yet");
  const TrainedModel want = train(task, automatic, 1, 64, 64);
  const std::string path =
      testing::TempDir() + "/plan_" + std::to_string(getpid()) + ".json";
  automatic.chosen().save(path);
  const ParallelPlan again =
      ParallelPlan::parse(automatic.chosen().json(), "again");
  check(again.json() == automatic.chosen().json(), "json");
  compare("saved", want, train(task, PlannedStrategy(path), 1, 64, 64), 1e-6);
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  const auto damaged = [&](const std::string& content, const char* what) {
    std::ofstream(path) << content;
    refuses<errors::InvalidArgument>([&] { const PlannedStrategy p(path); },
                                     what);
  };
  damaged("{}", "expected \"format\"");
  damaged("plan", "expected JSON");
  damaged(text.str().substr(0, 100), "expected JSON");
  std::string other = text.str();
  other.replace(other.find("1f1b") == other.npos ? other.find("\"parts\":1")
                                                 : other.find("\"parts\":1"),
                9, "\"parts\":3");
  damaged(other, "\"parts\"");
  std::remove(path.c_str());
  refuses<errors::NotFound>([&] { const PlannedStrategy p(path); },
                            "no such file");
  refuses<errors::Unavailable>(
      [&] { automatic.chosen().save("/nowhere/plan.json"); }, "/nowhere");
}

TEST(AutoStrategy, SlowSavedPlansRunAndDamagedOnesAreNamed) {
  IN_A_FRESH_PROCESS(saved_plan_runs());
}

void refusals() {
  const std::vector<std::string> devices = gpus_of({1, 1});
  refuses<errors::ResourceExhausted>(
      [&] { train(wide_task(), AutoStrategy(devices), 1, 64, 64); },
      "does not fit GPU:");
  const AutoStrategy automatic(devices);
  refuses<errors::InvalidArgument>(
      [&] {
        const auto scope = automatic.scope();
        const auto on = device("/GPU:1");
        const Variable v(zeros({2}));
      },
      "AutoStrategy, which decides");
  refuses<errors::Unimplemented>(
      [&] { automatic.run([](Tensor x) { return x; }, zeros({2})); }, "run()");
  refuses<errors::InvalidArgument>(
      [&] { const AutoStrategy a(devices, {.most_micro_batches = 0}); },
      "most_micro_batches");
}

TEST(AutoStrategy, RefusesWhatItCannotDoByName) {
  IN_A_FRESH_PROCESS(refusals());
}

}  // namespace
}  // namespace berth::keras
