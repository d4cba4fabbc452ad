// Gradients of If and While.
//
// Under a tape the forward op also returns every intermediate value of its
// bodies (saving_attrs); those that no gradient reads are pruned afterwards.
// The gradient of If is an If whose branches compute the gradients of the
// forward branches from these values. That of While is a counted While that
// runs the iterations in reverse and reads what each iteration saved, row by
// row.

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/needs_values.h"
#include "berth/errors.h"
#include "berth/gradient_tape.h"
#include "function/control_flow.h"
#include "function/subgraph.h"
#include "graph/body.h"
#include "graph/replay.h"
#include "graph/tracer.h"
#include "op/control_flow.h"
#include "op/device_scope.h"
#include "ops/op_call.h"
#include "passes/pipeline.h"
#include "tensor/tensor_impl.h"
#include "tensor/variable_state.h"

namespace berth {

namespace {

bool has_unknown(const Shape& s) {
  return std::find(s.begin(), s.end(), kUnknownDim) != s.end();
}

// The body as a tape would record it: everything it computes follows its
// results, from `first_kept` on.
Graph saving_body(const Graph& body, size_t first_kept) {
  const BodyTrace inside;
  Tracer tracer(body.name);
  Tensors args, outputs;
  for (const int32_t a : body.args) {
    const OutSpec& s = body[a].outputs[0];
    args.push_back(tracer.add_arg({s.shape, s.dtype, {}}));
  }
  tracer.start();
  {
    GradientTape tape;
    for (const Tensor& t : args) {
      if (is_floating(t.dtype())) tape.watch(t);
    }
    outputs = replay(body, args);
  }
  Graph g = tracer.finish(outputs);
  std::vector<ValueRef> kept(
      g.outputs.begin() + static_cast<std::ptrdiff_t>(first_kept),
      g.outputs.end());
  for (int32_t i = 0; i < g.size(); ++i) {
    if (is_source(g, i)) continue;
    // The arguments of a branch exist anyway; those of a loop change.
    if (first_kept == 0 && g[i].op->kind() == OpKind::kArgument) continue;
    for (int32_t o = 0; o < static_cast<int32_t>(g[i].outputs.size()); ++o) {
      const OutSpec& s = g[i].outputs[static_cast<size_t>(o)];
      const ValueRef v = {i, o};
      if (s.dtype == resource || has_unknown(s.shape) ||
          s.shape.rank() == kMaxRank ||
          std::find(kept.begin(), kept.end(), v) != kept.end()) {
        continue;
      }
      g.outputs.push_back(v);
    }
  }
  return g;
}

// A node of zeros; the shape consists of numbers and symbols only.
ValueRef add_zeros(Graph& g, const OutSpec& spec) {
  static const OpDef& fill = op_named("Fill");
  Node n;
  n.op = &fill;
  n.name = unique_name(g, "Fill");
  n.attrs =
      AttrsRef({{"shape", spec.shape}, {"value", 0.0}, {"dtype", spec.dtype}});
  n.outputs = {spec};
  return {g.add(std::move(n)), 0};
}

const Graph& graph_of(const Callable& f) {
  if (f.body() == nullptr) {
    throw errors::FailedPrecondition(
        f.name() +
        ": only declared by the text of its graph; it has no "
        "gradient");
  }
  return *f.body();
}

}  // namespace

AttrsRef saving_attrs(const OpDef& op, const Attrs* attrs) {
  if (op.attr<bool>(attrs, "saving")) return {};
  auto pairs = attrs->pairs();
  auto set = [&](const std::string& name, AttrValue value) {
    for (auto& [n, v] : pairs) {
      if (n == name) v = value;
    }
  };
  if (is_loop(op)) {
    const WhileLayout l(op, attrs);
    // Without a limit, the size of what a gradient would need is unknown.
    if (l.max_iterations < 0) return {};
    set("body", make_callee(saving_body(graph_of(*l.body),
                                        static_cast<size_t>(l.num_vars))));
  } else {
    const IfLayout l(op, attrs);
    Graph a = saving_body(graph_of(*l.then_branch), 0);
    Graph b = saving_body(graph_of(*l.else_branch), 0);
    const size_t n = l.then_branch->output_specs().size();
    const std::vector<ValueRef> of_a(a.outputs.begin() + n, a.outputs.end());
    const std::vector<ValueRef> of_b(b.outputs.begin() + n, b.outputs.end());
    b.outputs.resize(n);
    for (const ValueRef v : of_a) b.outputs.push_back(add_zeros(b, a.spec(v)));
    for (const ValueRef v : of_b) {
      a.outputs.push_back(add_zeros(a, b.spec(v)));
      b.outputs.push_back(v);
    }
    set("then_branch", make_callee(std::move(a)));
    set("else_branch", make_callee(std::move(b)));
  }
  std::erase_if(pairs, [](const auto& p) { return p.first == "saving"; });
  pairs.push_back({"saving", true});
  return AttrsRef(std::move(pairs));
}

namespace {

// The gradient of a body as a graph over existing values.
struct BackwardBody {
  enum class From { kInput, kOutput, kGrad };
  Graph graph;
  std::vector<std::pair<From, int>> args;
  // For each input of the body, then each variable: its output; -1: none.
  std::vector<int> result_of;
};

class BackwardMaker {
 public:
  // `has_dy`: one entry per output of the body; `needed`: one per input, then
  // one per variable. The first `num_vars` inputs and outputs belong to a loop:
  // their values are gone when the gradient is computed.
  BackwardMaker(const Graph& body, const std::vector<Tensor>& variables,
                const std::vector<bool>& has_dy,
                const std::vector<bool>& needed, int num_vars)
      : tracer_(body.name) {
    const bool pinned = t_state.scope && !t_state.scope->name.str().empty();
    const std::string device = pinned ? t_state.scope->name.str() : "";
    const BodyTrace inside;
    trace(body, variables, has_dy, needed, num_vars, device);
    graph_ = tracer_.finish({});
  }

