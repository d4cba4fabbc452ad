// The results pass through one op, _OwnGradient, whose inputs are the results,
// the arguments and what the rule uses: its gradient is the rule's gradient of
// the arguments.

#include "berth/custom_gradient.h"

#include <fmt/format.h>

#include "base/where.h"
#include "berth/errors.h"
#include "function/control_flow.h"
#include "graph/replay.h"
#include "graph/tracer.h"
#include "op/device_scope.h"
#include "ops/op_call.h"

namespace berth {

namespace {

using GradientRule = std::function<Tensors(const Tensors&)>;

// Traces fn, whose arguments have the specs of `like`. `outer`: values of the
// surrounding traces that it uses, which become its last arguments.
Graph trace_inside(const std::string& name, const Tensors& like,
                   const GradientRule& fn, Tensors* outer) {
  const Tracer* around = current_tracer();
  const BodyTrace inside;
  Tracer tracer(name, around);
  Tensors args;
  {
    const DeviceScope* scope = std::exchange(t_state.scope, nullptr);
    for (const Tensor& t : like) args.push_back(tracer.add_arg(t.spec()));
    t_state.scope = scope;
  }
  tracer.start();
  const Tensors results = fn(args);
  Graph graph = tracer.finish(results);
  *outer = tracer.outer_values();
  return graph;
}

class OwnGradientCall final : public Callable {
 public:
  OwnGradientCall(const Tensors& results, const Tensors& x, GradientRule rule,
                  Site site)
      : num_results_(results.size()),
        num_args_(x.size()),
        rule_(std::move(rule)),
        site_(site) {
    if (tracing()) trace_rule(results);
    for (const Tensor& t : results) outputs_.push_back(t.spec());
    inputs_ = outputs_;
    for (const Tensor& t : x) inputs_.push_back(t.spec());
    for (const Tensor& t : used_) inputs_.push_back(t.spec());
  }

  // What the rule uses: the last inputs of the call.
  const Tensors& used() const { return used_; }
  // Once it is recorded, nothing of the trace may be held.
  void forget_used() { used_.clear(); }

  const std::string& name() const override { return name_; }
  const std::vector<TensorSpec>& input_specs() const override {
    return inputs_;
  }
  const std::vector<TensorSpec>& output_specs() const override {
    return outputs_;
  }

  void call(std::span<const Tensor* const> in, std::span<Tensor> out) override {
    for (size_t i = 0; i < out.size(); ++i) out[i] = *in[i];
  }

  Tensors gradient(std::span<const Tensor> in, std::span<const Tensor> out,
                   const Tensors& grads, const std::vector<bool>&) override {
    static const OpDef& zeros = op_named("ZerosLike");
    Tensors dy;
    for (size_t i = 0; i < grads.size(); ++i) {
      dy.push_back(grads[i].defined() ? grads[i] : call1(zeros, out[i]));
    }
    Tensors by_arg = rule_ ? checked(rule_(dy)) : by_graph(in, dy);
    Tensors by_input(in.size());
    for (size_t i = 0; i < num_args_; ++i) {
      by_input[num_results_ + i] = std::move(by_arg[i]);
    }
    return by_input;
  }

 private:
  // From here on the rule is a graph: its tensors end with the trace.
  void trace_rule(const Tensors& results) {
    rule_graph_ = trace_inside(
        "gradient", results,
        [&](const Tensors& dy) {
          Tensors found;
          for (Tensor& g : checked(rule_(dy))) {
            given_.push_back(g.defined());
            if (g.defined()) found.push_back(std::move(g));
          }
          return found;
        },
        &used_);
    rule_ = nullptr;
  }
  Tensors by_graph(std::span<const Tensor> in, Tensors args) const {
    for (size_t i = num_results_ + num_args_; i < in.size(); ++i) {
      args.push_back(in[i]);
    }
    Tensors found = replay(rule_graph_, args), by_arg(num_args_);
    size_t next = 0;
    for (size_t i = 0; i < num_args_; ++i) {
      if (given_[i]) by_arg[i] = std::move(found[next++]);
    }
    return by_arg;
  }
  Tensors checked(Tensors by_arg) const {
    if (by_arg.size() == num_args_) return by_arg;
    throw errors::InvalidArgument(fmt::format(
        "custom_gradient: the gradient rule returned {} gradients; expected "
        "{}, one per argument{}",
        by_arg.size(), num_args_, where_text(nullptr, site_)));
  }

  const size_t num_results_, num_args_;
  GradientRule rule_;  // empty: rule_graph_ is the rule
  const Site site_;
  const std::string name_ = "custom_gradient";
  Graph rule_graph_;
  std::vector<bool> given_;  // arguments that have gradients
  Tensors used_;
  std::vector<TensorSpec> inputs_, outputs_;
};

}  // namespace

Tensors custom_gradient(const CustomFn& fn, const Tensors& x, Site site) {
  if (!fn) {
    throw errors::InvalidArgument(
        fmt::format("custom_gradient: got an empty function; expected one from "
                    "tensors to results and a gradient rule{}",
                    where_text(nullptr, site)));
  }
  WithGradient made = fn(x);
  if (t_state.top == nullptr || !made.gradient || made.results.empty()) {
    return made.results;
  }
  set_site(site);
  static const OpDef& op = op_named("_OwnGradient");
  const auto call = std::make_shared<OwnGradientCall>(
      made.results, x, std::move(made.gradient), site);
  Tensors args = made.results;
  args.insert(args.end(), x.begin(), x.end());
  args.insert(args.end(), call->used().begin(), call->used().end());
  call->forget_used();
  return call_list(op, args,
                   AttrsRef({{"f", std::shared_ptr<Callable>(call)}}).get());
}

}  // namespace berth
