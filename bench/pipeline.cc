// Share of the time that the devices of a pipeline wait, on four simulated
// devices with the real clock and eight micro-batches. Work stands for its time
// alone, so that stages are exactly as long as a case says: equal ones are
// compared with the closed form, unequal ones with a simulation that shares
// nothing with the schedules' own.

#include <array>
#include <cstdlib>
#include <cstring>
#include <map>
#include <sstream>
#include <string>

#include "bench_common.h"
#include "berth/berth.h"
#include "berth/custom_op.h"

using namespace berth;
using namespace berth_bench;
using distribute::PipelineSchedule;

namespace {

constexpr int kMicroBatches = 8, kDevices = 4, kLayers = 8;
constexpr int64_t kBatch = 256, kWidth = 4;
constexpr double kSpeed = 0.001, kFlops = 1e12 * kSpeed;  // per second

// Milliseconds of a layer's passes for a micro-batch, F, I and W: long, so that
// launches and the loss hardly count.
using Times = std::array<double, 3>;
using Layers = std::array<Times, kLayers>;

constexpr Times kSame = {20, 20, 20};
constexpr Layers kEqual = {kSame, kSame, kSame, kSame,
                           kSame, kSame, kSame, kSame};
constexpr Layers kUnequal = {{{16, 12, 16},
                              {20, 24, 20},
                              {12, 16, 12},
                              {28, 24, 16},
                              {20, 20, 32},
                              {16, 24, 16},
                              {24, 20, 24},
                              {16, 28, 12}}};

void copy_first(const KernelCall& call) {
  std::memcpy(call.out[0].as<float>(), call.in[0].as<float>(),
              static_cast<size_t>(call.in[0].size()) * sizeof(float));
}

// An op of [n, width] and [width] or [n, width] that takes flops per example.
void register_work() {
  register_op("BenchWork")
      .input("x", dtype_bit(float32))
      .input("weights", dtype_bit(float32))
      .attr("flops", 0.0)
      .attr("input", 0.0)
      .attr("weight", 0.0)
      .output("y")
      .infer(&infer_same_as_0)
      .cost([](const InferContext& c) {
        return Cost{
            c.attr<double>("flops") * static_cast<double>(c.shape(0)[0]), 0};
      })
      .split([](const InferContext& c) {
        const int8_t with = c.shape(1).rank() == 1 ? SplitSignature::kWhole : 0;
        return std::vector<SplitSignature>{
            {.inputs = {0, with}, .outputs = {0}}};
      })
      .gradient([](const GradCall& g) {
        const auto work = [](const Tensor& a, const Tensor& b, double flops) {
          return call_op("BenchWork", {a, b}, {{"flops", flops}})[0];
        };
        return Tensors{
            work(g.dy(), g.x(1), g.attr<double>("input")),
            math::reduce_sum(work(g.x(0), g.dy(), g.attr<double>("weight")),
                             {.axis = {0}})};
      });
  for (const char* device : {"CPU", "GPU"}) {
    register_kernels(device, [](KernelTable& t) {
      t.direct("BenchWork", dtype_bit(float32), &copy_first, "stands in");
    });
  }
}

class Work : public keras::LayerBase {
 public:
  Work(const std::string& name, const Times& ms) : LayerBase(name), ms_(ms) {}
  void build(const std::vector<Shape>& in) override {
    weights_ = add_weight("weights", {in[0][1]}, keras::initializers::Ones());
  }
  Tensors call(const Tensors& x, bool) override {
    const auto flops = [&](int pass) {
      return 1e-3 * ms_.at(static_cast<size_t>(pass)) * kFlops * kMicroBatches /
             kBatch;
    };
    return call_op(
        "BenchWork", {x[0], weights_.value()},
        {{"flops", flops(0)}, {"input", flops(1)}, {"weight", flops(2)}});
  }

 private:
  const Times ms_;
  Variable weights_;
};

// Its gradient needs that of the layers' input.
class Shift : public keras::LayerBase {
 public:
  Shift() : LayerBase("shift") {}
  void build(const std::vector<Shape>& in) override {
    shift_ = add_weight("shift", {in[0][1]}, keras::initializers::Zeros());
  }
  Tensors call(const Tensors& x, bool) override {
    return {x[0] + shift_.value()};
  }

