#include "passes/fuse_products.h"

#include <algorithm>
#include <map>

#include "passes/forward.h"

namespace berth {

namespace {

class ProductFusing {
 public:
  ProductFusing(Graph& graph, const std::function<bool(const Node&)>& may_fuse)
      : graph_(graph),
        may_fuse_(may_fuse),
        keep_(graph.nodes.size(), true),
        returned_(graph.nodes.size(), false),
        waited_for_(graph.nodes.size(), false),
        readers_(graph.nodes.size()) {
    for (int32_t i = 0; i < graph.size(); ++i) {
      for (const ValueRef v : graph[i].inputs) readers_[v.node].push_back(i);
      for (const int32_t c : graph[i].controls) waited_for_[c] = true;
    }
    for (const ValueRef v : graph.outputs) returned_[v.node] = true;
  }

  bool run() {
    const int32_t n = graph_.size();
    for (int32_t i = 0; i < n; ++i) sum_batches(i);
    for (int32_t i = 0; i < n; ++i) add_end(i);
    for (int32_t i = 0; i < n; ++i) add_bias_gradient(i);
    if (!any_) return false;
    move_readers();
    graph_.compact(keep_);
    return true;
  }

 private:
  // What a _FusedMatMul is beside its factors.
  struct End {
    int32_t at = -1;  // the node that it takes the place of
    ValueRef operand = {-1, 0};
    bool bias = false, flat = false, keep = false, bias_grad = false;
    std::string activation;
  };

  bool is(int32_t i, const char* op) const {
    return keep_[i] && graph_[i].op->name() == op;
  }
  bool flag(int32_t i, const char* name) const {
    return graph_[i].op->attr<bool>(graph_[i].attrs.get(), name);
  }
  const Shape& shape(ValueRef v) const { return graph_.spec(v).shape; }

  // Nodes that compute with the whole batch and wait for data alone.
  bool is_free(int32_t i) const {
    return graph_[i].controls.empty() && graph_[i].part == nullptr;
  }
  bool belong_together(int32_t a, int32_t b) const {
    const Node &x = graph_[a], &y = graph_[b];
    return is_free(a) && is_free(b) && x.assigned == y.assigned &&
           x.replica == y.replica;
  }
  bool is_product(int32_t i) const {
    return is(i, "MatMul") && is_free(i) && may_fuse_(graph_[i]);
  }
  // The only node that reads node i, which nobody else needs; -1: there is
  // none.
  int32_t only_reader(int32_t i) const {
    if (returned_[i] || waited_for_[i] || readers_[i].size() != 1) return -1;
    return belong_together(i, readers_[i][0]) ? readers_[i][0] : -1;
  }

  // Sum over the leading dimensions of a^T b: they are part of the inner one.
  void sum_batches(int32_t i) {
    if (!is_product(i) || !flag(i, "transpose_a") || flag(i, "transpose_b")) {
      return;
    }
    const Node& product = graph_[i];
    const Shape &a = shape(product.inputs[0]), &b = shape(product.inputs[1]);
    const int32_t sum = only_reader(i);
    if (sum < 0 || a.rank() != b.rank() || a.rank() < 3) return;
    for (int d = 0; d + 1 < a.rank(); ++d) {
      if (a[d] < 0 || a[d] != b[d]) return;
    }
    // [m, n] of [..., m, n]: all that leads is gone.
    const Shape &from = product.outputs[0].shape,
                &to = graph_[sum].outputs[0].shape;
    if (!(is(sum, "Sum") || is(sum, "SumLike")) || to.rank() != 2 ||
        graph_[sum].inputs[0].node != i || !sums_leading(sum, from)) {
      return;
    }
    End end;
    end.at = sum;
    end.flat = true;
    become(i, end);
    add_sources(graph_[sum], product.sources);
    keep_[i] = false;
  }

  bool sums_leading(int32_t sum, const Shape& from) const {
    const Shape& to = graph_[sum].outputs[0].shape;
    if (to[0] != from[from.rank() - 2] || to[1] != from[from.rank() - 1]) {
      return false;
    }
    if (is(sum, "SumLike")) return true;
    using Ints = std::vector<int64_t>;
    const Ints& axes =
        graph_[sum].op->attr<Ints>(graph_[sum].attrs.get(), "axis");
    if (static_cast<int>(axes.size()) != from.rank() - 2) return false;
    return std::all_of(axes.begin(), axes.end(), [&](int64_t axis) {
      if (axis < 0) axis += from.rank();
      return axis < from.rank() - 2;
    });
  }