  BackwardBody run() {
    find_needed();
    Subgraph extract(graph_, graph_.name + "_gradient");
    for (const ValueRef v : crossing_) {
      extract.argument(v);
      result_.args.push_back(available_.at(v));
    }
    for (int32_t i = 0; i < graph_.size(); ++i) {
      if (copied_[i]) extract.node(i);
    }
    for (const ValueRef v : results_) extract.output(v);
    result_.graph = extract.take();
    return std::move(result_);
  }

 private:
  using From = BackwardBody::From;

  void trace(const Graph& body, const std::vector<Tensor>& variables,
             const std::vector<bool>& has_dy, const std::vector<bool>& needed,
             int num_vars, const std::string& device) {
    Tensors args, dys, targets, outputs;
    for (const int32_t a : body.args) {
      const OutSpec& s = body[a].outputs[0];
      args.push_back(tracer_.add_arg({s.shape, s.dtype, {}}));
    }
    tracer_.start();
    std::vector<Source> sources;
    std::vector<size_t> source_of;
    GradientTape tape;
    for (size_t i = 0; i < args.size(); ++i) {
      if (!needed[i] || !is_floating(args[i].dtype())) continue;
      tape.watch(args[i]);
      sources.push_back(args[i]);
      source_of.push_back(i);
    }
    for (size_t i = 0; i < variables.size(); ++i) {
      if (!needed[args.size() + i]) continue;
      sources.push_back(variables[i]);
      source_of.push_back(args.size() + i);
    }
    outputs = replay(body, args);
    for (size_t i = 0; i < args.size(); ++i) {
      if (static_cast<int>(i) < num_vars) continue;
      add_available(args[i], From::kInput, i);
    }
    for (size_t o = 0; o < outputs.size(); ++o) {
      if (static_cast<int>(o) >= num_vars) {
        add_available(outputs[o], From::kOutput, o);
      }
      if (!has_dy[o]) continue;
      targets.push_back(outputs[o]);
      dys.push_back(tracer_.add_arg(outputs[o].spec()));
      add_available(dys.back(), From::kGrad, o);
    }
    const Tensors grads = tape.gradient(
        targets, sources, {.device = device, .output_grads = dys});
    result_.result_of.assign(args.size() + variables.size(), -1);
    for (size_t i = 0; i < grads.size(); ++i) {
      if (!grads[i].defined()) continue;
      result_.result_of[source_of[i]] = static_cast<int>(results_.size());
      results_.push_back(tracer_.value_of(grads[i]));
    }
  }

  void add_available(const Tensor& t, From from, size_t i) {
    if (!t.is_symbolic()) return;
    available_.try_emplace({t.impl()->node, t.impl()->output},
                           std::pair{from, static_cast<int>(i)});
  }

