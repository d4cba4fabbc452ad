// One training step on replicas of core sets against one device with all the
// cores, same global batch: --model mlp, cnn or small (100,000 parameters, 4
// replicas of one core).

#include <sys/wait.h>
#include <unistd.h>

#include "bench_common.h"
#include "collective/testing.h"
#include "step_models.h"

using namespace berth;
using namespace berth_bench;

namespace {

constexpr int64_t kBatch = 256;

// A hand-made replicated step: what a strategy makes of the model's step.
Graph replicated(const StepModel& net, int replicas, bool reduce) {
  using namespace collective_tests;
  std::vector<std::string> devices;
  for (int r = 0; r < replicas; ++r) devices.push_back(full_name("CPU", r));
  const Tensor &images = net.images(0), &labels = net.labels(0);
  return trace({images.spec(), labels.spec()}, devices, [&](Tensors& args) {
    std::vector<Tensors> pieces;
    for (int r = 0; r < replicas; ++r) {
      const auto on = device(devices[static_cast<size_t>(r)]);
      const int64_t begin = kBatch * r / replicas;
      const int64_t count = kBatch * (r + 1) / replicas - begin;
      const Tensors g = net.gradients(rows(args[0], begin, count),
                                      rows(args[1], begin, count), kBatch);
      pieces.resize(g.size());
      for (size_t i = 0; i < g.size(); ++i) pieces[i].push_back(g[i]);
    }
    if (!reduce) {
      Tensors all;
      for (const Tensors& p : pieces) all.insert(all.end(), p.begin(), p.end());
      return all;
    }
    const auto on = device(devices[0]);
    Tensors sums;
    for (const Tensors& p : pieces) sums.push_back(all_reduce(p)[0]);
    net.apply(sums);
    return Tensors{};
  });
}

struct Setup {
  const char* devices;  // "": one with all cores
  int replicas;
  bool reduce;
};

Timing time_step(const Setup& setup, bool cnn, double seconds) {
  if (setup.devices[0] != 0) config::set_device_list(setup.devices);
  debugging::set_diagnostic_handler([](const auto&) {});
  const SmallModel net(cnn, kBatch);
  int i = 0;
  if (setup.replicas == 1) {
    auto step =
        function([&](const Tensor& x, const Tensor& y) { return net(x, y); });
    return measure([&] { step(net.images(i), net.labels(i)), ++i; }, seconds);
  }
  GraphCallable step(replicated(net, setup.replicas, setup.reduce), {});
  Tensors out(step.output_specs().size());
  const Timing t = measure(
      [&] {
        const Tensor* in[] = {&net.images(i), &net.labels(i)};
        step.call(in, out);
        ++i;
      },
      seconds);
  if (getenv("SHOW_PLAN")) fprintf(stderr, "%s\n", step.stages().plan.c_str());
  return t;
}

// The same in a process of its own: devices are configured once.
Timing in_a_process(const Setup& setup, bool cnn, double seconds) {
  int ends[2];
  if (pipe(ends) != 0) std::exit(1);
  const pid_t child = fork();
  if (child == 0) {
    const Timing t = time_step(setup, cnn, seconds);
    if (write(ends[1], &t, sizeof t) != sizeof t) _exit(1);
    _exit(0);
  }
  close(ends[1]);
  Timing t;
  const bool ok = read(ends[0], &t, sizeof t) == sizeof t;
  close(ends[0]);
  waitpid(child, nullptr, 0);
  if (!ok) std::exit(1);
  return t;
}

}  // namespace

int main(int argc, char** argv) {
  const Args args = parse_args(argc, argv);
  const std::string model = args.model.empty() ? "mlp" : args.model;
  const bool cnn = model == "cnn";
  if (!use_cores(4)) {
    return skip("replicas", 4, "fewer than 4 cores");
  }
  const Setup one{"", 1, true}, two{"CPUx2", 2, true};
  Timing a, b;
  a.best = b.best = 1e9;
  constexpr int kRounds = 4;
  for (int i = 0; i < kRounds; ++i) {
    const Timing x = in_a_process(one, cnn, args.seconds / kRounds / 2);
    const Timing y = in_a_process(two, cnn, args.seconds / kRounds / 2);
    if (x.best < a.best) a = x;
    if (y.best < b.best) b = y;
  }
  Line("replicas", 4)
      .add("model", model)
      .timing(b, "us", 1e6)
      .add("one_device_us", a.best * 1e6)
      .add("over_one_device", b.best / a.best)
      .print();
}
