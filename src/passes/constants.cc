#include "passes/constants.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "berth/config.h"
#include "berth/errors.h"
#include "device/device_manager.h"
#include "graph/node_part.h"
#include "op/device_scope.h"
#include "op/dispatcher.h"
#include "op/kernel.h"
#include "tensor/tensor_impl.h"
#include "tensor/visit_dtype.h"

namespace berth {

const Tensor* constant_of(const Graph& graph, ValueRef v) {
  static const OpDef& op = op_named("Const");
  const Node& node = graph[v.node];
  if (node.op != &op) return nullptr;
  return &node.op->attr<Tensor>(node.attrs.get(), "value");
}

bool is_pure(const Node& node) {
  const OpDef& op = *node.op;
  return op.infer() != nullptr && node.outputs.size() == 1 &&
         node.controls.empty() && !node.has_effect() && !op.random() &&
         !op.has_variables() &&
         (op.kind() == OpKind::kCompute || op.kind() == OpKind::kAlias);
}

std::optional<Tensor> evaluate(const OpDef& op, const AttrsRef& attrs,
                               const Tensors& in) {
  Device& host = DeviceManager::get().host();
  const DispatchGuard eager(nullptr);
  const OnDevice on_host(&host);
  std::vector<const Tensor*> pointers;
  Tensors copies;
  copies.reserve(in.size());
  for (const Tensor& t : in) {
    copies.push_back(copy_to_device(t, host));
    pointers.push_back(&copies.back());
  }
  Tensor out;
  try {
    apply(op, pointers, attrs.get(), {&out, 1});
  } catch (const errors::Error&) {
    return std::nullopt;
  }
  return out;
}

namespace {

// Larger constants are not looked through.
constexpr int64_t kMaxScanned = 1 << 16;

template <class T>
bool all_are(const std::vector<std::byte>& bytes, double value) {
  const T want = convert_element<T>(value);
  for (size_t i = 0; i < bytes.size(); i += sizeof(T)) {
    if (std::memcmp(bytes.data() + i, &want, sizeof want) != 0) return false;
  }
  return true;
}

bool all_are(const Tensor& t, double value) {
  const int64_t n = t.num_elements();
  if (n > kMaxScanned || n == 0 || t.dtype() == string_) return false;
  std::vector<std::byte> bytes(static_cast<size_t>(n) * size_of(t.dtype()));
  t.copy_to(bytes.data());
  return visit_dtype(t.dtype(), "scan", [&](auto type) {
    return all_are<decltype(type)>(bytes, value);
  });
}

bool same_bits(double a, double b) {
  return std::memcmp(&a, &b, sizeof a) == 0;
}

}  // namespace

bool all_elements_are(const Graph& graph, ValueRef v, double value) {
  if (const Tensor* t = constant_of(graph, v)) return all_are(*t, value);
  const Node& node = graph[v.node];
  const std::string& op = node.op->name();
  if (op == "ZerosLike") return same_bits(value, 0.0);
  if (op == "OnesLike") return same_bits(value, 1.0);
  if (op != "Fill") return false;
  return same_bits(node.op->attr<double>(node.attrs.get(), "value"), value);
}

bool may_rewrite(const Graph& graph, const Node& node) {
  if (node.requested.empty() ||
      config::soft_device_placement() != config::SoftPlacement::kError) {
    return true;
  }
  std::vector<SpecView> in;
  for (const ValueRef v : node.inputs) in.push_back(graph.spec(v).view());
  const DType dtype = kernel_dtype(in, node.outputs);
  const DeviceName& asked = node.requested.name();
  const std::vector<Device*>& devices = DeviceManager::get().devices();
  return std::any_of(devices.begin(), devices.end(), [&](const Device* d) {
    return asked.matches(d->name()) && can_run(d->kernels(), *node.op, dtype);
  });
}

void become_constant(Node& node, const Tensor& value) {
  static const OpDef& op = op_named("Const");
  node.op = &op;
  node.attrs = AttrsRef({{"value", value}});
  node.inputs.clear();
  node.outputs = {{value.dtype(), value.shape()}};
  node.part = nullptr;
}

bool become(const Graph& graph, Node& node, const OpDef& op, AttrsRef attrs,
            std::vector<ValueRef> inputs) {
  if (adds_parts(graph, node)) return false;
  std::vector<SpecView> in;
  for (const ValueRef v : inputs) in.push_back(graph.spec(v).view());
  std::vector<OutSpec> out(1);
  try {
    infer_outputs(op, attrs.get(), in, out);
  } catch (const errors::Error&) {
    return false;
  }
  const OutSpec& old = node.outputs[0];
  if (out[0].dtype != old.dtype || !out[0].shape.compatible_with(old.shape)) {
    return false;
  }
  node.op = &op;
  node.attrs = std::move(attrs);
  node.inputs = std::move(inputs);
  node.part = slices_of(node.part);
  // What is known of the shape stays known.
  if (!old.shape.is_fully_defined()) node.outputs = std::move(out);
  return true;
}

}  // namespace berth
