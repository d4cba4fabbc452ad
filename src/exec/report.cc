#include "exec/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <unordered_map>
#include <unordered_set>

#include "device/device_manager.h"
#include "exec/control_flow.h"
#include "exec/plan_impl.h"
#include "place/placer.h"

namespace berth {

namespace {

Site site_of(const Node& n) {
  return n.sources.empty() ? Site{} : n.sources.front().site;
}

// Nodes of a placed graph by name, as placed and as traced.
class PlacedNames {
 public:
  explicit PlacedNames(const PlacedGraph* placed) : placed_(placed) {
    if (placed == nullptr) return;
    const Graph& g = placed->graph;
    for (int32_t i = 0; i < g.size(); ++i) nodes_.try_emplace(g[i].name, i);
    for (int32_t i = 0; i < g.size(); ++i) {
      for (const NodeSource& s : g[i].sources) nodes_.try_emplace(s.name, i);
    }
  }
  // The placed node that became `n`; -1: none.
  int32_t find(const Node& n) const {
    if (const auto it = nodes_.find(n.name); it != nodes_.end()) {
      return it->second;
    }
    for (const NodeSource& s : n.sources) {
      if (const auto it = nodes_.find(s.name); it != nodes_.end()) {
        return it->second;
      }
    }
    return -1;
  }
  std::string reason(const Node& n) const {
    const int32_t at = find(n);
    if (at < 0) return "";
    for (const PlaceFallback& f : placed_->placement.fallbacks) {
      if (f.node != at) continue;
      return fmt::format("on {}, asked for \"{}\": {}",
                         short_device(placed_->graph[at].assigned),
                         f.requested.text(), f.reason);
    }
    return explain(placed_->graph, placed_->placement, at);
  }

 private:
  const PlacedGraph* placed_;
  std::unordered_map<std::string, int32_t> nodes_;
};

const PlacedGraph* body_at(const PlacedGraph* placed, const std::string& path) {
  if (placed == nullptr) return nullptr;
  for (const PlacedGraph& b : placed->bodies) {
    if (b.path == path) return &b;
  }
  return nullptr;
}

class Reporter {
 public:
  Reporter(StepWork& work, Plan::Impl& top, const std::vector<int64_t>* since)
      : w_(work), top_(top), since_(since) {
    top.harvest_all();
    std::lock_guard lock(top.mutex);
    steps_ = top.record.runs;
  }

  void run(const PlacedGraph& placed, std::span<const Tensor* const> next) {
    w_.report.name = top_.graph.name;
    w_.report.steps = steps_;
    add_plan(top_, &placed, "", next, false);
    {
      std::lock_guard lock(top_.mutex);
      w_.report.measured_step_us = top_.record.median_step_us();
    }
    for (auto& [name, d] : devices_) {
      d.peak_bytes =
          d.arena_bytes + d.output_bytes + d.variable_bytes + d.other_bytes;
      w_.report.devices.push_back(d);
    }
    std::stable_sort(
        w_.holders.begin(), w_.holders.end(),
        [](const auto& a, const auto& b) { return a.bytes > b.bytes; });
    add_merged(placed);
    add_requests(placed);
  }

 private:
  // One plan: the step itself, or a body.
  struct Part {
    Plan::Impl& plan;
    const Program& program;
    const PlacedNames names;
    std::string path;  // "While/body/" or ""
    RunRecord record;
    double per_step;  // runs
    std::vector<std::vector<int32_t>> users;
    std::vector<int32_t> row_of_node;  // in report.ops; -1: none
    bool nested;
    bool maybe;  // in a branch

    // In the step that measured_step_us tells of. Bodies run often, or not, in
    // one: theirs are means.
    double us(size_t s) const {
      return nested ? record.mean_us(s) : record.typical_us(s);
    }
  };

  placement::DeviceRow& device(const Device& d) {
    auto& row = devices_[d.str()];
    row.device = d.str();
    return row;
  }

