#include "place/order.h"

#include <algorithm>
#include <queue>

#include "device/device_name.h"
#include "graph/variable_range.h"

namespace berth {

namespace {

class Orderer {
 public:
  Orderer(const Graph& graph, bool in_order)
      : graph_(graph), in_order_(in_order) {}

  WorkOrder run() {
    const size_t n = graph_.nodes.size();
    work_.waits_for.resize(n);
    work_.runs.resize(n);
    work_.is_transfer.resize(n);
    floats_.resize(n);
    behind_.resize(n);
    missing_.assign(n, 0);
    late_.resize(n);
    classify();
    for (int32_t i = 0; i < graph_.size(); ++i) find_waits(i);
    find_order();
    return std::move(work_);
  }

 private:
  void classify() {
    const OpDef& hand_over = op_named("_HandOver");
    std::vector<bool> read(graph_.nodes.size(), false);
    for (const Node& n : graph_.nodes) {
      for (const ValueRef& v : n.inputs) read[v.node] = true;
    }
    for (const ValueRef& v : graph_.outputs) read[v.node] = true;
    for (int32_t i = 0; i < graph_.size(); ++i) {
      const Node& n = graph_[i];
      work_.is_transfer[i] = n.op->kind() == OpKind::kTransfer;
      work_.runs[i] =
          (!n.op->graph_only() && n.op != &hand_over) || work_.is_transfer[i];
      floats_[i] =
          work_.is_transfer[i] || (!in_order_ && !read[i] && updates(n));
    }
  }

  // CPUs make the copies that they read. A thread that launches a copy of what
  // a CPU computes waits for that: the copy must not delay other work.
  bool is_late(const Node& transfer, bool there) const {
    const Node& from = graph_[transfer.inputs[0].node];
    return transfer.assigned.is_cpu() || (from.assigned.is_cpu() && !there);
  }

  static bool updates(const Node& n) {
    for (size_t i = 0; i < n.inputs.size(); ++i) {
      if (writes(n.op->input(static_cast<int>(i)).access)) return true;
    }
    return false;
  }

  void find_waits(int32_t i) {
    const Node& n = graph_[i];
    std::vector<int32_t>& waits = work_.waits_for[i];
    auto wait_for = [&](int32_t before) {
      if (work_.runs[before]) {
        waits.push_back(before);
      } else {
        const std::vector<int32_t>& through = work_.waits_for[before];
        waits.insert(waits.end(), through.begin(), through.end());
      }
    };
    for (const ValueRef& v : n.inputs) wait_for(v.node);
    for (int32_t c : n.controls) wait_for(c);
    sort_unique(waits);
    if (!work_.runs[i]) return;
    late_[i] = in_order_ && work_.is_transfer[i] && is_late(n, waits.empty());
    std::vector<int32_t> after = waits;
    add_accesses(i, after);
    sort_unique(after);
    missing_[i] = static_cast<int32_t>(after.size());
    for (int32_t before : after) behind_[before].push_back(i);
  }

  // An access that moves must not overtake another one of the same variable.
  void add_accesses(int32_t i, std::vector<int32_t>& after) {
    const Node& n = graph_[i];
    for (size_t k = 0; k < n.inputs.size(); ++k) {
      if (graph_.spec(n.inputs[k]).dtype != resource) continue;
      const bool write = n.op->kind() == OpKind::kCall ||
                         n.op->kind() == OpKind::kControl ||
                         writes(n.op->input(static_cast<int>(k)).access);
      accesses_.add(variable_range(graph_, n.inputs[k]), i, write, after);
    }
  }

  void find_order() {
    work_.order.reserve(graph_.nodes.size());
    for (int32_t i = 0; i < graph_.size(); ++i) {
      if (work_.runs[i] && floats_[i] && missing_[i] == 0) ready(i);
    }
    emit_ready();
    for (int32_t i = 0; i < graph_.size(); ++i) {
      if (!work_.runs[i] || floats_[i]) continue;
      for (const int32_t before : work_.waits_for[i]) emit_late(before);
      emit(i);
      emit_ready();
    }
    for (int32_t i = 0; i < graph_.size(); ++i) emit_late(i);
  }

  void emit_late(int32_t i) {
    if (!late_[i]) return;
    late_[i] = false;
    emit(i);
  }

  // Transfers first: another device waits for them.
  void ready(int32_t i) {
    if (!late_[i]) ready_.push({!work_.is_transfer[i], i});
  }

  void emit(int32_t i) {
    work_.order.push_back(i);
    for (int32_t user : behind_[i]) {
      if (--missing_[user] == 0 && floats_[user]) ready(user);
    }
  }

  void emit_ready() {
    while (!ready_.empty()) {
      const int32_t i = ready_.top().second;
      ready_.pop();
      emit(i);
    }
  }

  const Graph& graph_;
  const bool in_order_;
  WorkOrder work_;
  std::vector<bool> floats_;                  // moves forward
  std::vector<bool> late_;                    // runs late, when needed
  std::vector<std::vector<int32_t>> behind_;  // per node: the nodes after it
  std::vector<int32_t> missing_;              // per node: inputs still missing
  VariableAccesses accesses_;
  std::priority_queue<std::pair<bool, int32_t>,
                      std::vector<std::pair<bool, int32_t>>, std::greater<>>
      ready_;
};

}  // namespace

WorkOrder find_work(const Graph& graph, bool in_order) {
  return Orderer(graph, in_order).run();
}

}  // namespace berth
