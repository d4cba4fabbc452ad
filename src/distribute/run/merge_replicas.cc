#include "distribute/run/merge_replicas.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <list>
#include <map>

#include "base/where.h"
#include "berth/errors.h"
#include "berth/ops/array.h"
#include "device/device_manager.h"
#include "distribute/run/cross_task_sync.h"
#include "distribute/run/replica_places.h"
#include "function/control_flow.h"
#include "function/without_branches.h"
#include "graph/body.h"
#include "graph/replay.h"
#include "ops/op_call.h"
#include "tensor/mirrors.h"
#include "tensor/variable_state.h"

namespace berth::distribute {

namespace {

bool is_met(const Node& n) { return n.op->kind() == OpKind::kCrossReplica; }

// A readable description of a node: "all_reduce (model.cc:41)".
std::string describe(const Graph& graph, const Node& n) {
  std::string what = n.op->name();
  if (is_met(n)) {
    what = n.op->attr<std::string>(n.attrs.get(), "what");
    if (what == "call") what = "merge_call";
    if (what == "first") what = "a write of the first replica's value";
    if (what == "all_gather_grad") what = "the gradient of all_gather";
  } else {
    for (const Tensor& v : written_by(graph, n)) {
      what = fmt::format("a write of \"{}\" ({})", variable_state(v).name,
                         n.op->name());
      break;
    }
  }
  const Site site = n.sources.empty() ? Site{} : n.sources[0].site;
  return what + where_text(nullptr, site);
}

// A trace and the position up to which it has been replayed.
struct Cursor {
  Cursor(const ReplicaTrace& t, int id)
      : trace(t), graph(t.graph), replay(t.graph, t.args), replica(id) {}
  bool at_end() const { return at == graph.size(); }
  const Node& node() const { return graph[at]; }

  const ReplicaTrace& trace;
  const Graph& graph;
  Replay replay;
  const int replica;
  int32_t at = 0;
};

class Merger {
 public:
  Merger(std::vector<ReplicaTrace>& traces, StrategyCore& core,
         const std::vector<int64_t>& examples)
      : plan_(core.plan_here()),
        places_(plan_),
        tasks_(core, one_kind(traces.front().graph), examples) {
    for (ReplicaTrace& t : traces) {
      one_kind(t.graph);
      cursors_.emplace_back(t, static_cast<int>(cursors_.size()));
    }
  }

  std::vector<Tensors> run() {
    refresh_mirrors();
    for (;;) {
      for (Cursor& c : cursors_) advance(c);
      const Cursor& first = cursors_.front();
      for (const Cursor& c : cursors_) check_same(first, c);
      if (first.at_end()) break;
      meet();
      for (Cursor& c : cursors_) ++c.at;
    }
    std::vector<Tensors> results;
    for (const Cursor& c : cursors_) results.push_back(results_of(c));
    return results;
  }

 private:
  // Lets every conditional write be of variables of one kind.
  const Graph& one_kind(Graph& graph) const {
    without_branches(graph, [&](const Node& n) {
      return plan_.replicas.size() > 1 && places_.written_apart(graph, n);
    });
    return graph;
  }

  // A plan refreshes mirrors before it runs. Writes since then, which the
  // surrounding trace made to homes alone, are copied here.
  void refresh_mirrors() {
    static const OpDef& read = op_named("ReadVariableOp");
    static const OpDef& assign = op_named("AssignVariableOp");
    std::map<const TensorImpl*, int32_t> last;
    if (const Tracer* around = current_tracer()) {
      const Graph& g = around->graph();
      for (int32_t i = 0; i < g.size(); ++i) {
        for (const Tensor& v : written_by(g, g[i])) last[v.impl()] = i + 1;
      }
    }
    if (last.empty()) return;
    for (const Cursor& c : cursors_) {
      for (const Node& n : c.graph.nodes) {
        if (!n.variable.defined() || !last.contains(n.variable.impl()))
          continue;
        const Tensor mine = places_.handle_for(n.variable, c.replica);
        if (home_of(mine).impl() != n.variable.impl()) continue;
        int32_t& written = last[mine.impl()];
        if (written >= last[n.variable.impl()]) continue;
        written = last[n.variable.impl()];
        const NodeContext context(places_.in_replica(n, c.replica), -1);
        const Tensor value = call1(read, n.variable);
        const Tensor* in[] = {&mine, &value};
        apply(assign, in, nullptr, {});
      }
    }
  }

