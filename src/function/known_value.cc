#include "function/known_value.h"

#include <map>

#include "berth/ops/array.h"
#include "berth/ops/math.h"
#include "function/control_flow.h"
#include "graph/tracer.h"
#include "op/dispatcher.h"
#include "passes/constants.h"
#include "tensor/tensor_impl.h"

namespace berth {

namespace {

// Larger values are not taken for sizes.
constexpr int64_t kMostKnown = 4096;
// A chain of ops costs stack; no size needs a longer one.
constexpr size_t kMostNodes = 2000;

class Known {
 public:
  explicit Known(const Tracer& tracer) : tracer_(tracer) {}

  Tensor of(ValueRef v) {
    if (found_.size() > kMostNodes) return {};
    const auto [it, fresh] = found_.try_emplace(v);
    if (fresh) it->second = computed(v);
    return it->second;
  }

 private:
  const Graph& graph() const { return tracer_.graph(); }

  Tensor computed(ValueRef v) {
    const Node& node = graph()[v.node];
    const Shape& shape = node.outputs[v.output].shape;
    if (!shape.is_fully_defined() || shape.num_elements() > kMostKnown) {
      return {};
    }
    if (const Tensor* t = constant_of(graph(), v)) return *t;
    const std::string& op = node.op->name();
    if (op == "_Arg") return argument(v.node);
    if (op == "Shape" || op == "Size" || op == "Rank") return size_of(node);
    if (!is_pure(node)) return {};
    Tensors in;
    for (const ValueRef input : node.inputs) {
      in.push_back(of(input));
      if (!in.back().defined()) return {};
    }
    return evaluate(*node.op, node.attrs, in).value_or(Tensor());
  }

  // A body's last arguments are values of the traces around it.
  Tensor argument(int32_t node) const {
    const auto& args = graph().args;
    const auto& outer = tracer_.outer_values();
    for (size_t i = 0; i < outer.size(); ++i) {
      if (args[args.size() - outer.size() + i] == node) {
        return known_value(outer[i]);
      }
    }
    return {};
  }

  Tensor size_of(const Node& node) const {
    const Shape& x = graph().spec(node.inputs[0]).shape;
    const bool rank = node.op->name() == "Rank";
    if (!rank && !x.is_fully_defined()) return {};
    std::vector<int64_t> all(x.begin(), x.end());
    if (node.op->name() != "Shape") {
      all = {rank ? int64_t{x.rank()} : x.num_elements()};
    }
    const OutSpec& out = node.outputs[0];
    const DispatchGuard eager(nullptr);
    const Tensor made =
        constant(std::span<const int64_t>(all), out.shape, Site{});
    return math::cast(made, out.dtype, {});
  }

  const Tracer& tracer_;
  std::map<ValueRef, Tensor> found_;
};

}  // namespace

Tensor known_value(const Tensor& t) {
  if (!t.defined() || !t.is_symbolic()) return t;
  const TensorImpl& impl = *t.impl();
  const Tracer* tracer = current_tracer();
  while (tracer != nullptr && !tracer->made(impl.trace)) {
    tracer = tracer->outer();
  }
  if (tracer == nullptr) return {};
  return Known(*tracer).of({impl.node, impl.output});
}

}  // namespace berth
