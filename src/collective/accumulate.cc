// Sums whose parts are made on one device, one after the other.

#include "berth/errors.h"
#include "collective/emit.h"
#include "collective/lower.h"

namespace berth {

namespace {

using Ints = std::vector<int64_t>;

// The parts of a sum, if they are on one device; else nothing.
std::vector<Addend> parts_of(const Graph& graph, const Node& n) {
  const auto& starts = n.op->attr<Ints>(n.attrs.get(), "starts");
  std::vector<Addend> parts;
  for (size_t k = 0; k < n.inputs.size(); ++k) {
    Addend part;
    part.value = n.inputs[k];
    part.device = device_of_maker(graph, part.value);
    if (k < starts.size()) part.start = starts[k];
    parts.push_back(std::move(part));
    if (parts[k].device.empty() || parts[k].device != parts[0].device) {
      return {};
    }
  }
  if (!starts.empty()) find_ends(parts);
  return parts;
}

}  // namespace

void accumulate(Graph& graph) {
  const OpDef& all_reduce = op_named("_AllReduce");
  Emit emit(graph);
  const int32_t size = graph.size();
  for (int32_t i = 0; i < size; ++i) {
    const Node& n = emit.graph()[i];
    if (n.op != &all_reduce ||
        n.op->attr<std::string>(n.attrs.get(), "reduction") == "mean") {
      continue;
    }
    std::vector<Addend> parts = parts_of(emit.graph(), n);
    if (parts.empty()) continue;
    const size_t outputs = n.outputs.size();
    const DeviceId device = parts[0].device;
    ValueRef sum = parts[0].value;
    if (parts[0].start >= 0) {
      parts = add_up(emit, std::move(parts), device, i);
      if (parts.size() != 1) {
        throw errors::Internal("a sum over slices lacks some of them");
      }
      sum = parts[0].value;
    } else {
      for (size_t k = 1; k < parts.size(); ++k) {
        sum = emit.add(sum, parts[k].value, device, i);
      }
    }
    for (size_t o = 0; o < outputs; ++o) {
      emit.replace(i, static_cast<int>(o), sum);
    }
    emit.drop(i, {sum.node});
  }
  emit.finish();
}

}  // namespace berth
