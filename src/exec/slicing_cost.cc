#include "exec/slicing_cost.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/diagnostics.h"
#include "base/thread_pool.h"
#include "graph/node_part.h"

namespace berth {

namespace {

constexpr int8_t kWhole = SplitSignature::kWhole;
constexpr int8_t kPartialSum = SplitSignature::kPartialSum;

double work_of(double flops, double bytes) {
  return std::max(flops / 2, bytes);
}

// A sum that is made at once though it has slices.
void report_uncut(const Node& n, const Device& device) {
  report_once(
      n.op->name() + device.str(),
      {"bits-vary", debugging::Severity::kLint,
       fmt::format("\"{}\" ({} of {}) is not added up slice by slice on {}: no "
                   "kernel adds parts of it; its bits depend on the number of "
                   "replicas",
                   n.name, n.op->name(),
                   n.outputs.empty() ? "nothing" : name_of(n.outputs[0].dtype),
                   device.short_name()),
       n.sources.empty() ? Site{} : n.sources[0].site});
}

double bytes_of(const OutSpec& s) {
  const DType dtype = s.dtype == resource ? s.variable : s.dtype;
  return static_cast<double>(s.shape.num_elements()) *
         static_cast<double>(size_of(dtype));
}

}  // namespace

OpWork work_of_op(const Graph& graph, int32_t node) {
  const Node& n = graph[node];
  if (n.op->graph_only()) return {};
  std::vector<SpecView> in;
  for (const ValueRef& v : n.inputs) in.push_back(graph.spec(v).view());
  std::vector<OutSpec> out = n.outputs;
  OpWork e;
  e.cost = n.op->cost(InferContext(*n.op, n.attrs.get(), in, out));
  e.work = work_of(e.cost.flops, e.cost.bytes);
  return e;
}

SlicingCost::SlicingCost(const Graph& graph, PartBinder& binder)
    : graph_(graph), binder_(binder), add_(op_named("AddV2")) {}

const OpWork& SlicingCost::cost(int32_t node) {
  const auto [it, fresh] = costs_.try_emplace(node);
  if (fresh) it->second = work_of_op(graph_, node);
  return it->second;
}

bool SlicingCost::adds(const SplitSignature& split) {
  return std::find(split.outputs.begin(), split.outputs.end(), kPartialSum) !=
         split.outputs.end();
}

double SlicingCost::work_to_move(const OutSpec& value) {
  return work_of(0, bytes_of(value));
}

const SlicingCost::Fixed& SlicingCost::fixed(int32_t node,
                                             const RegionStream& stream) {
  const auto [it, fresh] = fixed_.try_emplace(node);
  if (fresh) {
    it->second = has_slices(graph_[node].part.get())
                     ? find_slices(node, *stream.device)
                     : find_sum(node, stream);
  }
  return it->second;
}

// By the signature of the part, whatever it costs.
SlicingCost::Fixed SlicingCost::find_slices(int32_t node,
                                            const Device& device) {
  const Node& n = graph_[node];
  const int signature = n.part->signature, parts = n.part->count;
  const auto& rules = binder_.signatures(node);
  if (n.op->kind() != OpKind::kCompute || parts < 2 || signature < 0 ||
      signature >= static_cast<int>(rules.size())) {
    return {};
  }
  const SplitSignature& split = rules[static_cast<size_t>(signature)];
  if (n.op->elementwise() && !adds(split)) return {};
  const bool can =
      can_add(node, split, device) && binder_.cut_length(node, split) >= parts;
  const PartKernels* kernels =
      can ? binder_.bind(node, signature, parts, device) : nullptr;
  if (kernels) return {signature, parts, kernels};
  if (adds(split)) report_uncut(n, device);
  return {};
}

// False when parts would write one result, or cannot be added.
bool SlicingCost::can_add(int32_t node, const SplitSignature& split,
                          const Device& device) const {
  for (size_t o = 0; o < split.outputs.size(); ++o) {
    if (split.outputs[o] == kWhole ||
        (split.outputs[o] == kPartialSum &&
         !device.kernels().supports(add_, graph_[node].outputs[o].dtype))) {
      return false;
    }
  }
  return true;
}

SlicingCost::Fixed SlicingCost::find_sum(int32_t node,
                                         const RegionStream& stream) {
  if (stream.slices < 2 || cost(node).work < stream.rule.tiny) return {};
  const auto& rules = binder_.signatures(node);
  for (size_t i = 0; i < rules.size(); ++i) {
    if (!adds(rules[i]) || rules[i].inputs.empty() || rules[i].inputs[0] != 0) {
      continue;
    }
    const int64_t length = binder_.cut_length(node, rules[i]);
    const auto parts = static_cast<int>(
        std::min<int64_t>({stream.slices, length, ThreadPool::kMaxChunks}));
    if (parts < 2 || extra_work(node, rules[i], parts, stream) < 0) continue;
    const int index = static_cast<int>(i);
    const PartKernels* kernels =
        binder_.bind(node, index, parts, *stream.device);
    if (kernels) return {index, parts, kernels};
  }
  return {};
}

Region SlicingCost::alone(int32_t node, const RegionStream& stream) {
  const Fixed& s = fixed(node, stream);
  Region r;
  r.parts = s.parts;
  r.members.push_back({node});
  if (s.signature >= 0) {
    const auto& rules = binder_.signatures(node);
    r.members[0].split = &rules[static_cast<size_t>(s.signature)];
    r.members[0].kernels = s.kernels;
  }
  return r;
}

double SlicingCost::extra_work(int32_t n, const SplitSignature& split,
                               int parts, const RegionStream& stream) {
  if (binder_.cut_length(n, split) < parts) return -1;
  if (!can_add(n, split, *stream.device)) return -1;
  const Node& node = graph_[n];
  double partial = 0, bytes = 0;
  for (size_t o = 0; o < split.outputs.size(); ++o) {
    const OutSpec& s = node.outputs[o];
    if (split.outputs[o] == kPartialSum) partial += bytes_of(s);
    bytes += bytes_of(s) / (split.outputs[o] >= 0 ? parts : 1);
  }
  if (node.op->kind() == OpKind::kAlias) return 0;
  for (size_t i = 0; i < split.inputs.size(); ++i) {
    bytes += bytes_of(graph_.spec(node.inputs[i])) /
             (split.inputs[i] >= 0 ? parts : 1);
  }
  const OpWork& whole = cost(n);
  const double ideal = whole.work / parts;
  const double slice = work_of(whole.cost.flops / parts, bytes);
  // Written and added once per slice, on as many threads as there are.
  const double add = work_of(0, 2 * partial);
  const double extra = add + std::max(0.0, slice - ideal);
  if (has_slices(node.part.get())) return extra;  // cut all the same
  if (slice > 1.5 * ideal + stream.rule.slack + add) return -1;
  if (add > std::max(stream.rule.sums, 0.05 * ideal)) return -1;
  return extra;
}

}  // namespace berth
