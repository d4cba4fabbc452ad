#include "exec/part_kernels.h"

#include <algorithm>

#include "graph/node_part.h"

namespace berth {

int64_t part_begin(const Node& node, int64_t length, int parts, int part) {
  return has_slices(node.part.get()) ? slice_begin(*node.part, length, part)
                                     : part_begin(length, parts, part);
}

const Shape* unsplit_shape(const Graph& graph, const Node& node) {
  if (node.inputs.empty()) return nullptr;
  if (node.part && node.part->unsplit.rank() > 0) return &node.part->unsplit;
  return &graph.spec(node.inputs[0]).shape;
}

int64_t longest_part(const Node& node, int64_t length, int parts) {
  int64_t longest = 0;
  for (int p = 0; p < parts; ++p) {
    longest = std::max(longest, part_begin(node, length, parts, p + 1) -
                                    part_begin(node, length, parts, p));
  }
  return longest;
}

size_t PartKernels::scratch_bytes() const {
  size_t bytes = 0;
  for (const BoundKernel& k : bound) {
    if (k.state) bytes = std::max(bytes, k.state->scratch_bytes());
  }
  return bytes;
}

const std::vector<SplitSignature>& PartBinder::signatures(int32_t node) {
  const auto [it, fresh] = signatures_.try_emplace(node);
  const Node& n = graph_[node];
  if (!fresh || !n.op->split()) return it->second;
  std::vector<SpecView> in;
  for (const ValueRef& v : n.inputs) in.push_back(graph_.spec(v).view());
  std::vector<OutSpec> out = n.outputs;
  it->second = n.op->split()(InferContext(*n.op, n.attrs.get(), in, out));
  return it->second;
}

int64_t PartBinder::cut_length(int32_t node,
                               const SplitSignature& split) const {
  const Node& n = graph_[node];
  if (split.inputs.size() != n.inputs.size() ||
      split.outputs.size() != n.outputs.size()) {
    return -1;
  }
  int64_t length = -1;
  bool agree = true;
  const auto look = [&](int8_t axis, const Shape& shape) {
    if (axis < 0) return;
    agree &= axis < shape.rank() && (length < 0 || length == shape[axis]);
    if (axis < shape.rank()) length = shape[axis];
  };
  for (size_t i = 0; i < n.inputs.size(); ++i) {
    look(split.inputs[i], graph_.spec(n.inputs[i]).shape);
  }
  for (size_t o = 0; o < n.outputs.size(); ++o) {
    look(split.outputs[o], n.outputs[o].shape);
  }
  if (has_slices(n.part.get()) && !can_cut_slices(*n.part, length)) return -1;
  return agree ? length : -1;
}

const PartKernels* PartBinder::bind(int32_t node, int signature, int parts,
                                    const Device& device) {
  const auto [it, fresh] = bound_.try_emplace({node, signature, parts});
  if (fresh) {
    it->second = make(node, signatures(node)[signature], parts, device);
  }
  return it->second.get();
}

namespace {

// The shape of a part of `length` elements along `axis`.
Shape part_of(Shape shape, int8_t axis, int64_t length) {
  if (axis >= 0) shape[axis] = length;
  return shape;
}

}  // namespace

std::unique_ptr<PartKernels> PartBinder::make(int32_t node,
                                              const SplitSignature& split,
                                              int parts,
                                              const Device& device) const {
  const Node& n = graph_[node];
  const int64_t whole = cut_length(node, split);
  bool dense = true, rows = true;
  const auto look = [&](int8_t axis, const Shape& shape) {
    if (axis < 0 || cut_is_dense(shape, axis)) return;
    dense = false;
    rows &= axis == shape.rank() - 1;
  };
  for (size_t i = 0; i < n.inputs.size(); ++i) {
    look(split.inputs[i], graph_.spec(n.inputs[i]).shape);
  }
  for (size_t o = 0; o < n.outputs.size(); ++o) {
    look(split.outputs[o], n.outputs[o].shape);
  }
  auto result = std::make_unique<PartKernels>();
  // Slices differ by one example, which may be several elements.
  const NodePart* part = n.part.get();
  int64_t unit = 1;
  int lengths = whole % parts == 0 ? 1 : 2;
  result->length = whole / parts;
  if (has_slices(part)) {
    const int64_t examples = examples_of(*part);
    unit = whole / examples;
    lengths = part->batch % part->total == 0 ? 1 : 2;
    result->length = whole * (part->batch / part->total) / examples;
  }
  if (n.op->kind() == OpKind::kAlias) {
    return dense ? std::move(result) : nullptr;
  }
  const auto candidates = device.kernels().candidates(*n.op);
  const bool pitched =
      rows && std::any_of(candidates.begin(), candidates.end(),
                          [](const KernelDef& d) { return d.pitched; });
  if (!dense && !pitched) return nullptr;
  for (int k = 0; k < lengths; ++k) {
    const int64_t length = result->length + k * unit;
    std::vector<Shape> shapes;
    shapes.reserve(n.inputs.size());
    std::vector<SpecView> in;
    for (size_t i = 0; i < n.inputs.size(); ++i) {
      const OutSpec& s = graph_.spec(n.inputs[i]);
      shapes.push_back(part_of(s.shape, split.inputs[i], length));
      in.push_back({s.dtype, &shapes.back(), s.variable});
    }
    std::vector<OutSpec> out = n.outputs;
    for (size_t o = 0; o < out.size(); ++o) {
      out[o].shape = part_of(out[o].shape, split.outputs[o], length);
    }
    BoundKernel& bound = result->bound[static_cast<size_t>(k)];
    bound = bind_kernel(device.kernels(), {n.op, n.attrs.get(), in, out, 1,
                                           unsplit_shape(graph_, n)});
    if (!bound.def || (k > 0 && bound.def != result->def)) return nullptr;
    result->def = bound.def;
  }
  if (!dense && !result->def->pitched) return nullptr;
  return result;
}

}  // namespace berth
