// The verifier: what every graph between two passes must satisfy.

#include <fmt/format.h>

#include <unordered_map>

#include "berth/errors.h"
#include "graph/graph.h"
#include "graph/node_part.h"

namespace berth {

namespace {

class Verifier {
 public:
  explicit Verifier(const Graph& graph) : graph_(graph) {}

  void run() {
    for (at_ = 0; at_ < graph_.size(); ++at_) check_node(graph_[at_]);
    at_ = -1;
    for (const ValueRef v : graph_.outputs) check_value(v, graph_.size());
    check_args();
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    const std::string node =
        at_ < 0 ? "" : fmt::format("node {} '{}': ", at_, graph_[at_].name);
    throw errors::Internal(
        fmt::format("graph '{}': {}{}", graph_.name, node, what));
  }

  void check_value(ValueRef v, int32_t limit) const {
    if (v.node < 0 || v.node >= limit) {
      fail(
          fmt::format("reads node {}; expected one in [0, {})", v.node, limit));
    }
    const size_t n = graph_[v.node].outputs.size();
    if (v.output < 0 || static_cast<size_t>(v.output) >= n) {
      fail(fmt::format("reads output {} of '{}', which has {}", v.output,
                       graph_[v.node].name, n));
    }
  }

  void check_node(const Node& node) {
    if (node.op == nullptr) fail("has no op");
    if (node.name.empty()) fail("has no name");
    const auto [it, fresh] = names_.emplace(node.name, at_);
    if (!fresh) {
      fail(fmt::format("has the name of node {}; expected distinct names",
                       it->second));
    }
    for (const ValueRef v : node.inputs) check_value(v, at_);
    check_controls(node);
    check_counts(node);
    if (node.follows >= graph_.size() || node.follows == at_) {
      fail(fmt::format("follows node {}", node.follows));
    }
    if (node.replica < -1) fail(fmt::format("is of replica {}", node.replica));
    if (!node.part) return;
    const std::string wrong = why_no_part(*node.part);
    if (!wrong.empty()) fail("has a part with " + wrong);
  }

  void check_controls(const Node& node) const {
    for (size_t i = 0; i < node.controls.size(); ++i) {
      const int32_t c = node.controls[i];
      if (c < 0 || c >= at_) {
        fail(fmt::format("waits for node {}; expected one in [0, {})", c, at_));
      }
      if (i > 0 && node.controls[i - 1] >= c) {
        fail("has controls that are not sorted and distinct");
      }
    }
  }

  void check_counts(const Node& node) const {
    const OpDef& op = *node.op;
    const size_t in = op.inputs().size();
    const size_t least = static_cast<size_t>(op.min_inputs());
    if (node.inputs.size() < least ||
        (node.inputs.size() > in && !op.variadic())) {
      fail(fmt::format("{} has {} inputs; expected {}{}", op.name(),
                       node.inputs.size(), least,
                       op.variadic() ? " or more"
                       : least < in  ? fmt::format(" to {}", in)
                                     : ""));
    }
    const size_t out = static_cast<size_t>(op.num_outputs(node.attrs.get()));
    // A declared op may have any number: its text says how many.
    if (op.infer() != nullptr && node.outputs.size() != out) {
      fail(fmt::format("{} has {} outputs; expected {}", op.name(),
                       node.outputs.size(), out));
    }
    for (const OutSpec& o : node.outputs) {
      if (o.dtype == DType::kInvalid) fail("has an output without dtype");
    }
  }

  void check_args() {
    size_t found = 0;
    for (const Node& node : graph_.nodes)
      found += node.op->kind() == OpKind::kArgument;
    if (found != graph_.args.size()) {
      fail(fmt::format("has {} _Arg nodes but lists {}", found,
                       graph_.args.size()));
    }
    for (size_t i = 0; i < graph_.args.size(); ++i) {
      const int32_t a = graph_.args[i];
      if (a < 0 || a >= graph_.size() ||
          graph_[a].op->kind() != OpKind::kArgument) {
        fail(fmt::format("argument {} is node {}; expected an _Arg", i, a));
      }
      const Node& node = graph_[a];
      const int64_t index = node.op->attr<int64_t>(node.attrs.get(), "index");
      if (index != static_cast<int64_t>(i)) {
        fail(fmt::format("argument {} has index {}", i, index));
      }
    }
  }

  const Graph& graph_;
  int32_t at_ = -1;
  std::unordered_map<std::string_view, int32_t> names_;
};

}  // namespace

void verify(const Graph& graph) { Verifier(graph).run(); }

}  // namespace berth
