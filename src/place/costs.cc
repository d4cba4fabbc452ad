#include "place/costs.h"

#include <algorithm>
#include <unordered_map>

#include "device/device_name.h"
#include "graph/body.h"
#include "graph/graph_text.h"
#include "op/control_flow.h"
#include "op/kernel.h"

namespace berth {

namespace {

constexpr float kEstimateSpread = 0.5f;
constexpr float kUnknownSpread = 1.0f;

// Rates of devices that have not been measured.
DeviceClass assumed_class(const std::string& type) {
  DeviceClass c;
  c.name = "assumed " + type;
  c.type = type;
  if (type != "CPU") {
    c.flops_per_us = 2e6;
    c.bytes_per_us = 2e5;
    c.launch_us = 5;
  }
  return c;
}

int64_t dim_or_one(int64_t d) { return d < 0 ? 1 : d; }

// A shape without unknown dimensions.
Shape known_shape(const Shape& shape, bool& known) {
  Shape result = shape;
  for (int i = 0; i < shape.rank(); ++i) {
    known &= shape[i] >= 0;
    result[i] = dim_or_one(shape[i]);
  }
  return result;
}

// Handles take no bytes; their variables are counted where they are.
int64_t bytes_of(const OutSpec& spec) {
  bool known = true;
  const int64_t n = known_shape(spec.shape, known).num_elements();
  int64_t bytes = 0;
  if (__builtin_mul_overflow(n, static_cast<int64_t>(size_of(spec.dtype)),
                             &bytes)) {
    return INT64_MAX / 4;
  }
  return std::min(bytes, INT64_MAX / 4);
}

bool takes_time(const OpDef& op) {
  return op.kind() == OpKind::kCompute || op.kind() == OpKind::kCall ||
         op.kind() == OpKind::kControl;
}

DType dtype_of(const Graph& graph, const Node& node) {
  std::vector<SpecView> in;
  for (const ValueRef& v : node.inputs) in.push_back(graph.spec(v).view());
  return kernel_dtype(in, node.outputs);
}

class Estimator {
 public:
  Estimator(const Graph& graph, const Machine& machine,
            const EstimateOptions& options)
      : graph_(graph), options_(options) {
    static_cast<Machine&>(table_) = machine;
  }

  CostTable run() {
    const size_t cells = graph_.nodes.size() * table_.classes.size();
    table_.times.reserve(cells);
    table_.workspace.assign(cells, 0);
    std::vector<int64_t> bytes;
    for (int32_t i = 0; i < graph_.size(); ++i) {
      bytes.clear();
      for (const OutSpec& o : graph_[i].outputs) bytes.push_back(bytes_of(o));
      if (const NodeCost* d = declared(i)) {
        const size_t n = std::min(bytes.size(), d->bytes.size());
        std::copy_n(d->bytes.begin(), n, bytes.begin());
      }
      table_.bytes.add(bytes);
      for (const DeviceClass& c : table_.classes) {
        table_.times.push_back(time_on(i, c));
      }
    }
    return std::move(table_);
  }

 private:
  const NodeCost* declared(int32_t i) const {
    const auto* all = options_.declared;
    if (all == nullptr || static_cast<size_t>(i) >= all->size()) return nullptr;
    return &(*all)[static_cast<size_t>(i)];
  }

  OpTime time_on(int32_t i, const DeviceClass& on) const {
    const Node& n = graph_[i];
    if (const NodeCost* d = declared(i)) {
      for (const std::string* key : {&on.name, &on.type}) {
        for (const auto& [of, us] : d->time_us) {
          if (of == *key) return {us, 0, CostOrigin::kDeclared};
        }
      }
    }
    if (!takes_time(*n.op)) return {0, 0, CostOrigin::kEstimated};
    if (options_.runs && !options_.runs(*n.op, dtype_of(graph_, n), on)) {
      return {};
    }
    if (n.op->kind() != OpKind::kCompute) return time_of_bodies(n, on);
    bool known = true;
    double us = estimate_us(cost_of(graph_, i, &known), on);
    if (meets_others(*n.op)) us += meeting_us(n, on, known);
    return {us, known ? kEstimateSpread : kUnknownSpread,
            CostOrigin::kEstimated};
  }

  // All-reduce: each device sends 2 (N - 1) / N of the bytes. The op that
  // begins it does not wait.
  double meeting_us(const Node& n, const DeviceClass& on, bool& known) const {
    if (n.op->name() != "_AllReduceEnd") return 0;  // of tasks: unknown
    const auto ranks =
        static_cast<double>(n.op->attr<int64_t>(n.attrs.get(), "ranks"));
    const double bytes =
        2 * (ranks - 1) / ranks *
        static_cast<double>(
            known_shape(n.outputs[0].shape, known).num_elements()) *
        static_cast<double>(size_of(n.outputs[0].dtype));
    double us = 0;
    const auto count = static_cast<int32_t>(table_.devices.size());
    for (int32_t from = 0; from < count; ++from) {
      for (int32_t to = 0; to < count; ++to) {
        const bool theirs = from != to && &table_.class_of(from) == &on &&
                            &table_.class_of(to) == &on;
        if (!theirs) continue;
        us = std::max(
            us, table_.link(from, to).time_us(static_cast<int64_t>(bytes)));
      }
    }
    return us;
  }

