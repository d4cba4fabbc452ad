// The variant of a function for calls under a tape: the forward function, which
// also outputs what the gradient needs, and the gradient as a second function.

#include <algorithm>
#include <set>

#include "autodiff/recorder.h"
#include "berth/gradient_tape.h"
#include "function/graph_callable.h"
#include "function/subgraph.h"
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

// Separates a joint graph into the two functions.
class TwoFunctions {
 public:
  TwoFunctions(const Joint& joint, size_t num_outputs)
      : joint_(joint),
        g_(joint.graph),
        num_outputs_(num_outputs),
        results_(g_.outputs.begin() + num_outputs, g_.outputs.end()),
        is_dy_(g_.nodes.size(), false) {
    find_backward();
    find_crossing();
  }

  // How the gradient is called; without its callable.
  std::unique_ptr<Backward> backward() const;
  Graph backward_graph() const;
  // Has the saved values as further outputs.
  Graph forward_graph() const;

 private:
  // Marks what depends on an incoming gradient and leads to a result.
  void find_backward();
  // Lists the values that the gradient reads from the forward function.
  void find_crossing();
  // Where the caller of the gradient finds a value of the forward function,
  // which it saves if need be.
  Backward::Source source_of(ValueRef v);

  const Joint& joint_;
  const Graph& g_;
  const size_t num_outputs_;  // of the function
  const std::vector<ValueRef> results_;
  std::vector<bool> is_dy_, backward_, wanted_;
  std::vector<ValueRef> crossing_;  // in the order of the gradient's arguments
  std::vector<Backward::Source> sources_;  // of these
  std::vector<ValueRef> saved_;            // no arguments and no outputs
};

void TwoFunctions::find_backward() {
  for (size_t i = joint_.num_inputs; i < g_.args.size(); ++i) {
    is_dy_[g_.args[i]] = true;
  }
  backward_ = is_dy_;
  for (int32_t i = 0; i < g_.size(); ++i) {
    for (const ValueRef& v : g_[i].inputs) {
      if (backward_[v.node]) backward_[i] = true;
    }
  }
  std::vector<bool> forward = backward_;
  forward.flip();
  wanted_ = needed_for(g_, results_, forward);
}

void TwoFunctions::find_crossing() {
  std::set<ValueRef> known;
  const auto cross = [&](ValueRef v) {
    if (backward_[v.node] || is_source(g_, v.node)) return;
    if (!known.insert(v).second) return;
    crossing_.push_back(v);
    sources_.push_back(source_of(v));
  };
  for (int32_t i = 0; i < g_.size(); ++i) {
    if (!wanted_[i] || !backward_[i]) continue;
    for (const ValueRef& v : g_[i].inputs) cross(v);
  }
  for (const ValueRef& v : results_) cross(v);
}

Backward::Source TwoFunctions::source_of(ValueRef v) {
  const auto arg = std::find(g_.args.begin(), g_.args.end(), v.node);
  if (arg != g_.args.end()) {
    return {Backward::From::kInput, static_cast<int>(arg - g_.args.begin())};
  }
  const auto end = g_.outputs.begin() + num_outputs_;
  const auto out = std::find(g_.outputs.begin(), end, v);
  if (out == end) saved_.push_back(v);
  const size_t place =
      out == end ? num_outputs_ + saved_.size() - 1 : out - g_.outputs.begin();
  return {Backward::From::kOutput, static_cast<int>(place)};
}

std::unique_ptr<Backward> TwoFunctions::backward() const {
  auto back = std::make_unique<Backward>();
  back->num_outputs = num_outputs_;
  back->args = sources_;
  for (int output : joint_.grad_outputs) {
    back->args.push_back({Backward::From::kGrad, output});
  }
  for (int r : joint_.result_of_input) {
    back->result_of_input.push_back(r < 0 ? -1
                                          : r - static_cast<int>(num_outputs_));
  }
  return back;
}

Graph TwoFunctions::backward_graph() const {
  Subgraph copy(g_, g_.name + "_gradient");
  for (const ValueRef& v : crossing_) copy.argument(v);
  for (size_t i = joint_.num_inputs; i < g_.args.size(); ++i) {
    copy.argument({g_.args[i], 0});
  }
  for (int32_t i = 0; i < g_.size(); ++i) {
    if (!wanted_[i] || is_dy_[i]) continue;
    if (backward_[i] || is_source(g_, i)) copy.node(i);
  }
  for (const ValueRef& v : results_) copy.output(v);
  return copy.take();
}

Graph TwoFunctions::forward_graph() const {
  Subgraph copy(g_, g_.name);
  for (size_t i = 0; i < joint_.num_inputs; ++i) {
    copy.argument({g_.args[i], 0});
  }
  for (int32_t i = 0; i < g_.size(); ++i) {
    if (!backward_[i] && g_[i].op->kind() != OpKind::kArgument) copy.node(i);
  }
  for (size_t i = 0; i < num_outputs_; ++i) copy.output(g_.outputs[i]);
  for (const ValueRef& v : saved_) copy.output(v);
  return copy.take();
}

}  // namespace

std::shared_ptr<GraphCallable> GraphCallable::taped() {
  {
    std::lock_guard lock(mutex_);
    if (taped_) return taped_;
  }
  const DispatchGuard outside(nullptr);  // hides this from the caller's tapes
  const Joint joint = trace_joint(*this);
  const TwoFunctions two(joint, graph_.outputs.size());
  auto taped = std::make_shared<GraphCallable>(two.forward_graph(), options_);
  taped->backward_ = two.backward();
  taped->backward_->function =
      std::make_shared<GraphCallable>(two.backward_graph(), options_);
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
