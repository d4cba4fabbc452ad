// What placing costs: rules, partitioning and scheduling of training-like
// graphs of 10,000 and 100,000 nodes on four devices.

#include <fmt/format.h>

#include "bench_common.h"
#include "place/schedule.h"

namespace {

using berth::Graph;
using berth::Node;
using berth::OutSpec;
using berth::Shape;

std::string device(int i) {
  return fmt::format("/job:localhost/replica:0/task:0/device:{}",
                     i < 3 ? fmt::format("GPU:{}", i) : "CPU:0");
}

class Builder {
 public:
  int add(const char* op, std::vector<berth::ValueRef> inputs,
          berth::AttrsRef attrs = {}, int follows = -1) {
    Node n;
    n.name = fmt::format("{}_{}", op, graph.size());
    n.op = &berth::op_named(op);
    n.attrs = std::move(attrs);
    n.inputs = std::move(inputs);
    n.follows = follows;
    n.requested = requested;
    n.sources = {{n.name, berth::Site::here()}};
    if (n.op->num_outputs(n.attrs.get()) > 0) n.outputs = {spec};
    if (n.op->name() == "VarHandleOp") {
      n.outputs[0].dtype = berth::resource;
      n.outputs[0].variable = berth::float32;
    }
    return graph.add(std::move(n));
  }

