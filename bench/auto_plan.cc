// The planner on real steps. Cases are processes of their own, since devices
// are configured once: `--model step/mlp` is one case, no model all of them.
//
//  step/X     an MLP, a CNN and a transformer on core sets of 1 + 3 cores, by
//             the planner: the step that it predicts beside the measured one.
//  devices/X  six models on a fast small accelerator, a slow big one and a
//             CPU, by the planner and by hand (one device, an expert's
//             scopes). Accelerators are simulated, on the real clock, and all
//             their work stands for its time alone: what it would compute does
//             not matter here, when and where it does.

#include <array>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>

#include "bench_common.h"
#include "berth/berth.h"
#include "berth/custom_op.h"
#include "cases.h"
#include "step_models.h"

using namespace berth;
using namespace berth_bench;

namespace {

constexpr int kCores = 4;
constexpr const char* kSteps[] = {"mlp", "cnn", "gpt"};
constexpr const char* kNets[] = {"chain",   "towers", "branches",
                                 "experts", "deep",   "heads"};

// Best and lowest tenth of the time of a step, microseconds.
struct Timed {
  double best = 0, tenth = 0;
};
Timed time_steps(const std::function<void()>& step, double seconds) {
  for (int i = 0; i < 5; ++i) step();
  std::vector<double> us;
  const double begin = now_seconds();
  while (us.size() < 5 || now_seconds() - begin < seconds) {
    const double start = now_seconds();
    step();
    us.push_back(1e6 * (now_seconds() - start));
  }
  std::sort(us.begin(), us.end());
  return {us[0], us[us.size() / 10]};
}

std::string joined(const std::vector<int>& cores, size_t begin, size_t end) {
  std::string s;
  for (size_t i = begin; i < end; ++i) {
    s += (s.empty() ? "" : ",") + std::to_string(cores[i]);
  }
  return s;
}

// step/X ---------------------------------------------------------------------

int run_step(const std::string& name, double seconds) {
  const std::vector<int> c = allowed_cores();
  config::set_logical_device_configuration(
      {"/physical_device:CPU:0", "CPU"},
      {{.cores = joined(c, 0, 1)}, {.cores = joined(c, 1, 4)}});
  const auto model = make_step_model(name);
  const auto one_model =
      with_device("/CPU:1", [&] { return make_step_model(name); });
  auto step =
      function([&](const Tensor& x, const Tensor& y) { return (*model)(x, y); },
               {.name = name, .placement = "auto"});
  auto one = function(
      [&](const Tensor& x, const Tensor& y) {
        return with_device("/CPU:1", [&] { return (*one_model)(x, y); });
      },
      {.name = name, .placement = "rules"});
  int i = 0;
  const double start = now_seconds();
  step(model->images(0), model->labels(0));
  const double first = now_seconds() - start;
  const auto time = [&](auto& f) {
    return time_steps(
        [&] {
          ++i;
          f(model->images(i), model->labels(i)).template item<float>();
        },
        seconds / 4);
  };
  // In turns: others may want the cores.
  Timed t{1e300, 1e300}, alone{1e300, 1e300};
  for (int turn = 0; turn < 4; ++turn) {
    const Timed a = time(step), b = time(one);
    t = {std::min(t.best, a.best), std::min(t.tenth, a.tenth)};
    alone = {std::min(alone.best, b.best), std::min(alone.tenth, b.tenth)};
  }
  const placement::Report r = step.placement();
  Line("auto_step", kCores)
      .add("case", "step/" + name)
      .add("predicted_us", r.estimated_step_us)
      .add("measured_us", t.tenth)
      .add("best_us", t.best)
      .add("one_device_us", alone.tenth)
      .add("one_device_best_us", alone.best)
      .add("error", r.estimated_step_us / t.tenth - 1)
      .add("devices", r.devices.size())
      .add("first_call_s", first)
      .add("plan", r.plan)
      .print();
  return 0;
}

// devices/X ------------------------------------------------------------------

// What the simulated devices do per second, and the CPU in their place.
constexpr double kFlops = 1e12, kCpuShare = 0.5;

void sleep_for_flops(const KernelCall& call) {
  const double seconds = call.attr<double>("flops") / (kFlops * kCpuShare);
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
}
void stand_in(const KernelCall&) {}

void register_work() {
  register_op("BenchWork")
      .input("x", dtype_bit(float32))
      .input("weights", dtype_bit(float32))
      .attr("flops", 0.0)
      .output("y")
      .infer(&infer_same_as_0)
      .cost([](const InferContext& c) {
        return Cost{c.attr<double>("flops"), 0};
      })
      .not_differentiable();
  register_kernels("CPU", [](KernelTable& t) {
    t.direct("BenchWork", dtype_bit(float32), &sleep_for_flops, "sleeps");
  });
  register_kernels("GPU", [](KernelTable& t) {
    t.direct("BenchWork", dtype_bit(float32), &stand_in, "stands in");
  });
}

// A net of layers: milliseconds of work at speed 1, forward and back.
class Net {
 public:
  // Where the layers are made and run: layer number -> device; "": anywhere.
  using Where = std::function<std::string(int)>;