  // Whether replicas wait for each other at the node.
  bool waits(const Cursor& c) const {
    const Node& n = c.node();
    if (is_met(n)) return true;
    for (const Tensor& v : written_by(c.graph, n)) {
      if (!variable_state(v).parts.empty()) continue;
      if (cursors_.size() == 1 || !places_.written_apart(c.graph, n)) {
        return true;
      }
      throw errors::Unimplemented(fmt::format(
          "{}: variables with one value and with a value per replica, or with "
          "copies on all devices and on one, are written inside of one loop, "
          "or beside other effects in one cond(), in run(); expected their "
          "writes apart",
          describe(c.graph, n)));
    }
    return false;
  }

  void advance(Cursor& c) {
    for (; !c.at_end() && !waits(c); ++c.at) {
      const Node& n = c.node();
      // A replica without examples changes none of its own variables.
      if (c.trace.empty && !written_by(c.graph, n).empty() &&
          n.outputs.empty()) {
        continue;
      }
      c.replay.run(c.at, places_.in_replica(n, c.replica));
    }
  }

  void check_same(const Cursor& a, const Cursor& b) const {
    if (a.at_end() && b.at_end()) return;
    if (!a.at_end() && !b.at_end()) {
      const Node &x = a.node(), &y = b.node();
      const auto vx = written_by(a.graph, x), vy = written_by(b.graph, y);
      const bool same = std::equal(vx.begin(), vx.end(), vy.begin(), vy.end(),
                                   [](const Tensor& s, const Tensor& t) {
                                     return s.impl() == t.impl();
                                   });
      // Bodies are each replica's own.
      const bool alike = x.op->kind() == OpKind::kControl || x.attrs == y.attrs;
      if (x.op == y.op && alike && same) return;
    }
    const auto text = [](const Cursor& c) {
      return c.at_end() ? "its end" : describe(c.graph, c.node());
    };
    throw errors::InvalidArgument(fmt::format(
        "{}: replicas meet in different order: replica {} comes to {}, replica "
        "{} to {}; expected the same calls in the same order in all replicas",
        a.graph.name, a.replica, text(a), b.replica, text(b)));
  }

  // All replicas have reached nodes of the same kind.
  void meet() {
    const Node& n = cursors_.front().node();
    if (!is_met(n)) return write();
    const auto& what = n.op->attr<std::string>(n.attrs.get(), "what");
    if (what == "all_reduce") return all_reduce(0);
    if (what == "all_gather") return all_gather();
    if (what == "all_gather_grad") return all_gather_grad();
    if (what == "first") return first_value();
    call(*n.op->attr<std::shared_ptr<Callable>>(n.attrs.get(), "f"));
  }

  const Tensor& input(const Cursor& c, size_t i) const {
    return c.replay.value(c.node().inputs[i]);
  }

  // Combines input `i` of all replicas; returns the result for each.
  Tensors reduced(size_t i) {
    static const OpDef& op = op_named("_AllReduce");
    const Node& n = cursors_.front().node();
    std::vector<int64_t> owners, replicas;
    Tensors pieces;
    for (const Cursor& c : cursors_) {
      replicas.push_back(c.replica);
      if (c.trace.empty) continue;
      owners.push_back(c.replica);
      pieces.push_back(input(c, i));
    }
    const AttrsRef attrs(
        {{"reduction", n.op->attr<std::string>(n.attrs.get(), "reduction")},
         {"owners", owners},
         {"replicas", replicas},
         {"algorithm", plan_.algorithm},
         {"pack_bytes", plan_.pack_bytes}});
    Node as = n;  // belongs to all
    as.replica = -1;
    as.requested.clear();
    const NodeContext context(as, -1);
    if (tasks_.several()) {
      return tasks_.reduce(cursors_.front().at, pieces,
                           input(cursors_.front(), i).spec(), attrs.get());
    }
    return call_list(op, pieces, attrs.get());
  }

