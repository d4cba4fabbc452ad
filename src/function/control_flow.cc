// cond and while_loop: traces their bodies, and runs If and While op by op.

#include "berth/ops/control_flow.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "berth/errors.h"
#include "berth/ops/array.h"
#include "berth/ops/math.h"
#include "function/control_flow.h"
#include "graph/body.h"
#include "graph/tracer.h"
#include "op/control_flow.h"
#include "op/device_scope.h"
#include "ops/op_call.h"
#include "passes/pipeline.h"
#include "tensor/tensor_impl.h"
#include "tensor/variable_state.h"

namespace berth {

const Tracer* current_tracer() {
  for (const Dispatcher* d = t_state.top; d != nullptr; d = d->below()) {
    if (const auto* t = dynamic_cast<const Tracer*>(d)) return t;
  }
  return nullptr;
}

namespace {

// A traced body, with the values that its last arguments stand for. A handle
// stands for the value of its variable.
struct TracedBody {
  Graph graph;
  Tensors captured;
  std::string fixed;
};

// Adds the variables that a body writes or may write.
void add_written(const Graph& g, std::set<TensorImpl*>& written) {
  for (const Node& n : g.nodes) {
    if (n.op->kind() == OpKind::kReadVariable) continue;
    for (const ValueRef v : n.inputs) {
      if (g.spec(v).dtype == resource)
        written.insert(g[v.node].variable.impl());
    }
  }
}

// Turns reads of variables that no iteration writes into arguments: the read
// happens once, outside, where tapes and passes see it.
void hoist_reads(TracedBody& body, const std::set<TensorImpl*>& written) {
  Graph& g = body.graph;
  static const OpDef& arg = op_named("_Arg");
  std::map<int32_t, int32_t> first;  // handle -> its first read
  std::vector<int32_t> stands_for(g.nodes.size());
  for (int32_t i = 0; i < g.size(); ++i) {
    Node& n = g[i];
    stands_for[i] = i;
    for (ValueRef& v : n.inputs) v.node = stands_for[v.node];
    if (n.op->kind() != OpKind::kReadVariable ||
        written.contains(g[n.inputs[0].node].variable.impl())) {
      continue;
    }
    const auto [it, fresh] = first.try_emplace(n.inputs[0].node, i);
    stands_for[i] = it->second;
    if (!fresh) continue;
    body.captured.push_back(g[n.inputs[0].node].variable);
    const OutSpec spec = n.outputs[0];
    n.op = &arg;
    n.inputs.clear();
    n.controls.clear();
    n.requested.clear();
    n.follows = -1;
    set_arg(n, static_cast<int64_t>(g.args.size()), spec.dtype, spec.shape);
    g.args.push_back(i);
  }
  for (ValueRef& v : g.outputs) v.node = stands_for[v.node];
  dce(g);
}

TracedBody trace_body(const std::string& name, const Tensors& vars,
                      const internal::TracedFn& fn) {
  const Tracer* outer = current_tracer();
  if (outer && outer->depth() >= kMaxNesting) {
    throw errors::InvalidArgument(fmt::format(
        "more than {} conds and loops stand inside each other{}; expected "
        "fewer: a switch_case or case_ for many branches, a while_loop for "
        "many steps",
        kMaxNesting - 1, where_text()));
  }
  const BodyTrace inside;
  Tracer tracer(name, outer);
  Tensors args;
  {
    const DeviceScope* scope = std::exchange(t_state.scope, nullptr);
    for (const Tensor& v : vars) args.push_back(tracer.add_arg(v.spec()));
    t_state.scope = scope;
  }
  tracer.start();
  internal::Leaves result = fn(args);
  for (const Tensor& t : result.tensors) {
    if (!t.defined() || t.dtype() != resource) continue;
    throw errors::InvalidArgument(fmt::format(
        "{}: a result is a Variable's handle{}; expected its value()", name,
        where_text()));
  }
  TracedBody body;
  body.graph = tracer.finish(result.tensors);
  body.captured = tracer.outer_values();
  body.fixed = std::move(result.fixed);
  return body;
}

// What several bodies capture, each value once.
class Captures {
 public:
  // Gives the captures of `body`, its arguments from `first` on, their indices
  // in the common list.
  void add(TracedBody& body, size_t first) {
    Graph& g = body.graph;
    for (size_t i = 0; i < body.captured.size(); ++i) {
      const Tensor& t = body.captured[i];
      const auto [it, fresh] = numbers_.try_emplace(t.impl(), list_.size());
      if (fresh) list_.push_back(t);
      const OutSpec spec = g[g.args[first + i]].outputs[0];
      set_arg(g[g.args[first + i]], static_cast<int64_t>(first + it->second),
              spec.dtype, spec.shape);
    }
    first_ = first;
  }
  // Makes `body` take the whole list, including what it does not read.
  void complete(TracedBody& body) const {
    Graph& g = body.graph;
    static const OpDef& arg = op_named("_Arg");
    std::vector<int32_t> args(first_ + list_.size(), -1);
    for (const int32_t a : g.args) {
      args[g[a].op->attr<int64_t>(g[a].attrs.get(), "index")] = a;
    }
    for (size_t i = first_; i < args.size(); ++i) {
      if (args[i] >= 0) continue;
      const Tensor& t = list_[i - first_];
      const TensorSpec spec = spec_of(t);
      Node n;
      n.op = &arg;
      n.name = unique_name(g, "Arg");
      set_arg(n, static_cast<int64_t>(i), spec.dtype, spec.shape);
      args[i] = g.add(std::move(n));
    }
    g.args = std::move(args);
  }
  // The operands; variables are read here.
  Tensors values() const {
    static const OpDef& read = op_named("ReadVariableOp");
    Tensors values;
    for (const Tensor& t : list_) {
      values.push_back(t.dtype() == resource ? call1(read, t) : t);
    }
    return values;
  }

