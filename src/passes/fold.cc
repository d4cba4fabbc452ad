// Constant folding: what can be computed once is computed now.
//
// An op over constants becomes its value. Ops that only read shapes fold as
// soon as the shapes are known, and ops with a `like` operand take the form
// that needs none, so that the operand is not kept alive for its shape.

#include <algorithm>
#include <optional>

#include "device/device_manager.h"
#include "graph/node_part.h"
#include "ops/op_call.h"
#include "passes/constants.h"
#include "passes/forward.h"
#include "passes/pipeline.h"

namespace berth {

namespace {

// A result larger than its operands is folded only up to here: reading it
// from memory would cost more than making it.
constexpr int64_t kMaxGrown = 1024;

class Folder {
 public:
  Folder(Graph& graph, int64_t max_elements)
      : graph_(graph), forward_(graph), max_elements_(max_elements) {}

  void run() {
    const int32_t n = graph_.size();
    for (int32_t i = 0; i < n; ++i) {
      forward_.visit(i);
      if (!is_pure(graph_[i]) || !may_rewrite(graph_, graph_[i])) continue;
      if (fold_shape_op(i) || fold_like(i)) continue;
      fold_constants(i);
    }
    forward_.finish();
  }

 private:
  // ZerosLike, OnesLike and SizeRatio.
  bool fold_shape_op(int32_t i) {
    Node& node = graph_[i];
    const std::string& op = node.op->name();
    const Shape& x = node.inputs.empty() ? node.outputs[0].shape
                                         : graph_.spec(node.inputs[0]).shape;
    if (!x.is_fully_defined()) return false;
    if (op == "ZerosLike") return fold_fill(node, 0);
    if (op == "OnesLike") return fold_fill(node, 1);
    if (op != "SizeRatio") return false;
    const Shape& y = graph_.spec(node.inputs[1]).shape;
    if (!y.is_fully_defined()) return false;
    const OutSpec& out = node.outputs[0];
    const Tensor like = make_tensor(host(), out.dtype, Shape{});
    become_constant(
        node, scalar_like(like, static_cast<double>(x.num_elements()) /
                                    static_cast<double>(y.num_elements())));
    return true;
  }

  bool fold_fill(Node& node, double value) {
    const OutSpec& out = node.outputs[0];
    if (out.shape.num_elements() <= std::min(kMaxGrown, max_elements_)) {
      const Tensor like = make_tensor(host(), out.dtype, Shape{});
      const std::optional<Tensor> filled =
          evaluate(op_named("BroadcastTo"), AttrsRef({{"shape", out.shape}}),
                   {scalar_like(like, value)});
      if (!filled) return false;
      become_constant(node, *filled);
      return true;
    }
    const OpDef* fill = OpRegistry::get().find("Fill");
    return fill && become(graph_, node, *fill,
                          AttrsRef({{"shape", out.shape},
                                    {"value", value},
                                    {"dtype", out.dtype}}),
                          {});
  }

  bool fold_like(int32_t i) {
    Node& node = graph_[i];
    const std::string& op = node.op->name();
    const bool sum = op == "SumLike", broadcast = op == "BroadcastLike";
    if (!sum && !broadcast && op != "ReshapeLike") return false;
    const ValueRef value = node.inputs[0];
    const Shape& from = graph_.spec(value).shape;
    const Shape to = graph_.spec(node.inputs[1]).shape;
    if (same_shape(from, to) && forward_.may_forward(i, value)) {
      forward_.forward(i, value);
      return true;
    }
    if (!to.is_fully_defined()) return false;
    if (sum) return from.is_fully_defined() && static_sum(node, from, to);
    static const OpDef& broadcast_to = op_named("BroadcastTo");
    static const OpDef& reshape = op_named("Reshape");
    return become(graph_, node, broadcast ? broadcast_to : reshape,
                  AttrsRef({{"shape", to}}), {value});
  }

  // One Sum gives the shape unless axes are both dropped and kept as 1.
  bool static_sum(Node& node, const Shape& from, const Shape& to) {
    const int dropped = from.rank() - to.rank();
    std::vector<int64_t> axes;
    bool kept = false;
    for (int i = 0; i < from.rank(); ++i) {
      if (i >= dropped && to[i - dropped] == from[i]) continue;
      axes.push_back(i);
      kept = kept || i >= dropped;
    }
    if (kept && dropped > 0) return false;
    std::vector<Attrs::Pair> attrs = {{"axis", axes}};
    if (kept) attrs.push_back({"keep_dims", true});
    static const OpDef& op = op_named("Sum");
    return become(graph_, node, op, AttrsRef(std::move(attrs)),
                  {node.inputs[0]});
  }

  void fold_constants(int32_t i) {
    Node& node = graph_[i];
    const int64_t n = node.outputs[0].shape.num_elements();
    if (n < 0 || n > max_elements_) return;
    // A mean of a part is over the whole.
    if (adds_parts(graph_, node)) return;
    int64_t operands = 0;
    Tensors in;
    for (const ValueRef v : node.inputs) {
      const Tensor* t = constant_of(graph_, v);
      if (t == nullptr || !graph_[v.node].controls.empty()) return;
      operands += t->num_elements();
      in.push_back(*t);
    }
    if (n > operands && n > kMaxGrown) return;
    const std::optional<Tensor> value = evaluate(*node.op, node.attrs, in);
    if (!value) return;
    for (const ValueRef v : node.inputs) {
      add_sources(node, graph_[v.node].sources);
    }
    become_constant(node, *value);
  }

  static Device& host() { return DeviceManager::get().host(); }

  Graph& graph_;
  Forwarding forward_;
  const int64_t max_elements_;
};

}  // namespace

void fold(Graph& graph, int64_t max_elements) {
  Folder(graph, max_elements).run();
}

}  // namespace berth