  void all_reduce(size_t i) {
    const Tensors sums = reduced(i);
    for (Cursor& c : cursors_) {
      c.replay.values(c.at) = {sums[static_cast<size_t>(c.replica)]};
    }
  }

  // A node in which a replica computes something for its line of the trace.
  Node like(const Cursor& c, int replica) const {
    Node as = c.node();
    as.replica = replica;
    as.requested = places_.device(replica);
    return as;
  }

  int64_t axis() const {
    const Node& n = cursors_.front().node();
    return n.op->attr<int64_t>(n.attrs.get(), "axis");
  }

  void all_gather() {
    Tensors parts;
    for (const Cursor& c : cursors_) parts.push_back(input(c, 0));
    if (tasks_.several()) {
      const NodeContext context(like(cursors_.front(), 0), -1);
      const Tensor mine =
          parts.size() == 1 ? parts[0] : concat(parts, axis(), t_state.site);
      const Tensor all = tasks_.gather(cursors_.front().at, mine, axis());
      for (Cursor& c : cursors_) c.replay.values(c.at) = {all};
      return;
    }
    std::vector<Tensor> gathered(cursors_.size());
    for (const int r : places_.firsts()) {
      const NodeContext context(like(cursors_.front(), r), -1);
      gathered[static_cast<size_t>(r)] = concat(parts, axis(), t_state.site);
    }
    for (Cursor& c : cursors_) {
      c.replay.values(c.at) = {
          gathered[static_cast<size_t>(places_.first_of(c.replica))]};
    }
  }

  // Inputs: the gradient of the gathered value, and the part.
  void all_gather_grad() {
    static const OpDef& op = op_named("ConcatGrad");
    const Tensors sums = reduced(0);
    Tensors parts;
    for (const Cursor& c : cursors_) parts.push_back(input(c, 1));
    if (tasks_.several()) return cut_of_gathered(sums, parts);
    for (Cursor& c : cursors_) {
      Tensors in = {sums[static_cast<size_t>(c.replica)]};
      in.insert(in.end(), parts.begin(), parts.end());
      const AttrsRef attrs(
          {{"axis", axis()}, {"index", static_cast<int64_t>(c.replica)}});
      const NodeContext context(like(c, c.replica), -1);
      c.replay.values(c.at) = call_list(op, in, attrs.get());
    }
  }

  // Gives each replica its rows of the gradient of what tasks gathered.
  void cut_of_gathered(const Tensors& sums, const Tensors& parts) {
    static const OpDef& slice = op_named("Slice");
    const auto along = static_cast<int>(axis());
    int64_t at = tasks_.rows_before(parts, along);
    for (Cursor& c : cursors_) {
      const auto r = static_cast<size_t>(c.replica);
      const Shape& shape = parts[r].shape();
      std::vector<int64_t> begin(static_cast<size_t>(shape.rank()), 0);
      begin[static_cast<size_t>(along)] = at;
      const AttrsRef attrs(
          {{"begin", begin},
           {"size", std::vector<int64_t>(shape.begin(), shape.end())}});
      const NodeContext context(like(c, c.replica), -1);
      c.replay.values(c.at) = {call1(slice, sums[r], attrs.get())};
      at += shape[along];
    }
  }

  void first_value() {
    const Cursor* first = &cursors_.front();
    for (const Cursor& c : cursors_) {
      if (first->trace.empty && !c.trace.empty) first = &c;
    }
    if (tasks_.several()) {
      const Cursor& mine = cursors_.front();
      const NodeContext context(like(mine, 0), -1);
      Tensors pieces;
      if (tasks_.has_first()) pieces = {input(*first, 0)};
      const Tensors values =
          tasks_.reduce(mine.at, pieces, input(mine, 0).spec(), nullptr);
      for (Cursor& c : cursors_) {
        c.replay.values(c.at) = {values[static_cast<size_t>(c.replica)]};
      }
      return;
    }
    for (Cursor& c : cursors_) c.replay.values(c.at) = {input(*first, 0)};
  }