  void add_plan(Plan::Impl& plan, const PlacedGraph* placed,
                const std::string& path, std::span<const Tensor* const> next,
                bool maybe) {
    const bool nested = !path.empty();
    if (nested) plan.harvest_all();
    Part part{plan,
              *plan.program,
              PlacedNames(placed),
              path,
              {},
              0,
              plan.graph.users(),
              std::vector<int32_t>(plan.graph.nodes.size(), -1),
              nested,
              maybe};
    {
      std::lock_guard lock(plan.mutex);
      part.record = plan.record;
    }
    part.per_step = runs_per_step(part.record.runs, nested);
    runs_[path] = part.per_step;
    for (size_t s = 0; s < part.program.steps.size(); ++s) add_ops(part, s);
    for (size_t s = 0; s < part.program.steps.size(); ++s) {
      if (part.program.steps[s].kind == StepKind::kTransfer) {
        for (int k = 0; k < part.program.steps[s].num_ops; ++k) {
          add_transfer(part, s, k);
        }
      }
      if (part.program.steps[s].kind == StepKind::kControl) {
        add_bodies(part, part.program.steps[s], placed);
      }
    }
    if (!nested) add_arguments(part, next);
    add_memory(part);
  }

  // Called once per part, in the order of body_runs().
  double runs_per_step(int64_t runs, bool nested) {
    if (since_ == nullptr) {
      return steps_ == 0
                 ? 0
                 : static_cast<double>(runs) / static_cast<double>(steps_);
    }
    if (!nested) return 1;
    return static_cast<double>(runs - since_->at(next_body_++));
  }

  void add_ops(Part& part, size_t s) {
    const PlanStep& step = part.program.steps[s];
    if (step.kind == StepKind::kNothing || step.kind == StepKind::kTransfer) {
      return;
    }
    const Device& on = *part.program.streams[step.stream].device;
    double us = part.us(s);
    placement::DeviceRow& d = device(on);
    // Bodies have times of their own.
    if (us >= 0 && step.kind != StepKind::kControl) {
      d.measured_busy_us =
          std::max(0.0, d.measured_busy_us) + us * part.per_step;
    }
    for (int k = step.first_op; k < step.first_op + step.num_ops; ++k) {
      const PlanOp& op = part.program.ops[k];
      if (op.kind == StepKind::kNothing) continue;
      const Node& node = part.plan.graph[op.node];
      ++d.ops;
      placement::OpRow row;
      row.op = part.path + node.name;
      row.collective = node.collective;
      row.type = op.op->name();
      row.device = on.str();
      row.requested = node.requested.text();
      if (op.def() != nullptr) row.kernel = op.def()->label;
      row.runs_per_step = part.per_step;
      row.measured_us = us;
      us = -1;
      row.site = site_of(node);
      std::vector<ContractChainRef> contracts;
      for (const NodeSource& source : node.sources) {
        row.sources.push_back(source.name);
        if (source.contracts) contracts.push_back(source.contracts);
      }
      part.row_of_node[op.node] = static_cast<int32_t>(w_.report.ops.size());
      w_.report.ops.push_back(std::move(row));
      w_.contracts.push_back(std::move(contracts));
    }
  }

  // Ops that read a value, also through aliases.
  void find_readers(const Part& part, ValueRef v, std::vector<int32_t>& rows,
                    const Node** first) const {
    for (int32_t user : part.users[v.node]) {
      const Node& n = part.plan.graph[user];
      if (std::find(n.inputs.begin(), n.inputs.end(), v) == n.inputs.end()) {
        continue;
      }
      const int32_t row = part.row_of_node[user];
      if (row >= 0) {
        if (*first == nullptr) *first = &n;
        rows.push_back(row);
      } else if (n.op->kind() == OpKind::kAlias) {
        find_readers(part, {user, 0}, rows, first);
      }
    }
  }

  // Fills in the reader of the value and why it is there.
  void add_edge(const Part& part, ValueRef value, placement::TransferRow row,
                StepWork::Edge edge) {
    const Node* first = nullptr;
    find_readers(part, value, edge.readers, &first);
    row.collective = part.plan.graph[value.node].collective;
    for (int32_t r : edge.readers) {
      const placement::OpRow& reader = w_.report.ops[static_cast<size_t>(r)];
      row.readers.push_back(reader.op);
      row.collective = row.collective || reader.collective;
    }
    row.cause = edge.argument ? "an argument; " : "";
    const auto& users = part.users[value.node];
    const bool passed_on =
        std::any_of(users.begin(), users.end(), [&](int32_t u) {
          return part.plan.graph[u].op->kind() == OpKind::kTransfer;
        });
    // Who asked for a device: the reader rather than what made the value.
    const Node& producer =
        part.plan.graph[value.node].op->kind() == OpKind::kTransfer
            ? part.plan.graph[part.plan.graph[value.node].inputs[0].node]
            : part.plan.graph[value.node];
    const bool by_reader =
        first && (!first->requested.empty() || producer.requested.empty());
    if (by_reader && asked_at(*first).file) row.site = asked_at(*first);
    if (first == nullptr && edge.argument && passed_on) {
      row.cause += "read on several devices, it waits on the host";
    } else if (first == nullptr) {
      row.cause += "a result";
    } else {
      row.cause += fmt::format("read by \"{}\"", part.path + first->name);
      if (edge.readers.size() > 1) {
        row.cause += fmt::format(" and {} more", edge.readers.size() - 1);
      }
      const std::string why = part.names.reason(*first);
      if (!why.empty()) row.cause += ", " + why;
    }
    w_.report.transfers.push_back(std::move(row));
    w_.edges.push_back(std::move(edge));
  }

