// The devices of this process: their classes, rates and links.

#include "exec/measure_machine.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <fstream>

#include "base/environment.h"
#include "base/immortal.h"
#include "base/thread_pool.h"
#include "device/device_manager.h"
#include "device/machine_memory.h"
#include "device/runtime_config.h"
#include "device/sim_speeds.h"
#include "exec/measure_costs.h"
#include "exec/measure_op.h"
#include "graph/body.h"
#include "place/cost_store.h"

namespace berth {

namespace {

constexpr double kSimLaunchUs = 5;  // backends/sim: of any work

const std::string& cpu_model() {
  static const auto& model = immortal<std::string>([] {
    std::ifstream file("/proc/cpuinfo");
    for (std::string line; std::getline(file, line);) {
      const size_t colon = line.find(": ");
      if (line.rfind("model name", 0) == 0 && colon != std::string::npos) {
        return line.substr(colon + 2);
      }
    }
    return std::string("an unknown CPU");
  }());
  return model;
}

double speed_of(const Device& d) {
  return sim_speed(static_cast<int>(d.name().id.value_or(0)));
}

bool is_far(const Device& d) { return d.name().job != "localhost"; }

// Everything that the speed of the device depends on.
std::string class_name(Device& d, const RuntimeConfig& config) {
  if (d.simulated()) {
    const double times = speed_of(d);
    return fmt::format("simulated {}, {:g} flop/s, {:g} byte/s{}", d.type(),
                       times * config.sim_flops_per_second,
                       times * config.sim_bytes_per_second,
                       config.sim_real_clock ? ", real clock" : "");
  }
  std::string name = d.type() + ", " + d.description();
  if (d.type() != "CPU") return name;
  // "4 cores: 0-3, shared": which ones does not matter.
  const std::string& text = d.description();
  name =
      fmt::format("CPU, {} of {}", text.substr(0, text.find(':')), cpu_model());
  if (text.ends_with("shared")) name += ", shared";
  if (!d.runs_inline()) name += ", own thread";
  if (config.cpu_workers > 0) {
    name += fmt::format(", {} workers", config.cpu_workers);
  }
  if (config.cpu_reference_only) name += ", reference kernels";
  if (const std::string isa = environment("BERTH_ISA"); !isa.empty()) {
    name += fmt::format(", BERTH_ISA={}", isa);
  }
  return name;
}

// What is known without measuring.
DeviceClass class_of_device(Device& d, const RuntimeConfig& config) {
  DeviceClass c = assumed_machine({d.str()}).classes[0];
  if (is_far(d)) {
    c.name = d.str();
    return CostStore::get().find_class(c.name).value_or(c);
  }
  c.name = class_name(d, config);
  if (d.simulated()) {
    c.flops_per_us = speed_of(d) * config.sim_flops_per_second * 1e-6;
    c.bytes_per_us = speed_of(d) * config.sim_bytes_per_second * 1e-6;
    c.launch_us = kSimLaunchUs;
    c.origin = CostOrigin::kDeclared;
  } else if (const auto kept = CostStore::get().find_class(c.name)) {
    c = *kept;
  }
  return c;
}

LinkCost link_between(Device& from, Device& to, const Machine& m,
                      const RuntimeConfig& config) {
  LinkCost link;
  if (from.name().job != to.name().job || from.name().task != to.name().task) {
    link.latency_us = 100;  // a network, until it was measured
    link.bytes_per_us = 1e3;
    const auto kept = CostStore::get().find_link(task_link_key(from, to));
    return kept.value_or(link);
  }
  if (from.simulated() || to.simulated()) {
    link.latency_us = kSimLaunchUs;
    link.bytes_per_us = config.sim_link_bytes_per_second * 1e-6;
    link.origin = CostOrigin::kDeclared;
    return link;
  }
  // One memory: a value is handed over (docs/benchmarks.md, "Core sets"), and
  // no byte is copied.
  if (from.type() == "CPU" && to.type() == "CPU") {
    link.latency_us = 0.5;
    link.bytes_per_us = 1e9;
    link.origin = CostOrigin::kDeclared;
    return link;
  }
  const std::string key =
      link_key(m.class_of(m.find(from.str())), m.class_of(m.find(to.str())));
  return CostStore::get().find_link(key).value_or(link);
}

// A graph of one op on arguments.
Graph one_op(const char* op, const std::vector<Shape>& shapes) {
  Graph g;
  Node n;
  n.op = &op_named(op);
  n.name = op;
  std::vector<SpecView> in;
  for (const Shape& shape : shapes) {
    Node arg;
    arg.op = &op_named("_Arg");
    arg.name = fmt::format("x{}", g.args.size());
    set_arg(arg, static_cast<int64_t>(g.args.size()), float32, shape);
    g.args.push_back(g.add(std::move(arg)));
    n.inputs.push_back({g.args.back(), 0});
  }
  for (const ValueRef& v : n.inputs) in.push_back(g.spec(v).view());
  n.outputs.resize(1);
  infer_outputs(*n.op, nullptr, in, n.outputs);
  g.add(std::move(n));
  return g;
}

// The best of three measurements of an op: what the machine can do when nobody
// else keeps it busy. `otherwise` when it cannot be measured.
double op_us(Device& d, const Graph& g, const MeasureOptions& o,
             double otherwise) {
  double best = -1;
  for (int k = 0; k < 3; ++k) {
    const auto t = measure_op(g, g.size() - 1, d, o);
    if (!t) return otherwise;
    if (best < 0 || t->us < best) best = t->us;
  }
  return best;
}

// What an array of `n` floats takes of a sum of two, and a square product.
Graph sum_of(int64_t n) { return one_op("AddV2", {Shape({n}), Shape({n})}); }
Graph product_of(int64_t n) {
  return one_op("MatMul", {Shape({n, n}), Shape({n, n})});
}

// A device with a memory of its own has an unknown speed: launches must
// be a small part of what is measured.
void measure_card_rates(Device& d, const MeasureOptions& o, DeviceClass* c) {
  constexpr double kLaunches = 20;
  const double enough_us = kLaunches * c->launch_us;
  const auto rate = [&](SizedTime t, double quantity, double otherwise) {
    if (t.us <= 0) return otherwise;
    return quantity / std::max(t.us - c->launch_us, 0.1 * t.us);
  };
  const auto limit = static_cast<int64_t>(d.allocator().info().limit_bytes);
  const int64_t most =
      std::min(kMostMeasuredBytes, limit > 0 ? limit / 8 : kMostMeasuredBytes);
  const SizedTime sum = measure_large_enough(
      (16 << 20) / 12, 4, most / 12, enough_us,
      [&](int64_t n) { return op_us(d, sum_of(n), o, -1); });
  c->bytes_per_us =
      rate(sum, 12.0 * static_cast<double>(sum.size), c->bytes_per_us);
  const SizedTime product = measure_large_enough(
      512, 2, 4096, enough_us,
      [&](int64_t n) { return op_us(d, product_of(n), o, -1); });
  const auto n = static_cast<double>(product.size);
  c->flops_per_us = rate(product, 2 * n * n * n, c->flops_per_us);
}

DeviceClass measure_rates(Device& d, DeviceClass c, const MeasureOptions& o) {
  c.launch_us = op_us(d, sum_of(4), o, c.launch_us);
  c.origin = CostOrigin::kMeasured;
  if (!d.memory().host_addressable) {
    measure_card_rates(d, o, &c);
    return c;
  }
  // Quantity per microsecond, when the launch is left out.
  const auto rate = [&](const Graph& g, double quantity, double otherwise) {
    const double us = op_us(d, g, o, -1);
    if (us <= 0) return otherwise;
    return quantity / std::max(us - c.launch_us, 0.1 * us);
  };
  // Half of what the caches hold, and eight times it.
  c.cache_bytes = cache_bytes_of(d);
  const double fits = c.cache_bytes > 0 ? c.cache_bytes / 2 : 1 << 20;
  const Graph small = sum_of(static_cast<int64_t>(fits) / 12);
  const Graph large = sum_of(static_cast<int64_t>(fits) * 16 / 12);
  const double small_bytes = cost_of(small, small.size() - 1).bytes;
  c.cached_bytes_per_us = rate(small, small_bytes, c.cached_bytes_per_us);
  const double beyond = cost_of(large, large.size() - 1).bytes - c.cache_bytes;
  const double cached_us = c.cache_bytes / c.cached_bytes_per_us;
  const double us = op_us(d, large, o, -1) - c.launch_us - cached_us;
  if (us > 0) c.bytes_per_us = beyond / us;
  const Graph product = product_of(512);
  c.flops_per_us =
      rate(product, cost_of(product, product.size() - 1).flops, c.flops_per_us);
  return c;
}

}  // namespace

DeviceClass rates_of(Device& device) {
  return class_of_device(device, DeviceManager::get().config());
}

double cache_bytes_of(Device& d) {
  if (!d.pool()) return 0;
  const long each = sysconf(_SC_LEVEL2_CACHE_SIZE);
  return static_cast<double>(each > 0 ? each : 1 << 20) * d.pool()->size();
}

SizedTime measure_large_enough(int64_t first, int64_t factor, int64_t most,
                               double enough_us,
                               const std::function<double(int64_t)>& us_of) {
  SizedTime best;
  for (int64_t size = first; best.us < enough_us; size *= factor) {
    if (size > most && best.us >= 0) break;
    const double us = us_of(size);
    if (us < 0) break;
    best = {size, us};
  }
  return best;
}

std::string task_link_key(const Device& from, const Device& to) {
  const auto task = [](const Device& d) {
    return fmt::format("{}:{}", *d.name().job, *d.name().task);
  };
  return fmt::format("task {} -> task {}", task(from), task(to));
}

std::string link_key(const DeviceClass& from, const DeviceClass& to) {
  return from.name + " -> " + to.name;
}

// Relative errors count, so that small copies are as right as large ones:
// minimises the sum of ((latency + bytes * x) / us - 1)^2.
LinkCost fit_link(const std::vector<std::pair<double, double>>& samples) {
  double s0 = 0, s1 = 0, s2 = 0, t0 = 0, t1 = 0;
  for (const auto& [bytes, us] : samples) {
    const double w = 1 / (us * us);
    s0 += w;
    s1 += w * bytes;
    s2 += w * bytes * bytes;
    t0 += w * us;
    t1 += w * bytes * us;
  }
  const double det = s0 * s2 - s1 * s1;
  LinkCost link;
  if (!(det > 0)) return link;
  double latency = (t0 * s2 - t1 * s1) / det;
  double per_byte = (t1 * s0 - t0 * s1) / det;
  if (latency < 0) {
    latency = 0;
    per_byte = t1 / s2;
  }
  if (per_byte <= 0) per_byte = 1e-9;
  link.latency_us = latency;
  link.bytes_per_us = 1 / per_byte;
  link.origin = CostOrigin::kMeasured;
  std::vector<double> errors;
  for (const auto& [bytes, us] : samples) {
    errors.push_back(std::abs((latency + per_byte * bytes) / us - 1));
  }
  std::sort(errors.begin(), errors.end());
  if (!errors.empty()) {
    link.spread = static_cast<float>(errors[errors.size() / 2]);
  }
  return link;
}

Machine this_machine() {
  DeviceManager& manager = DeviceManager::get();
  const RuntimeConfig& config = manager.config();
  Machine m;
  for (Device* d : manager.devices()) {
    const DeviceClass c = class_of_device(*d, config);
    auto it = std::find_if(m.classes.begin(), m.classes.end(),
                           [&](const auto& o) { return o.name == c.name; });
    if (it == m.classes.end()) it = m.classes.insert(it, c);
    DeviceCost cost;
    cost.name = d->str();
    cost.device_class = static_cast<int32_t>(it - m.classes.begin());
    // Memory that happens to be free is not a property of the machine.
    const MemoryInfo memory = d->allocator().info();
    cost.memory_limit = has_default_limit(d->allocator(), memory.limit_bytes)
                            ? 0
                            : static_cast<int64_t>(memory.limit_bytes);
    cost.copies = d->pool() ? CopyRule::kReceiving : CopyRule::kOverlap;
    m.devices.push_back(cost);
  }
  for (Device* from : manager.devices()) {
    for (Device* to : manager.devices()) {
      m.links.push_back(link_between(*from, *to, m, config));
    }
  }
  add_bus(m);
  return m;
}

Device& device_of_class(const Machine& m, int32_t device_class) {
  const auto it = std::find_if(
      m.devices.begin(), m.devices.end(),
      [&](const DeviceCost& d) { return d.device_class == device_class; });
  return DeviceManager::get().lookup(DeviceName::parse(it->name));
}

namespace {

// Measures a link in at most seven sizes. Empty when nothing could be copied.
std::optional<LinkCost> measure_link(Device& from, Device& to, bool quick) {
  std::vector<std::pair<double, double>> samples;
  const int64_t largest = quick ? 1 << 20 : 16 << 20;
  for (int64_t bytes = 4 << 10; bytes <= largest; bytes *= 4) {
    if (const auto t = measure_copy(from, to, bytes, quick ? 2 : 10)) {
      samples.emplace_back(static_cast<double>(bytes), t->us);
    }
  }
  if (samples.size() < 2) return std::nullopt;
  return fit_link(samples);
}

}  // namespace

Machine measure_machine(bool quick, const MeasureOptions& options) {
  Machine m = this_machine();
  DeviceManager& manager = DeviceManager::get();
  const std::vector<Device*>& devices = manager.devices();
  MeasureOptions o = options;
  if (quick) o.op_budget_ms /= 4;
  const auto classes = static_cast<int>(m.classes.size());
  const auto pairs = static_cast<int>(devices.size() * devices.size());
  int done = 0;
  const auto progress = [&](const std::string& what) {
    if (o.progress) o.progress(done++, classes + pairs, what);
  };
  for (int c = 0; c < classes; ++c) {
    DeviceClass& rates = m.classes[static_cast<size_t>(c)];
    progress("rates of " + rates.name);
    if (rates.origin == CostOrigin::kDeclared) continue;
    rates = measure_rates(device_of_class(m, c), rates, o);
    CostStore::get().add_class(rates);
  }
  std::vector<std::string> seen;
  for (size_t from = 0; from < devices.size(); ++from) {
    for (size_t to = 0; to < devices.size(); ++to) {
      Device &a = *devices[from], &b = *devices[to];
      progress(a.short_name() + " -> " + b.short_name());
      LinkCost& link =
          m.link_of(static_cast<int32_t>(from), static_cast<int32_t>(to));
      const std::string key = link_key(m.class_of(static_cast<int32_t>(from)),
                                       m.class_of(static_cast<int32_t>(to)));
      const bool known = std::find(seen.begin(), seen.end(), key) != seen.end();
      if (from == to || link.origin == CostOrigin::kDeclared) continue;
      if (!known) {
        seen.push_back(key);
        if (const auto l = measure_link(a, b, quick)) {
          CostStore::get().add_link(key, *l);
        }
      }
      link = CostStore::get().find_link(key).value_or(link);
    }
  }
  measure_bus(true);
  m.buses.clear();
  add_bus(m);
  CostStore::get().save();
  return m;
}

}  // namespace berth