  // The vector that node `sum` adds to the rows of value v; node -1: it adds
  // none.
  ValueRef bias_of(int32_t sum, ValueRef v) const {
    if (!is(sum, "BiasAdd") && !is(sum, "AddV2")) return {};
    const Node& n = graph_[sum];
    const int at = n.inputs[0] == v ? 0 : 1;
    if (n.inputs[0] == n.inputs[1] || (at == 1 && is(sum, "BiasAdd"))) {
      return {};
    }
    const ValueRef bias = n.inputs[static_cast<size_t>(1 - at)];
    const Shape &row = shape(bias), &rows = shape(v);
    const bool fits =
        row.rank() == 1 && row[0] >= 0 && row[0] == rows[rows.rank() - 1];
    return fits ? bias : ValueRef{};
  }

  // A bias after product i, and what is done to the sum.
  void add_end(int32_t i) {
    if (!is_product(i)) return;
    End end;
    int32_t last = i;
    if (const int32_t sum = only_reader(i); sum >= 0) {
      end.operand = bias_of(sum, {i, 0});
      end.bias = end.operand.node >= 0;
      if (end.bias) last = sum;
    }
    const int32_t before = last;
    last = add_activation(last, end);
    if (last == i) return;
    end.at = last;
    become(i, end);
    for (const int32_t gone : {i, before}) {
      if (gone == last) continue;
      add_sources(graph_[last], graph_[gone].sources);
      keep_[gone] = false;
    }
    if (end.keep) moved_[{before, 0}] = {last, 1};
  }

  // The node that makes the last value.
  int32_t add_activation(int32_t last, End& end) const {
    if (const int32_t next = only_reader(last); next >= 0) {
      if (is(next, "Relu")) {
        end.activation = "relu";
        return next;
      }
      if (is(next, "Gelu") && flag(next, "approximate")) {
        end.activation = "gelu";
        return next;
      }
      const Node& n = graph_[next];
      if (!end.bias && is(next, "GeluGrad") && flag(next, "approximate") &&
          n.inputs[0] == ValueRef{last, 0} &&
          n.inputs[1] != ValueRef{last, 0} &&
          same_shape(shape(n.inputs[1]), n.outputs[0].shape) &&
          same_shape(shape(n.inputs[0]), n.outputs[0].shape)) {
        end.activation = "gelu_grad";
        end.operand = n.inputs[1];
        return next;
      }
      return last;
    }
    return add_kept_gelu(last, end);
  }

  // Others, after gelu, read its argument, too: its gradient does.
  int32_t add_kept_gelu(int32_t last, End& end) const {
    for (const int32_t next : readers_[last]) {
      if (!is(next, "Gelu") || !flag(next, "approximate") ||
          !belong_together(last, next)) {
        continue;
      }
      const bool first =
          std::all_of(readers_[last].begin(), readers_[last].end(),
                      [&](int32_t r) { return r >= next; });
      if (!first || waited_for_[last]) return last;
      end.activation = "gelu";
      end.keep = true;
      return next;
    }
    return last;
  }

  // The gradient of a bias beside that of the weights: both read dy, which is
  // b here, or the weights' the rows of dy.
  void add_bias_gradient(int32_t i) {
    if (!is(i, "BiasAddGrad") || !is_free(i) || waited_for_[i]) return;
    const ValueRef dy = graph_[i].inputs[0];
    if (add_bias_gradient(i, dy)) return;
    for (const int32_t r : readers_[dy.node]) {
      if (is_rows_of(r, dy) && add_bias_gradient(i, {r, 0})) return;
    }
  }

