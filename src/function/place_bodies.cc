#include "function/place_bodies.h"

#include <algorithm>
#include <string>

#include "device/device_manager.h"
#include "exec/part_kernels.h"
#include "op/control_flow.h"
#include "op/kernel.h"

namespace berth {

namespace {

DType kernel_dtype_of(const Node& n, const Graph& g) {
  std::vector<SpecView> in;
  for (const ValueRef& v : n.inputs) in.push_back(g.spec(v).view());
  return kernel_dtype(in, n.outputs);
}

// The label of the kernel that is tried first.
std::string first_label(const Device& d, const OpDef& op, DType dtype) {
  for (const KernelDef& k : d.kernels().candidates(op)) {
    if (k.dtypes & dtype_bit(dtype)) return k.label;
  }
  return {};
}

}  // namespace

bool has_kernel(const Node& n, const Graph& g) {
  const Device& d = DeviceManager::get().lookup(n.assigned.name());
  std::vector<SpecView> in;
  for (const ValueRef& v : n.inputs) in.push_back(g.spec(v).view());
  return takes(d.kernels(), {n.op, n.attrs.get(), in, n.outputs, 1,
                             n.part ? unsplit_shape(g, n) : nullptr});
}

bool can_fuse(DeviceId device, DType dtype) {
  static const OpDef& op = op_named("_Fused");
  const Device& d = DeviceManager::get().lookup(device.name());
  return d.kernels().supports(op, dtype);
}

bool can_fuse_product(const Node& n, const Graph& g) {
  static const OpDef& op = op_named("_FusedMatMul");
  const Device& d = DeviceManager::get().lookup(n.assigned.name());
  return d.kernels().supports(op, kernel_dtype_of(n, g));
}

bool can_merge(const Node& n, const Graph& g) {
  static const OpDef& op = op_named("_MultiApply");
  const Device& d = DeviceManager::get().lookup(n.assigned.name());
  const DType dtype = kernel_dtype_of(n, g);
  if (!d.kernels().supports(op, dtype)) return false;
  // A direct kernel is called once per update; others must be able to merge.
  return d.kernels().fast(n.op->id(), dtype) != nullptr ||
         first_label(d, op, dtype) == first_label(d, *n.op, dtype);
}

MergeLimits merge_limits(const Node& n) {
  const Device& d = DeviceManager::get().lookup(n.assigned.name());
  if (d.memory().host_addressable || d.simulated()) return {};
  // A launch costs as much as millions of elements; gradients that wait for
  // each other hold less than 64 MiB.
  return {int64_t{1} << 22, int64_t{1} << 24};
}

void request_arguments(Graph& body, DeviceId device) {
  for (const int32_t a : body.args) body[a].requested = device;
}

size_t num_vars_of(const Node& node, const std::string& role) {
  if (role != "body") return 0;
  return static_cast<size_t>(
      node.op->attr<int64_t>(node.attrs.get(), "num_vars"));
}

void own_results(Graph& g, DeviceId device, size_t num_vars) {
  static const OpDef& copy = op_named("DeepCopy");
  std::vector<ValueRef> taken;
  for (size_t i = 0; i < g.outputs.size(); ++i) {
    ValueRef& out = g.outputs[i];
    if (i < num_vars && out == ValueRef{g.args[i], 0}) continue;
    ValueRef root = out;
    bool whole = true;
    while (g[root.node].op->kind() == OpKind::kAlias) {
      whole = whole && g[root.node].op->name() != "_Rows";
      root = g[root.node].inputs[0];
    }
    const OpKind kind = g[root.node].op->kind();
    const bool own = whole && !g[root.node].op->graph_only() &&
                     kind != OpKind::kReadVariable &&
                     g[out.node].assigned == device &&
                     std::find(taken.begin(), taken.end(), root) == taken.end();
    if (own) {
      taken.push_back(root);
      continue;
    }
    Node n;
    n.op = &copy;
    n.name = unique_name(g, "result");
    n.inputs = {out};
    n.outputs = {g.spec(out)};
    n.assigned = device;
    n.sources = g[out.node].sources;
    out = {g.add(std::move(n)), 0};
  }
}

}  // namespace berth
