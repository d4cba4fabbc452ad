// A call under a tape becomes one call of a Callable, which keeps a graph of
// the function; its gradient replays that graph under its own tape.

#include "berth/recompute_grad.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/where.h"
#include "berth/errors.h"
#include "berth/gradient_tape.h"
#include "function/control_flow.h"
#include "graph/body.h"
#include "graph/replay.h"
#include "graph/tracer.h"
#include "op/device_scope.h"
#include "ops/op_call.h"
#include "passes/pipeline.h"
#include "tensor/variable_state.h"

namespace berth {

namespace {

// The traced function, and what its arguments stand for: `x`, then values of
// the traces and tapes around it, and of variables that it reads.
struct TracedOnce {
  Graph graph;
  Tensors args;
  size_t num_computed = 0;  // arguments other than constants and variables
};

void become_arg(Graph& g, int32_t at, const OutSpec& spec) {
  static const OpDef& arg = op_named("_Arg");
  Node& n = g[at];
  n.op = &arg;
  n.inputs.clear();
  n.controls.clear();
  n.requested.clear();
  n.follows = -1;
  set_arg(n, static_cast<int64_t>(g.args.size()), spec.dtype, spec.shape);
  g.args.push_back(at);
}

bool writes_variable(const Graph& g, const Node& n) {
  if (n.op->kind() == OpKind::kReadVariable) return false;
  return std::any_of(n.inputs.begin(), n.inputs.end(),
                     [&](ValueRef v) { return g.spec(v).dtype == resource; });
}

// Constants, and reads of variables with no earlier write, become arguments:
// tapes see them, and they cannot change before the second run.
void hoist(TracedOnce& t) {
  static const OpDef& read = op_named("ReadVariableOp");
  Graph& g = t.graph;
  std::set<int32_t> written;
  for (int32_t i = 0; i < g.size(); ++i) {
    const Node& n = g[i];
    if (n.op->kind() == OpKind::kConstant) {
      t.args.push_back(n.op->attr<Tensor>(n.attrs.get(), "value"));
      become_arg(g, i, OutSpec(n.outputs[0]));
    } else if (n.op->kind() == OpKind::kReadVariable &&
               !written.contains(n.inputs[0].node)) {
      t.args.push_back(call1(read, g[n.inputs[0].node].variable));
      become_arg(g, i, OutSpec(n.outputs[0]));
    } else if (writes_variable(g, n)) {
      for (const ValueRef v : n.inputs) {
        if (g.spec(v).dtype == resource) written.insert(v.node);
      }
    }
  }
}

TracedOnce trace_once(const RecomputedListFn& fn, const Tensors& x) {
  TracedOnce t;
  {
    const BodyTrace inside;
    Tracer tracer("recompute_grad", current_tracer());
    Tensors args;
    {
      const DeviceScope* scope = std::exchange(t_state.scope, nullptr);
      for (const Tensor& v : x) args.push_back(tracer.add_arg(v.spec()));
      t_state.scope = scope;
    }
    tracer.start();
    const Tensors results = fn(args);
    t.graph = tracer.finish(results);
    t.args = x;
    for (const Tensor& v : tracer.outer_values()) t.args.push_back(v);
  }
  t.num_computed = t.args.size();
  hoist(t);
  return t;
}

// The nodes that the outputs need; none may have an effect.
std::vector<bool> nodes_again(const Graph& g, Site site) {
  std::vector<bool> needed(g.nodes.size(), false);
  for (const ValueRef v : g.outputs) needed[v.node] = true;
  for (int32_t i = g.size(); i-- > 0;) {
    if (!needed[i]) continue;
    if (g[i].has_effect() || g[i].op->kind() == OpKind::kReadVariable) {
      throw errors::Unimplemented(fmt::format(
          "recompute_grad: the result depends on {}, which writes a variable "
          "or reads one that was written before{}; expected a function whose "
          "result can be computed again: read the variable before the call",
          g[i].name, where_text(nullptr, site)));
    }
    for (const ValueRef v : g[i].inputs) needed[v.node] = true;
  }
  return needed;
}

class RecomputedCall final : public Callable {
 public:
  RecomputedCall(TracedOnce traced, Site site)
      : graph_(std::move(traced.graph)),
        num_computed_(traced.num_computed),
        site_(site) {
    for (const int32_t a : graph_.args) {
      const OutSpec& s = graph_[a].outputs[0];
      inputs_.push_back({s.shape, s.dtype, graph_[a].name});
    }
    for (const ValueRef v : graph_.outputs) {
      outputs_.push_back({graph_.spec(v).shape, graph_.spec(v).dtype, {}});
    }
  }

