// SimulatedGraph: a graph as the simulator walks it; the plan of a placed one.

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <unordered_map>
#include <utility>

#include "berth/errors.h"
#include "op/op_registry.h"
#include "place/order.h"
#include "place/schedule.h"
#include "simulate/simulate.h"
#include "simulate/step_model.h"

namespace berth {

namespace {

using Kind = SimulatedGraph::Kind;

Kind kind_of(const Node& n) {
  switch (n.op->kind()) {
    case OpKind::kTransfer:
      return Kind::kTransfer;
    case OpKind::kArgument:
    case OpKind::kConstant:
    case OpKind::kHandle:
    case OpKind::kHandleRange:
    case OpKind::kCrossReplica:
      return Kind::kSource;
    case OpKind::kAlias:
    case OpKind::kReadVariable:
      return Kind::kAlias;
    default:
      return Kind::kOp;
  }
}

bool is_small_const(const Node& n) {
  if (n.op->kind() != OpKind::kConstant) return false;
  const OutSpec& s = n.outputs[0];
  const int64_t elements = s.shape.num_elements();
  return elements >= 0 && static_cast<size_t>(elements) * size_of(s.dtype) <=
                              kMaxDuplicatedConstBytes;
}

int64_t bytes_behind(const Node& n) {
  int64_t bytes = 0;
  if (!n.inputs.empty()) return bytes;  // a slice of a variable
  for (const OutSpec& s : n.outputs) {
    if (s.dtype != resource || s.variable == DType::kInvalid) continue;
    bytes += std::max<int64_t>(s.shape.num_elements(), 0) * size_of(s.variable);
  }
  return bytes;
}

// For each item, the rows that contain it.
Rows<int32_t> inverse(const Rows<int32_t>& rows, int32_t num_items) {
  std::vector<int32_t> end(static_cast<size_t>(num_items) + 1, 0);
  for (int32_t i = 0; i < rows.size(); ++i) {
    for (const int32_t item : rows[i]) ++end[item + 1];
  }
  std::partial_sum(end.begin(), end.end(), end.begin());
  std::vector<int32_t> begin(end.begin(), end.end() - 1);
  std::vector<int32_t> all(static_cast<size_t>(end.back()));
  for (int32_t i = 0; i < rows.size(); ++i) {
    for (const int32_t item : rows[i]) all[begin[item]++] = i;
  }
  Rows<int32_t> inverse;
  const std::span<const int32_t> list(all);
  for (int32_t k = 0; k < num_items; ++k) {
    inverse.add(list.subspan(end[k], static_cast<size_t>(end[k + 1] - end[k])));
  }
  return inverse;
}

}  // namespace

bool takes_time(const Node& node) { return kind_of(node) == Kind::kOp; }

SimulatedGraph::SimulatedGraph(const Graph& g) : graph(&g) {
  const auto n = static_cast<size_t>(g.size());
  kind.reserve(n);
  variable_bytes.assign(n, 0);
  std::vector<int32_t> row;
  for (int32_t i = 0; i < g.size(); ++i) {
    kind.push_back(kind_of(g[i]));
    if (kind[i] == Kind::kSource) variable_bytes[i] = bytes_behind(g[i]);
    const bool small = is_small_const(g[i]);
    row.clear();
    for (const OutSpec& s : g[i].outputs) {
      row.push_back(static_cast<int32_t>(producer.size()));
      producer.push_back(i);
      everywhere.push_back(small || s.dtype == resource);
    }
    values.add(row);
  }
  lives_on.assign(producer.size(), 0);
  // A transfer's output stands for its input.
  const auto number = [&](ValueRef v) {
    while (kind[v.node] == Kind::kTransfer) v = g[v.node].inputs[0];
    return values.begin_of(v.node) + v.output;
  };
  for (const ValueRef& v : g.outputs) lives_on[number(v)] = 1;
  alias_of.assign(n, -1);
  for (int32_t i = 0; i < g.size(); ++i) {
    row.clear();
    if (kind[i] != Kind::kTransfer) {
      for (const ValueRef& v : g[i].inputs) row.push_back(number(v));
      if (kind[i] == Kind::kAlias && !row.empty()) alias_of[i] = row[0];
    }
    sort_unique(row);
    reads.add(row);
    row.clear();
    for (int32_t c : g[i].controls) {
      if (kind[i] == Kind::kTransfer) break;
      if (kind[c] == Kind::kTransfer) c = producer[number({c, 0})];
      row.push_back(c);
    }
    sort_unique(row);
    std::erase_if(row, [&](int32_t c) {
      return std::any_of(reads[i].begin(), reads[i].end(),
                         [&](int32_t v) { return producer[v] == c; });
    });
    controls.add(row);
  }
  finish();
}

void SimulatedGraph::finish() {
  Rows<int32_t> waits;
  for (int32_t i = 0; i < num_nodes(); ++i) {
    waits.add(kind[i] == Kind::kSource ? std::span<const int32_t>()
                                       : std::as_const(controls)[i]);
  }
  controls = std::move(waits);
  everywhere.resize(producer.size(), 0);
  lives_on.resize(producer.size(), 0);
  alias_of.resize(kind.size(), -1);
  variable_bytes.resize(kind.size(), 0);
  readers = inverse(reads, static_cast<int32_t>(producer.size()));
  followers = inverse(controls, num_nodes());
}

std::vector<int32_t> renamed_values(const SimulatedGraph& g) {
  std::vector<int32_t> renamed(g.producer.size());
  for (size_t v = 0; v < renamed.size(); ++v) {
    int32_t root = v;
    // What reads a value that is everywhere makes a value of its own.
    while (true) {
      const int32_t of = g.alias_of[g.producer[root]];
      if (of < 0 || g.everywhere[of]) break;
      root = of;
    }
    renamed[v] = root;
  }
  return renamed;
}

PlacePlan plan_of(const Graph& placed, const Machine& machine, bool in_order) {
  std::unordered_map<DeviceId, int32_t> number;
  for (size_t d = 0; d < machine.devices.size(); ++d) {
    number.emplace(machine.devices[d].name, static_cast<int32_t>(d));
  }
  PlacePlan plan;
  plan.device.reserve(placed.nodes.size());
  for (const Node& n : placed.nodes) {
    const auto it = number.find(n.assigned);
    if (it == number.end()) {
      throw errors::InvalidArgument(fmt::format(
          "plan_of: \"{}\" is on \"{}\", for which there are no costs; "
          "expected one of {} devices, first \"{}\"",
          n.name, n.assigned.text(), number.size(),
          machine.devices.empty() ? "" : machine.devices[0].name));
    }
    plan.device.push_back(it->second);
  }
  const WorkOrder work = find_work(placed, in_order);
  for (const int32_t i : work.order) {
    if (takes_time(placed[i])) plan.sequence.push_back(i);
  }
  return plan;
}

}  // namespace berth