 private:
  static TensorSpec spec_of(const Tensor& t) {
    if (t.dtype() != resource) return t.spec();
    const VariableState& v = variable_state(t);
    return {v.shape, v.dtype, {}};
  }

  Tensors list_;
  std::map<const TensorImpl*, size_t> numbers_;
  size_t first_ = 0;
};

void check_same_structure(const TracedBody& a, const TracedBody& b) {
  const size_t n = a.graph.outputs.size(), m = b.graph.outputs.size();
  if (n != m || a.fixed != b.fixed) {
    throw errors::InvalidArgument(fmt::format(
        "cond: the branches return different structures{}: {} tensors in the "
        "true branch, {} in the false one, or numbers beside them differ; "
        "expected equal ones",
        where_text(), n, m));
  }
}

}  // namespace

BodyTrace::BodyTrace() : saved_(t_state), outside_(nullptr) {
  t_state.follows = -1;
}

BodyTrace::~BodyTrace() {
  t_state.layer = saved_.layer;
  t_state.site = saved_.site;
  t_state.follows = saved_.follows;
}

std::shared_ptr<Callable> make_callee(Graph graph) {
  return std::make_shared<Body>(std::move(graph));
}

void add_handles(Tensors& inputs, std::initializer_list<const Graph*> bodies) {
  std::set<const TensorImpl*> seen;
  for (const Graph* g : bodies) {
    for (const Tensor& t : variables_of(*g)) {
      if (seen.insert(t.impl()).second) inputs.push_back(t);
    }
  }
}

namespace internal {

bool traces_cond(const Tensor& pred) {
  return pred.defined() && pred.is_symbolic() && current_tracer() != nullptr;
}

bool traces_loop() { return current_tracer() != nullptr; }

bool read_predicate(const Tensor& pred, const char* op, Site site) {
  set_site(site);
  if (!pred.defined() || pred.dtype() != bool_ || pred.rank() != 0) {
    throw errors::InvalidArgument(fmt::format(
        "{}: the predicate is {}{}; expected a bool[]", op,
        pred.defined() ? pred.spec().str() : "an empty Tensor", where_text()));
  }
  return pred.item<bool>(site);
}

namespace {

void check_branches(size_t branches) {
  if (branches > 0) return;
  throw errors::InvalidArgument(
      fmt::format("switch_case: there are no branches{}; expected at least one",
                  where_text()));
}

Tensor number_like(const Tensor& like, size_t value) {
  return scalar_like(like, static_cast<double>(value));
}

}  // namespace

int64_t read_index(const Tensor& index, size_t branches, Site site) {
  set_site(site);
  check_branches(branches);
  const auto last = static_cast<int64_t>(branches) - 1;
  const int64_t i = index.item<int64_t>(site);
  return i < 0 || i > last ? last : i;
}

Tensor branch_index(const Tensor& index, size_t branches, Site site) {
  set_site(site);
  check_branches(branches);
  static const OpDef& select = op_named("SelectV2");
  return call_list(
      select,
      {index_below(index, 0, site), number_like(index, branches - 1), index},
      nullptr)[0];
}

Tensor index_below(const Tensor& index, size_t value, Site site) {
  set_site(site);
  static const OpDef& less = op_named("Less");
  return call1(less, index, number_like(index, value));
}

Tensor first_true(const Tensors& predicates, Site site) {
  set_site(site);
  static const OpDef& select = op_named("SelectV2");
  auto number = [](size_t i) { return constant(static_cast<int64_t>(i)); };
  Tensor first = number(predicates.size());
  for (size_t i = predicates.size(); i-- > 0;) {
    const Tensor& holds = predicates[i];
    if (holds.dtype() != bool_ || holds.rank() != 0) {
      throw errors::InvalidArgument(
          fmt::format("case_: predicate {} is {}{}; expected a bool[]", i,
                      holds.spec().str(), where_text()));
    }
    first = call_list(select, {holds, number(i), first}, nullptr)[0];
  }
  return first;
}

void check_turn(const Leaves& before, const Leaves& after, Site site) {
  set_site(site);
  if (before.tensors.size() != after.tensors.size() ||
      before.fixed != after.fixed) {
    throw errors::InvalidArgument(fmt::format(
        "while_loop: a turn changes the structure of the loop variables{}; "
        "expected the same tensors, and numbers that stay: what changes must "
        "be a tensor",
        where_text()));
  }
  for (size_t i = 0; i < before.tensors.size(); ++i) {
    const Tensor &a = before.tensors[i], &b = after.tensors[i];
    if (b.defined() && a.dtype() == b.dtype() && a.shape() == b.shape()) {
      continue;
    }
    throw errors::InvalidArgument(fmt::format(
        "while_loop: loop variable {} enters as {} and is {} after a turn{}; "
        "expected the same dtype and shape",
        i, a.spec().str(), b.defined() ? b.spec().str() : "an empty Tensor",
        where_text()));
  }
}

Tensors trace_cond(const Tensor& pred, const TracedFn& true_fn,
                   const TracedFn& false_fn, Site site) {
  set_site(site);
  TracedBody a = trace_body("true_branch", {}, true_fn);
  TracedBody b = trace_body("false_branch", {}, false_fn);
  set_site(site);
  check_same_structure(a, b);
  for (TracedBody* body : {&a, &b}) {
    std::set<TensorImpl*> written;
    add_written(body->graph, written);
    hoist_reads(*body, written);
  }
  Captures captures;
  captures.add(a, 0);
  captures.add(b, 0);
  captures.complete(a);
  captures.complete(b);
  Tensors inputs = {pred};
  for (Tensor& t : captures.values()) inputs.push_back(std::move(t));
  add_handles(inputs, {&a.graph, &b.graph});
  static const OpDef& op = op_named("If");
  return call_list(op, inputs,
                   AttrsRef({{"then_branch", make_callee(std::move(a.graph))},
                             {"else_branch", make_callee(std::move(b.graph))}})
                       .get());
}

Tensors trace_while(const std::function<Tensor(const Tensors&)>& cond,
                    const TracedFn& body, const Leaves& vars,
                    const WhileOptions& options, Site site) {
  set_site(site);
  const size_t n = vars.tensors.size();
  if (options.max_iterations < -1) {
    throw errors::InvalidArgument(fmt::format(
        "while_loop: max_iterations is {}{}; expected a number of turns, or -1",
        options.max_iterations, where_text()));
  }
  TracedBody c = trace_body("cond", vars.tensors, [&](const Tensors& args) {
    return Leaves{{cond(args)}, {}};
  });
  TracedBody b = trace_body("body", vars.tensors, body);
  set_site(site);
  if (b.graph.outputs.size() != n || b.fixed != vars.fixed) {
    Leaves after;
    after.fixed = b.fixed;
    after.tensors.resize(b.graph.outputs.size());
    if (after.tensors.size() == n) after.tensors.clear();
    check_turn(vars, after, site);
  }
  std::set<TensorImpl*> written;
  add_written(c.graph, written);
  add_written(b.graph, written);
  hoist_reads(c, written);
  hoist_reads(b, written);
  Captures captures;
  captures.add(c, n);
  captures.add(b, n);
  captures.complete(c);
  captures.complete(b);
  Tensors inputs = vars.tensors;
  for (Tensor& t : captures.values()) inputs.push_back(std::move(t));
  add_handles(inputs, {&c.graph, &b.graph});
  static const OpDef& op = op_named("While");
  Tensors results =
      call_list(op, inputs,
                AttrsRef({{"cond", make_callee(std::move(c.graph))},
                          {"body", make_callee(std::move(b.graph))},
                          {"num_vars", static_cast<int64_t>(n)},
                          {"max_iterations", options.max_iterations}})
                    .get());
  results.resize(n);
  return results;
}

}  // namespace internal

namespace {

Tensors call_body(Callable& f, const Tensors& args) {
  std::vector<const Tensor*> in;
  for (const Tensor& t : args) in.push_back(&t);
  Tensors out(f.output_specs().size());
  f.call(in, out);
  return out;
}

void run_if(const OpDef& op, std::span<const Tensor* const> in,
            const Attrs* attrs, std::span<Tensor> out) {
  const IfLayout l(op, attrs);
  Callable& branch = in[0]->item<bool>() ? *l.then_branch : *l.else_branch;
  branch.call(in.subspan(1, static_cast<size_t>(l.num_args)), out);
}

// [max_iterations, ...] from the rows that exist.
Tensor stack_rows(const Tensors& rows, const TensorSpec& row, int64_t most) {
  Shape shape = row.shape;
  shape.insert(0, most);
  if (rows.empty()) return zeros(shape, row.dtype);
  Tensors all = rows;
  const Tensor none = zeros(rows[0].shape(), row.dtype);
  while (static_cast<int64_t>(all.size()) < most) all.push_back(none);
  return stack(all, 0);
}

void run_while(const OpDef& op, std::span<const Tensor* const> in,
               const Attrs* attrs, std::span<Tensor> out) {
  const WhileLayout l(op, attrs);
  Tensors vars, captures;
  for (int i = 0; i < l.num_vars; ++i) vars.push_back(*in[l.first_var() + i]);
  for (int i = 0; i < l.num_captures; ++i) {
    captures.push_back(*in[l.first_capture() + i]);
  }
  const int64_t limit = l.counted()            ? in[0]->item<int64_t>()
                        : l.max_iterations < 0 ? INT64_MAX
                                               : l.max_iterations;
  std::vector<Tensors> rows(static_cast<size_t>(l.num_stacks));
  int64_t n = 0;
  for (; n < limit; ++n) {
    if (!l.counted()) {
      Tensors args = vars;
      args.insert(args.end(), captures.begin(), captures.end());
      if (!call_body(*l.cond, args)[0].item<bool>()) break;
    }
    const int64_t at = l.reverse ? limit - 1 - n : n;
    Tensors args = vars;
    for (int i = 0; i < l.num_rows; ++i) {
      args.push_back((*in[l.first_row() + i])[{at}]);
    }
    args.insert(args.end(), captures.begin(), captures.end());
    Tensors results = call_body(*l.body, args);
    for (size_t i = 0; i < vars.size(); ++i) vars[i] = std::move(results[i]);
    for (size_t i = 0; i < rows.size(); ++i) {
      rows[i].push_back(std::move(results[vars.size() + i]));
    }
  }
  std::move(vars.begin(), vars.end(), out.begin());
  out[static_cast<size_t>(l.count_output())] = constant(n);
  for (size_t i = 0; i < rows.size(); ++i) {
    if (l.reverse) std::reverse(rows[i].begin(), rows[i].end());
    out[static_cast<size_t>(l.first_stack()) + i] = stack_rows(
        rows[i], l.body->output_specs()[static_cast<size_t>(l.num_vars) + i],
        l.max_iterations);
  }
}

}  // namespace

void call_control(const OpDef& op, std::span<const Tensor* const> in,
                  const Attrs* attrs, std::span<Tensor> out) {
  if (is_loop(op)) {
    run_while(op, in, attrs, out);
  } else {
    run_if(op, in, attrs, out);
  }
}

}  // namespace berth