  Net(std::string name, Where where)
      : name_(std::move(name)), where_(std::move(where)) {}

  // Makes the weights; layers that may be anywhere compute on the CPU.
  void warm_up(const Tensor& x) {
    warm_ = true;
    (*this)(x).item<float>();
    warm_ = false;
  }

  Tensor operator()(const Tensor& x) {
    next_ = 0;
    passed_.clear();
    Tensor y = x;
    if (name_ == "chain") {
      for (int k = 0; k < 8; ++k) y = layer(y, 2);
    } else if (name_ == "deep") {
      for (int k = 0; k < 12; ++k) y = layer(y, k % 4 == 0 ? 3 : 0.7);
    } else if (name_ == "towers") {
      y = layer(chains(y, {{3, 3, 3, 3}, {1.5, 1.5, 1.5, 1.5}}), 1);
    } else if (name_ == "branches") {
      for (int k = 0; k < 3; ++k) y = chains(y, {{3}, {2}, {1}, {1}});
    } else if (name_ == "experts") {
      for (int k = 0; k < 2; ++k) {
        y = chains(layer(y, 0.5), {{2}, {2}, {2}, {2}, {2}});
      }
    } else {  // heads of a transformer, and what follows them
      for (int k = 0; k < 2; ++k) {
        y = chains(layer(y, 0.5), {{1, 1}, {1, 1}, {1, 1}});
      }
      y = layer(layer(y, 2), 2);
    }
    return back(y);
  }

 private:
  struct Passed {
    std::string where;
    size_t weights;
    double ms;
  };
  using Chain = std::vector<Passed>;

  Tensor work(const Tensor& x, const Passed& p, double ms) {
    const auto make = [&] {
      if (weights_.size() <= p.weights) weights_.emplace_back(values_);
      return weights_[p.weights];
    };
    const Variable w = p.where.empty() ? make() : with_device(p.where, make);
    const auto run = [&] {
      return call_op("BenchWork", {x, w}, {{"flops", ms * 1e-3 * kFlops}})[0];
    };
    const std::string where = p.where.empty() && warm_ ? "/CPU:0" : p.where;
    return where.empty() ? run() : with_device(where, run);
  }

  Tensor add_layer(const Tensor& x, double ms, Chain& chain) {
    chain.push_back({where_(static_cast<int>(next_)), next_, ms});
    ++next_;
    return work(x, chain.back(), ms);
  }

  Tensor layer(const Tensor& x, double ms) { return chains(x, {{ms}}); }

  // Chains side by side, and their sum.
  Tensor chains(const Tensor& x, const std::vector<std::vector<double>>& ms) {
    Tensor sum;
    passed_.emplace_back();
    for (const std::vector<double>& times : ms) {
      Tensor y = x;
      Chain chain;
      for (const double m : times) y = add_layer(y, m, chain);
      passed_.back().push_back(std::move(chain));
      sum = sum.defined() ? sum + y : y;
    }
    return sum;
  }

  // Gradients take as long as what they are of.
  Tensor back(Tensor y) {
    for (auto group = passed_.rbegin(); group != passed_.rend(); ++group) {
      Tensor sum;
      for (const Chain& chain : *group) {
        Tensor d = y;
        for (auto p = chain.rbegin(); p != chain.rend(); ++p) {
          d = work(d, *p, p->ms);
        }
        sum = sum.defined() ? sum + d : d;
      }
      y = sum;
    }
    return math::reduce_sum(y);
  }

