#include "planner/loads.h"

#include <algorithm>
#include <map>

#include "base/infinity.h"

namespace berth {

namespace {

// What a net costs: see LoadProblem.
struct NetCost {
  double touch_us, copies, bytes;
};

// Nets by their units, in which equal ones are merged.
class NetMaker {
 public:
  explicit NetMaker(bool by_links) : by_links_(by_links) {}

  // A value of this producer; `units` may contain it, and duplicates.
  void add(int32_t producer, std::vector<int32_t>& units, const NetCost& cost) {
    units.push_back(producer);
    sort_unique(units);
    if (units.size() < 2 || (!by_links_ && cost.touch_us <= 0)) return;
    // With links it matters which device sends.
    if (by_links_) {
      const auto at = std::ranges::find(units, producer);
      std::rotate(units.begin(), at, at + 1);
    }
    NetCost& net = nets_.try_emplace(units).first->second;
    net.touch_us += cost.touch_us;
    net.copies += cost.copies;
    net.bytes += cost.bytes;
  }

  void finish(LoadProblem& p) {
    std::vector<std::vector<int32_t>> of_units(p.bytes.size());
    for (const auto& [units, cost] : nets_) {
      for (const int32_t u : units) of_units[u].push_back(p.pins.size());
      p.pins.add(units);
      p.touch_us.push_back(cost.touch_us);
      p.copies.push_back(cost.copies);
      p.net_bytes.push_back(cost.bytes);
    }
    p.nets = Rows<int32_t>(of_units);
  }

 private:
  bool by_links_;
  std::map<std::vector<int32_t>, NetCost> nets_;
};

void add_devices(const PlanProblem& p, LoadProblem& l) {
  const size_t devices = p.costs.devices.size();
  l.num_classes = p.costs.classes.size();
  l.by_links = p.touch_us.empty();
  l.copies_to.assign(devices, CopyRule::kFree);
  for (size_t d = 0; d < devices; ++d) {
    const DeviceCost& device = p.costs.devices[d];
    const int32_t number = d;
    l.device_class.push_back(device.device_class);
    l.limit.push_back(device.memory_limit > 0 ? device.memory_limit
                                              : kInfinity);
    if (l.by_links) {
      l.copies_to[d] = device.copies;
    } else if (!p.free_of_touch[d]) {
      l.pays |= device_bit(number);
    }
  }
  if (!l.by_links) return;
  l.routes = std::make_shared<const CopyRoutes>(p.costs);
  for (const LinkCost& link : p.costs.links) {
    l.latency_us.push_back(link.latency_us);
    l.us_per_byte.push_back(1 / link.bytes_per_us);
  }
}

void add_units(const PlanProblem& p, LoadProblem& l) {
  const size_t units = p.num_groups;
  l.work.assign(units * l.num_classes, 0);
  l.bytes.assign(units, 0);
  l.allowed = allowed_of_groups(p);
  for (int32_t i = 0; i < p.num_ops(); ++i) {
    const size_t at = i, unit = p.group[i];
    l.bytes[unit] += p.resident_bytes[at];
    l.bytes[unit] += p.graph.variable_bytes[at];
    if (!p.takes_time(i)) continue;
    for (size_t c = 0; c < l.num_classes; ++c) {
      l.work[unit * l.num_classes + c] +=
          p.costs.times[at * l.num_classes + c].us;
    }
  }
}

void add_nets(const PlanProblem& p, LoadProblem& l) {
  const SimulatedGraph& g = p.graph;
  const std::vector<int32_t> renamed = renamed_values(g);
  std::vector<std::vector<int32_t>> readers(g.producer.size());  // units
  for (int32_t i = 0; i < p.num_ops(); ++i) {
    for (const int32_t v : g.reads[i])
      readers[renamed[v]].push_back(p.group[i]);
  }
  NetMaker maker(l.by_links);
  for (int32_t v = 0; v < std::ssize(readers); ++v) {
    if (readers[v].empty() || g.everywhere[v]) continue;
    maker.add(p.group[g.producer[v]], readers[v],
              {.touch_us = l.by_links ? 0 : p.touch_us[v],
               .copies = 1,
               .bytes = static_cast<double>(p.costs.bytes.item(v))});
  }
  maker.finish(l);
}

void add_copies_of(const LoadProblem& p, int32_t net, int32_t from,
                   DeviceSet readers, std::vector<double>& loads) {
  for (; readers; readers.drop_first()) {
    const int32_t to = readers.first();
    if (to == from) continue;
    const double us = p.copy_us(net, from, to);
    for (const LoadMachine m : p.routes->between(from, to)) loads[m] += us;
  }
}

}  // namespace

LoadProblem::LoadProblem(const PlanProblem& problem) {
  add_devices(problem, *this);
  add_units(problem, *this);
  add_nets(problem, *this);
}

std::vector<double> machine_loads(const LoadProblem& p,
                                  std::span<const int32_t> device) {
  std::vector<double> loads(p.num_machines(), 0);
  for (int32_t u = 0; u < p.num_units(); ++u) {
    loads[device[u]] += p.work_on(u, device[u]);
  }
  for (int32_t n = 0; n < p.num_nets(); ++n) {
    DeviceSet holders = 0;
    for (const int32_t u : p.pins[n]) holders |= device_bit(device[u]);
    if (holders.count() < 2) continue;
    if (p.by_links) {
      add_copies_of(p, n, device[p.pins[n][0]], holders, loads);
      continue;
    }
    for (DeviceSet m = holders & p.pays; m; m.drop_first()) {
      loads[m.first()] += p.touch_us[n];
    }
  }
  return loads;
}

double load_value(const LoadProblem& p, std::span<const int32_t> device) {
  std::vector<double> bytes(p.limit.size(), 0);
  for (int32_t u = 0; u < p.num_units(); ++u) {
    if (!p.allowed[u].has(device[u])) return kInfinity;
    bytes[device[u]] += p.bytes[u];
  }
  for (size_t d = 0; d < bytes.size(); ++d) {
    if (bytes[d] > p.limit[d]) return kInfinity;
  }
  const std::vector<double> loads = machine_loads(p, device);
  return *std::max_element(loads.begin(), loads.end());
}

LoadProblem contract(const LoadProblem& p, std::span<const int32_t> cluster,
                     int32_t num_clusters) {
  LoadProblem c;
  static_cast<LoadDevices&>(c) = p;
  const size_t units = num_clusters;
  c.work.assign(units * c.num_classes, 0);
  c.bytes.assign(units, 0);
  c.allowed.assign(units, ~DeviceSet{0});
  for (int32_t u = 0; u < p.num_units(); ++u) {
    const size_t at = cluster[u];
    for (size_t k = 0; k < c.num_classes; ++k) {
      c.work[at * c.num_classes + k] += p.work[u * c.num_classes + k];
    }
    c.bytes[at] += p.bytes[u];
    c.allowed[at] &= p.allowed[u];
  }
  NetMaker maker(c.by_links);
  std::vector<int32_t> held;
  for (int32_t n = 0; n < p.num_nets(); ++n) {
    held.clear();
    for (const int32_t u : p.pins[n]) held.push_back(cluster[u]);
    const int32_t producer = held[0];
    maker.add(producer, held, {p.touch_us[n], p.copies[n], p.net_bytes[n]});
  }
  maker.finish(c);
  return c;
}

}  // namespace berth
