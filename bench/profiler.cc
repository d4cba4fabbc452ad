// What recording costs: --model NAME: a step recorded over one that is not, in
// turns; and events per second of one thread.

#include "berth/profiler.h"

#include "base/timeline.h"
#include "bench_common.h"
#include "step_models.h"

using namespace berth;
using namespace berth_bench;

namespace {

double events_per_second(double seconds) {
  timeline::start(1 << 16);
  const Timing t = measure(
      [] {
        for (int i = 0; i < 10000; ++i) {
          const timeline::Span span("bench", "event", "annotation");
        }
      },
      seconds);
  timeline::stop();
  return 1e4 / t.best;
}

}  // namespace

int main(int argc, char** argv) {
  const Args args = parse_args(argc, argv);
  const std::string model = args.model.empty() ? "mlp" : args.model;
  if (!use_cores(args.cores)) {
    return skip("profiler", args.cores, "fewer cores than asked for");
  }
  const std::unique_ptr<StepModel> net = make_step_model(model);
  auto step =
      function([&](const Tensor& x, const Tensor& y) { return (*net)(x, y); },
               {.name = model + "_step"});
  int i = 0;
  const auto run = [&] {
    step(net->images(i), net->labels(i));
    ++i;
  };
  for (int k = 0; k < 20; ++k) run();
  // Steps change as a model learns: neighbours in time are compared.
  std::vector<double> off, on, times;
  for (int round = 0; round < 21; ++round) {
    off.push_back(measure(run, args.seconds / 42).best);
    profiler::start();
    on.push_back(measure(run, args.seconds / 42).best);
    profiler::stop();
    times.push_back(on.back() / off.back());
  }
  Line("profiler", args.cores)
      .add("model", model)
      .add("off_us", summarize(off).median * 1e6)
      .add("on_us", summarize(on).median * 1e6)
      .add("times", summarize(times).median)
      .add("events_per_second", events_per_second(args.seconds))
      .print();
}