  void find_needed() {
    copied_.assign(graph_.nodes.size(), false);
    auto want = [&](ValueRef v) {
      if (!available_.contains(v)) {
        copied_[v.node] = true;
      } else if (std::find(crossing_.begin(), crossing_.end(), v) ==
                 crossing_.end()) {
        crossing_.push_back(v);
      }
    };
    for (const ValueRef v : results_) want(v);
    for (int32_t i = graph_.size(); i-- > 0;) {
      if (!copied_[i]) continue;
      const Node& n = graph_[i];
      if (n.op->random() || n.op->kind() == OpKind::kReadVariable ||
          n.op->kind() == OpKind::kArgument) {
        throw errors::Unimplemented(fmt::format(
            "{}: the gradient would have to compute \"{}\" ({}) again, because "
            "its shape {} is not known in the trace{}; expected known "
            "dimensions inside cond and while_loop",
            graph_.name, n.name, n.op->name(), n.outputs[0].shape.str(),
            where_text()));
      }
      for (const ValueRef v : n.inputs) want(v);
    }
  }

  Tracer tracer_;
  Graph graph_;
  std::map<ValueRef, std::pair<From, int>> available_;
  std::vector<ValueRef> results_, crossing_;
  std::vector<bool> copied_;
  BackwardBody result_;
};

// The variables that `graph` uses, as positions among the handles of a node.
std::vector<int> handle_positions(const GradCall& g, int first,
                                  const std::vector<Tensor>& variables) {
  std::vector<int> at;
  for (const Tensor& v : variables) {
    for (int i = first; i < g.num_inputs(); ++i) {
      if (g.x(i).dtype() == resource &&
          g.x(i).impl()->variable == v.impl()->variable) {
        at.push_back(i);
        break;
      }
    }
  }
  return at;
}

OutSpec value_spec(const Tensor& t) {
  if (t.dtype() != resource) return {t.dtype(), t.shape()};
  const VariableState& v = variable_state(t);
  return {v.dtype, v.shape};
}

// A list of tensors without duplicates.
class Operands {
 public:
  int add(const Tensor& t) {
    const auto [it, fresh] =
        at_.try_emplace(t.impl(), static_cast<int>(list.size()));
    if (fresh) list.push_back(t);
    return it->second;
  }
  Tensors list;

 private:
  std::map<const TensorImpl*, int> at_;
};

// One branch of the gradient of an If.
struct BackwardBranch {
  BackwardBody body;
  std::vector<int> handles;   // its variables: inputs of the forward node
  std::vector<int> operands;  // its arguments

