// Share of the time that the devices of a pipeline wait: measured on four
// simulated devices with the real clock, by the closed form of equal stages,
// and by the schedule's own times of these stages. Eight equal layers.

#include <cstdlib>
#include <string>

#include "bench_common.h"
#include "berth/berth.h"

using namespace berth;
using namespace berth_bench;
using distribute::PipelineSchedule;

namespace {

constexpr int kMicroBatches = 8, kWidth = 256, kDevices = 4;

struct Measured {
  Timing step;
  distribute::StrategyPlan plan;
};

Measured measured(int devices, PipelineSchedule schedule, int stages,
                  double seconds) {
  keras::clear_session();
  std::vector<std::string> names, begins;
  for (int d = 0; d < devices; ++d)
    names.push_back("/GPU:" + std::to_string(d));
  for (int s = 1; s < stages; ++s) {
    begins.push_back("layer_" + std::to_string(s * 8 / stages));
  }
  const distribute::PipelineStrategy pipe(
      names,
      {.micro_batches = kMicroBatches, .schedule = schedule, .stages = begins});
  const auto scope = pipe.scope();
  std::vector<keras::Layer> layers;
  for (int i = 0; i < 8; ++i) {
    layers.push_back(keras::Dense(
        kWidth, {.activation = "relu", .name = "layer_" + std::to_string(i)}));
  }
  keras::Sequential model(layers);
  model.build({-1, kWidth});
  model.compile({.optimizer = "sgd", .loss = "mse"});
  const Tensor x = random::normal({256, kWidth});
  const Tensor y = random::normal({256, kWidth});
  Measured m{{}, pipe.plan(model, 256)};
  model.train_on_batch(x, y);
  std::vector<double> steps;
  const double begin = now_seconds();
  while (steps.size() < 3 || now_seconds() - begin < seconds) {
    const double at = now_seconds();
    model.fit(x, y, {.epochs = 1, .batch_size = 256, .verbose = 0});
    steps.push_back(now_seconds() - at);
  }
  m.step = summarize(steps);
  return m;
}

}  // namespace

int main(int argc, char** argv) {
  const Args args = parse_args(argc, argv);
  // Slow enough that launching does not count.
  setenv("BERTH_SIM_CLOCK", "real", 1);
  setenv("BERTH_SIM_SPEEDS", "0.001,0.001,0.001,0.001", 1);
  config::set_simulated_devices("GPUx4");
  using enum PipelineSchedule;
  const struct {
    PipelineSchedule schedule;
    int stages;
  } cases[] = {
      {kGPipe, 4}, {k1F1B, 4}, {kInterleaved1F1B, 8}, {kZbH1, 4}, {kZbV, 8}};
  const double one = measured(1, kGPipe, 1, args.seconds).step.best;
  for (const auto& c : cases) {
    const Measured m = measured(kDevices, c.schedule, c.stages, args.seconds);
    const auto& p = *m.plan.pipeline;
    const double bubble = 1 - one / kDevices / m.step.best;
    Line("pipeline", kDevices)
        .add("schedule", p.schedule)
        .timing(m.step, "ms", 1e3)
        .add("bubble", bubble)
        .add("closed_form", p.bubble_of_equal_stages)
        .add("of_stages", p.bubble_of_stages)
        .add("over_closed_form", bubble / p.bubble_of_equal_stages)
        .add("over_stages", bubble / p.bubble_of_stages)
        .print();
  }
  return 0;
}