  static constexpr int64_t kWeights = 1 << 20;  // floats
  std::string name_;
  Where where_;
  size_t next_ = 0;  // number of the next layer
  bool warm_ = false;
  // Variables are made where their values are, unless a scope is open.
  const Tensor values_ =
      with_device("/CPU:0", [] { return zeros({kWeights}); });
  std::vector<Variable> weights_;
  std::vector<std::vector<Chain>> passed_;
};

// Where people put layers: on one device; as many as fit on the fast one, the
// rest on the slow one; by turns, for what may run side by side.
constexpr const char* kByHand[] = {"GPU:0", "GPU:1", "CPU:0", "split", "turns"};
Net::Where where_of(const std::string& how) {
  if (how == "auto") return [](int) { return ""; };
  if (how == "split") {
    return [](int layer) { return layer < 5 ? "/GPU:0" : "/GPU:1"; };
  }
  if (how == "turns") {
    return [](int layer) {
      return layer % 3 < 2 && layer < 8 ? "/GPU:0" : "/GPU:1";
    };
  }
  return [how](int) { return "/" + how; };
}

// One way to run a net: "branches/split".
int run_net(const std::string& name, double seconds) {
  // GPU:0 is fast and small, GPU:1 slow and big.
  setenv("BERTH_SIM", "GPUx2", 1);
  setenv("BERTH_SIM_CLOCK", "real", 1);
  setenv("BERTH_SIM_SPEEDS", "2,1", 1);
  register_work();
  config::set_logical_device_configuration({"/physical_device:GPU:0", "GPU"},
                                           {{.memory_limit_mb = 32}});
  const size_t slash = name.find('/');
  const std::string how = name.substr(slash + 1);
  Net net(name.substr(0, slash), where_of(how));
  const Tensor x = with_device("/CPU:0", [] { return zeros({1 << 16}); });
  double us = -1, predicted = -1;
  std::string plan;
  try {
    net.warm_up(x);
    auto step =
        function([&](const Tensor& t) { return net(t); },
                 {.name = name, .placement = how == "auto" ? "auto" : "rules"});
    us = time_steps([&] { step(x).item<float>(); }, seconds).best;
    plan = step.placement().plan;
    predicted = step.placement().estimated_step_us;
    if (std::getenv("DBG"))
      std::fprintf(stderr, "%s\n%s\n%s\n", step.text("plan").c_str(),
                   step.placement().str().c_str(), "");
  } catch (const errors::ResourceExhausted& e) {
    plan = e.what();  // it does not fit
  }
  Line("auto_net", kCores)
      .add("case", "net/" + name)
      .add("us", us)
      .add("predicted_us", predicted)
      .add("plan", plan)
      .print();
  return 0;
}

int run_devices(const std::string& program, const std::string& name,
                double seconds) {
  Line line("auto_devices", kCores);
  line.add("case", "devices/" + name);
  double best = 1e300;
  std::string best_name;
  const auto time_of = [&](const std::string& how) {
    const auto l =
        run_child(program, "net/" + name + "/" + how, seconds, " 2>/dev/null");
    const double us = l.is_object() ? l["us"].get<double>() : -1;
    line.add(how + "_us", us);
    return us;
  };
  for (const char* how : kByHand) {
    const double us = time_of(how);
    if (us <= 0 || us >= best) continue;
    best = us;
    best_name = how;
  }
  const double us = time_of("auto");
  line.add("best", best_name)
      .add("best_us", best)
      .add("speed_up", us > 0 ? best / us : 0.0)
      .print();
  return us > 0 ? 0 : 1;
}

int run_all(const std::string& program, double seconds) {
  double worst_error = 0, slowest = 1e300;
  int faster = 0, failed = 0;
  for (const char* name : kSteps) {
    const auto line = run_child(program, std::string("step/") + name, seconds,
                                " 2>/dev/null");
    failed += !line.is_object();
    if (line.is_object()) {
      worst_error =
          std::max(worst_error, std::abs(line["error"].get<double>()));
    }
  }
  for (const char* name : kNets) {
    const auto line = run_child(program, std::string("devices/") + name,
                                seconds, " 2>/dev/null");
    failed += !line.is_object();
    if (!line.is_object()) continue;
    const double up = line["speed_up"].get<double>();
    slowest = std::min(slowest, up);
    faster += up >= 1.2;
  }
  Line("auto_plan", kCores)
      .add("step_error", worst_error)
      .add("slowest", 1 / slowest)
      .add("faster_by_a_fifth", faster)
      .add("failed", failed)
      .print();
  return failed > 0;
}

}  // namespace

int main(int argc, char** argv) {
  const Args args = parse_args(argc, argv);
  if (!use_cores(kCores)) {
    return skip("auto_plan", kCores, "fewer than 4 cores");
  }
  forget_kept_costs();
  const std::string& name = args.model;
  if (name.starts_with("step/")) return run_step(name.substr(5), args.seconds);
  if (name.starts_with("net/")) return run_net(name.substr(4), args.seconds);
  if (name.starts_with("devices/")) {
    return run_devices(argv[0], name.substr(8), args.seconds);
  }
  return run_all(argv[0], args.seconds / 4);
}
