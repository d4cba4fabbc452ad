#include "place/node_kernels.h"

#include <algorithm>
#include <functional>

#include "op/kernel.h"

namespace berth {

DType node_dtype(const Graph& graph, const Node& node) {
  for (const ValueRef& v : node.inputs) {
    const OutSpec& s = graph.spec(v);
    if (s.dtype != resource) return s.dtype;
  }
  if (!node.outputs.empty()) return node.outputs[0].dtype;
  return node.inputs.empty() ? float32 : graph.spec(node.inputs[0]).variable;
}

const NodeKernels::Class& NodeKernels::of(const Graph& graph,
                                          const Node& node) {
  const DType dtype = node_dtype(graph, node);
  const OpDef* op = node.op;
  const size_t hash = std::hash<const OpDef*>()(op) / alignof(OpDef) * 31 +
                      static_cast<size_t>(dtype);
  Slot& slot = slots_[hash % slots_.size()];
  if (slot.op != op || slot.dtype != dtype) {
    const auto [it, fresh] = classes_.try_emplace({op, dtype});
    if (fresh) it->second = make(*op, dtype);
    slot = {op, dtype, &it->second};
  }
  return *slot.kernels;
}

NodeKernels::Class NodeKernels::make(const OpDef& op, DType dtype) {
  Class c;
  std::vector<int> priorities(static_cast<size_t>(devices_.num_types()), 0);
  DeviceSet typed = 0;
  for (int32_t d = 0; d < devices_.size(); ++d) {
    const PlaceDevice& p = *devices_[d].given;
    if (devices_.composites().has(d)) continue;
    const bool computes =
        op.kind() == OpKind::kCompute || (p.declares && p.declares(op));
    const bool runs = p.runs ? !computes || p.runs(op, dtype)
                             : !p.kernels || can_run(*p.kernels, op, dtype);
    if (!runs) continue;
    c.devices |= device_bit(d);
    const int32_t t = devices_[d].type;
    if (computes && p.priority && !typed.has(t)) {
      priorities[t] = p.priority(op, dtype);
    }
    typed |= device_bit(t);
  }
  // A node with a kernel anywhere may have its value on a composite device.
  if (c.devices) c.devices |= devices_.composites();
  c.priorities = number(std::move(priorities));
  return c;
}

int32_t NodeKernels::number(std::vector<int> priorities) {
  if (std::all_of(priorities.begin(), priorities.end(),
                  [](int p) { return p == 0; })) {
    return 0;
  }
  const auto [it, fresh] = numbers_.try_emplace(
      priorities, static_cast<int32_t>(priorities_.size()));
  if (fresh) priorities_.push_back(std::move(priorities));
  return it->second;
}

bool NodeKernels::prioritised(DeviceSet devices, int32_t priorities) const {
  if (priorities == 0) return false;
  for (DeviceSet m = devices; m; m.drop_first()) {
    if (priorities_[priorities][devices_[m.first()].type] != 0) return true;
  }
  return false;
}

std::vector<int32_t> NodeKernels::order(DeviceSet devices,
                                        int32_t priorities) const {
  std::vector<int32_t> types;
  for (DeviceSet m = devices; m; m.drop_first()) {
    const int32_t t = devices_[m.first()].type;
    if (std::find(types.begin(), types.end(), t) == types.end()) {
      types.push_back(t);
    }
  }
  std::stable_sort(types.begin(), types.end(), [&](int32_t a, int32_t b) {
    return priorities_[priorities][a] > priorities_[priorities][b];
  });
  return types;
}

int32_t NodeKernels::merge(int32_t a, int32_t b, DeviceSet devices) {
  devices &= ~devices_.composites();
  const bool pa = prioritised(devices, a), pb = prioritised(devices, b);
  if (!pa || !pb) return pa ? a : pb ? b : 0;
  return a == b || order(devices, a) == order(devices, b) ? a : 0;
}

int32_t NodeKernels::first(DeviceSet devices, int32_t priorities) const {
  if (const DeviceSet real = devices & ~devices_.composites()) devices = real;
  int32_t best = devices.first();
  if (priorities == 0) return best;
  const std::vector<int>& p = priorities_[priorities];
  for (DeviceSet m = devices; m; m.drop_first()) {
    const int32_t d = m.first();
    if (p[devices_[d].type] > p[devices_[best].type]) best = d;
  }
  return best;
}

}  // namespace berth
