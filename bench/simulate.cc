// The simulator: simulations per second of one thread, on a graph of 200 ops
// over four devices; and steps of the MLP and the CNN as predicted from
// measured and from estimated op times, beside how long they take.

#include "place/simulate.h"

#include <random>

#include "bench_common.h"
#include "exec/measure_costs.h"
#include "function/costs_of.h"
#include "place/cost_store.h"
#include "step_models.h"

using namespace berth;
using namespace berth_bench;

namespace {

// Layers of 8 ops, each of which reads two of the layer before.
Graph layered_graph(int ops) {
  static const OpDef& add = op_named("AddV2");
  static const OpDef& arg = op_named("_Arg");
  std::mt19937 random(1);
  Graph g;
  for (int i = 0; i < 8 + ops; ++i) {
    Node n;
    n.name = "n" + std::to_string(i);
    n.op = i < 8 ? &arg : &add;
    if (i >= 8) {
      const int32_t before = i / 8 * 8 - 8;
      for (int k = 0; k < 2; ++k) {
        n.inputs.push_back({before + static_cast<int32_t>(random() % 8), 0});
      }
    }
    n.outputs = {{float32, Shape({64, 64})}};
    g.add(std::move(n));
  }
  return g;
}

void bench_rate(double seconds, CopyRule rule, const char* name) {
  constexpr int kDevices = 4;
  const Graph g = layered_graph(200);
  std::vector<std::string> names;
  for (int d = 0; d < kDevices; ++d) {
    names.push_back("/job:localhost/replica:0/task:0/device:GPU:" +
                    std::to_string(d));
  }
  Machine m = assumed_machine(names);
  for (DeviceCost& d : m.devices) d.copies = rule;
  const CostTable costs = estimate_costs(g, m);
  const SimulatedGraph graph(g);
  PlacePlan plan;
  for (int32_t i = 0; i < g.size(); ++i) {
    plan.device.push_back(i % kDevices);
    if (graph.kind[i] == SimulatedGraph::Kind::kOp) plan.sequence.push_back(i);
  }
  Simulator simulator(graph, costs);
  size_t copies = 0;
  const Timing t =
      measure([&] { copies = simulator.run(plan).transfers.size(); }, seconds);
  Line("simulate", 1)
      .add("rule", name)
      .timing(t, "us", 1e6)
      .add("ops", 200)
      .add("transfers", copies)
      .add("per_second", std::round(1 / t.best))
      .print();
}

// Predictions for a step, and the step.
void bench_prediction(const std::string& model, const Args& args) {
  const std::unique_ptr<StepModel> net = make_step_model(model);
  auto step =
      function([&](const Tensor& x, const Tensor& y) { return (*net)(x, y); },
               {.name = model + "_step"});
  for (int i = 0; i < 50; ++i) step(net->images(i), net->labels(i));
  const Graph placed = parse_graph(step.text("place"));
  const SimulatedGraph graph(placed);
  const auto predict = [&](const CostTable& costs) {
    return simulate(graph, costs, plan_of(placed, costs)).step_us;
  };
  const double rates = predict(estimate_costs(placed, this_machine()));
  const double begin = now_seconds();
  const CostTable costs = costs_of(placed, true);
  const double measuring = now_seconds() - begin;
  const double ops = predict(costs);
  int i = 0;
  const Timing t = measure(
      [&] {
        step(net->images(i), net->labels(i));
        ++i;
      },
      args.seconds);
  Line("simulate_predicted", args.cores)
      .add("model", model)
      .timing(t, "us", 1e6)
      .add("predicted_us", ops)
      .add("estimated_us", rates)
      .add("error", ops / (t.median * 1e6) - 1)
      .add("estimate_error", rates / (t.median * 1e6) - 1)
      .add("ms_to_measure_ops", 1e3 * measuring)
      .print();
}

}  // namespace

int main(int argc, char** argv) {
  const Args args = parse_args(argc, argv);
  // What other runs measured would be another machine's, or busy hours'.
  unsetenv("HOME");
  unsetenv("XDG_CACHE_HOME");
  unsetenv("BERTH_CACHE_DIR");
  if (!use_cores(args.cores)) {
    return skip("simulate", args.cores, "fewer cores than asked for");
  }
  bench_rate(args.seconds / 4, CopyRule::kOverlap, "overlap");
  bench_rate(args.seconds / 4, CopyRule::kBoth, "sum");
  measure_machine(false);
  bench_prediction("mlp", args);
  bench_prediction("cnn", args);
  return 0;
}
