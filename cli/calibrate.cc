// berth calibrate: measures this machine, keeps the results and prints them.

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "berth/berth.h"
#include "cli/commands.h"
#include "device/device_manager.h"
#include "exec/measure_costs.h"
#include "function/explain_costs.h"
#include "graph/tracer.h"
#include "place/cost_store.h"

namespace berth::cli {

namespace {

struct CalibrateArguments {
  bool json = false, quick = false, cluster = false;
  std::vector<std::string> ops;
};

// An op on given shapes: one node of a graph.
struct Case {
  Graph graph;
  int32_t node = -1;
  std::string op, shape;
};

using Build = Tensor (*)(const Tensors& x);

Case make_case(const char* op, const std::vector<Shape>& shapes, Build build) {
  Tracer tracer("calibrate");
  Tensors args;
  std::string shape;
  for (const Shape& s : shapes) {
    args.push_back(tracer.add_arg(TensorSpec{s, float32}));
    shape += (shape.empty() ? "" : " ") + s.str();
  }
  tracer.start();
  const Tensors results = {build(args)};
  Case c{tracer.finish(results), -1, op, shape};
  for (int32_t i = 0; i < c.graph.size(); ++i) {
    if (c.graph[i].op->name() == op) c.node = i;
  }
  return c;
}

// Ops of common networks, small and large.
std::vector<Case> common_ops() {
  const Shape tiny({4}), large({1 << 20}), batch({128, 1024});
  const Shape image({16, 32, 32, 16}), filter({3, 3, 16, 32});
  std::vector<Case> cases;
  const auto add = [&](const char* op, const std::vector<Shape>& shapes,
                       Build build) {
    cases.push_back(make_case(op, shapes, build));
  };
  const Build sum = [](const Tensors& x) { return x[0] + x[1]; };
  add("AddV2", {tiny, tiny}, sum);
  add("AddV2", {batch, batch}, sum);
  add("AddV2", {large, large}, sum);
  add("AddV2", {batch, Shape({1024})}, sum);
  add("Mul", {batch, batch}, [](const Tensors& x) { return x[0] * x[1]; });
  const Build product = [](const Tensors& x) {
    return linalg::matmul(x[0], x[1]);
  };
  add("MatMul", {Shape({32, 128}), Shape({128, 10})}, product);
  add("MatMul", {Shape({128, 784}), Shape({784, 256})}, product);
  add("MatMul", {Shape({1024, 1024}), Shape({1024, 1024})}, product);
  add("Relu", {batch}, [](const Tensors& x) { return nn::relu(x[0]); });
  add("Tanh", {batch}, [](const Tensors& x) { return math::tanh(x[0]); });
  add("Exp", {batch}, [](const Tensors& x) { return math::exp(x[0]); });
  add("Sigmoid", {batch}, [](const Tensors& x) { return math::sigmoid(x[0]); });
  add("Softmax", {batch}, [](const Tensors& x) { return nn::softmax(x[0]); });
  add("Sum", {batch},
      [](const Tensors& x) { return math::reduce_sum(x[0], {.axis = {{1}}}); });
  add("Sum", {batch},
      [](const Tensors& x) { return math::reduce_sum(x[0], {.axis = {{0}}}); });
  add("Transpose", {batch}, [](const Tensors& x) { return transpose(x[0]); });
  add("Conv2D", {image, filter}, [](const Tensors& x) {
    return nn::conv2d(x[0], x[1], {.padding = "SAME"});
  });
  add("MaxPool", {image},
      [](const Tensors& x) { return nn::max_pool2d(x[0]); });
  return cases;
}

struct Row {
  std::string device, op, shape;
  double measured_us = 0, spread = 0, estimated_us = 0;
  double error() const { return estimated_us / measured_us - 1; }
};

double median(std::vector<double> v) {
  if (v.empty()) return -1;
  std::sort(v.begin(), v.end());
  const size_t n = v.size();
  return (v[(n - 1) / 2] + v[n / 2]) / 2;
}

double median_error(const std::vector<Row>& rows) {
  std::vector<double> errors;
  for (const Row& r : rows) errors.push_back(std::abs(r.error()));
  return median(std::move(errors));
}

void show_progress(int done, int of, const std::string& what) {
  const bool terminal = isatty(STDERR_FILENO) == 1;
  fmt::print(stderr, "{}[{}/{}] {}{}", terminal ? "\r\033[K" : "", done + 1, of,
             what, terminal ? "" : "\n");
  std::fflush(stderr);
}

// Describes class number `c` by its devices.
std::string devices_of(const Machine& m, int32_t c) {
  std::string names;
  for (const DeviceCost& d : m.devices) {
    if (d.device_class != c) continue;
    const DeviceName name = DeviceName::parse(d.name);
    names +=
        fmt::format("{}{}:{}", names.empty() ? "" : ",", *name.type, *name.id);
  }
  return names;
}

// Returns the devices whose memory is on bus number `b`.
std::string devices_on_bus(const Machine& m, int32_t b) {
  std::string names;
  for (const DeviceCost& d : m.devices) {
    if (d.bus != b) continue;
    const DeviceName name = DeviceName::parse(d.name);
    names +=
        fmt::format("{}{}:{}", names.empty() ? "" : ",", *name.type, *name.id);
  }
  return names;
}

std::vector<Row> measure_ops(const Machine& m, std::vector<Case>& cases,
                             const MeasureOptions& options) {
  std::vector<Row> rows;
  const auto classes = static_cast<int32_t>(m.classes.size());
  const int of = classes * static_cast<int>(cases.size());
  for (int32_t c = 0; c < classes; ++c) {
    for (Case& k : cases) {
      const std::string device = devices_of(m, c);
      options.progress(static_cast<int>(rows.size()), of,
                       device + " " + k.op + " " + k.shape);
      const auto t = measure_on_class(k.graph, k.node, m, c, options);
      if (!t) continue;
      const Cost cost = cost_of(k.graph, k.node);
      rows.push_back({device, k.op, k.shape, t->us, t->spread,
                      estimate_us(cost, m.classes[c])});
    }
  }
  return rows;
}

void print_text(const Machine& m, const std::vector<Row>& rows, bool saved) {
  fmt::print("{:<14} {:>10} {:>10} {:>12} {:>10}  {:<9} {}\n", "device",
             "GFLOP/s", "GB/s", "cached GB/s", "launch us", "origin", "class");
  for (int32_t c = 0; c < static_cast<int32_t>(m.classes.size()); ++c) {
    const DeviceClass& k = m.classes[c];
    const double cached = k.cache_bytes > 0 ? k.cached_bytes_per_us : 0;
    fmt::print("{:<14} {:>10.1f} {:>10.1f} {:>12.1f} {:>10.2f}  {:<9} {}\n",
               devices_of(m, c), k.flops_per_us * 1e-3, k.bytes_per_us * 1e-3,
               cached * 1e-3, k.launch_us, origin_name(k.origin), k.name);
  }
  const auto n = static_cast<int32_t>(m.devices.size());
  if (n > 1) {
    fmt::print("\n{:<14} {:<14} {:>10} {:>12} {:>8}  {}\n", "from", "to",
               "GB/s", "latency us", "spread", "origin");
  }
  const auto short_name = [&](int32_t d) {
    const DeviceName name = DeviceName::parse(m.devices[d].name);
    return fmt::format("{}:{}", *name.type, *name.id);
  };
  for (int32_t a = 0; a < n; ++a) {
    for (int32_t b = 0; b < n; ++b) {
      if (a == b) continue;
      const LinkCost& l = m.link(a, b);
      fmt::print("{:<14} {:<14} {:>10.1f} {:>12.2f} {:>7.0f}%  {}\n",
                 short_name(a), short_name(b), l.bytes_per_us * 1e-3,
                 l.latency_us, 100 * l.spread, origin_name(l.origin));
    }
  }
  for (size_t b = 0; b < m.buses.size(); ++b) {
    fmt::print("memory of {}: {:.1f} GB/s together\n",
               devices_on_bus(m, static_cast<int32_t>(b)),
               m.buses[b].bytes_per_us * 1e-3);
  }
  fmt::print("\n{:<14} {:<12} {:<28} {:>12} {:>8} {:>13} {:>8}\n", "device",
             "op", "shapes", "measured us", "spread", "estimated us", "error");
  for (const Row& r : rows) {
    fmt::print(
        "{:<14} {:<12} {:<28} {:>12.2f} {:>7.0f}% {:>13.2f} {:>+7.0f}%\n",
        r.device, r.op, r.shape, r.measured_us, 100 * r.spread, r.estimated_us,
        std::round(100 * r.error()) + 0.0);  // no "-0%"
  }
  if (!rows.empty()) {
    fmt::print("median error of an estimate: {:.0f}%\n",
               100 * median_error(rows));
  }
  const CostStore& store = CostStore::get();
  if (store.error() >= 0) {
    fmt::print("median error of predicted steps: {:.0f}%\n",
               100 * store.error());
  }
  fmt::print("{}\n", kept_text(saved));
}

void print_json(const Machine& m, const std::vector<Row>& rows, bool saved) {
  using Json = nlohmann::ordered_json;
  Json classes = Json::array(), links = Json::array(), buses = Json::array(),
       ops = Json::array();
  for (int32_t c = 0; c < static_cast<int32_t>(m.classes.size()); ++c) {
    const DeviceClass& k = m.classes[c];
    Json devices = Json::array();
    for (const DeviceCost& d : m.devices) {
      if (d.device_class == c) devices.push_back(d.name);
    }
    classes.push_back({{"class", k.name},
                       {"devices", devices},
                       {"flops_per_us", k.flops_per_us},
                       {"bytes_per_us", k.bytes_per_us},
                       {"cached_bytes_per_us", k.cached_bytes_per_us},
                       {"cache_bytes", k.cache_bytes},
                       {"launch_us", k.launch_us},
                       {"origin", origin_name(k.origin)}});
  }
  const auto n = static_cast<int32_t>(m.devices.size());
  for (int32_t a = 0; a < n; ++a) {
    for (int32_t b = 0; b < n; ++b) {
      if (a == b) continue;
      const LinkCost& l = m.link(a, b);
      links.push_back({{"from", m.devices[a].name},
                       {"to", m.devices[b].name},
                       {"latency_us", l.latency_us},
                       {"bytes_per_us", l.bytes_per_us},
                       {"spread", l.spread},
                       {"origin", origin_name(l.origin)}});
    }
  }
  for (size_t b = 0; b < m.buses.size(); ++b) {
    Json devices = Json::array();
    for (const DeviceCost& d : m.devices) {
      if (d.bus == static_cast<int32_t>(b)) devices.push_back(d.name);
    }
    buses.push_back({{"devices", devices},
                     {"bytes_per_us", m.buses[b].bytes_per_us},
                     {"origin", origin_name(m.buses[b].origin)}});
  }
  for (const Row& r : rows) {
    ops.push_back({{"device", r.device},
                   {"op", r.op},
                   {"shapes", r.shape},
                   {"measured_us", r.measured_us},
                   {"spread", r.spread},
                   {"estimated_us", r.estimated_us},
                   {"error", r.error()}});
  }
  const CostStore& store = CostStore::get();
  const Json all = {{"classes", classes},
                    {"links", links},
                    {"buses", buses},
                    {"ops", ops},
                    {"estimate_error", rows.empty() ? -1 : median_error(rows)},
                    {"prediction_error", store.error()},
                    {"kept_in", saved ? store.path() : ""}};
  fmt::print("{}\n", all.dump());
}

// Keeps the cases of the requested ops.
void choose(std::vector<Case>& cases, const std::vector<std::string>& ops) {
  std::string known;
  for (const Case& c : cases) {
    if (known.find(c.op) == std::string::npos) known += " " + c.op;
  }
  for (const std::string& op : ops) {
    if (std::any_of(cases.begin(), cases.end(),
                    [&](const Case& c) { return c.op == op; })) {
      continue;
    }
    throw UsageError(fmt::format(
        "calibrate --ops: no measurement for '{}'; there are:{}", op, known));
  }
  if (ops.empty()) return;
  std::erase_if(cases, [&](const Case& c) {
    return std::find(ops.begin(), ops.end(), c.op) == ops.end();
  });
}

void run(const CalibrateArguments& o) {
  std::vector<Case> cases = common_ops();
  choose(cases, o.ops);
  MeasureOptions options;
  options.op_budget_ms = o.quick ? 5 : 50;
  options.prepare = &lower_for_devices;
  options.progress = &show_progress;
  for (Case& c : cases) {
    for (Node& n : c.graph.nodes) {
      n.assigned = DeviceManager::get().host().str();
    }
  }
  const Machine m = measure_machine(o.quick, options);
  const std::vector<Row> rows = measure_ops(m, cases, options);
  const bool saved = CostStore::get().save();
  if (isatty(STDERR_FILENO) == 1) fmt::print(stderr, "\r\033[K");
  o.json ? print_json(m, rows, saved) : print_text(m, rows, saved);
}

}  // namespace

std::string kept_text(bool saved) {
  const std::string& path = CostStore::get().path();
  if (path.empty()) return "not kept: set BERTH_CACHE_DIR or HOME";
  if (saved) return "kept in " + path;
  return "not kept: " + path + " cannot be written, or is of another format";
}

void add_calibrate(CLI::App& program) {
  auto options = std::make_shared<CalibrateArguments>();
  CLI::App* calibrate = program.add_subcommand(
      "calibrate",
      "Measures devices, links and common ops, so that estimates fit");
  calibrate->add_flag("--json", options->json, "one line of JSON");
  calibrate->add_flag("--quick", options->quick, "a few seconds");
  calibrate
      ->add_option("--ops", options->ops,
                   "of these ops alone, for "
                   "example MatMul,AddV2")
      ->delimiter(',');
  calibrate->add_flag("--cluster", options->cluster,
                      "the links between the tasks of a cluster instead: each "
                      "task runs it");
  calibrate->callback([options] {
    if (options->cluster && !options->ops.empty()) {
      throw UsageError("calibrate: --ops does not go with --cluster");
    }
    options->cluster ? calibrate_cluster(options->quick, options->json)
                     : run(*options);
  });
}

}  // namespace berth::cli
