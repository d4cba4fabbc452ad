#include "function/without_branches.h"

#include <algorithm>

#include "berth/ops/array.h"
#include "berth/ops/math.h"
#include "function/replace_nodes.h"
#include "graph/body.h"
#include "graph/replay.h"
#include "op/control_flow.h"
#include "ops/op_call.h"

namespace berth {

namespace {

// Whether all that the graph, a branch, does is to write variables.
bool only_writes(const Graph& g) {
  return std::all_of(g.nodes.begin(), g.nodes.end(), [&](const Node& n) {
    if (!n.has_effect()) return true;
    if (n.op->kind() != OpKind::kControl) return !written_by(g, n).empty();
    bool good = !is_loop(*n.op);
    visit_bodies(n, [&](const std::string&, const Graph& body) {
      good = good && only_writes(body);
    });
    return good;
  });
}

bool can_inline(const Graph& g, const Node& n) {
  if (n.op->kind() != OpKind::kControl || is_loop(*n.op)) return false;
  const IfLayout l(*n.op, n.attrs.get());
  return l.then_branch->body() != nullptr && l.else_branch->body() != nullptr &&
         !written_by(g, n).empty() && only_writes(*l.then_branch->body()) &&
         only_writes(*l.else_branch->body());
}

class Inliner {
 public:
  Tensors branches(const Node& n, const Tensors& in, const Tensor& chosen) {
    const IfLayout l(*n.op, n.attrs.get());
    const auto first = in.begin() + 1;
    const Tensors args(first, first + l.num_args);
    const NodeContext context(n, -1);
    const Tensor otherwise = math::logical_not(in[0], t_state.site);
    const Tensors a = branch(*l.then_branch->body(), args, both(chosen, in[0]));
    Tensors b = branch(*l.else_branch->body(), args, both(chosen, otherwise));
    for (size_t i = 0; i < a.size(); ++i) {
      b[i] = where(in[0], a[i], b[i], t_state.site);
    }
    return b;
  }

 private:
  static Tensor both(const Tensor& a, const Tensor& b) {
    return a.defined() ? math::logical_and(a, b, t_state.site) : b;
  }

  static void put(const Tensor& handle, const Tensor& value) {
    static const OpDef& assign = op_named("AssignVariableOp");
    const Tensor* in[] = {&handle, &value};
    apply(assign, in, nullptr, {});
  }

  // Runs node i, which may write; what it writes stays if it was chosen.
  static void write(const Graph& g, int32_t i, Replay& replay,
                    const Tensor& chosen) {
    static const OpDef& read = op_named("ReadVariableOp");
    const Site site = t_state.site;
    const std::vector<Tensor> written = written_by(g, g[i]);
    Tensors before;
    for (const Tensor& v : written) before.push_back(call1(read, v));
    if (is_plain_assign(*g[i].op)) {
      const std::string& op = g[i].op->name();
      Tensor value = *replay.inputs(i)[1];
      if (op == "AssignAddVariableOp") value = before[0] + value;
      if (op == "AssignSubVariableOp") value = before[0] - value;
      return put(written[0], where(chosen, value, before[0], site));
    }
    replay.run(i);
    for (size_t k = 0; k < written.size(); ++k) {
      const Tensor after = call1(read, written[k]);
      put(written[k], where(chosen, after, before[k], site));
    }
  }

  Tensors branch(const Graph& g, const Tensors& args, const Tensor& chosen) {
    Replay replay(g, args);
    for (int32_t i = 0; i < g.size(); ++i) {
      if (g[i].op->kind() == OpKind::kControl && g[i].has_effect()) {
        Tensors in;
        for (const Tensor* t : replay.inputs(i)) in.push_back(*t);
        replay.values(i) = branches(g[i], in, chosen);
        continue;
      }
      write(g, i, replay, chosen);
    }
    return replay.outputs();
  }
};

}  // namespace

bool is_plain_assign(const OpDef& op) {
  const std::string& name = op.name();
  return name == "AssignVariableOp" || name == "AssignAddVariableOp" ||
         name == "AssignSubVariableOp";
}

void without_branches(Graph& graph,
                      const std::function<bool(const Node&)>& wanted) {
  replace_nodes(
      graph, [&](const Node& n) { return can_inline(graph, n) && wanted(n); },
      [](const Node& n, const Tensors& in) {
        return Inliner().branches(n, in, {});
      });
}

}  // namespace berth
