// Control flow: a cond whose predicate is known becomes its branch, and what
// nobody reads of an If or While goes, inside its bodies too: results, stacks,
// operands, and loop variables that only feed themselves.

#include <algorithm>
#include <map>
#include <set>
#include <string>

#include "graph/body.h"
#include "op/control_flow.h"
#include "passes/constants.h"
#include "passes/pipeline.h"

namespace berth {

namespace {

using Keep = std::vector<bool>;

bool all(const Keep& keep) {
  return std::find(keep.begin(), keep.end(), false) == keep.end();
}

template <class T>
std::vector<T> filter(const std::vector<T>& list, const Keep& keep) {
  std::vector<T> kept;
  for (size_t i = 0; i < list.size(); ++i) {
    if (i >= keep.size() || keep[i]) kept.push_back(list[i]);
  }
  return kept;
}

// The arguments that some outputs, or effects, depend on.
Keep args_behind(const Graph& g, const Keep& outputs) {
  std::vector<bool> seen(g.nodes.size(), false);
  for (size_t o = 0; o < g.outputs.size(); ++o) {
    if (outputs[o]) seen[g.outputs[o].node] = true;
  }
  for (int32_t i = g.size(); i-- > 0;) {
    if (!seen[i] && !g[i].has_effect()) continue;
    for (const ValueRef v : g[i].inputs) seen[v.node] = true;
  }
  Keep args;
  for (const int32_t a : g.args) args.push_back(seen[a]);
  return args;
}

// The body with some of its outputs and arguments.
Graph prune(const Graph& body, const Keep& outputs, const Keep& args) {
  Graph g = body;
  g.outputs = filter(g.outputs, outputs);
  dce(g);
  std::vector<bool> keep(g.nodes.size(), true);
  int64_t index = 0;
  for (size_t i = 0; i < args.size(); ++i) {
    Node& n = g[g.args[i]];
    keep[g.args[i]] = args[i];
    const OutSpec spec = n.outputs[0];
    if (args[i]) set_arg(n, index++, spec.dtype, spec.shape);
  }
  g.compact(keep);
  return g;
}

class Control {
 public:
  explicit Control(Graph& graph) : graph_(graph) {}

  void run() {
    for (int32_t i = graph_.size(); i-- > 0;) {
      if (graph_[i].op->kind() == OpKind::kControl && known(graph_[i])) {
        prune_node(i);
      }
    }
    for (int32_t i = graph_.size(); i-- > 0;) {
      if (is_branch(graph_[i])) inline_known(i);
    }
  }

 private:
  static bool is_branch(const Node& n) {
    return n.op->kind() == OpKind::kControl && !is_loop(*n.op);
  }

  // Bodies of functions that a text declares are not there.
  static bool known(const Node& n) {
    int have = 0, want = 0;
    visit_bodies(n, [&](const std::string&, const Graph&) { ++have; });
    for (const auto& [name, value] : n.attrs.get()->pairs()) {
      const auto* f = std::get_if<std::shared_ptr<Callable>>(&value);
      want += f != nullptr && *f != nullptr;
    }
    return have == want && have > 0;
  }

  Keep used_outputs(int32_t node) const {
    Keep used(graph_[node].outputs.size(), false);
    for (int32_t i = node + 1; i < graph_.size(); ++i) {
      for (const ValueRef v : graph_[i].inputs) {
        if (v.node == node) used[v.output] = true;
      }
    }
    for (const ValueRef v : graph_.outputs) {
      if (v.node == node) used[v.output] = true;
    }
    return used;
  }

  void prune_node(int32_t i) {
    const Keep used = used_outputs(i);
    if (is_branch(graph_[i])) {
      prune_if(i, used);
    } else {
      prune_while(i, used);
    }
  }

  void prune_if(int32_t i, const Keep& used) {
    Node& n = graph_[i];
    const IfLayout l(*n.op, n.attrs.get());
    Keep args = args_behind(*l.then_branch->body(), used);
    const Keep others = args_behind(*l.else_branch->body(), used);
    for (size_t k = 0; k < args.size(); ++k) args[k] = args[k] || others[k];
    if (all(used) && all(args)) return;
    Graph a = prune(*l.then_branch->body(), used, args);
    Graph b = prune(*l.else_branch->body(), used, args);
    Keep inputs(1 + args.size(), true);
    std::copy(args.begin(), args.end(), inputs.begin() + 1);
    keep_handles(n, l.first_handle(), {&a, &b}, inputs);
    n.inputs = filter(n.inputs, inputs);
    set_callees(
        n, {{"then_branch", std::move(a)}, {"else_branch", std::move(b)}}, {});
    drop_outputs(i, used);
  }

