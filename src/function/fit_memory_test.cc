// Placement "fit": steps that do not fit compute values again, or have their
// variables on the host.

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "base/fresh_process_testing.h"
#include "berth/berth.h"
#include "graph/graph.h"
#include "passes/recompute.h"

namespace berth {
namespace {

using fresh_process::check;

constexpr int kFitLayers = 12;
constexpr int kFitWidth = 64, kFitRows = 4096;  // a value: 1 MiB

// GPU:0 has all it wants, GPU:1 this.
void use_gpus(int limit_mb) {
  config::set_simulated_devices("GPUx2");
  const auto gpus = config::list_physical_devices("GPU");
  config::set_logical_device_configuration(gpus[0], {{.memory_limit_mb = 400}});
  config::set_logical_device_configuration(gpus[1],
                                           {{.memory_limit_mb = limit_mb}});
}

// FitLayers of a product and an activation; their gradients need both.
struct FitLayers {
  std::vector<Variable> kernels;
  FitLayers(int count, int width) {
    for (int i = 0; i < count; ++i) {
      kernels.emplace_back(
          random::normal({width, width}, {.stddev = 0.1f, .seed = i + 1}));
    }
  }
  Tensor loss(Tensor x) const {
    for (const Variable& k : kernels) x = math::tanh(matmul(x, k.value()));
    return math::reduce_mean(math::square(x));
  }
  // Moves the kernels by their gradients; returns the loss before.
  Tensor step(const Tensor& x) const {
    GradientTape tape;
    const Tensor at = loss(x);
    const Tensors grads = tape.gradient(at, kernels);
    for (size_t i = 0; i < kernels.size(); ++i) {
      Variable k = kernels[i];
      k.assign_sub(grads[i]);
    }
    return at;
  }
};

struct FitTrained {
  std::vector<float> losses, kernel;
  FunctionPlanInfo info;
  std::string plan;
};

FitTrained train_fit(const char* where, const char* placement, int rows,
                     int width) {
  random::set_seed(1);
  const auto on = device(where);
  const FitLayers model(kFitLayers, width);
  const Tensor x = random::normal({rows, width}, {.seed = 9});
  const auto step = function([&](const Tensor& in) { return model.step(in); },
                             {.name = "step", .placement = placement});
  FitTrained t;
  for (int i = 0; i < 3; ++i) t.losses.push_back(step(x).item<float>());
  t.kernel = model.kernels[0].value().to_vector<float>();
  t.info = step.plan_info();
  t.plan = step.text("place");
  return t;
}

size_t occurrences(const std::string& word, const std::string& text) {
  size_t n = 0;
  for (size_t at = 0; (at = text.find(word, at)) != std::string::npos; ++at)
    ++n;
  return n;
}

std::string& said() {
  static std::string text;
  return text;
}
void listen(const std::string& id) {
  debugging::set_diagnostic_handler([id](const debugging::Diagnostic& d) {
    if (d.id == id) said() = d.text;
  });
}

// Trains where all fits, and within a limit with the same bits.
std::pair<FitTrained, FitTrained> train_within(int limit_mb, int rows,
                                               int width) {
  use_gpus(limit_mb);
  listen("computed-again");
  FitTrained whole = train_fit("/GPU:0", "fit", rows, width);
  check(said().empty(), "what fits stays as it is");
  check(occurrences("/again", whole.plan) == 0, whole.plan);
  FitTrained half = train_fit("/GPU:1", "fit", rows, width);
  const size_t limit = static_cast<size_t>(limit_mb) << 20;
  check(half.info.peak_bytes < limit, "the plan fits");
  check(config::get_memory_info("/GPU:1").peak_bytes <= limit, "the run fits");
  check(half.losses == whole.losses, "the losses");
  check(half.kernel == whole.kernel, "the kernels");
  return {std::move(whole), std::move(half)};
}

void trains_in_half() {
  const auto [whole, half] = train_within(9, kFitRows, kFitWidth);
  check(whole.info.peak_bytes > size_t{14} << 20,
        "the step takes more: " + std::to_string(whole.info.peak_bytes));
  check(occurrences("/again", half.plan) > 4, half.plan);
  check(said().find("results need not be kept") != std::string::npos, said());
}

TEST(FitMemory, TrainsInHalfOfTheMemoryWithTheSameBits) {
  IN_A_FRESH_PROCESS(trains_in_half());
}

// Products of so many terms take longer than the way to the host and back.
void waits_on_the_host() {
  const auto [whole, half] = train_within(66, 256, 1024);
  check(occurrences("/away", half.plan) > 0, said() + half.plan);
  check(said().find("wait on the host") != std::string::npos, said());
}

TEST(FitMemory, LetsResultsWaitOnTheHostWhereThatIsFaster) {
  IN_A_FRESH_PROCESS(waits_on_the_host());
}

struct AdamTrained {
  std::vector<float> losses, kernel;
  std::string plan;
  size_t on_host = 0;  // kernels
};

// Kernels and slots alone take 96 MiB.
AdamTrained train_adam() {
  constexpr int kWide = 1024, kSome = 8;
  random::set_seed(1);
  const FitLayers model(kSome, kWide);
  const keras::Optimizer adam = keras::Adam(0.01f);
  const Tensor x = random::normal({64, kWide}, {.seed = 9});
  const auto step = function(
      [&](const Tensor& in) {
        GradientTape tape;
        const Tensor at = model.loss(in);
        adam.apply_gradients(tape.gradient(at, model.kernels), model.kernels);
        return at;
      },
      {.name = "step", .placement = "fit"});
  AdamTrained t;
  for (int i = 0; i < 3; ++i) t.losses.push_back(step(x).item<float>());
  t.kernel = model.kernels[0].value().to_vector<float>();
  t.plan = step.text("place");
  for (const Variable& k : model.kernels) {
    t.on_host += occurrences("CPU:0", k.device());
  }
  return t;
}

// On GPU:1, where all fits, and within a limit on GPU:0 with the same bits.
AdamTrained train_adam_within(int limit_mb) {
  config::set_simulated_devices("GPUx2");
  config::set_logical_device_configuration(
      config::list_physical_devices("GPU")[0], {{.memory_limit_mb = limit_mb}});
  listen("state-on-host");
  const AdamTrained whole = [] {
    const auto on = device("/GPU:1");
    return train_adam();
  }();
  check(whole.on_host == 0 && said().empty(), "what fits stays where it is");
  AdamTrained t = train_adam();
  check(config::get_memory_info("/GPU:0").peak_bytes <=
            static_cast<size_t>(limit_mb) << 20,
        "the run fits");
  check(t.losses == whole.losses, "the losses");
  check(t.kernel == whole.kernel, "the kernels");
  check(said().find("variables are on the host") != std::string::npos, said());
  return t;
}

void puts_some_on_the_host() {
  const AdamTrained t = train_adam_within(80);
  check(t.on_host > 0 && t.on_host < 8, std::to_string(t.on_host));
}

TEST(FitMemory, PutsAsManyVariablesOnTheHostAsItMust) {
  IN_A_FRESH_PROCESS(puts_some_on_the_host());
}

void streams_all() {
  const AdamTrained t = train_adam_within(16);
  check(t.on_host == 8, std::to_string(t.on_host));
  check(occurrences("ReadVariableOp_2/back", t.plan) > 0, "sent twice");
  check(occurrences("/away = ", t.plan) > 4, "gradients that leave");
}

TEST(FitMemory, StreamsVariablesWhereOnlyAFewFit) {
  IN_A_FRESH_PROCESS(streams_all());
}

void says_what_cannot_fit() {
  use_gpus(4);
  listen("does-not-fit");
  bool full = false;
  try {
    train_fit("/GPU:1", "fit", kFitRows, kFitWidth);
  } catch (const errors::ResourceExhausted&) {
    full = true;
  }
  check(full, "an error");
  check(
      said().find("if all that can be is computed again") != std::string::npos,
      said());
}

TEST(FitMemory, SaysWhatCannotFit) {
  IN_A_FRESH_PROCESS(says_what_cannot_fit());
}

}  // namespace
}  // namespace berth
