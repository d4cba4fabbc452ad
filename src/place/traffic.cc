#include "place/traffic.h"

#include <algorithm>
#include <unordered_map>

#include "device/memory_space.h"
#include "op/kernel.h"
#include "place/device_table.h"

namespace berth {

namespace {

void add_once(std::vector<int32_t>& list, int32_t value) {
  if (std::find(list.begin(), list.end(), value) == list.end()) {
    list.push_back(value);
  }
}

}  // namespace

Traffic::Traffic(const Graph& graph, const PlaceOptions& options)
    : graph_(graph),
      readers_(graph.nodes.size()),
      outputs_(graph.outputs.begin(), graph.outputs.end()) {
  std::unordered_map<DeviceId, int32_t> numbers;
  for (int32_t i = 0; i < graph.size(); ++i) {
    const Node& n = graph[i];
    const auto [it, fresh] =
        numbers.try_emplace(n.assigned, static_cast<int32_t>(names_.size()));
    if (fresh) names_.push_back(n.assigned);
    placed_.push_back(it->second);
    for (const ValueRef& v : n.inputs) {
      readers_[v.node].push_back({v.output, i});
    }
  }
  device_ = placed_;
  std::unordered_map<std::string, int32_t> memories;
  for (const DeviceId name : names_) {
    const auto number = static_cast<int32_t>(memories.size());
    memory_.push_back(
        memories.try_emplace(memory_of(name), number).first->second);
  }
  for (const DeviceId name : names_) {
    const auto it =
        std::find_if(options.devices.begin(), options.devices.end(),
                     [&](const PlaceDevice& d) { return d.name == name; });
    given_.push_back(it == options.devices.end() ? nullptr : &*it);
  }
}

std::vector<SpecView> Traffic::input_specs(const Node& n) const {
  std::vector<SpecView> in;
  for (const ValueRef& v : n.inputs) in.push_back(graph_.spec(v).view());
  return in;
}

bool Traffic::can_run(int32_t node, int32_t device) const {
  const PlaceDevice* d = given_[device];
  const Node& n = graph_[node];
  if (d == nullptr || n.op->kind() != OpKind::kCompute) return true;
  const DType dtype = kernel_dtype(input_specs(n), n.outputs);
  if (d->runs) return d->runs(*n.op, dtype);
  return d->kernels == nullptr || berth::can_run(*d->kernels, *n.op, dtype);
}

int64_t Traffic::bytes_of(ValueRef v) const {
  const OutSpec& s = graph_.spec(v);
  if (s.dtype == resource || s.dtype == string_ || s.dtype == variant) return 0;
  // A node without inputs or a request is made where it is used.
  const Node& n = graph_[v.node];
  if (n.inputs.empty() && n.requested.empty() &&
      n.op->kind() != OpKind::kArgument) {
    return 0;
  }
  const int64_t elements = s.shape.num_elements();
  return elements < 0 ? 0 : elements * static_cast<int64_t>(size_of(s.dtype));
}

int64_t Traffic::sent(ValueRef v) const {
  const int64_t bytes = bytes_of(v);
  if (bytes == 0) return 0;
  const int32_t home = memory_[device_[v.node]];
  std::vector<int32_t> to;
  auto send_to = [&](int32_t device) {
    if (memory_[device] != home) add_once(to, memory_[device]);
  };
  for (const Reader& r : readers_[v.node]) {
    if (r.output == v.output) send_to(device_[r.node]);
  }
  if (count_results_ && is_result(v)) send_to(placed_[v.node]);
  return bytes * static_cast<int64_t>(to.size());
}

int64_t Traffic::sent(const Border& border) const {
  int64_t sum = 0;
  for (const ValueRef& v : border.in) sum += sent(v);
  for (const ValueRef& v : border.out) sum += sent(v);
  return sum;
}

int64_t Traffic::sent_if(const std::vector<int32_t>& nodes,
                         const std::vector<int32_t>& devices,
                         const Border& border) {
  for (size_t i = 0; i < nodes.size(); ++i) device_[nodes[i]] = devices[i];
  const int64_t bytes = sent(border);
  for (int32_t i : nodes) device_[i] = placed_[i];
  return bytes;
}

Traffic::Border Traffic::border_of(
    const std::vector<int32_t>& sorted_nodes) const {
  Border b;
  for (int32_t i : sorted_nodes) {
    for (const ValueRef& v : graph_[i].inputs) {
      if (!std::binary_search(sorted_nodes.begin(), sorted_nodes.end(),
                              v.node)) {
        b.in.push_back(v);
      }
    }
    for (size_t o = 0; o < graph_[i].outputs.size(); ++o) {
      b.out.push_back({i, static_cast<int32_t>(o)});
    }
  }
  std::sort(b.in.begin(), b.in.end());
  b.in.erase(std::unique(b.in.begin(), b.in.end()), b.in.end());
  return b;
}

std::vector<int32_t> Traffic::neighbours(const Border& border) const {
  std::vector<int32_t> list;
  for (const ValueRef& v : border.in) add_once(list, device_[v.node]);
  for (const ValueRef& v : border.out) {
    for (const Reader& r : readers_[v.node]) {
      if (r.output == v.output) add_once(list, device_[r.node]);
    }
  }
  return list;
}

double Traffic::flops(const std::vector<int32_t>& nodes) const {
  double sum = 0;
  for (int32_t i : nodes) {
    const Node& n = graph_[i];
    if (n.op->kind() != OpKind::kCompute) continue;
    const std::vector<SpecView> in = input_specs(n);
    std::vector<OutSpec> out = n.outputs;
    sum += n.op->cost(InferContext(*n.op, n.attrs.get(), in, out)).flops;
  }
  return sum;
}

}  // namespace berth