  // The time of a step of several counts for the first of them.
  void add_transfer(Part& part, size_t s, int member) {
    const PlanStep& step = part.program.steps[s];
    const PlanOp& op = part.program.ops[step.first_op + member];
    const Graph& g = part.plan.graph;
    const ValueRef from = g[op.node].inputs[0];
    const Operand& source =
        part.program
            .operands[part.program.calls[step.first_call + member].first_view];
    placement::TransferRow row;
    row.value =
        fmt::format("{}{}:{}", part.path, g[from.node].name, from.output);
    row.from =
        part.program.devices[part.program.buffers[source.buffer].device]->str();
    row.to = part.program.streams[step.stream].device->str();
    row.bytes = g.spec(from).shape.num_elements() *
                static_cast<int64_t>(size_of(g.spec(from).dtype));
    row.runs_per_step = part.per_step;
    if (member == 0) row.measured_us = part.us(s);
    row.site = asked_at(g[from.node]);
    StepWork::Edge edge;
    edge.nested = part.nested;
    edge.maybe = part.maybe;
    edge.producer = part.row_of_node[root_of(g, from).node];
    edge.argument = !part.nested &&
                    g[root_of(g, from).node].op->kind() == OpKind::kArgument;
    add_edge(part, {op.node, 0}, std::move(row), std::move(edge));
  }

  static ValueRef root_of(const Graph& g, ValueRef v) {
    while (g[v.node].op->kind() == OpKind::kAlias) v = g[v.node].inputs[0];
    return v;
  }

  void add_bodies(Part& part, const PlanStep& step, const PlacedGraph* placed) {
    const PlanOp& op = part.program.ops[step.first_op];
    const Node& node = part.plan.graph[op.node];
    const bool loop = is_loop(*node.op);
    const char* roles[] = {loop ? "cond" : "then_branch",
                           loop ? "body" : "else_branch"};
    const ControlStep& control = control_of(op);
    Plan::Impl* bodies[] = {control.first(), control.second()};
    for (int i = 0; i < 2; ++i) {
      if (bodies[i] == nullptr) continue;
      const std::string path = part.path + node.name + "/" + roles[i];
      add_plan(*bodies[i], body_at(placed, path), path + "/", {},
               part.maybe || !loop);
    }
  }

  // Arguments that the caller has elsewhere.
  void add_arguments(Part& part, std::span<const Tensor* const> next) {
    const auto& devices = DeviceManager::get().devices();
    auto add = [&](size_t index, const Device& from, double runs) {
      const int to = part.program.arg_device[index];
      if (to < 0) return;
      const int32_t arg = part.plan.graph.args[index];
      const Node& n = part.plan.graph[arg];
      placement::TransferRow row;
      row.value = n.name + ":0";
      row.from = from.str();
      row.to = part.program.devices[to]->str();
      row.bytes = n.outputs[0].shape.num_elements() *
                  static_cast<int64_t>(size_of(n.outputs[0].dtype));
      row.runs_per_step = runs;
      row.site = site_of(n);
      StepWork::Edge edge;
      edge.argument = true;
      add_edge(part, {arg, 0}, std::move(row), std::move(edge));
    };
    if (next.empty()) {
      for (const RunRecord::Argument& a : part.record.arguments) {
        for (const Device* d : devices) {
          if (d->slot() != a.from) continue;
          add(static_cast<size_t>(a.index), *d,
              static_cast<double>(a.count) / static_cast<double>(steps_));
        }
      }
      return;
    }
    for (size_t i = 0; i < next.size(); ++i) {
      const int to = part.program.arg_device[i];
      const Device* from = next[i]->impl()->block->device;
      if (to >= 0 && from != part.program.devices[to]) add(i, *from, 1);
    }
  }

