// The variant of a function for calls under a tape: the forward function, which
// also outputs what the gradient needs, and the gradient as a second function.

#include <algorithm>

#include "autodiff/recorder.h"
#include "berth/gradient_tape.h"
#include "function/extract.h"
#include "function/graph_callable.h"
#include "graph/replay.h"
#include "graph/tracer.h"
#include "ops/op_call.h"
#include "tensor/tensor_impl.h"
#include "tensor/variable_state.h"

namespace berth {

namespace {

// Forward and backward in one graph.
struct Joint {
  Graph graph;
  size_t num_inputs = 0;             // arguments of the function
  std::vector<int> grad_outputs;     // outputs that have a gradient argument
  std::vector<int> result_of_input;  // position among the outputs, or -1
};

Joint trace_joint(const GraphCallable& f) {
  Joint joint;
  Tracer tracer(f.name());
  Tensors args;
  for (const TensorSpec& s : f.input_specs()) args.push_back(tracer.add_arg(s));
  joint.num_inputs = args.size();
  tracer.start();
  std::vector<Source> sources;
  Tensors outputs, targets, dys, grads;
  {
    GradientTape tape;
    for (const Tensor& a : args) {
      if (is_inexact(a.dtype())) tape.watch(a);
      sources.push_back(a);
    }
    for (const Tensor& v : f.variables()) sources.push_back(v);
    outputs = replay(f.traced(), args);
    for (size_t i = 0; i < outputs.size(); ++i) {
      if (!is_inexact(outputs[i].dtype())) continue;
      joint.grad_outputs.push_back(static_cast<int>(i));
      targets.push_back(outputs[i]);
      dys.push_back(tracer.add_arg(outputs[i].spec()));
    }
    grads = tape.gradient(targets, sources, {.output_grads = dys});
  }
  Tensors all = outputs;
  for (const Tensor& g : grads) {
    joint.result_of_input.push_back(g.defined() ? static_cast<int>(all.size())
                                                : -1);
    if (g.defined()) all.push_back(g);
  }
  joint.graph = tracer.finish(all);
  return joint;
}

// Nodes from which one of `ends` can be reached through inputs.
std::vector<bool> needed_for(const Graph& g, const std::vector<ValueRef>& ends,
                             const std::vector<bool>& stop) {
  std::vector<bool> needed(g.nodes.size(), false);
  for (const ValueRef& v : ends) needed[v.node] = true;
  for (int32_t i = g.size(); i-- > 0;) {
    if (!needed[i] || stop[i]) continue;
    for (const ValueRef& v : g[i].inputs) needed[v.node] = true;
    for (int32_t c : g[i].controls) needed[c] = true;
  }
  return needed;
}

}  // namespace

std::shared_ptr<GraphCallable> GraphCallable::taped() {
  {
    std::lock_guard lock(mutex_);
    if (taped_) return taped_;
  }
  const DispatchGuard outside(nullptr);  // hides this from the caller's tapes
  Joint joint = trace_joint(*this);
  const Graph& g = joint.graph;
  const size_t num_outputs = graph_.outputs.size();

  // Backward: everything that depends on an incoming gradient.
  std::vector<bool> backward(g.nodes.size(), false);
  std::vector<bool> is_dy(g.nodes.size(), false);
  for (size_t i = joint.num_inputs; i < g.args.size(); ++i) {
    backward[g.args[i]] = is_dy[g.args[i]] = true;
  }
  for (int32_t i = 0; i < g.size(); ++i) {
    for (const ValueRef& v : g[i].inputs) {
      if (backward[v.node]) backward[i] = true;
    }
  }
  std::vector<ValueRef> results(g.outputs.begin() + num_outputs,
                                g.outputs.end());
  std::vector<bool> forward(g.nodes.size());
  for (size_t i = 0; i < forward.size(); ++i) forward[i] = !backward[i];
  const std::vector<bool> wanted = needed_for(g, results, forward);

  // Values that cross over: arguments pass through, the rest is saved.
  auto back = std::make_unique<Backward>();
  back->num_outputs = num_outputs;
  std::vector<ValueRef> saved;
  Extract b(g, g.name + "_gradient");
  std::vector<ValueRef> crossing;
  auto cross = [&](ValueRef v) {
    if (backward[v.node] || is_source(g, v.node) ||
        std::find(crossing.begin(), crossing.end(), v) != crossing.end()) {
      return;
    }
    crossing.push_back(v);
    b.argument(v);
    const auto arg = std::find(g.args.begin(), g.args.end(), v.node);
    if (arg != g.args.end()) {
      back->args.push_back(
          {Backward::From::kInput, static_cast<int>(arg - g.args.begin())});
      return;
    }
    const auto out =
        std::find(g.outputs.begin(), g.outputs.begin() + num_outputs, v);
    if (out != g.outputs.begin() + num_outputs) {
      back->args.push_back(
          {Backward::From::kOutput, static_cast<int>(out - g.outputs.begin())});
      return;
    }
    back->args.push_back({Backward::From::kOutput,
                          static_cast<int>(num_outputs + saved.size())});
    saved.push_back(v);
  };
  for (int32_t i = 0; i < g.size(); ++i) {
    if (!wanted[i] || !backward[i]) continue;
    for (const ValueRef& v : g[i].inputs) cross(v);
  }
  for (const ValueRef& v : results) cross(v);
  for (size_t i = 0; i < joint.grad_outputs.size(); ++i) {
    b.argument({g.args[joint.num_inputs + i], 0});
    back->args.push_back({Backward::From::kGrad, joint.grad_outputs[i]});
  }
  for (int32_t i = 0; i < g.size(); ++i) {
    const bool copy =
        wanted[i] && !is_dy[i] && (backward[i] || is_source(g, i));
    if (copy) b.node(i);
  }
  for (const ValueRef& v : results) b.output(v);
  for (int r : joint.result_of_input) {
    back->result_of_input.push_back(r < 0 ? -1
                                          : r - static_cast<int>(num_outputs));
  }
  back->function = std::make_shared<GraphCallable>(b.take(), options_);

  Extract f(g, g.name);
  for (size_t i = 0; i < joint.num_inputs; ++i) {
    f.argument({g.args[i], 0});
  }
  for (int32_t i = 0; i < g.size(); ++i) {
    if (!backward[i] && g[i].op->kind() != OpKind::kArgument) f.node(i);
  }
  for (size_t i = 0; i < num_outputs; ++i) f.output(g.outputs[i]);
  for (const ValueRef& v : saved) f.output(v);
  auto taped = std::make_shared<GraphCallable>(f.take(), options_);
  taped->backward_ = std::move(back);
  std::lock_guard lock(mutex_);
  if (!taped_) {
    taped->set_run_counts(part_of(counts_, kTaped));
    taped_ = std::move(taped);
  }
  return taped_;
}

Tensors GraphCallable::gradient(std::span<const Tensor> in,
                                std::span<const Tensor> out,
                                const Tensors& grads,
                                const std::vector<bool>& needed) {
  const bool second_order =
      std::any_of(grads.begin() + (backward_ ? backward_->num_outputs : 0),
                  grads.end(), [](const Tensor& t) { return t.defined(); });
  if (!backward_ || second_order) {
    // No backward function covers this (at second order a saved value has its
    // own gradient): differentiate the nodes themselves.
    GradientTape tape;
    std::vector<Source> sources;
    for (const Tensor& t : in) {
      if (is_inexact(t.dtype())) tape.watch(t);
      sources.push_back(t);
    }
    const Tensors again = replay(traced_, {in.data(), num_args()});
    Tensors targets, dys;
    for (size_t i = 0; i < again.size(); ++i) {
      if (!grads[i].defined()) continue;
      targets.push_back(again[i]);
      dys.push_back(grads[i]);
    }
    return tape.gradient(targets, sources, {.output_grads = dys});
  }
  (void)needed;
  static const OpDef& zeros = op_named("ZerosLike");
  static const OpDef& call = op_named("PartitionedCall");
  Tensors args;
  for (const auto& [from, i] : backward_->args) {
    switch (from) {
      case Backward::From::kInput:
        args.push_back(in[i]);
        break;
      case Backward::From::kOutput:
        args.push_back(out[i]);
        break;
      case Backward::From::kGrad:
        args.push_back(grads[i].defined() ? grads[i] : call1(zeros, out[i]));
        break;
    }
  }
  std::shared_ptr<GraphCallable> f = backward_->function;
  if (t_state.top != nullptr) {
    // An outer tape differentiates this call like any other.
    f = f->taped();
    for (const Tensor& v : f->variables()) args.push_back(v);
  }
  const AttrsRef attrs({{"f", std::shared_ptr<Callable>(f)}});
  const Tensors results = call_list(call, args, attrs.get());
  Tensors by_input;
  for (int r : backward_->result_of_input) {
    by_input.push_back(r < 0 ? Tensor() : results[r]);
  }
  return by_input;
}

}  // namespace berth