  // A loop variable lives when its result is read or when something that
  // lives is computed from it.
  void prune_while(int32_t i, const Keep& used) {
    Node& n = graph_[i];
    const WhileLayout l(*n.op, n.attrs.get());
    const Graph& body = *l.body->body();
    const auto vars = static_cast<size_t>(l.num_vars);
    Keep results(body.outputs.size());
    for (size_t k = 0; k < results.size(); ++k) {
      results[k] = used[k < vars ? k : k + 1];  // the count lies between
    }
    Keep cond_args;
    if (l.cond) cond_args = args_behind(*l.cond->body(), {true});
    for (size_t k = 0; k < vars && l.cond; ++k) {
      results[k] = results[k] || cond_args[k];
    }
    Keep args;
    for (bool more = true; more;) {
      more = false;
      args = args_behind(body, results);
      for (size_t k = 0; k < vars; ++k) {
        if (!args[k] || results[k]) continue;
        results[k] = true;
        more = true;
      }
    }
    for (size_t k = 0; k < vars; ++k) args[k] = results[k];
    const size_t first_capture = vars + static_cast<size_t>(l.num_rows);
    for (size_t k = first_capture; k < args.size() && l.cond; ++k) {
      args[k] = args[k] || cond_args[vars + k - first_capture];
    }
    if (all(results) && all(args)) return;
    Keep inputs(static_cast<size_t>(l.first_var()), true);
    inputs.insert(inputs.end(), args.begin(), args.end());
    std::map<std::string, Graph> graphs;
    graphs["body"] = prune(body, results, args);
    if (l.cond) {
      Keep kept(args.begin(), args.begin() + l.num_vars);
      kept.insert(kept.end(),
                  args.begin() + static_cast<std::ptrdiff_t>(first_capture),
                  args.end());
      graphs["cond"] = prune(*l.cond->body(), {true}, kept);
    }
    std::vector<const Graph*> bodies;
    for (const auto& [role, g] : graphs) bodies.push_back(&g);
    keep_handles(n, l.first_handle(), bodies, inputs);
    n.inputs = filter(n.inputs, inputs);
    const auto count = [](auto begin, auto end) {
      return static_cast<int64_t>(std::count(begin, end, true));
    };
    set_callees(
        n, std::move(graphs),
        {{"num_vars", count(args.begin(), args.begin() + l.num_vars)},
         {"num_rows",
          count(args.begin() + l.num_vars,
                args.begin() + static_cast<std::ptrdiff_t>(first_capture))}});
    Keep outputs(results.begin(), results.begin() + l.num_vars);
    outputs.push_back(true);
    outputs.insert(outputs.end(), results.begin() + l.num_vars, results.end());
    drop_outputs(i, outputs);
  }

  // Appends which handles the bodies still use.
  void keep_handles(const Node& n, int first,
                    const std::vector<const Graph*>& bodies, Keep& inputs) {
    std::vector<Tensor> handles;
    for (const Graph* g : bodies) {
      for (const Tensor& t : variables_of(*g)) handles.push_back(t);
    }
    for (size_t k = static_cast<size_t>(first); k < n.inputs.size(); ++k) {
      const Tensor& h = graph_[n.inputs[k].node].variable;
      inputs.push_back(
          !h.defined() ||
          std::any_of(handles.begin(), handles.end(),
                      [&](const Tensor& t) { return t.impl() == h.impl(); }));
    }
  }

  static void set_callees(Node& n, std::map<std::string, Graph> graphs,
                          const std::map<std::string, int64_t>& numbers) {
    auto pairs = n.attrs.get()->pairs();
    for (auto& [name, value] : pairs) {
      if (const auto it = graphs.find(name); it != graphs.end()) {
        value = std::shared_ptr<Callable>(
            std::make_shared<Body>(std::move(it->second)));
      }
    }
    for (const auto& number : numbers) {
      std::erase_if(pairs,
                    [&](const auto& p) { return p.first == number.first; });
      pairs.push_back({number.first, number.second});
    }
    n.attrs = AttrsRef(std::move(pairs));
  }

  void drop_outputs(int32_t node, const Keep& keep) {
    Node& n = graph_[node];
    std::vector<int32_t> to(keep.size(), -1);
    int32_t next = 0;
    for (size_t o = 0; o < keep.size(); ++o) {
      if (keep[o]) to[o] = next++;
    }
    n.outputs = filter(n.outputs, keep);
    auto move = [&](ValueRef& v) {
      if (v.node == node) v.output = to[v.output];
    };
    for (int32_t i = node + 1; i < graph_.size(); ++i) {
      for (ValueRef& v : graph_[i].inputs) move(v);
    }
    for (ValueRef& v : graph_.outputs) move(v);
  }