  bool add_bias_gradient(int32_t i, ValueRef dy) {
    for (const int32_t p : readers_[dy.node]) {
      if (!takes_bias_gradient(p, dy) || !belong_together(i, p)) continue;
      // In the product's place, unless the sum is read before that.
      const bool in_time =
          p < i || std::all_of(readers_[i].begin(), readers_[i].end(),
                               [&](int32_t r) { return r > p; });
      const bool earlier =
          !waited_for_[p] &&
          std::all_of(graph_[p].inputs.begin(), graph_[p].inputs.end(),
                      [&](const ValueRef& v) { return now(v).node < i; });
      if (!in_time && !earlier) continue;
      attach(p, i, in_time ? p : i);
      return true;
    }
    return false;
  }

  bool is_rows_of(int32_t r, ValueRef dy) const {
    if (!is(r, "Reshape") || graph_[r].inputs[0] != dy) return false;
    const Shape &rows = graph_[r].outputs[0].shape, &all = shape(dy);
    return rows.rank() == 2 && rows[1] == all[all.rank() - 1];
  }

  bool takes_bias_gradient(int32_t p, ValueRef dy) const {
    const Node& n = graph_[p];
    if (!keep_[p] || n.inputs.size() < 2 || n.inputs[1] != dy ||
        n.inputs[0] == dy || !may_fuse_(n)) {
      return false;
    }
    const Shape& s = shape(dy);
    if (is(p, "MatMul")) return s.rank() == 2 && !flag(p, "transpose_b");
    return is(p, "_FusedMatMul") && flag(p, "flat") && !flag(p, "bias_grad");
  }

  // Product p makes the sum of its second factor that `sum` made; the node is
  // `at`, one of both.
  void attach(int32_t p, int32_t sum, int32_t at) {
    End end;
    end.at = at;
    end.flat = is(p, "_FusedMatMul");
    end.bias_grad = true;
    const OutSpec result = graph_[p].outputs[0];
    const OutSpec summed = graph_[sum].outputs[0];
    become(p, end);
    const int32_t gone = at == p ? sum : p;
    graph_[at].outputs = {result, summed};
    add_sources(graph_[at], graph_[gone].sources);
    keep_[gone] = false;
    moved_[{sum, 0}] = {at, 1};
    if (at != p) moved_[{p, 0}] = {at, 0};
  }

  // Node end.at becomes the product of node i, fused.
  void become(int32_t i, const End& end) {
    static const OpDef& op = op_named("_FusedMatMul");
    const Node product = graph_[i];
    Node& n = graph_[end.at];
    const bool flat = end.flat;
    std::vector<Attrs::Pair> attrs = {{"transpose_a", flag(i, "transpose_a")},
                                      {"transpose_b", flag(i, "transpose_b")}};
    if (flat) attrs.push_back({"flat", true});
    if (end.bias) attrs.push_back({"bias", true});
    if (end.keep) attrs.push_back({"keep", true});
    if (end.bias_grad) attrs.push_back({"bias_grad", true});
    if (!end.activation.empty()) {
      attrs.push_back({"activation", end.activation});
    }
    if (n.op != &op) n.name = unique_name(graph_, n.name + "/fused");
    n.op = &op;
    n.inputs = {product.inputs[0], product.inputs[1]};
    if (end.operand.node >= 0) n.inputs.push_back(end.operand);
    if (end.keep) n.outputs.push_back(n.outputs[0]);
    n.attrs = AttrsRef(std::move(attrs));
    for (const ValueRef v : n.inputs) readers_[v.node].push_back(end.at);
    any_ = true;
  }

  // Where a value is made now. Until the end all go by their old names.
  ValueRef now(ValueRef v) const {
    const auto it = moved_.find(v);
    return it == moved_.end() ? v : it->second;
  }
  void move_readers() {
    for (Node& n : graph_.nodes) {
      for (ValueRef& v : n.inputs) v = now(v);
    }
    for (ValueRef& v : graph_.outputs) v = now(v);
  }

  Graph& graph_;
  const std::function<bool(const Node&)>& may_fuse_;
  std::vector<bool> keep_, returned_, waited_for_;
  // Readers of a node's outputs; one that reads twice is there twice.
  std::vector<std::vector<int32_t>> readers_;
  std::map<ValueRef, ValueRef> moved_;
  bool any_ = false;
};

}  // namespace

bool fuse_products(Graph& graph,
                   const std::function<bool(const Node& n)>& may_fuse) {
  return ProductFusing(graph, may_fuse).run();
}

}  // namespace berth