  const std::string& name() const override { return graph_.name; }
  const std::vector<TensorSpec>& input_specs() const override {
    return inputs_;
  }
  const std::vector<TensorSpec>& output_specs() const override {
    return outputs_;
  }
  const Graph* body() const override { return &graph_; }

  void call(std::span<const Tensor* const> in, std::span<Tensor> out) override {
    Tensors args;
    for (const Tensor* t : in) args.push_back(*t);
    Tensors results = replay(graph_, args);
    std::move(results.begin(), results.end(), out.begin());
  }

  Tensors gradient(std::span<const Tensor> in, std::span<const Tensor>,
                   const Tensors& grads,
                   const std::vector<bool>& needed) override {
    const std::vector<bool> again = nodes_again(graph_, site_);
    Tensors args(in.begin(), in.end());
    const auto dy = std::find_if(grads.begin(), grads.end(),
                                 [](const Tensor& t) { return t.defined(); });
    if (dy == grads.end()) return Tensors(in.size());
    // Not before its gradient is ready, and not merged with the first run.
    for (size_t i = 0; i < num_computed_; ++i) args[i] = behind(args[i], *dy);
    GradientTape tape;
    std::vector<Source> sources;
    std::vector<size_t> at;
    for (size_t i = 0; i < args.size(); ++i) {
      if (!needed[i] || !is_inexact(args[i].dtype())) continue;
      tape.watch(args[i]);
      sources.emplace_back(args[i]);
      at.push_back(i);
    }
    Replay second(graph_, args);
    for (int32_t i = 0; i < graph_.size(); ++i) {
      if (again[i]) second.run(i);
    }
    Tensors targets, dys;
    for (size_t i = 0; i < grads.size(); ++i) {
      if (!grads[i].defined()) continue;
      targets.push_back(second.value(graph_.outputs[i]));
      dys.push_back(grads[i]);
    }
    const Tensors found =
        tape.gradient(targets, sources, {.output_grads = std::move(dys)});
    Tensors by_input(in.size());
    for (size_t i = 0; i < at.size(); ++i) by_input[at[i]] = found[i];
    return by_input;
  }

 private:
  static Tensor behind(const Tensor& x, const Tensor& dy) {
    static const OpDef& op = op_named("_Behind");
    return x.is_symbolic() ? call1(op, x, dy) : x;
  }

  const Graph graph_;
  const size_t num_computed_;
  const Site site_;
  std::vector<TensorSpec> inputs_, outputs_;
};

}  // namespace

Tensors call_recomputed(const RecomputedListFn& fn, const Tensors& x,
                        Site site) {
  if (t_state.top == nullptr) return fn(x);
  static const OpDef& call = op_named("PartitionedCall");
  set_site(site);
  TracedOnce traced = trace_once(fn, x);
  const Tensors args = std::move(traced.args);
  const std::shared_ptr<Callable> f =
      std::make_shared<RecomputedCall>(std::move(traced), site);
  return call_list(call, args, AttrsRef({{"f", f}}).get());
}

RecomputedListFn recompute_grad(RecomputedListFn fn, Site site) {
  if (!fn) {
    throw errors::InvalidArgument(
        fmt::format("recompute_grad: got an empty function{}; expected one "
                    "from tensors to tensors",
                    where_text(nullptr, site)));
  }
  return [fn = std::move(fn), site](const Tensors& x) {
    return call_recomputed(fn, x, site);
  };
}

RecomputedFn recompute_grad(RecomputedFn fn, Site site) {
  RecomputedListFn list;
  if (fn) {
    list = [fn = std::move(fn)](const Tensors& x) { return Tensors{fn(x[0])}; };
  }
  return [list = recompute_grad(std::move(list), site)](const Tensor& x) {
    return std::move(list({x})[0]);
  };
}

}  // namespace berth
