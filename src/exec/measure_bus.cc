// The memory that core sets share: what it gives one of them is in the rates of
// its class, what it gives all of them at once is measured here.

#include <algorithm>
#include <thread>

#include "device/device_manager.h"
#include "exec/measure_costs.h"
#include "exec/measure_machine.h"
#include "exec/measure_op.h"
#include "graph/graph_text.h"
#include "place/cost_store.h"

namespace berth {

namespace {

// Core sets with caches of their own: not those that share cores.
std::vector<int32_t> core_sets(const Machine& m) {
  std::vector<int32_t> sets;
  for (size_t d = 0; d < m.devices.size(); ++d) {
    const DeviceClass& c = m.class_of(static_cast<int32_t>(d));
    if (c.type == "CPU") sets.push_back(static_cast<int32_t>(d));
  }
  return sets;
}

// "memory of <class> + <class>": what it is kept under.
std::string bus_key(const Machine& m, const std::vector<int32_t>& sets) {
  std::vector<std::string> names;
  for (const int32_t d : sets) names.push_back(m.class_of(d).name);
  std::sort(names.begin(), names.end());
  std::string key = "memory of ";
  for (const std::string& name : names) {
    key += (&name == &names[0] ? "" : " + ") + name;
  }
  return key;
}

// A sum of two arrays, eight times what the caches hold.
Graph large_sum(Device& device) {
  const double caches = std::max(cache_bytes_of(device), 1024.0 * 1024);
  const auto n = static_cast<int64_t>(caches * 8 / 12);
  const std::string shape = "[" + std::to_string(n) + "]";
  Graph g = parse_graph(
      "berth-graph 1\n"
      "node a = _Arg() {index = 0, dtype = float32, shape = shape" +
      shape + "} -> float32" + shape +
      "\n"
      "node b = _Arg() {index = 1, dtype = float32, shape = shape" +
      shape + "} -> float32" + shape +
      "\n"
      "node y = AddV2(a:0, b:0) -> float32" +
      shape + "\n");
  return g;
}

}  // namespace

void add_bus(Machine& m) {
  const std::vector<int32_t> sets = core_sets(m);
  if (sets.size() < 2) return;
  const auto kept = CostStore::get().find_class(bus_key(m, sets));
  if (!kept) return;
  const auto bus = static_cast<int32_t>(m.buses.size());
  m.buses.push_back({kept->bytes_per_us, kept->origin});
  for (const int32_t d : sets) m.devices[d].bus = bus;
}

void measure_bus(bool again) {
  const Machine m = this_machine();
  const std::vector<int32_t> sets = core_sets(m);
  if (sets.size() < 2 || (!again && !m.buses.empty())) return;
  std::vector<double> rates(sets.size(), 0);
  std::vector<std::thread> threads;
  for (size_t i = 0; i < sets.size(); ++i) {
    threads.emplace_back([&, i] {
      Device& d = DeviceManager::get().lookup(
          DeviceName::parse(m.devices[sets[i]].name));
      const Graph g = large_sum(d);
      MeasureOptions options;
      options.op_budget_ms = 40;
      const auto t = measure_op(g, g.size() - 1, d, options);
      if (t) rates[i] = cost_of(g, g.size() - 1).bytes / t->us;
    });
  }
  for (std::thread& t : threads) t.join();
  DeviceClass bus;
  bus.name = bus_key(m, sets);
  bus.type = "bus";
  bus.bytes_per_us = 0;
  for (const double rate : rates) {
    if (rate <= 0) return;
    bus.bytes_per_us += rate;
  }
  bus.origin = CostOrigin::kMeasured;
  CostStore::get().add_class(bus);
  CostStore::get().save();
}

}  // namespace berth