  // The sum over the called bodies; for a branch the dearer one, for a loop all
  // iterations.
  OpTime time_of_bodies(const Node& n, const DeviceClass& on) const {
    OpTime result{0, kEstimateSpread, CostOrigin::kEstimated};
    const auto sum_of = [&](const Graph* body) {
      double us = 0;
      if (body == nullptr) {
        result.spread = kUnknownSpread;
        return on.launch_us;
      }
      const Estimator inside(*body, Machine{}, {options_.runs, nullptr});
      for (int32_t i = 0; i < body->size(); ++i) {
        const OpTime t = inside.time_on(i, on);
        // A placed op without a kernel here runs elsewhere.
        if (std::isinf(t.us) && !(*body)[i].assigned.empty()) continue;
        us += t.us;
        result.spread = std::max(result.spread, t.spread);
      }
      return us;
    };
    if (n.op->kind() == OpKind::kCall) {
      const auto& f = n.op->attr<std::shared_ptr<Callable>>(n.attrs.get(), "f");
      result.us = sum_of(f ? f->body() : nullptr);
    } else if (!is_loop(*n.op)) {
      const IfLayout l(*n.op, n.attrs.get());
      result.us =
          std::max(sum_of(l.then_branch ? l.then_branch->body() : nullptr),
                   sum_of(l.else_branch ? l.else_branch->body() : nullptr));
    } else {
      const WhileLayout l(*n.op, n.attrs.get());
      const double turn =
          sum_of(l.body->body()) + (l.counted() ? 0 : sum_of(l.cond->body()));
      if (l.max_iterations < 0) result.spread = kUnknownSpread;
      result.us = turn * static_cast<double>(dim_or_one(l.max_iterations));
    }
    return result;
  }

  const Graph& graph_;
  const EstimateOptions options_;
  CostTable table_;
};

}  // namespace

const char* origin_name(CostOrigin origin) {
  constexpr const char* kNames[] = {"none", "estimated", "measured",
                                    "declared"};
  return kNames[static_cast<size_t>(origin)];
}

int32_t Machine::find(const std::string& full_name) const {
  const auto it =
      std::find_if(devices.begin(), devices.end(),
                   [&](const DeviceCost& d) { return d.name == full_name; });
  return it == devices.end() ? -1 : static_cast<int32_t>(it - devices.begin());
}

LinkCost& Machine::link_of(int32_t from, int32_t to) {
  const auto n = static_cast<int32_t>(devices.size());
  if (links.size() == 1 || !host.empty()) {
    std::vector<LinkCost> all;
    for (int32_t a = 0; a < n; ++a) {
      for (int32_t b = 0; b < n; ++b) all.push_back(link(a, b));
    }
    links = std::move(all);
    host.clear();
  }
  return links[link_number(from, to)];
}

LinkNumbers::LinkNumbers(const Machine& m, int32_t first) : end(first) {
  for (int32_t d = 0; d < static_cast<int32_t>(m.devices.size()); ++d) {
    row.push_back(static_cast<int32_t>(m.link_number(d, 0)));
    column.push_back(
        static_cast<int32_t>(m.link_number(0, d) - m.link_number(0, 0)));
  }
  std::unordered_map<int32_t, int32_t> number;
  for (const LinkCost& link : m.links) {
    SharedLinks& now = shared.emplace_back();
    for (const int32_t n : link.shared) {
      const auto [it, added] = number.emplace(n, end);
      end += added ? 1 : 0;
      now.add(it->second);
    }
  }
}

Machine assumed_machine(const std::vector<std::string>& full_names) {
  Machine m;
  for (const std::string& name : full_names) {
    const std::string type = DeviceName::parse(name).type.value_or("CPU");
    auto it = std::find_if(m.classes.begin(), m.classes.end(),
                           [&](const auto& c) { return c.type == type; });
    if (it == m.classes.end()) it = m.classes.insert(it, assumed_class(type));
    const auto number = static_cast<int32_t>(it - m.classes.begin());
    m.devices.push_back(
        {name, number, 0,
         type == "CPU" ? CopyRule::kReceiving : CopyRule::kOverlap});
  }
  m.links.resize(1);
  return m;
}

bool meets_others(const OpDef& op) {
  return op.name() == "_AllReduceStart" || op.name() == "_AllReduceEnd" ||
         op.name() == "_TaskStart" || op.name() == "_TaskEnd";
}

double estimate_us(const Cost& cost, const DeviceClass& on) {
  return on.launch_us +
         std::max(cost.flops / on.flops_per_us, on.moving_us(cost.bytes));
}

double core_us(const Cost& cost, const DeviceClass& on, int cores) {
  DeviceClass one = on;
  one.cached_bytes_per_us /= cores;
  return std::max(cost.flops * cores / on.flops_per_us,
                  one.moving_us(cost.bytes));
}

Cost cost_of(const Graph& graph, int32_t node, bool* known) {
  const Node& n = graph[node];
  bool all_known = true;
  std::vector<Shape> shapes;
  shapes.reserve(n.inputs.size());
  std::vector<SpecView> in;
  for (const ValueRef& v : n.inputs) {
    const OutSpec& s = graph.spec(v);
    shapes.push_back(known_shape(s.shape, all_known));
    in.push_back({s.dtype, &shapes.back(), s.variable});
  }
  std::vector<OutSpec> out = n.outputs;
  for (OutSpec& o : out) o.shape = known_shape(o.shape, all_known);
  Cost cost;
  if (n.op->kind() == OpKind::kCompute) {
    cost = n.op->cost(InferContext(*n.op, n.attrs.get(), in, out));
  }
  // Symbols in lists of attributes are negative numbers.
  if (!(cost.flops >= 0) || !(cost.bytes >= 0)) {
    cost = {};
    all_known = false;
  }
  if (known != nullptr) *known = all_known;
  return cost;
}

CostTable estimate_costs(const Graph& graph, const Machine& machine,
                         const EstimateOptions& options) {
  return Estimator(graph, machine, options).run();
}

}  // namespace berth
