#include "remote/far_work.h"

#include <algorithm>
#include <map>
#include <utility>

#include "graph/body.h"

namespace berth::remote {

namespace {

bool is_link(const Node& n) {
  return n.op->name() == "_TaskSend" || n.op->name() == "_TaskRecv";
}

class FarRows {
 public:
  FarRows(StepWork& work, double runs) : w_(work), runs_(runs) {}

  void add_ops(const Graph& g, const std::string& path) {
    for (const Node& n : g.nodes) {
      if (n.op->kind() == OpKind::kCompute && !is_link(n)) add_op(n, path);
      visit_bodies(n, [&](const std::string& role, const Graph& body) {
        add_ops(body, path + n.name + "/" + role + "/");
      });
    }
  }

  // Collects the ends of edges; both are known once all graphs have been seen.
  void note_links(const Graph& g) {
    for (int32_t i = 0; i < g.size(); ++i) {
      if (!is_link(g[i])) continue;
      const auto edge = g[i].op->attr<int64_t>(g[i].attrs.get(), "edge");
      const bool sends = g[i].op->name() == "_TaskSend";
      (sends ? sends_ : receives_)[edge] = {&g, i};
    }
  }

  void add_transfers() {
    for (const auto& [edge, send] : sends_) {
      const auto receive = receives_.find(edge);
      if (receive != receives_.end()) add_transfer(send, receive->second);
    }
  }

 private:
  using End = std::pair<const Graph*, int32_t>;

  void add_op(const Node& n, const std::string& path) {
    placement::OpRow row;
    row.op = path + n.name;
    row.type = n.op->name();
    row.device = n.assigned.text();
    row.requested = n.requested.text();
    row.kernel = "remote";
    row.runs_per_step = runs_;
    row.collective = n.collective;
    if (!n.sources.empty()) row.site = n.sources.front().site;
    std::vector<ContractChainRef> contracts;
    for (const NodeSource& s : n.sources) {
      row.sources.push_back(s.name);
      if (s.contracts) contracts.push_back(s.contracts);
    }
    ++device(row.device).ops;
    const auto at = static_cast<std::ptrdiff_t>(w_.report.ops.size());
    w_.contracts.insert(w_.contracts.begin() + at, std::move(contracts));
    w_.report.ops.push_back(std::move(row));
  }

  placement::DeviceRow& device(const std::string& name) {
    for (placement::DeviceRow& d : w_.report.devices) {
      if (d.device == name) return d;
    }
    placement::DeviceRow& d = w_.report.devices.emplace_back();
    d.device = name;
    return d;
  }

  int32_t row_of(const std::string& op) const {
    const auto& ops = w_.report.ops;
    const auto it =
        std::find_if(ops.begin(), ops.end(),
                     [&](const placement::OpRow& r) { return r.op == op; });
    return it == ops.end() ? -1 : static_cast<int32_t>(it - ops.begin());
  }

  void add_transfer(const End& send, const End& receive) {
    const Graph& from = *send.first;
    const Graph& to = *receive.first;
    ValueRef value = from[send.second].inputs[0];
    while (from[value.node].op->kind() == OpKind::kTransfer) {
      value = from[value.node].inputs[0];
    }
    const Node& producer = from[value.node];
    const Node& end = to[receive.second];
    placement::TransferRow row;
    row.value = producer.name + ":" + std::to_string(value.output);
    row.from = producer.assigned.text();
    row.to = end.assigned.text();
    row.bytes = end.outputs[0].shape.num_elements() *
                static_cast<int64_t>(size_of(end.outputs[0].dtype));
    row.runs_per_step = runs_;
    row.cause = "read by another task";
    row.site = asked_at(producer);
    StepWork::Edge edge;
    edge.producer = row_of(producer.name);
    add_readers(to, receive.second, row, edge);
    w_.report.transfers.push_back(std::move(row));
    w_.edges.push_back(std::move(edge));
  }

  // Adds the readers of node `at`, also on other devices of its task.
  void add_readers(const Graph& g, int32_t at, placement::TransferRow& row,
                   StepWork::Edge& edge) const {
    for (int32_t i = at + 1; i < g.size(); ++i) {
      const Node& n = g[i];
      const bool reads =
          std::any_of(n.inputs.begin(), n.inputs.end(),
                      [&](const ValueRef v) { return v.node == at; });
      if (!reads) continue;
      if (n.op->kind() == OpKind::kTransfer) {
        row.to = n.assigned.text();
        add_readers(g, i, row, edge);
      } else if (n.op->kind() == OpKind::kAlias) {
        add_readers(g, i, row, edge);
      } else if (const int32_t r = row_of(n.name); r >= 0) {
        if (row.readers.empty() && !n.requested.empty()) row.site = asked_at(n);
        row.readers.push_back(n.name);
        edge.readers.push_back(r);
      }
    }
  }

  StepWork& w_;
  const double runs_;
  std::map<int64_t, End> sends_, receives_;
};

}  // namespace

void add_far_work(StepWork& work, const Graph& near,
                  const std::vector<const TaskGraph*>& far) {
  FarRows rows(work, work.report.steps > 0 ? 1 : 0);
  rows.note_links(near);
  for (const TaskGraph* part : far) {
    rows.add_ops(part->graph, "");
    rows.note_links(part->graph);
  }
  rows.add_transfers();
}

}  // namespace berth::remote