  // The output that is the gradient of input `i` of the forward node.
  int result_of(int i, int num_args) const {
    if (i <= num_args) return body.result_of[static_cast<size_t>(i) - 1];
    for (size_t h = 0; h < handles.size(); ++h) {
      if (handles[h] == i) {
        return body.result_of[static_cast<size_t>(num_args) + h];
      }
    }
    return -1;
  }
};

BackwardBranch backward_branch(const GradCall& g, const Callable& f,
                               int num_args, Operands& operands) {
  const Graph& graph = graph_of(f);
  const std::vector<Tensor> variables = variables_of(graph);
  BackwardBranch b;
  b.handles = handle_positions(g, 1 + num_args, variables);
  std::vector<bool> has_dy, needed;
  for (size_t o = 0; o < graph.outputs.size(); ++o) {
    has_dy.push_back(g.has_dy(static_cast<int>(o)));
  }
  for (int i = 0; i < num_args; ++i) needed.push_back(g.needs(1 + i));
  for (const int h : b.handles) needed.push_back(g.needs(h));
  b.body = BackwardMaker(graph, variables, has_dy, needed, 0).run();
  for (const auto& [from, i] : b.body.args) {
    switch (from) {
      case BackwardBody::From::kInput:
        b.operands.push_back(operands.add(g.x(1 + i)));
        break;
      case BackwardBody::From::kOutput:
        b.operands.push_back(operands.add(g.y(i)));
        break;
      case BackwardBody::From::kGrad:
        b.operands.push_back(operands.add(g.dy(i)));
        break;
    }
  }
  return b;
}

}  // namespace

Tensors if_gradient(const GradCall& g) {
  const IfLayout l(g.op(), g.attrs());
  Operands operands;
  const BackwardBranch a =
      backward_branch(g, *l.then_branch, l.num_args, operands);
  const BackwardBranch b =
      backward_branch(g, *l.else_branch, l.num_args, operands);
  std::vector<int> inputs;  // those that get a gradient
  for (int i = 1; i < g.num_inputs(); ++i) {
    if (a.result_of(i, l.num_args) < 0 && b.result_of(i, l.num_args) < 0) {
      continue;
    }
    inputs.push_back(i);
    // Zeros of an unknown shape are made from the value.
    if (has_unknown(value_spec(g.x(i)).shape)) operands.add(g.x(i));
  }
  auto make = [&](const BackwardBranch& branch, const char* name) {
    const BodyTrace inside;
    Tracer tracer(name);
    Tensors args, picked, out;
    for (const Tensor& t : operands.list)
      args.push_back(tracer.add_arg(t.spec()));
    tracer.start();
    for (const int k : branch.operands) picked.push_back(args[k]);
    const Tensors grads = replay(branch.body.graph, picked);
    static const OpDef& fill = op_named("Fill");
    static const OpDef& zeros_like = op_named("ZerosLike");
    for (const int i : inputs) {
      const int r = branch.result_of(i, l.num_args);
      const OutSpec spec = value_spec(g.x(i));
      if (r >= 0) {
        out.push_back(grads[r]);
      } else if (has_unknown(spec.shape)) {
        out.push_back(call1(zeros_like, args[operands.add(g.x(i))]));
      } else {
        out.push_back(call1(
            fill, {},
            AttrsRef(
                {{"shape", spec.shape}, {"value", 0.0}, {"dtype", spec.dtype}})
                .get()));
      }
    }
    Graph graph = tracer.finish(out);
    dce(graph);
    return graph;
  };
  Graph then_graph = make(a, "true_branch_gradient");
  Graph else_graph = make(b, "false_branch_gradient");
  Tensors in = {g.x(0)};
  in.insert(in.end(), operands.list.begin(), operands.list.end());
  add_handles(in, {&then_graph, &else_graph});
  const Tensors results =
      call_list(g.op(), in,
                AttrsRef({{"then_branch", make_callee(std::move(then_graph))},
                          {"else_branch", make_callee(std::move(else_graph))}})
                    .get());
  Tensors by_input(static_cast<size_t>(g.num_inputs()));
  for (size_t k = 0; k < inputs.size(); ++k) by_input[inputs[k]] = results[k];
  return by_input;
}

namespace {

// Builds the loop that runs a While in reverse.
class BackwardLoop {
 public:
  BackwardLoop(const GradCall& g, const WhileLayout& l) : g_(g), l_(l) {
    const Graph& body = graph_of(*l.body);
    const std::vector<Tensor> variables = variables_of(body);
    const std::vector<int> handles =
        handle_positions(g, l.first_handle(), variables);
    std::vector<bool> has_dy, needed;
    for (int i = 0; i < l.num_vars; ++i) {
      has_dy.push_back(is_floating(l.body->output_specs()[i].dtype));
      needed.push_back(true);
    }
    for (int i = 0; i < l.num_stacks; ++i) {
      has_dy.push_back(g.has_dy(l.first_stack() + i));
    }
    for (int i = 0; i < l.num_rows + l.num_captures; ++i) {
      needed.push_back(g.needs(l.first_row() + i));
    }
    for (const int h : handles) needed.push_back(g.needs(h));
    b_ = BackwardMaker(body, variables, has_dy, needed, l.num_vars).run();
    // For each input of the body, then each variable: the node's input.
    for (int i = 0; i < l.num_vars + l.num_rows + l.num_captures; ++i) {
      input_of_.push_back(l.first_var() + i);
    }
    input_of_.insert(input_of_.end(), handles.begin(), handles.end());
  }

  Tensors run() {
    choose_vars();
    Graph body = trace();
    static const OpDef& op = op_named("While");
    Tensors in = {g_.y(l_.count_output())};
    in.insert(in.end(), initial_.begin(), initial_.end());
    in.insert(in.end(), rows_.list.begin(), rows_.list.end());
    in.insert(in.end(), captures_.list.begin(), captures_.list.end());
    add_handles(in, {&body});
    const auto num_rows = static_cast<int64_t>(rows_.list.size());
    const Tensors results =
        call_list(op, in,
                  AttrsRef({{"body", make_callee(std::move(body))},
                            {"num_vars", static_cast<int64_t>(initial_.size())},
                            {"num_rows", num_rows},
                            {"max_iterations", l_.max_iterations},
                            {"reverse", !l_.reverse}})
                      .get());
    Tensors by_input(static_cast<size_t>(g_.num_inputs()));
    for (size_t i = 0; i < var_input_.size(); ++i) {
      by_input[var_input_[i]] = results[i];
    }
    for (size_t i = 0; i < row_input_.size(); ++i) {
      by_input[row_input_[i]] = results[initial_.size() + 1 + i];
    }
    return by_input;
  }

 private:
  bool is_row(int input) const {
    return input >= l_.first_row() && input < l_.first_capture();
  }