  Graph graph;
  std::string requested;
  OutSpec spec = {berth::float32, Shape{64, 64}};
};

// Layers of read, matmul, bias and tanh, cut into blocks by device; then
// their gradients, colocated, and updates. About nine nodes per layer.
// `interleaved`: neighbours are on different devices, so that every activation
// and gradient is sent.
Graph training_step(int nodes, bool interleaved) {
  Builder b;
  const int layers = nodes / 9;
  const auto name = [](const std::string& text) {
    return berth::AttrsRef({{"shared_name", text},
                            {"dtype", berth::float32},
                            {"shape", Shape{64, 64}}});
  };
  int x = b.add("_Arg", {},
                berth::AttrsRef({{"index", int64_t{0}},
                                 {"dtype", berth::float32},
                                 {"shape", Shape{64, 64}}}));
  b.graph.args = {x};
  struct Layer {
    int handle, read, matmul, out;
  };
  std::vector<Layer> stack;
  for (int i = 0; i < layers; ++i) {
    const int block = static_cast<int>(int64_t{i} * 4 / layers);
    b.requested = device(interleaved ? i % 4 : block);
    const int h = b.add("VarHandleOp", {}, name(fmt::format("w{}", i)));
    const int r = b.add("ReadVariableOp", {{h, 0}});
    const int m = b.add("MatMul", {{x, 0}, {r, 0}});
    const int y = b.add("Tanh", {{m, 0}});
    stack.push_back({h, r, m, y});
    x = y;
  }
  b.requested.clear();
  int grad = x;
  for (int i = layers - 1; i >= 0; --i) {
    const Layer& l = stack[i];
    const int in = i > 0 ? stack[i - 1].out : 0;
    const int g = b.add("Mul", {{grad, 0}, {l.out, 0}}, {}, l.out);
    const int dw = b.add("MatMul", {{in, 0}, {g, 0}}, {}, l.matmul);
    grad = b.add("MatMul", {{g, 0}, {l.read, 0}}, {}, l.matmul);
    const int step = b.add("Neg", {{dw, 0}}, {}, dw);
    const int u = b.add("AssignAddVariableOp", {{l.handle, 0}, {step, 0}});
    b.graph[u].controls = {l.read, grad};
    std::sort(b.graph[u].controls.begin(), b.graph[u].controls.end());
  }
  b.graph.outputs = {{x, 0}};
  return std::move(b.graph);
}

void run(int nodes, bool interleaved, double seconds) {
  const Graph graph = training_step(nodes, interleaved);
  berth::PlaceOptions options;
  for (int i = 0; i < 4; ++i) options.devices.push_back({device(i)});
  options.keep_assigned = false;
  Graph placed = graph;
  const auto place = berth_bench::measure_blocks(
      [&] { berth::place(placed, options); }, seconds / 3, 1);
  berth::PlaceOptions tensorflow = options;
  tensorflow.policy = berth::PlacePolicy::kTensorFlow;
  Graph theirs = graph;
  const auto by_theirs = berth_bench::measure_blocks(
      [&] { berth::place(theirs, tensorflow); }, seconds / 6, 1);
  // partition() consumes its graph: the copies are made outside the clock.
  std::vector<double> times;
  Graph cut;
  for (int i = 0; i < 7; ++i) {
    cut = placed;
    const double start = berth_bench::now_seconds();
    berth::partition(cut);
    times.push_back(berth_bench::now_seconds() - start);
  }
  const auto partition = berth_bench::summarize(times);
  berth::Schedule schedule;
  const auto order = berth_bench::measure_blocks(
      [&] { schedule = berth::make_schedule(cut); }, seconds / 3, 1);
  size_t waits = 0;
  for (const auto& step : schedule.steps) waits += step.waits.size();
  const auto line = [&](const char* what, const berth_bench::Timing& t) {
    berth_bench::Line(what, 1)
        .add("nodes", graph.size())
        .add("devices", 4)
        .add("layers", interleaved ? "interleaved" : "blocks")
        .timing(t, "ms", 1e3)
        .add("transfers", cut.size() - graph.size())
        .add("steps", schedule.steps.size())
        .add("waits", waits)
        .print();
  };
  line("place_rules", place);
  line("place_rules_tensorflow", by_theirs);
  line("place_partition", partition);
  line("place_schedule", order);
}

// Graphs that would show work per pair of nodes.
enum class Adverse { kOneGroup, kGroupsOfTwo, kVariable, kFollowers, kAliases };

Graph adverse(int nodes, Adverse kind) {
  Builder b;
  const auto arg = berth::AttrsRef({{"index", int64_t{0}},
                                    {"dtype", berth::float32},
                                    {"shape", Shape{64, 64}}});
  int last = b.add("_Arg", {}, arg);
  b.graph.args = {last};
  if (kind == Adverse::kVariable) {
    last = b.add("VarHandleOp", {},
                 berth::AttrsRef({{"shared_name", std::string("w")},
                                  {"dtype", berth::float32},
                                  {"shape", Shape{64, 64}}}));
  }
  for (int i = b.graph.size(); i < nodes; ++i) {
    switch (kind) {
      case Adverse::kOneGroup:
      case Adverse::kGroupsOfTwo:
        last = b.add("Tanh", {{last, 0}});
        b.graph[last].colocated = {
            kind == Adverse::kOneGroup ? "g" : fmt::format("g{}", i / 2)};
        break;
      case Adverse::kVariable:
        b.add("ReadVariableOp", {{last, 0}});
        break;
      case Adverse::kFollowers:
        last = b.add("Tanh", {{last, 0}}, {}, i + 1 < nodes ? i + 1 : -1);
        break;
      case Adverse::kAliases:
        last = b.add("Identity", {{last, 0}});
    }
  }
  return std::move(b.graph);
}

void run_adverse(int nodes, double seconds) {
  const char* names[] = {"one_group", "groups_of_two", "one_variable",
                         "followers", "aliases"};
  for (int k = 0; k < 5; ++k) {
    Graph graph = adverse(nodes, static_cast<Adverse>(k));
    berth::PlaceOptions options;
    for (int i = 0; i < 4; ++i) options.devices.push_back({device(i)});
    options.keep_assigned = false;
    const auto t = berth_bench::measure_blocks(
        [&] { berth::place(graph, options); }, seconds / 5, 1);
    berth_bench::Line("place_rules", 1)
        .add("nodes", graph.size())
        .add("devices", 4)
        .add("layers", names[k])
        .timing(t, "ms", 1e3)
        .print();
  }
}

}  // namespace

int main(int argc, char** argv) {
  const berth_bench::Args args = berth_bench::parse_args(argc, argv);
  for (int nodes : {10000, 100000}) {
    for (bool interleaved : {false, true}) {
      run(nodes, interleaved, args.seconds / 2);
    }
    run_adverse(nodes, args.seconds / 2);
  }
  return 0;
}
