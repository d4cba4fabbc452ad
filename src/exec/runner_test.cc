// A backend's own runner, as it would replay a recorded graph: the first launch
// of a run is the engine's, later ones are one piece of work each.

#include "program/runner.h"

#include <gtest/gtest.h>

#include <utility>

#include "berth/berth.h"
#include "exec/measure_testing.h"
#include "exec/plan.h"
#include "exec/runners.h"
#include "function/graph_callable.h"
#include "graph/tracer.h"

namespace berth {
namespace {

bool g_takes = false;  // the factory takes what is built
int g_recorded = 0, g_replayed = 0;

class ReplayRun final : public PreparedRun {
 public:
  ReplayRun(ProgramRun& run, std::unique_ptr<PreparedRun> standard)
      : run_(run), standard_(std::move(standard)) {}

  void launch() override {
    if (calls_.empty()) {
      for (const PlanStep& step : run_.program.steps) {
        if (step.kind == StepKind::kNothing) continue;
        calls_.push_back({&run_.program.ops[step.first_op].kernel,
                          &run_.calls[step.first_call]});
      }
      ++g_recorded;
      return standard_->launch();
    }
    Work work;
    work.context = this;
    work.what = "a replay";
    work.run = [](void* context, Stream&) {
      const auto& calls = static_cast<ReplayRun*>(context)->calls_;
      for (const auto& [kernel, call] : calls) kernel->run(*call);
    };
    ++g_replayed;
    run_.program.streams[0].stream->launch(work);
  }

 private:
  ProgramRun& run_;
  std::unique_ptr<PreparedRun> standard_;
  std::vector<std::pair<const BoundKernel*, const KernelCall*>> calls_;
};

class ReplayRunner final : public PlanRunner {
 public:
  explicit ReplayRunner(std::unique_ptr<PlanRunner> standard)
      : standard_(std::move(standard)) {}
  std::unique_ptr<PreparedRun> prepare(ProgramRun& run) const override {
    return std::make_unique<ReplayRun>(run, standard_->prepare(run));
  }

 private:
  std::unique_ptr<PlanRunner> standard_;
};

// Takes programs of kernels on one stream of one accelerator.
std::unique_ptr<PlanRunner> replays(const Program& program,
                                    std::unique_ptr<PlanRunner>& standard) {
  if (!g_takes || program.streams.size() != 1 || program.streams[0].host) {
    return nullptr;
  }
  for (const PlanStep& step : program.steps) {
    if (step.kind == StepKind::kTransfer || step.kind == StepKind::kControl) {
      return nullptr;
    }
  }
  return std::make_unique<ReplayRunner>(std::move(standard));
}

bool g_steps = false;  // the factory takes what is built
int g_stepped = 0;

// Launches step by step.
class StepsRun final : public PreparedRun {
 public:
  StepsRun(ProgramRun& run, std::unique_ptr<PreparedRun> standard)
      : run_(run), standard_(std::move(standard)) {}

  void launch() override {
    auto& steps = dynamic_cast<SteppedRun&>(*standard_);
    for (size_t s = 0; s < run_.program.steps.size(); ++s) {
      steps.launch_step(s);
      ++g_stepped;
    }
    steps.end_launch();
  }

 private:
  ProgramRun& run_;
  std::unique_ptr<PreparedRun> standard_;
};

class StepsRunner final : public PlanRunner {
 public:
  explicit StepsRunner(std::unique_ptr<PlanRunner> standard)
      : standard_(std::move(standard)) {}
  std::unique_ptr<PreparedRun> prepare(ProgramRun& run) const override {
    return std::make_unique<StepsRun>(run, standard_->prepare(run));
  }
  std::string describe() const override { return "by steps\n"; }

 private:
  std::unique_ptr<PlanRunner> standard_;
};

std::unique_ptr<PlanRunner> steps(const Program& program,
                                  std::unique_ptr<PlanRunner>& standard) {
  if (!g_steps || program.is_inline) return nullptr;
  return std::make_unique<StepsRunner>(std::move(standard));
}

const bool kRegistered = [] {
  register_runner(&replays);
  register_runner(&steps);
  return true;
}();

// A step with an update and noise, all on one device.
struct Noisy {
  explicit Noisy(const char* where)
      : on(device(where)), w(fill({16, 16}, 0.0)), x(fill({16, 16}, 0.5)) {
    Tracer tracer("step");
    const Tensor arg = tracer.add_arg({Shape({16, 16}), float32, "x"});
    tracer.start();
    const Tensor h = math::tanh(linalg::matmul(arg, w));
    w.assign_sub(h * 0.25 + random::uniform({16, 16}) * 0.5);
    graph = tracer.finish({{math::reduce_sum(h)}});
  }

  struct Outcome {
    std::string text;            // of the plan
    std::vector<float> results;  // of the runs, then the variable
  };
  Outcome run(int times) {
    w.assign(fill({16, 16}, 0.125));
    GraphCallable call(graph, {});
    Outcome outcome;
    for (int i = 0; i < times; ++i) {
      const Tensor* in[] = {&x};
      Tensor out;
      call.call(in, {&out, 1});
      outcome.results.push_back(out.item<float>());
    }
    for (const float v : w.value().to_vector<float>()) {
      outcome.results.push_back(v);
    }
    outcome.text = call.stages().plan;
    return outcome;
  }

  const DeviceGuard on;
  Variable w;
  Tensor x;
  Graph graph;
};

TEST(Runner, OfABackendReplaysAProgramToTheSameBits) {
  constexpr int kRuns = 5;
  Noisy step("/GPU:0");
  const Noisy::Outcome want = step.run(kRuns);
  EXPECT_EQ(g_recorded, 0);
  g_takes = true;
  const Noisy::Outcome got = step.run(kRuns);
  g_takes = false;
  EXPECT_EQ(g_recorded, 1);
  EXPECT_EQ(g_replayed, kRuns - 1);
  EXPECT_EQ(got.text, want.text);
  EXPECT_EQ(got.results, want.results);
  EXPECT_NE(want.results[1], want.results[2]) << "the noise is new each time";
}

TEST(Runner, MayLaunchTheEnginesStepsOneByOneAndSaysSo) {
  constexpr int kRuns = 4;
  Noisy step("/GPU:0");
  const Noisy::Outcome want = step.run(kRuns);
  g_steps = true;
  const Noisy::Outcome got = step.run(kRuns);
  g_steps = false;
  EXPECT_GE(g_stepped, kRuns * 4);
  EXPECT_EQ(got.results, want.results);
  EXPECT_EQ(got.text, want.text + "by steps\n");
}

TEST(Runner, OfABackendLeavesProgramsThatAreNotItsOwn) {
  const int before = g_recorded;
  g_takes = true;
  Noisy("/CPU:0").run(2);
  g_takes = false;
  EXPECT_EQ(g_recorded, before);
}

}  // namespace
}  // namespace berth