 private:
  Variable shift_;
};

struct Measured {
  Timing step;
  distribute::StrategyPlan plan;
};

Measured measured(int devices, PipelineSchedule schedule, int stages,
                  const Layers& times, double seconds) {
  keras::clear_session();
  std::vector<std::string> names, begins;
  for (int d = 0; d < devices; ++d)
    names.push_back("/GPU:" + std::to_string(d));
  for (int s = 1; s < stages; ++s) {
    begins.push_back("layer_" + std::to_string(s * kLayers / stages));
  }
  const distribute::PipelineStrategy pipe(
      names,
      {.micro_batches = kMicroBatches, .schedule = schedule, .stages = begins});
  const auto scope = pipe.scope();
  std::vector<keras::Layer> layers = {keras::make_layer<Shift>()};
  for (size_t i = 0; i < kLayers; ++i) {
    layers.push_back(
        keras::make_layer<Work>("layer_" + std::to_string(i), times[i]));
  }
  keras::Sequential model(layers);
  model.build({-1, kWidth});
  model.compile({.optimizer = "sgd", .loss = "mse"});
  const Tensor x = random::normal({kBatch, kWidth});
  Measured m{{}, pipe.plan(model, kBatch)};
  // A step ends when every device has updated its variables.
  const auto step = [&] {
    model.train_on_batch(x, x);
    for (const Variable& v : model.weights()) v.value().to_vector<float>();
  };
  step();
  std::vector<double> steps;
  const double begin = now_seconds();
  while (steps.size() < 3 || now_seconds() - begin < seconds) {
    const double at = now_seconds();
    step();
    steps.push_back(now_seconds() - at);
  }
  m.step = summarize(steps);
  return m;
}

// The step of such stages, in seconds: instructions start when what they need
// has ended, and are looked at again until no start moves. Copies are free.
double max_plus(const std::string& instructions, int stages,
                const Layers& times) {
  struct Pass {
    int stage, micro_batch;
    char what;
    double length, end;
  };
  std::vector<std::vector<Pass>> lanes;
  std::istringstream lines(instructions);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    lanes.emplace_back();
    for (Pass p{}; words >> p.stage >> p.what >> p.micro_batch;) {
      p.length = 0;
      const int each = kLayers / stages;
      for (int k = p.stage * each; k < (p.stage + 1) * each; ++k) {
        const Times& t = times.at(static_cast<size_t>(k));
        p.length += 1e-3 * (p.what == 'F'   ? t[0]
                            : p.what == 'I' ? t[1]
                            : p.what == 'W' ? t[2]
                                            : t[1] + t[2]);
      }
      lanes.back().push_back(p);
    }
  }
  const auto end_of = [&](int stage, int micro_batch, const char* whats) {
    for (const auto& lane : lanes) {
      for (const Pass& p : lane) {
        if (p.stage == stage && p.micro_batch == micro_batch &&
            std::strchr(whats, p.what)) {
          return p.end;
        }
      }
    }
    return 0.0;
  };
  double last = 0;
  for (bool moved = true; moved;) {
    moved = false;
    for (auto& lane : lanes) {
      double free = 0;
      for (Pass& p : lane) {
        double start = free;
        const auto after = [&](int stage, const char* whats) {
          start = std::max(start, end_of(stage, p.micro_batch, whats));
        };
        if (p.what == 'F') after(p.stage - 1, "F");
        if (p.what == 'W') after(p.stage, "I");
        if (p.what == 'I' || p.what == 'B') {
          after(p.stage, "F");
          after(p.stage + 1, "IB");
        }
        moved = moved || start + p.length > p.end;
        free = p.end = std::max(p.end, start + p.length);
        last = std::max(last, free);
      }
    }
  }
  return last;
}

}  // namespace

int main(int argc, char** argv) {
  const Args args = parse_args(argc, argv);
  setenv("BERTH_SIM_CLOCK", "real", 1);
  setenv("BERTH_SIM_SPEEDS", "0.001,0.001,0.001,0.001", 1);
  config::set_simulated_devices("GPUx4");
  register_work();
  using enum PipelineSchedule;
  const struct {
    std::string name;
    PipelineSchedule schedule;
    int stages;
  } cases[] = {{"gpipe", kGPipe, 4},
               {"1f1b", k1F1B, 4},
               {"interleaved-1f1b", kInterleaved1F1B, 8},
               {"zb-h1", kZbH1, 4},
               {"zb-v", kZbV, 8}};
  for (const bool equal : {true, false}) {
    const Layers& times = equal ? kEqual : kUnequal;
    double work = 0;
    for (const Times& t : times) work += 1e-3 * (t[0] + t[1] + t[2]);
    work *= kMicroBatches;
    for (const auto& c : cases) {
      if (!args.model.empty() && args.model != c.name) continue;
      const Measured m =
          measured(kDevices, c.schedule, c.stages, times, args.seconds);
      const auto& p = *m.plan.pipeline;
      const double simulated = max_plus(p.instructions, c.stages, times);
      const double waiting = 1 - work / kDevices / m.step.best;
      const double formula =
          equal ? p.bubble_of_equal_stages : 1 - work / kDevices / simulated;
      Line("pipeline", kDevices)
          .add("schedule", p.schedule)
          .add("stages", equal ? "equal" : "unequal")
          .timing(m.step, "ms", 1e3)
          .add("predicted_ms", 1e-3 * m.plan.step_us)
          .add("max_plus_ms", 1e3 * simulated)
          .add("waiting", waiting)
          .add(equal ? "closed_form" : "max_plus", formula)
          .add("over", waiting / formula)
          .print();
    }
  }
  return 0;
}