  // Puts the branch in the place of an If whose predicate is a constant.
  void inline_known(int32_t at) {
    const Tensor* pred = constant_of(graph_, graph_[at].inputs[0]);
    if (pred == nullptr || !known(graph_[at])) return;
    const Node node = graph_[at];
    const IfLayout l(*node.op, node.attrs.get());
    const Graph& branch =
        *(pred->item<bool>() ? l.then_branch : l.else_branch)->body();
    Graph old = std::move(graph_);
    graph_ = Graph();
    graph_.name = old.name;
    graph_.declared_ops = old.declared_ops;
    std::vector<std::vector<ValueRef>> value(old.nodes.size());
    std::vector<int32_t> last(old.nodes.size(), -1);
    auto keep = [&](int32_t i) {
      Node n = std::move(old[i]);
      for (ValueRef& v : n.inputs) v = value[v.node][v.output];
      std::vector<int32_t> controls;
      for (const int32_t c : n.controls) {
        if (c == at) {
          controls.insert(controls.end(), effects_.begin(), effects_.end());
        } else {
          controls.push_back(last[c]);
        }
      }
      std::sort(controls.begin(), controls.end());
      controls.erase(std::unique(controls.begin(), controls.end()),
                     controls.end());
      n.controls = std::move(controls);
      const auto outputs = static_cast<int32_t>(n.outputs.size());
      last[i] = graph_.add(std::move(n));
      for (int32_t o = 0; o < outputs; ++o) value[i].push_back({last[i], o});
    };
    for (int32_t i = 0; i < at; ++i) keep(i);
    value[at] = copy_branch(branch, node, value, last);
    for (int32_t i = at + 1; i < old.size(); ++i) keep(i);
    for (Node& n : graph_.nodes) {
      if (n.follows >= 0 && !inlined_.contains(n.name)) {
        n.follows = n.follows == at ? -1 : last[n.follows];
      }
    }
    for (const int32_t a : old.args) graph_.args.push_back(last[a]);
    for (const ValueRef v : old.outputs) {
      graph_.outputs.push_back(value[v.node][v.output]);
    }
  }

  std::vector<ValueRef> copy_branch(
      const Graph& branch, const Node& node,
      const std::vector<std::vector<ValueRef>>& value,
      const std::vector<int32_t>& last) {
    effects_.clear();
    inlined_.clear();
    std::vector<std::vector<ValueRef>> inner(branch.nodes.size());
    std::vector<int32_t> to(branch.nodes.size(), -1);
    for (int32_t i = 0; i < branch.size(); ++i) {
      Node n = branch[i];
      if (n.op->kind() == OpKind::kArgument) {
        const auto k =
            static_cast<size_t>(n.op->attr<int64_t>(n.attrs.get(), "index"));
        const ValueRef v = node.inputs[1 + k];
        inner[i] = {value[v.node][v.output]};
        continue;
      }
      // A handle that is there already stands for the same variable.
      if (n.variable.defined()) {
        if (const int32_t h = handle_of(n.variable); h >= 0) {
          inner[i] = {{h, 0}};
          to[i] = h;
          continue;
        }
      }
      for (ValueRef& v : n.inputs) v = inner[v.node][v.output];
      std::vector<int32_t> controls;
      for (const int32_t c : n.controls) {
        if (to[c] >= 0) controls.push_back(to[c]);
      }
      for (const int32_t c : node.controls) controls.push_back(last[c]);
      std::sort(controls.begin(), controls.end());
      controls.erase(std::unique(controls.begin(), controls.end()),
                     controls.end());
      n.controls =
          n.op->graph_only() ? std::vector<int32_t>() : std::move(controls);
      if (n.requested.empty()) n.requested = node.requested;
      if (n.replica < 0) n.replica = node.replica;
      n.follows = n.follows >= 0 ? to[n.follows] : -1;
      n.name = unique_name(graph_, node.name + "/" + n.name);
      inlined_.insert(n.name);
      const auto outputs = static_cast<int32_t>(n.outputs.size());
      to[i] = graph_.add(std::move(n));
      effects_.push_back(to[i]);
      for (int32_t o = 0; o < outputs; ++o) inner[i].push_back({to[i], o});
    }
    std::vector<ValueRef> results;
    for (const ValueRef v : branch.outputs) {
      results.push_back(inner[v.node][v.output]);
    }
    return results;
  }

  int32_t handle_of(const Tensor& variable) const {
    for (int32_t i = 0; i < graph_.size(); ++i) {
      const Tensor& t = graph_[i].variable;
      if (t.defined() && t.impl() == variable.impl()) return i;
    }
    return -1;
  }

  Graph& graph_;
  std::vector<int32_t> effects_;   // nodes of the branch put in last
  std::set<std::string> inlined_;  // their names
};

}  // namespace

void control(Graph& graph) {
  const bool any = std::any_of(
      graph.nodes.begin(), graph.nodes.end(),
      [](const Node& n) { return n.op->kind() == OpKind::kControl; });
  if (any) Control(graph).run();
}

}  // namespace berth