  // The op that first writes each buffer.
  static std::vector<int32_t> writers(const Program& p) {
    std::vector<int32_t> writer(p.buffers.size(), -1);
    for (const PlanCall& call : p.calls) {
      if (call.op < 0) continue;
      for (int o = 0; o < call.num_out; ++o) {
        int32_t& w =
            writer[p.operands[call.first_view + call.num_in + o].buffer];
        if (w < 0) w = call.op;
      }
    }
    return writer;
  }

  // The step at which most of a device's arena is in use.
  static int32_t peak_step(const Program& p, int device) {
    std::vector<int64_t> change(p.steps.size() + 2, 0);
    for (const PlanBuffer& b : p.buffers) {
      if (b.where != Where::kArena || b.device != device) continue;
      change[b.begin] += static_cast<int64_t>(b.bytes);
      change[std::min<size_t>(b.end, change.size() - 1)] -=
          static_cast<int64_t>(b.bytes);
    }
    int64_t now = 0, most = -1;
    int32_t peak = 0;
    for (size_t s = 0; s < change.size(); ++s) {
      now += change[s];
      if (now > most) {
        most = now;
        peak = static_cast<int32_t>(s);
      }
    }
    return peak;
  }

  void add_memory(const Part& part) {
    const Program& p = part.program;
    std::vector<int32_t> peak;
    for (size_t d = 0; d < p.devices.size(); ++d) {
      // Bodies work beside the arena of the step around them.
      device(*p.devices[d]).arena_bytes +=
          static_cast<int64_t>(p.arena_bytes[d]);
      peak.push_back(peak_step(p, static_cast<int>(d)));
    }
    const std::vector<int32_t> writer = writers(p);
    for (size_t i = 0; i < p.buffers.size(); ++i) {
      const PlanBuffer& b = p.buffers[i];
      placement::DeviceRow& d = device(*p.devices[b.device]);
      const auto bytes = static_cast<int64_t>(b.bytes);
      StepWork::Holder h{d.device, "", bytes, {}};
      if (writer[i] >= 0) {
        h.what = fmt::format("\"{}{}\"", part.path, p.ops[writer[i]].name);
        h.site = p.ops[writer[i]].site;
      }
      switch (b.where) {
        case Where::kArena:
          if (b.begin > peak[b.device] || b.end <= peak[b.device]) continue;
          if (h.what.empty()) h.what = "scratch";
          break;
        case Where::kVariable: {
          const VariableState& v =
              variable_state(part.plan.variables.uses[b.index].handle);
          if (part.nested) continue;
          d.variable_bytes += bytes;
          h.what = fmt::format("variable \"{}\"", v.name);
          h.site = v.site;
          break;
        }
        case Where::kOutput:
          if (part.nested) continue;  // memory of the step around it
          d.output_bytes += bytes;
          h.what = fmt::format("result {}", h.what);
          break;
        case Where::kArg:
          if (part.nested || p.arg_device[b.index] < 0) continue;
          d.other_bytes += bytes;
          h.what = fmt::format("argument {}", b.index);
          break;
        case Where::kConst:
          d.other_bytes += bytes;
          h.what = "a constant";
          break;
      }
      w_.holders.push_back(std::move(h));
    }
  }

  // An op that many were fused into remembers only some of them.
  void add_merged(const PlacedGraph& placed) {
    const std::string prefix = placed.path.empty() ? "" : placed.path + "/";
    std::unordered_set<std::string> named;
    for (const placement::OpRow& row : w_.report.ops) {
      if (!row.op.starts_with(prefix)) continue;
      named.insert(row.op.substr(prefix.size()));
      named.insert(row.sources.begin(), row.sources.end());
    }
    for (const Node& n : placed.graph.nodes) {
      if (n.op->kind() != OpKind::kCompute || named.contains(n.name)) continue;
      placement::OpRow row;
      std::vector<ContractChainRef> contracts;
      bool found = false;
      for (const NodeSource& s : n.sources) {
        found |= named.contains(s.name);
        row.sources.push_back(s.name);
        if (s.contracts) contracts.push_back(s.contracts);
      }
      if (found) continue;
      row.op = prefix + n.name;
      row.type = n.op->name();
      row.device = n.assigned.text();
      row.site = site_of(n);
      w_.more_ops.push_back(std::move(row));
      w_.contracts.push_back(std::move(contracts));
    }
    for (const PlacedGraph& body : placed.bodies) add_merged(body);
  }

