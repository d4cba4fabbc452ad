// One training step on replicas of core sets against one device with all the
// cores, same global batch: --model mlp, cnn or small (100,000 parameters, 4
// replicas of one core).

#include "bench_common.h"
#include "collective/testing.h"
#include "distribute/strategy/fit_rewrite.h"
#include "exec/plan_times.h"
#include "step_models.h"

using namespace berth;
using namespace berth_bench;

namespace {

constexpr int64_t kBatch = 256;
// The weights stay, so that gradients do not fade away: arithmetic on the
// smallest numbers is slow, and only where something learns.
constexpr double kRate = 0;

// The gradients of each replica's part of a batch, which nobody adds up.
Graph gradients(const StepModel& net, int replicas, int64_t batch) {
  using namespace collective_tests;
  std::vector<std::string> devices;
  for (int r = 0; r < replicas; ++r) devices.push_back(full_name("CPU", r));
  const Tensor &images = net.images(0), &labels = net.labels(0);
  return trace({images.spec(), labels.spec()}, devices, [&](Tensors& args) {
    Tensors all;
    for (int r = 0; r < replicas; ++r) {
      const auto on = device(devices[static_cast<size_t>(r)]);
      const int64_t begin = batch * r / replicas;
      const int64_t count = batch * (r + 1) / replicas - begin;
      const Tensors g = net.gradients(rows(args[0], begin, count),
                                      rows(args[1], begin, count), batch);
      all.insert(all.end(), g.begin(), g.end());
    }
    return all;
  });
}

// A step as the devices' own clocks saw it.
struct Split {
  double step = 0;
  double compute = 0;  // of the slowest replica: all but sums and updates
};

// Sees the plan of a step that a strategy splits.
class Watched final : public GraphRewrite {
 public:
  explicit Watched(std::shared_ptr<const GraphRewrite> inner)
      : inner_(std::move(inner)) {}
  void apply(Graph& graph) const override { inner_->apply(graph); }
  uint64_t key() const override { return inner_->key(); }
  int slices() const override { return inner_->slices(); }
  void ran(Plan& plan) const override { plan_ = &plan; }

  // Times `steps` steps one by one; the fastest of them.
  template <class Step>
  Split split(int steps, Step&& step) const {
    const auto exchanges = [](const Node& n) {
      return n.collective || n.outputs.empty();  // writes a variable
    };
    Split best;
    best.step = 1e9;
    PlanTimes before = plan_times(*plan_, exchanges);
    for (int i = 0; i < steps; ++i) {
      plan_->sample_next(1);
      step();
      const PlanTimes after = plan_times(*plan_, exchanges);
      double slowest = 0;
      for (size_t d = 0; d < after.devices.size(); ++d) {
        const auto &a = after.devices[d], &b = before.devices[d];
        slowest = std::max(slowest, a.us - a.fixed_us - b.us + b.fixed_us);
      }
      if (after.last_step_us < best.step) best = {after.last_step_us, slowest};
      before = after;
    }
    return best;
  }

 private:
  const std::shared_ptr<const GraphRewrite> inner_;
  mutable Plan* plan_ = nullptr;
};

// How a step runs, in a process of its own: devices are configured once.
struct Setup {
  const char* devices;  // "": one with all cores
  bool cnn = false;
  int64_t batch = kBatch;
  // With the strategy; without, the replicas never meet and nothing is updated.
  bool strategy = true;
  int replicas = 1;
};

struct Result {
  Timing timing;
  Split split;  // of a strategy's step
};

template <class Step>
Timing time_step(const SmallModel& net, double seconds, Step&& step) {
  int i = 0;
  return measure(
      [&] {
        step(net.images(i), net.labels(i));
        ++i;
      },
      seconds);
}

Result time_setup(const Setup& setup, double seconds) {
  debugging::set_diagnostic_handler([](const auto&) {});
  if (setup.devices[0] == 0) {
    const SmallModel net(setup.cnn, setup.batch, kRate);
    auto step =
        function([&](const Tensor& x, const Tensor& y) { return net(x, y); });
    return {time_step(net, seconds, step), {}};
  }
  config::set_device_list(setup.devices);
  if (!setup.strategy) {
    const SmallModel net(setup.cnn, setup.batch, kRate);
    GraphCallable step(gradients(net, setup.replicas, setup.batch), {});
    Tensors out(step.output_specs().size());
    return {time_step(net, seconds,
                      [&](const Tensor& x, const Tensor& y) {
                        const Tensor* in[] = {&x, &y};
                        step.call(in, out);
                      }),
            {}};
  }
  const distribute::MirroredStrategy strategy;
  const auto scope = strategy.scope();
  const SmallModel net(setup.cnn, setup.batch, kRate);
  const auto watched =
      std::make_shared<const Watched>(distribute::fit_rewrite(strategy.core()));
  auto step =
      function([&](const Tensor& x, const Tensor& y) { return net(x, y); },
               {.rewrite = watched});
  Result r{time_step(net, seconds, step), {}};
  if (std::getenv("SHOW_PLAN")) {
    std::fprintf(stderr, "%s\n", step.text("plan").c_str());
  }
  constexpr int kTimed = 500;
  int i = 0;
  r.split = watched->split(kTimed, [&] {
    step(net.images(i), net.labels(i));
    ++i;
  });
  return r;
}

// In turn, so that both see the same minutes; the best of each. How fast cores
// see what others wrote differs from process to process on some machines.
std::pair<Result, Result> in_turn(const Setup& a, const Setup& b,
                                  double seconds) {
  constexpr int kRounds = 8;
  Result best[2];
  best[0].timing.best = best[1].timing.best = 1e9;
  for (int i = 0; i < kRounds; ++i) {
    const Result x =
        in_a_process([&] { return time_setup(a, seconds / kRounds / 2); });
    const Result y =
        in_a_process([&] { return time_setup(b, seconds / kRounds / 2); });
    if (x.timing.best < best[0].timing.best) best[0] = x;
    if (y.timing.best < best[1].timing.best) best[1] = y;
  }
  return {best[0], best[1]};
}

}  // namespace

int main(int argc, char** argv) {
  const Args args = parse_args(argc, argv);
  const std::string model = args.model.empty() ? "mlp" : args.model;
  if (!use_cores(4)) return skip("replicas", 4, "fewer than 4 cores");
  Line line("replicas", 4);
  line.add("model", model);
  if (model == "small") {
    const Setup step{"CPUx4", false, 64, true, 4};
    const Setup compute{"CPUx4", false, 64, false, 4};
    const auto [all, alone] = in_turn(step, compute, args.seconds);
    // What the step takes beyond the computing of its slowest replica: sums,
    // updates, waits. Beside it, what it takes beyond gradients alone, whose
    // weights nobody writes, so that they stay in each core's cache.
    line.timing(all.timing, "us", 1e6)
        .add("step_us", all.split.step)
        .add("compute_us", all.split.compute)
        .add("synchronisation_over_compute",
             all.split.step / all.split.compute - 1)
        .add("gradients_alone_us", alone.timing.best * 1e6);
  } else {
    const bool cnn = model == "cnn";
    const auto [one, two] =
        in_turn({"", cnn}, {"CPUx2", cnn, kBatch, true, 2}, args.seconds);
    line.timing(two.timing, "us", 1e6)
        .add("one_device_us", one.timing.best * 1e6)
        .add("over_one_device", two.timing.best / one.timing.best);
  }
  line.print();
}
