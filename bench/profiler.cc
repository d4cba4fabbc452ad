// What recording costs: --model NAME: a step recorded over one that is not, in
// turns; and events per second of one thread. --model report: the time and the
// size of a report of a million events.

#include "berth/profiler.h"

#include <unistd.h>

#include <filesystem>

#include "base/timeline.h"
#include "bench_common.h"
#include "profiler/event_index.h"
#include "profiler/read_perfetto.h"
#include "profiler/report_page.h"
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

// A million events of two tasks: steps of 25 ops, with a copy and a sum.
void report(const Args& args) {
  std::vector<std::string> paths;
  for (int task = 0; task < 2; ++task) {
    std::vector<profiler::TimelineEvent> events;
    for (int k = 0; k < 500'000; ++k) {
      const int op = k % 25;
      const double begin = k * 10.0 + task * 0.5;
      profiler::TimelineEvent e = {
          .track = "/job:localhost/replica:0/task:0/device:CPU:0",
          .name = "model/block_" + std::to_string(op) + "/MatMul",
          .kind = op == 23   ? "copy"
                  : op == 24 ? "sum"
                  : op == 0  ? "call"
                             : "MatMul",
          .site = {"train.py", 10 + op},
          .begin_us = begin,
          .end_us = begin + 5 + (int64_t{k} * 7919) % 50 / 10.0,
          .bytes = 4096,
          .flops = 1e6,
          .predicted_us = 7,
          .run = 1 + k / 25};
      if (op == 0) {
        e.track = "calls";
        e.name = "train_step";
        e.end_us = begin + 250;
        e.run = 0;
      } else if (op > 1) {
        e.after = {k - 1};
      }
      events.push_back(std::move(e));
    }
    paths.push_back((std::filesystem::temp_directory_path() /
                     ("bench_profiler." + std::to_string(getpid()) +
                      ".worker-" + std::to_string(task) + ".pftrace"))
                        .string());
    profiler::Timeline(std::move(events)).write(paths.back());
  }
  size_t bytes = 0;
  const Timing t = measure_blocks(
      [&] {
        std::vector<profiler::TaskEvents> all;
        for (const std::string& path : paths) {
          all.push_back(profiler::read_events(path));
          all.back().task = path;
          profiler::shorten_devices(&all.back().events);
        }
        const auto clocks = profiler::clocks_of(all);
        const auto timeline = profiler::joined(std::move(all), clocks);
        const profiler::EventIndex x(timeline);
        bytes = profiler::report_page(x, profiler::analyze(x), "bench").size();
      },
      args.seconds, 1);
  for (const std::string& path : paths) std::filesystem::remove(path);
  Line("profiler", args.cores)
      .add("model", "report")
      .add("report_s", t.median)
      .add("page_mb", static_cast<double>(bytes) / 1e6)
      .print();
}

}  // namespace

int main(int argc, char** argv) {
  const Args args = parse_args(argc, argv);
  const std::string model = args.model.empty() ? "mlp" : args.model;
  if (!use_cores(args.cores)) {
    return skip("profiler", args.cores, "fewer cores than asked for");
  }
  if (model == "report") {
    report(args);
    return 0;
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
