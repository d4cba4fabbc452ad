// The simulator: simulations per second of one thread, and a search's
// evaluations per second, on a graph of 200 ops over four devices; and steps of
// the MLP and the CNN as predicted from measured and from estimated op times,
// beside how long they take.

#include "simulate/simulate.h"

#include <algorithm>
#include <random>

#include "bench_common.h"
#include "exec/measure_costs.h"
#include "function/explain_costs.h"
#include "place/cost_store.h"
#include "simulate/step_timer.h"
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

constexpr int kDevices = 4;

CostTable costs_on(const Graph& g, CopyRule rule) {
  std::vector<std::string> names;
  for (int d = 0; d < kDevices; ++d) {
    names.push_back("/job:localhost/replica:0/task:0/device:GPU:" +
                    std::to_string(d));
  }
  Machine m = assumed_machine(names);
  for (DeviceCost& d : m.devices) d.copies = rule;
  return estimate_costs(g, m);
}

PlacePlan round_robin(const SimulatedGraph& graph) {
  PlacePlan plan;
  for (int32_t i = 0; i < graph.num_nodes(); ++i) {
    plan.device.push_back(i % kDevices);
    if (graph.kind[i] == SimulatedGraph::Kind::kOp) plan.sequence.push_back(i);
  }
  return plan;
}

// Whole simulations, with all that they report.
void bench_rate(double seconds, CopyRule rule, const char* name) {
  const Graph g = layered_graph(200);
  const CostTable costs = costs_on(g, rule);
  const SimulatedGraph graph(g);
  const PlacePlan plan = round_robin(graph);
  size_t copies = 0;
  const Timing t = measure(
      [&] { copies = simulate(graph, costs, plan).transfers.size(); }, seconds);
  Line("simulate", 1)
      .add("rule", name)
      .timing(t, "us", 1e6)
      .add("ops", 200)
      .add("transfers", copies)
      .add("per_second", std::round(1 / t.best))
      .print();
}

// A search's moves: an op to another device, or to another place in the
// sequence, kept when the step is little longer or shorter.
class Walk {
 public:
  Walk(const SimulatedGraph& graph, const CostTable& costs)
      : graph_(graph), timer_(graph, costs), plan_(round_robin(graph)) {
    timer_.run(plan_);
  }

  void move() {
    const auto ops = static_cast<uint32_t>(plan_.sequence.size());
    const auto k = static_cast<int32_t>(random_() % ops);
    // Mostly shorter, at times by up to 1 % longer.
    const double limit =
        timer_.step_us() *
        (1 +
         0.01 * static_cast<double>(random_() % 64 * (random_() % 64)) / 4096);
    random_() % 2 ? change_device(k, limit) : change_place(k, limit);
  }

  double step_us() const { return timer_.step_us(); }

 private:
  void change_device(int32_t k, double limit) {
    int32_t& device = plan_.device[plan_.sequence[k]];
    const int32_t before = device;
    device = (device + 1 + static_cast<int32_t>(random_() % (kDevices - 1))) %
             kDevices;
    if (timer_.try_from(plan_, k, limit) <= limit) {
      timer_.accept();
    } else {
      device = before;
    }
  }

  // Forward by up to 8 places, as far as nobody in between reads it.
  void change_place(int32_t k, double limit) {
    const int32_t op = plan_.sequence[k];
    const auto ops = static_cast<int32_t>(plan_.sequence.size());
    int32_t to = k;
    while (to + 1 < std::min(ops, k + 9) &&
           !reads(plan_.sequence[to + 1], op)) {
      ++to;
    }
    if (to == k) return change_device(k, limit);
    const auto at = plan_.sequence.begin();
    std::rotate(at + k, at + k + 1, at + to + 1);
    if (timer_.try_from(plan_, k, limit) <= limit) {
      timer_.accept();
    } else {
      std::rotate(at + k, at + to, at + to + 1);
    }
  }

  bool reads(int32_t op, int32_t producer) const {
    for (const int32_t v : graph_.reads[op]) {
      if (graph_.producer[v] == producer) return true;
    }
    return false;
  }

  const SimulatedGraph& graph_;
  StepTimer timer_;
  PlacePlan plan_;
  std::minstd_rand random_{1};
};

void bench_evaluations(double seconds, CopyRule rule, const char* name) {
  const Graph g = layered_graph(200);
  const CostTable costs = costs_on(g, rule);
  const SimulatedGraph graph(g);
  Walk walk(graph, costs);
  const double begin = walk.step_us();
  constexpr int kMoves = 20000;
  for (int k = 0; k < 10 * kMoves; ++k) walk.move();  // near a good plan
  const Timing t = measure(
      [&] {
        for (int k = 0; k < kMoves; ++k) walk.move();
      },
      seconds);
  Line("evaluations", 1)
      .add("rule", name)
      .timing(t, "us", 1e6 / kMoves)
      .add("ops", 200)
      .add("shorter_by", begin / walk.step_us())
      .add("per_second", std::round(kMoves / t.best))
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
  bench_evaluations(args.seconds / 4, CopyRule::kFree, "free");
  bench_evaluations(args.seconds / 4, CopyRule::kReceiving, "receiving");
  bench_evaluations(args.seconds / 4, CopyRule::kOverlap, "overlap");
  bench_evaluations(args.seconds / 4, CopyRule::kBoth, "sum");
  measure_machine(false);
  bench_prediction("mlp", args);
  bench_prediction("cnn", args);
  return 0;
}
