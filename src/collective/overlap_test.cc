// Copies of gradients overlap with the computation of later ones: shown by the
// virtual clock of simulated GPUs and by the simulator.

#include <gtest/gtest.h>

#include <algorithm>

#include "base/fresh_process_testing.h"
#include "collective/gpu_testing.h"
#include "collective/lower.h"
#include "distribute/data_parallel/split_batch.h"
#include "exec/plan.h"
#include "function/compile.h"
#include "function/explain_costs.h"
#include "passes/pipeline.h"
#include "simulate/simulate.h"

namespace berth {
namespace {

using namespace collective_tests;
using fresh_process::check;

constexpr int kLayers = 12;
constexpr int64_t kWidth = 64, kReplicaBatch = 32;  // of a replica
constexpr int64_t kLayerBytes = kWidth * kWidth * 4;

// GPUs that add gradients in about the time in which they compute them.
void use_gpus(int n) {
  DeviceManager::configure("test", {}, [n](RuntimeConfig& c) {
    c.simulated_gpus = n;
    c.sim_flops_per_second = 1e9;
    c.sim_bytes_per_second = 1e10;
    c.sim_link_bytes_per_second = 2e7;
  });
}

struct ManyLayers {
  std::vector<Variable> weights;

  ManyLayers() {
    const auto on = device("/GPU:0");
    for (int i = 0; i < kLayers; ++i) {
      weights.emplace_back(ones({kWidth, kWidth}) * 0.01f);
    }
  }

  Graph step(int64_t batch) const {
    return trace({{{batch, kWidth}, float32, "x"}}, {}, [&](Tensors& args) {
      GradientTape tape;
      Tensor h = args[0];
      for (const Variable& w : weights) h = nn::relu(matmul(h, w));
      const Tensor loss = math::reduce_sum(h);
      const Tensors g = tape.gradient(loss, weights);
      for (size_t i = 0; i < weights.size(); ++i) {
        weights[i].assign_sub(g[i] * 0.1f);
      }
      return Tensors{loss};
    });
  }
};

// The step on n GPUs.
std::unique_ptr<Plan> replicated(const ManyLayers& model, int n,
                                 const std::string& algorithm,
                                 int64_t pack_bytes) {
  Graph g = model.step(kReplicaBatch * n);
  run_device_free_passes(g);
  distribute::SplitPlan plan;
  for (const std::string& name : gpus(n)) plan.replicas.push_back({name});
  plan.algorithm = algorithm;
  plan.pack_bytes = pack_bytes;
  distribute::split_batch(g, plan);
  return compile(std::move(g));
}

// The all-reduce of the gradients alone.
std::unique_ptr<Plan> all_reduces(int n, const std::string& algorithm,
                                  int64_t pack_bytes) {
  const auto devices = gpus(n);
  std::vector<TensorSpec> args(static_cast<size_t>(n));
  for (TensorSpec& a : args) a = {{kWidth, kWidth}, float32, "x"};
  AllReduceOptions options{.algorithm = algorithm, .pack_bytes = pack_bytes};
  for (int r = 0; r < n; ++r) options.replicas.push_back(r);
  return compile(trace(args, devices, [&](Tensors& x) {
    Tensors out;
    for (int i = 0; i < kLayers; ++i) {
      Tensors pieces;
      for (int r = 0; r < n; ++r) {
        const auto on = device(devices[static_cast<size_t>(r)]);
        pieces.push_back(x[static_cast<size_t>(r)] + static_cast<float>(i));
      }
      const Tensors sums = all_reduce(pieces, options);
      for (int r = 0; r < n; ++r) {
        const auto on = device(devices[static_cast<size_t>(r)]);
        out.push_back(sums[static_cast<size_t>(r)] + 1.0f);
      }
    }
    return out;
  }));
}

double clock_now() {
  double latest = 0;
  for (Device* d : DeviceManager::get().devices()) {
    if (d->type() != "GPU") continue;
    for (Stream* s : {&d->compute_stream(), &d->copy_stream()}) {
      s->synchronize(s->record());
    }
    latest = std::max(latest, sim::clock_us(*d));
  }
  return latest;
}

// Virtual microseconds of one warm run.
double time_of(Plan& plan) {
  Tensors args;
  for (const int32_t a : plan.graph().args) {
    const Node& node = plan.graph()[a];
    const auto on = device(node.assigned.text());
    args.push_back(ones(node.outputs[0].shape));
  }
  std::vector<const Tensor*> in;
  for (const Tensor& t : args) in.push_back(&t);
  double took = 0;
  for (int i = 0; i < 2; ++i) {
    const double begin = clock_now();
    Tensors out(plan.graph().outputs.size());
    plan.run(in, out);
    took = clock_now() - begin;
  }
  return took;
}

double simulated(const Plan& plan) {
  const CostTable costs = costs_of(plan.graph(), false);
  return simulate(SimulatedGraph(plan.graph()), costs,
                  plan_of(plan.graph(), costs))
      .step_us;
}

struct Times {
  double step, at_once, compute, reduce;

  // Much of what could overlap does (a quarter in a ring of four, more
  // elsewhere), and buckets are the reason.
  void expect_overlap(const std::string& what) const {
    const std::string text = fmt::format(
        "{}: {:.0f} us in buckets, {:.0f} us in one; {:.0f} us of compute and "
        "{:.0f} us of all-reduce",
        what, step, at_once, compute, reduce);
    check(step < compute + reduce - 0.2 * std::min(compute, reduce), text);
    check(step < 0.9 * at_once, text);
  }
};

void overlaps(int n, const std::string& algorithm) {
  use_gpus(n);
  const ManyLayers model;
  const int64_t two_layers = 2 * kLayerBytes;
  const auto packed = replicated(model, n, algorithm, two_layers);
  const auto at_once = replicated(model, n, algorithm, kLayers * kLayerBytes);
  const auto compute = compile(model.step(kReplicaBatch));
  const auto reduce = all_reduces(n, algorithm, two_layers);
  const std::string what = fmt::format("{} on {}", algorithm, n);
  Times{time_of(*packed), time_of(*at_once), time_of(*compute),
        time_of(*reduce)}
      .expect_overlap(what);
  Times{simulated(*packed), simulated(*at_once), simulated(*compute),
        simulated(*reduce)}
      .expect_overlap(what + ", simulated");
}

TEST(Overlap, BucketsHideCopiesBehindTheBackwardPass) {
  IN_A_FRESH_PROCESS(overlaps(2, "direct"));
  IN_A_FRESH_PROCESS(overlaps(4, "direct"));
  IN_A_FRESH_PROCESS(overlaps(4, "ring"));
  IN_A_FRESH_PROCESS(overlaps(4, "hierarchical"));
  IN_A_FRESH_PROCESS(overlaps(2, "one_device"));
}

}  // namespace
}  // namespace berth