  // Loop variables: the gradients of the loop's variables, then a sum for each
  // capture.
  void choose_vars() {
    static const OpDef& zeros_like = op_named("ZerosLike");
    static const OpDef& fill = op_named("Fill");
    for (int i = 0; i < l_.num_vars; ++i) {
      if (!is_floating(l_.body->output_specs()[i].dtype)) continue;
      grad_var_[i] = static_cast<int>(initial_.size());
      var_input_.push_back(l_.first_var() + i);
      initial_.push_back(g_.dy(i));
    }
    for (size_t i = static_cast<size_t>(l_.num_vars); i < input_of_.size();
         ++i) {
      const int input = input_of_[i];
      if (b_.result_of[i] < 0) continue;
      if (is_row(input)) {
        row_input_.push_back(input);
        row_result_.push_back(b_.result_of[i]);
        continue;
      }
      sum_result_.push_back(b_.result_of[i]);
      var_input_.push_back(input);
      const OutSpec spec = value_spec(g_.x(input));
      initial_.push_back(has_unknown(spec.shape)
                             ? call1(zeros_like, g_.x(input))
                             : call1(fill, {},
                                     AttrsRef({{"shape", spec.shape},
                                               {"value", 0.0},
                                               {"dtype", spec.dtype}})
                                         .get()));
    }
    for (const auto& [from, i] : b_.args) place_operand(from, i);
  }

  // The source of each argument of the gradient's body.
  void place_operand(BackwardBody::From from, int i) {
    using From = BackwardBody::From;
    const int stack = l_.first_stack() + i - l_.num_vars;
    if (from == From::kGrad && i < l_.num_vars) {
      args_.push_back({Kind::kVar, grad_var_.at(i)});
    } else if (from == From::kGrad) {
      args_.push_back({Kind::kRow, rows_.add(g_.dy(stack))});
    } else if (from == From::kOutput) {
      args_.push_back({Kind::kRow, rows_.add(g_.y(stack))});
    } else if (const Tensor& t = g_.x(input_of_[i]); is_row(input_of_[i])) {
      args_.push_back({Kind::kRow, rows_.add(t)});
    } else {
      args_.push_back({Kind::kCapture, captures_.add(t)});
    }
  }

  Graph trace() {
    const BodyTrace inside;
    Tracer tracer(b_.graph.name);
    Tensors vars, rows, captures, in, out;
    for (const Tensor& t : initial_) vars.push_back(tracer.add_arg(t.spec()));
    for (const Tensor& t : rows_.list) {
      TensorSpec spec = t.spec();
      spec.shape.erase(0);
      rows.push_back(tracer.add_arg(spec));
    }
    for (const Tensor& t : captures_.list) {
      captures.push_back(tracer.add_arg(t.spec()));
    }
    tracer.start();
    for (const auto& [kind, i] : args_) {
      const Tensors& list = kind == Kind::kVar   ? vars
                            : kind == Kind::kRow ? rows
                                                 : captures;
      in.push_back(list[i]);
    }
    const Tensors grads = replay(b_.graph, in);
    static const OpDef& zeros_like = op_named("ZerosLike");
    static const OpDef& add = op_named("AddV2");
    for (const auto& [var, at] : grad_var_) {
      const int r = b_.result_of[var];
      out.push_back(r >= 0 ? grads[r] : call1(zeros_like, vars[at]));
    }
    for (const int r : sum_result_) {
      out.push_back(call1(add, vars[out.size()], grads[r]));
    }
    for (const int r : row_result_) out.push_back(grads[r]);
    Graph graph = tracer.finish(out);
    dce(graph);
    return graph;
  }

  enum class Kind { kVar, kRow, kCapture };
  const GradCall& g_;
  const WhileLayout& l_;
  BackwardBody b_;
  std::vector<int> input_of_;
  std::map<int, int> grad_var_;  // loop variable -> that of the gradient's loop
  std::vector<int> var_input_, row_input_, row_result_, sum_result_;
  std::vector<std::pair<Kind, int>> args_;
  Tensors initial_;
  Operands rows_, captures_;
};

}  // namespace

Tensors while_gradient(const GradCall& g) {
  const WhileLayout l(g.op(), g.attrs());
  if (l.max_iterations < 0) {
    throw Untraceable<errors::Unimplemented>(fmt::format(
        "while_loop: a gradient inside a trace needs to know how many turns "
        "there can be{}; give it {{.max_iterations = n}}",
        where_text()));
  }
  return BackwardLoop(g, l).run();
}

}  // namespace berth
