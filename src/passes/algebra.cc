// Algebra: rewrites that leave every bit of every result as it was.

#include <algorithm>
#include <unordered_map>

#include "base/immortal.h"
#include "passes/constants.h"
#include "passes/forward.h"
#include "passes/pipeline.h"

namespace berth {

namespace {

class Algebra {
 public:
  explicit Algebra(Graph& graph) : graph_(graph), forward_(graph) {}

  void run() {
    for (int32_t i = 0; i < graph_.size(); ++i) {
      forward_.visit(i);
      const Node& node = graph_[i];
      if (node.op->infer() == nullptr || node.outputs.size() != 1) continue;
      const auto rule = rules().find(node.op->name());
      if (rule == rules().end() || !may_rewrite(graph_, node)) continue;
      const ValueRef to = (this->*rule->second)(i);
      if (to.node >= 0 && forward_.may_forward(i, to)) forward_.forward(i, to);
    }
    forward_.finish();
  }

 private:
  // Returns the value that node i has anyway, or nothing; may rewrite i.
  using Rule = ValueRef (Algebra::*)(int32_t i);
  static constexpr ValueRef kNothing = {};

  static const std::unordered_map<std::string, Rule>& rules() {
    using Rules = std::unordered_map<std::string, Rule>;
    static const auto& all = immortal<Rules>(Rules{
        {"AddV2", &Algebra::add},
        {"Sub", &Algebra::sub},
        {"Mul", &Algebra::mul},
        {"RealDiv", &Algebra::div},
        {"Neg", &Algebra::twice},
        {"LogicalNot", &Algebra::twice},
        {"Identity", &Algebra::identity},
        {"StopGradient", &Algebra::identity},
        {"Cast", &Algebra::cast},
        {"BroadcastTo", &Algebra::broadcast},
        {"Reshape", &Algebra::reshape},
        {"Transpose", &Algebra::transpose},
    });
    return all;
  }

  ValueRef input(int32_t i, int k) const { return graph_[i].inputs[k]; }
  const OutSpec& spec(ValueRef v) const { return graph_.spec(v); }
  bool may_skip(const Node& inner) const {
    return inner.controls.empty() && may_rewrite(graph_, inner);
  }

  // Operand k of i, when the other one holds only `neutral` and does not make
  // the result larger.
  ValueRef beside(int32_t i, int k, double neutral) const {
    const ValueRef x = input(i, k), other = input(i, 1 - k);
    const Shape &a = spec(x).shape, &b = spec(other).shape;
    const bool ones =
        std::all_of(b.begin(), b.end(), [](int64_t d) { return d == 1; });
    const bool same = (ones && b.rank() <= a.rank()) ||
                      same_shape(a, graph_[i].outputs[0].shape);
    return same && all_elements_are(graph_, other, neutral) ? x : kNothing;
  }

  // x + -0.0 is x: -0 + -0 = -0, +0 + -0 = +0. But -0 + +0 = +0, so +0.0 is
  // neutral only among whole numbers, which have one zero.
  ValueRef add(int32_t i) {
    const double zero = is_inexact(graph_[i].outputs[0].dtype) ? -0.0 : 0.0;
    const ValueRef x = beside(i, 0, zero);
    return x.node >= 0 ? x : beside(i, 1, zero);
  }

  // x - +0.0 is x + -0.0, which is x (above). x - -0.0 turns -0 into +0.
  ValueRef sub(int32_t i) { return beside(i, 0, 0.0); }

  // x * 1 and x / 1 are exact, keep the sign of zero and the bits of a NaN.
  ValueRef mul(int32_t i) {
    const ValueRef x = beside(i, 0, 1.0);
    return x.node >= 0 ? x : beside(i, 1, 1.0);
  }
  ValueRef div(int32_t i) { return beside(i, 0, 1.0); }

  // Neg flips the sign bit, or wraps around: twice is nothing. A bool is 0
  // or 1, so LogicalNot is its own inverse.
  ValueRef twice(int32_t i) {
    const Node& inner = graph_[input(i, 0).node];
    if (inner.op != graph_[i].op || !may_skip(inner)) return kNothing;
    return inner.inputs[0];
  }

  // Copies bits. (StopGradient is for tapes; they have run by now.)
  ValueRef identity(int32_t i) { return input(i, 0); }

  // To the dtype it has: no conversion, no change.
  ValueRef cast(int32_t i) {
    const ValueRef x = input(i, 0);
    return spec(x).dtype == graph_[i].outputs[0].dtype ? x : kNothing;
  }

  // Repeats no element when the shape stays.
  ValueRef broadcast(int32_t i) {
    const ValueRef x = input(i, 0);
    const Shape& out = graph_[i].outputs[0].shape;
    return same_shape(spec(x).shape, out) ? x : kNothing;
  }

  // Names the same bytes anew; only the last shape counts.
  ValueRef reshape(int32_t i) {
    Node& node = graph_[i];
    const ValueRef x = input(i, 0);
    const Shape out = node.outputs[0].shape;
    if (same_shape(spec(x).shape, out)) return x;
    const Node& inner = graph_[x.node];
    if (inner.op != node.op || !may_skip(inner) || !out.is_fully_defined()) {
      return kNothing;
    }
    const ValueRef base = inner.inputs[0];
    if (same_shape(spec(base).shape, out)) return base;
    add_sources(node, inner.sources);
    become(graph_, node, *node.op, AttrsRef({{"shape", out}}), {base});
    return kNothing;
  }

  // Moves elements; two moves are one, and none when the order stays.
  ValueRef transpose(int32_t i) {
    using Ints = std::vector<int64_t>;
    Node& node = graph_[i];
    const ValueRef x = input(i, 0);
    const Ints perm = permutation(node);
    if (std::is_sorted(perm.begin(), perm.end())) return x;
    const Node& inner = graph_[x.node];
    if (inner.op != node.op || !may_skip(inner)) return kNothing;
    const Ints first = permutation(inner);
    Ints both;
    for (const int64_t axis : perm) both.push_back(first[axis]);
    const ValueRef base = inner.inputs[0];
    if (std::is_sorted(both.begin(), both.end())) return base;
    add_sources(node, inner.sources);
    become(graph_, node, *node.op, AttrsRef({{"perm", both}}), {base});
    return kNothing;
  }

  // The attribute with axes counted from the front; empty means reversed.
  std::vector<int64_t> permutation(const Node& node) const {
    auto perm = node.op->attr<std::vector<int64_t>>(node.attrs.get(), "perm");
    const int rank = spec(node.inputs[0]).shape.rank();
    if (perm.empty()) {
      for (int64_t axis = rank - 1; axis >= 0; --axis) perm.push_back(axis);
    }
    for (int64_t& axis : perm) axis = normalize_axis(axis, rank, "Transpose");
    return perm;
  }

  Graph& graph_;
  Forwarding forward_;
};

}  // namespace

void algebra(Graph& graph) { Algebra(graph).run(); }

}  // namespace berth