  // Bytes per step of the transfers from and to ops of a placed node.
  int64_t moved_for(const std::string& name) const {
    double bytes = 0;
    const auto is = [&](int32_t op) {
      if (op < 0) return false;
      const placement::OpRow& row = w_.report.ops[static_cast<size_t>(op)];
      return names_op(name, row.op) ||
             std::find(row.sources.begin(), row.sources.end(), name) !=
                 row.sources.end();
    };
    for (size_t i = 0; i < w_.edges.size(); ++i) {
      const StepWork::Edge& e = w_.edges[i];
      if (!is(e.producer) &&
          std::none_of(e.readers.begin(), e.readers.end(), is)) {
        continue;
      }
      const placement::TransferRow& t = w_.report.transfers[i];
      bytes +=
          static_cast<double>(t.bytes) * (steps_ == 0 ? 1 : t.runs_per_step);
    }
    return std::llround(bytes);
  }

  placement::FallbackRow fallback_row(const PlacedGraph& placed,
                                      int32_t node) const {
    const Node& n = placed.graph[node];
    placement::FallbackRow row;
    row.op = placed.path.empty() ? n.name : placed.path + "/" + n.name;
    row.requested = n.requested.text();
    row.device = w_.report.device_of(row.op);
    if (row.device.empty()) row.device = n.assigned.text();
    row.bytes = moved_for(row.op);
    row.site = site_of(n);
    return row;
  }

  // Ops that do not run where they were asked to.
  void add_requests(const PlacedGraph& placed) {
    const Graph& g = placed.graph;
    std::vector<bool> fell(g.nodes.size(), false);
    // What the warning said, as often as the graph ran.
    const std::vector<PlaceFallback>& fallbacks = placed.placement.fallbacks;
    std::vector<int64_t> bytes;
    if (!fallbacks.empty()) bytes = crossing_bytes(g, fallbacks);
    const auto run = runs_.find(placed.path.empty() ? "" : placed.path + "/");
    const double runs = steps_ == 0 || run == runs_.end() ? 1 : run->second;
    for (size_t k = 0; k < fallbacks.size(); ++k) {
      const PlaceFallback& f = fallbacks[k];
      fell[f.node] = true;
      placement::FallbackRow row = fallback_row(placed, f.node);
      row.requested = f.requested.text();
      row.reason = f.reason;
      row.bytes = std::llround(static_cast<double>(bytes[k]) * runs);
      w_.report.fallbacks.push_back(std::move(row));
    }
    for (int32_t i = 0; i < g.size(); ++i) {
      const Node& n = g[i];
      if (fell[i] || n.requested.empty() || n.op->graph_only()) continue;
      const DeviceName asked = n.requested.name();
      // Ops of replicas share their sources: what ran is not told by these.
      if (n.replica >= 0 && !n.assigned.empty() &&
          asked.matches(n.assigned.name())) {
        continue;
      }
      placement::FallbackRow row = fallback_row(placed, i);
      if (asked.matches(DeviceId(row.device).name())) continue;
      row.reason = explain(g, placed.placement, i);
      w_.report.moved.push_back(std::move(row));
    }
    for (const PlacedGraph& body : placed.bodies) add_requests(body);
  }

  StepWork& w_;
  Plan::Impl& top_;
  const std::vector<int64_t>* since_;
  size_t next_body_ = 0;
  int64_t steps_ = 0;
  std::map<std::string, placement::DeviceRow> devices_;
  std::map<std::string, double> runs_;  // per step, by path
};

}  // namespace

StepWork work_of(Plan& plan, const PlacedGraph& placed,
                 std::span<const Tensor* const> next,
                 const std::vector<int64_t>* since) {
  StepWork work;
  Reporter(work, plan.impl(), since).run(placed, next);
  return work;
}

namespace {

void add_body_runs(const Plan::Impl& plan, std::vector<int64_t>& runs) {
  for (const PlanStep& step : plan.program->steps) {
    if (step.kind != StepKind::kControl) continue;
    const ControlStep& control = control_of(plan.program->ops[step.first_op]);
    for (Plan::Impl* body : {control.first(), control.second()}) {
      if (body == nullptr) continue;
      {
        std::lock_guard lock(body->mutex);
        runs.push_back(body->record.runs);
      }
      add_body_runs(*body, runs);
    }
  }
}

}  // namespace

std::vector<int64_t> body_runs(Plan& plan) {
  std::vector<int64_t> runs;
  add_body_runs(plan.impl(), runs);
  return runs;
}

}  // namespace berth
