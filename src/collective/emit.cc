#include "collective/emit.h"

#include <algorithm>
#include <functional>
#include <queue>

#include "berth/errors.h"
#include "device/device_manager.h"
#include "tensor/tensor_impl.h"

namespace berth {

Emit::Emit(Graph& graph) : graph_(graph), first_(graph.size()) {}

std::string Emit::name(int32_t like, const char* what) {
  return unique_name(graph_, graph_[like].name + "/" + what);
}

int32_t Emit::insert(Node node) {
  std::vector<SpecView> in;
  for (const ValueRef v : node.inputs) in.push_back(graph_.spec(v).view());
  node.outputs.resize(
      static_cast<size_t>(node.op->num_outputs(node.attrs.get())));
  infer_outputs(*node.op, node.attrs.get(), in, node.outputs);
  if (const auto it = replicas_.find(node.requested); it != replicas_.end()) {
    node.replica = it->second;
  }
  late_.push_back(late_now_);
  turns_.push_back(turn_);
  return graph_.add(std::move(node));
}

ValueRef Emit::node(const char* op, std::vector<ValueRef> inputs,
                    AttrsRef attrs, DeviceId device, int32_t like,
                    const char* what) {
  Node n;
  n.op = &op_named(op);
  n.name = name(like, what);
  n.attrs = std::move(attrs);
  n.inputs = std::move(inputs);
  n.requested = device;
  n.sources = graph_[like].sources;
  n.collective = true;
  return {insert(std::move(n)), 0};
}

ValueRef Emit::reshape(ValueRef v, const Shape& shape, DeviceId device,
                       int32_t like) {
  return node("Reshape", {v}, AttrsRef({{"shape", shape}}), device, like,
              "shape");
}

ValueRef Emit::flat(ValueRef v, DeviceId device, int32_t like) {
  const Shape& shape = graph_.spec(v).shape;
  if (shape.rank() == 1) return v;
  return reshape(v, Shape{shape.num_elements()}, device, like);
}

ValueRef Emit::rows(ValueRef v, int64_t begin, int64_t count, DeviceId device,
                    int32_t like) {
  return node("_Rows", {v}, AttrsRef({{"begin", begin}, {"count", count}}),
              device, like, "rows");
}

ValueRef Emit::add(ValueRef a, ValueRef b, DeviceId device, int32_t like) {
  return node("AddV2", {a, b}, {}, device, like, "sum");
}

ValueRef Emit::divide(ValueRef v, int n, DeviceId device, int32_t like) {
  if (n == 1) return v;
  const Tensor number =
      make_tensor(DeviceManager::get().host(), float32, Shape());
  *reinterpret_cast<float*>(number.impl()->data()) = static_cast<float>(n);
  const AttrsRef count({{"value", number}});
  ValueRef by = node("Const", {}, count, device, like, "count");
  const DType dtype = graph_.spec(v).dtype;
  if (dtype != float32) {
    by = node("Cast", {by}, AttrsRef({{"DstT", dtype}}), device, like, "count");
  }
  return node("RealDiv", {v, by}, {}, device, like, "mean");
}

int32_t Emit::copy(int32_t like, std::vector<ValueRef> inputs, DeviceId device,
                   const char* what) {
  Node n = graph_[like];
  n.name = name(like, what);
  n.inputs = std::move(inputs);
  n.requested = device;
  n.part = nullptr;
  n.outputs.clear();
  return insert(std::move(n));
}

void Emit::order(int32_t before, int32_t after) {
  std::vector<int32_t>& list = graph_[after].controls;
  const auto it = std::lower_bound(list.begin(), list.end(), before);
  if (it == list.end() || *it != before) list.insert(it, before);
}

void Emit::redirect() {
  const auto move = [&](ValueRef& v) {
    for (auto it = values_.find(v); it != values_.end(); it = values_.find(v)) {
      v = it->second;
    }
  };
  for (int32_t i = 0; i < graph_.size(); ++i) {
    Node& n = graph_[i];
    for (ValueRef& v : n.inputs) move(v);
    std::vector<int32_t> controls;
    for (const int32_t c : n.controls) {
      const auto it = dropped_.find(c);
      if (it == dropped_.end()) {
        controls.push_back(c);
      } else {
        controls.insert(controls.end(), it->second.begin(), it->second.end());
      }
    }
    std::sort(controls.begin(), controls.end());
    controls.erase(std::unique(controls.begin(), controls.end()),
                   controls.end());
    std::erase(controls, i);
    n.controls = std::move(controls);
    if (const auto it = dropped_.find(n.follows); it != dropped_.end()) {
      n.follows = it->second.empty() ? -1 : it->second.front();
    }
  }
  for (ValueRef& v : graph_.outputs) move(v);
}

void Emit::sort() {
  std::vector<int32_t> missing(graph_.nodes.size(), 0);
  const auto users = graph_.users();
  for (const auto& list : users) {
    for (const int32_t u : list) ++missing[u];
  }
  // Added nodes come first, by turns, or last.
  using Turn = std::pair<int, int32_t>;
  using Queue = std::priority_queue<Turn, std::vector<Turn>, std::greater<>>;
  Queue added, old, late;
  const auto ready = [&](int32_t i) {
    if (i < first_) {
      old.push({0, i});
    } else if (late_[i - first_]) {
      late.push({0, i});
    } else {
      added.push({turns_[i - first_], i});
    }
  };
  for (int32_t i = 0; i < graph_.size(); ++i) {
    if (missing[i] == 0) ready(i);
  }
  std::vector<int32_t> order;
  while (!old.empty() || !added.empty() || !late.empty()) {
    Queue& from = !added.empty() ? added : !old.empty() ? old : late;
    const int32_t i = from.top().second;
    from.pop();
    order.push_back(i);
    for (const int32_t u : users[i]) {
      if (--missing[u] == 0) ready(u);
    }
  }
  if (order.size() != graph_.nodes.size()) {
    throw errors::Internal("collectives: nodes that wait for each other");
  }
  std::vector<int32_t> to(order.size());
  for (size_t i = 0; i < order.size(); ++i) {
    to[order[i]] = static_cast<int32_t>(i);
  }
  graph_.renumber(to);
}

void Emit::finish() {
  redirect();
  std::vector<bool> keep(graph_.nodes.size(), true);
  for (const auto& [node, by] : dropped_) {
    // Its operands are not read any more; it is kept until compact().
    graph_[node].inputs.clear();
    graph_[node].controls.clear();
    keep[node] = false;
  }
  std::vector<std::string> gone;
  for (const auto& [node, by] : dropped_) gone.push_back(graph_[node].name);
  sort();
  std::sort(gone.begin(), gone.end());
  for (int32_t i = 0; i < graph_.size(); ++i) {
    keep[i] = !std::binary_search(gone.begin(), gone.end(), graph_[i].name);
  }
  graph_.compact(keep);
}

DeviceId device_of_maker(const Graph& graph, ValueRef v) {
  const Node* n = &graph[v.node];
  while (n->requested.empty() && n->op->kind() == OpKind::kAlias &&
         !n->inputs.empty()) {
    n = &graph[n->inputs[0].node];
  }
  return n->requested;
}

void find_ends(std::vector<Addend>& pieces) {
  std::sort(pieces.begin(), pieces.end(),
            [](const Addend& a, const Addend& b) { return a.start < b.start; });
  for (size_t i = 0; i < pieces.size(); ++i) {
    pieces[i].end = i + 1 < pieces.size() ? pieces[i + 1].start : INT64_MAX;
  }
}

std::vector<Addend> add_up(Emit& emit, std::vector<Addend> pieces,
                           DeviceId device, int32_t like) {
  const bool ordered = !pieces.empty() && pieces[0].start >= 0;
  for (size_t i = 0; !ordered && i < pieces.size(); ++i) {
    pieces[i].start = static_cast<int64_t>(i);
  }
  if (!ordered) find_ends(pieces);
  std::sort(pieces.begin(), pieces.end(),
            [](const Addend& a, const Addend& b) { return a.start < b.start; });
  const int64_t last = pieces.empty() ? 0 : pieces.back().start;
  for (int64_t width = 1; width <= last; width *= 2) {
    std::vector<Addend> sums;
    for (size_t i = 0; i < pieces.size(); ++i) {
      Addend p = pieces[i];
      const Addend* right = i + 1 < pieces.size() ? &pieces[i + 1] : nullptr;
      // Both halves must be complete: missing slices are elsewhere.
      const bool meets =
          p.start % (2 * width) == 0 && right != nullptr &&
          p.end == right->start && right->start == p.start + width &&
          (right->end == p.start + 2 * width || right->end == INT64_MAX);
      if (meets) {
        p.value = emit.add(p.value, right->value, device, like);
        p.end = right->end;
        p.device = device;
        ++i;
      }
      sums.push_back(std::move(p));
    }
    pieces = std::move(sums);
  }
  for (Addend& p : pieces) {
    if (!ordered) p.start = p.end = -1;
  }
  return pieces;
}

}  // namespace berth