  // One write per memory, by its first replica.
  void write() {
    const Cursor& first = cursors_.front();
    const std::vector<Tensor> written = written_by(first.graph, first.node());
    const bool mirrored =
        std::all_of(written.begin(), written.end(),
                    [&](const Tensor& v) { return places_.is_mirrored(v); });
    const int alone = places_.writer_of(written[0]);
    std::map<int, Tensors> results;  // of a cond, by the replica that ran it
    for (Cursor& c : cursors_) {
      const int writer = mirrored ? places_.first_of(c.replica) : alone;
      if (writer == c.replica) {
        c.replay.run(c.at, places_.in_replica(c.node(), c.replica));
        results[writer] = c.replay.values(c.at);
      }
    }
    for (Cursor& c : cursors_) {
      c.replay.values(c.at) =
          results.at(mirrored ? places_.first_of(c.replica) : alone);
    }
  }

  // The function of merge_call(): nodes belong to replica 0, writes go to all
  // memories.
  void call(const Callable& f) {
    Graph graph = *f.body();
    one_kind(graph);
    Tensors args;
    for (const Cursor& c : cursors_) {
      for (const ValueRef& v : c.node().inputs) {
        args.push_back(c.replay.value(v));
      }
    }
    Replay replay(graph, args);
    for (int32_t i = 0; i < graph.size(); ++i) {
      if (tasks_.several() && TaskMeetings::is_meeting(graph[i])) {
        replay.run(i, tasks_.in_call(cursors_.front().at, graph[i]));
      } else {
        run_in_call(graph, i, replay);
      }
    }
    for (Cursor& c : cursors_) c.replay.values(c.at) = replay.outputs();
  }

  void run_in_call(const Graph& graph, int32_t i, Replay& replay) {
    const Node& n = graph[i];
    const std::vector<Tensor> written = written_by(graph, n);
    const bool mirrored =
        !written.empty() &&
        std::all_of(written.begin(), written.end(), [&](const Tensor& v) {
          return places_.is_mirrored(v) && variable_state(v).parts.empty();
        });
    if (!mirrored) return replay.run(i, places_.in_replica(n, 0));
    Tensors first;
    for (const int r : places_.firsts()) {
      // The values for the copies in this memory.
      Tensors in;
      for (const ValueRef& v : n.inputs) {
        const Tensor& home = graph[v.node].variable;
        in.push_back(home.defined() ? places_.handle_for(home, r)
                                    : replay.value(v));
      }
      const Node as = places_.in_replica(n, r);
      const NodeContext context(as, -1);
      Tensors results = call_list(*n.op, in, as.attrs.get());
      if (r == places_.firsts()[0]) first = std::move(results);
    }
    replay.values(i) = std::move(first);
  }

  // Returns the results; puts those that no op computed on its device.
  Tensors results_of(const Cursor& c) {
    static const OpDef& identity = op_named("Identity");
    Tensors results = c.replay.outputs();
    for (size_t i = 0; i < results.size(); ++i) {
      const Node& from = c.graph[c.graph.outputs[i].node];
      const Shape& shape = results[i].shape();
      if (c.trace.empty && !is_met(from) && shape.is_fully_defined() &&
          results[i].dtype() != string_) {
        results[i] = zeros_of(results[i].dtype(), shape);
        continue;
      }
      if (!from.op->graph_only()) continue;
      Node as = from;
      as.replica = c.replica;
      as.requested = places_.device(c.replica);
      const NodeContext context(as, -1);
      results[i] = call1(identity, results[i]);
    }
    return results;
  }

  static Tensor zeros_of(DType dtype, const Shape& shape) {
    Tensor t = make_tensor(DeviceManager::get().host(), dtype, shape);
    std::memset(t.impl()->data(), 0, t.impl()->size_bytes());
    return t;
  }

  const SplitPlan plan_;  // of this task
  const ReplicaPlaces places_;
  TaskMeetings tasks_;
  std::list<Cursor> cursors_;
};

}  // namespace

std::vector<Tensors> merge_replicas(std::vector<ReplicaTrace> replicas,
                                    StrategyCore& core,
                                    const std::vector<int64_t>& examples) {
  return Merger(replicas, core, examples).run();
}

}  // namespace berth::distribute
