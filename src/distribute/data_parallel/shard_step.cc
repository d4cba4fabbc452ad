#include "distribute/data_parallel/shard_step.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/where.h"
#include "berth/errors.h"
#include "collective/emit.h"
#include "device/device_manager.h"
#include "function/without_branches.h"
#include "passes/pipeline.h"
#include "tensor/mirrors.h"
#include "tensor/shards.h"
#include "tensor/tensor_impl.h"

namespace berth::distribute {

namespace {

using Ints = std::vector<int64_t>;

bool is_update(const Node& n) { return n.op->update_value() >= 0; }

bool is_big(const Shape& shape, const ShardPlan& plan) {
  return shape.num_elements() >= static_cast<int64_t>(plan.devices.size());
}

// The home of the variable of a handle.
const TensorImpl* home_impl(const Tensor& handle) {
  const Tensor home = home_of(handle);
  return home.defined() ? home.impl() : handle.impl();
}

}  // namespace

bool is_divided(const VariableState& v, const ShardPlan& plan) {
  return plan.divides() && v.strategy == plan.strategy && v.parts.empty() &&
         v.device == &DeviceManager::get().host() && is_big(v.shape, plan);
}

void separate_updates(Graph& graph,
                      const std::function<bool(const VariableState&)>& divided,
                      const char* by) {
  const auto writes_divided = [&](const Node& n) {
    if (!n.has_effect() || is_update(n)) return false;
    return std::any_of(n.inputs.begin(), n.inputs.end(), [&](ValueRef v) {
      const Tensor& handle = graph[v.node].variable;
      return handle.defined() && divided(variable_state(handle));
    });
  };
  const auto guarded = [&](const Node& n) {
    return n.op->kind() == OpKind::kControl && writes_divided(n);
  };
  if (std::any_of(graph.nodes.begin(), graph.nodes.end(), guarded)) {
    without_branches(graph, guarded);
    run_device_free_passes(graph);
  }
  for (const Node& n : graph.nodes) {
    if (!writes_divided(n)) continue;
    const Site site = n.sources.empty() ? Site{} : n.sources[0].site;
    throw errors::Unimplemented(fmt::format(
        "{}{}: {} writes a variable that a {} divides over its devices; "
        "expected assign(), assign_add(), assign_sub() or an optimizer, or a "
        "strategy that leaves the variable whole",
        n.name, where_text(nullptr, site), n.op->name(), by));
  }
}

void divide_variables(Graph& graph, const ShardPlan& plan) {
  separate_updates(
      graph, [&](const VariableState& v) { return is_divided(v, plan); },
      "MirroredStrategy with sharding");
  for (const Node& n : graph.nodes) {
    if (n.variable.defined() && is_divided(variable_state(n.variable), plan)) {
      divide(n.variable, plan.devices);
    }
  }
}

ValueRef add_handle(Emit& emit, const Tensor& variable, DeviceId device,
                    int32_t like) {
  const VariableState& s = variable_state(variable);
  const ValueRef v = emit.node(
      "VarHandleOp", {},
      AttrsRef(
          {{"shared_name", s.name}, {"dtype", s.dtype}, {"shape", s.shape}}),
      device, like, "shard");
  emit[v.node].variable = variable;
  emit[v.node].collective = false;
  return v;
}

void shard_step(Graph& graph, const ShardPlan& plan) {
  update_by_ranges(graph, plan);
  exchange_ranges(graph, plan);
  gather_shards(graph, plan);
  verify(graph);
}

namespace {

class RangeUpdates {
 public:
  RangeUpdates(Graph& graph, const ShardPlan& plan)
      : plan_(plan), old_(graph.size()), emit_(graph), users_(graph.users()) {
    for (int32_t i = 0; i < old_; ++i) {
      const Node& n = graph[i];
      if (n.variable.defined()) {
        handles_[home_impl(n.variable)].push_back(i);
      } else if (is_update(n) && is_ours(n)) {
        updates_[home_impl(graph[n.inputs[0].node].variable)].push_back(i);
        all_updates_.push_back(i);
      }
      if (n.replica >= 0 && !n.requested.empty()) {
        devices_.try_emplace(n.replica, n.requested);
      }
    }
  }

  void run() {
    if (!plan_.exact) add_norms();
    for (const int32_t u : all_updates_) update(u);
    order_sums();
    emit_.finish();
  }

 private:
  const Graph& graph() const { return emit_.graph(); }
  size_t parts() const { return plan_.devices.size(); }
  DeviceId device(size_t k) const { return plan_.devices[k]->id(); }

  bool divided(int32_t handle) const {
    const Tensor& v = graph()[handle].variable;
    return v.defined() && is_divided(variable_state(v), plan_);
  }
  // Variables that are updated by ranges: divided ones, and those that a
  // gradient changes.
  bool ours(int32_t handle) const {
    const Tensor& v = graph()[handle].variable;
    if (!v.defined()) return false;
    const VariableState& s = variable_state(v);
    const bool trained = s.trainable && s.strategy == plan_.strategy &&
                         s.parts.empty() && is_big(s.shape, plan_);
    return trained || is_divided(s, plan_);
  }
  // All variables of an update have the same elements.
  bool is_ours(const Node& n) const {
    bool any = false;
    for (const ValueRef& v : n.inputs) {
      if (graph().spec(v).dtype != resource) continue;
      if (graph()[v.node].op->kind() != OpKind::kHandle) return false;
      any = any || ours(v.node);
    }
    return any;
  }

  // The handle that device k has of the variable of a handle. A device without
  // examples may lack one.
  int32_t handle_on(int32_t handle, size_t k) {
    const Tensor variable = graph()[handle].variable;
    std::vector<int32_t>& all = handles_[home_impl(variable)];
    for (const int32_t h : all) {
      if (variable_state(graph()[h].variable).device == plan_.devices[k]) {
        return h;
      }
    }
    const Tensor mirror = mirror_of(variable, *plan_.devices[k]);
    all.push_back(add_handle(emit_, mirror, device(k), handle).node);
    return all.back();
  }

  // The part of a variable that device k updates, as a variable [count].
  ValueRef variable_part(int32_t handle, size_t k) {
    const bool apart = divided(handle);
    const int32_t at = apart ? handle : handle_on(handle, k);
    const auto [it, fresh] = variables_.try_emplace(
        {apart ? home_impl(graph()[at].variable) : graph()[at].variable.impl(),
         k});
    if (!fresh) return it->second;
    const OutSpec spec = graph()[at].outputs[0];
    const auto [begin, end] = plan_.range(spec.shape.num_elements(), k);
    if (!apart) {
      return it->second = emit_.node(
                 "_VariableRange", {{at, 0}},
                 AttrsRef({{"begin", begin}, {"count", end - begin}}),
                 device(k), at, "range");
    }
    const Tensor shard = variable_state(graph()[at].variable).shards.at(k);
    return it->second = add_handle(emit_, shard, device(k), at);
  }

  int64_t elements(ValueRef v) const {
    return graph().spec(v).shape.num_elements();
  }

  DeviceId device_of(ValueRef v) const {
    const Node& n = graph()[v.node];
    if (!n.requested.empty()) return n.requested;
    if (n.op == &all_reduce_) {
      const auto& takers = n.op->attr<Ints>(n.attrs.get(), "replicas");
      return device(static_cast<size_t>(takers.at(v.output)));
    }
    const auto it = devices_.find(std::max(n.replica, 0));
    return it != devices_.end() ? it->second : device(0);
  }

  ValueRef rows(ValueRef v, size_t k) {
    const DeviceId at = device_of(v);
    const auto [begin, end] = plan_.range(elements(v), k);
    return emit_.rows(emit_.flat(v, at, v.node), begin, end - begin, at,
                      v.node);
  }

  // Whether each element of the value follows from the same element of others,
  // of which one is a sum over replicas.
  bool of_sums(ValueRef v) const {
    const Node& n = graph()[v.node];
    if (n.op == &all_reduce_) return true;
    if (!by_elements(n)) return false;
    bool sums = false;
    for (const ValueRef& in : n.inputs) {
      if (elements(in) == 1) continue;
      if (!of_sums(in)) return false;
      sums = true;
    }
    return sums;
  }

  bool by_elements(const Node& n) const {
    const bool view = n.op->kind() == OpKind::kAlias && n.inputs.size() == 1;
    if (n.outputs.size() != 1 || n.inputs.empty() ||
        !(view || n.op->elementwise())) {
      return false;
    }
    const int64_t count = n.outputs[0].shape.num_elements();
    return std::all_of(n.inputs.begin(), n.inputs.end(), [&](ValueRef v) {
      return elements(v) == count || (!view && elements(v) == 1);
    });
  }

  // Device k's part of a value, as [count].
  ValueRef part(ValueRef v, size_t k) {
    const auto it = values_.find({v, k});
    if (it != values_.end()) return it->second;
    const ValueRef made = make_part(v, k);
    values_[{v, k}] = made;
    return made;
  }

  ValueRef make_part(ValueRef v, size_t k) {
    const Node& n = graph()[v.node];
    if (n.op == &all_reduce_ && !is_needed_whole(v.node)) {
      return scatter(v.node, k);
    }
    if (n.op->kind() == OpKind::kReadVariable && ours(n.inputs[0].node)) {
      return read_part(v.node, k);
    }
    if (!by_elements(n)) return rows(v, k);
    if (n.op->kind() == OpKind::kAlias) return part(n.inputs[0], k);
    const std::vector<ValueRef> inputs = n.inputs;
    std::vector<ValueRef> in;
    for (const ValueRef& x : inputs) {
      in.push_back(elements(x) == 1 ? scalar(x) : part(x, k));
    }
    return copy(v.node, std::move(in), k);
  }

  // A value of one element, of any rank, for elements of a part.
  ValueRef scalar(ValueRef v) {
    if (graph().spec(v).shape.rank() == 0) return v;
    return emit_.reshape(v, Shape{}, device_of(v), v.node);
  }

  // Whether something that is not done by elements follows from a value.
  bool is_needed_whole(int32_t i) {
    const auto [it, fresh] = needed_whole_.try_emplace(i, false);
    if (!fresh) return it->second;
    const bool needed =
        std::any_of(users_[i].begin(), users_[i].end(), [&](int32_t u) {
          const Node& n = graph()[u];
          if (is_update(n) || norms_.contains(u)) return false;
          return !by_elements(n) || is_needed_whole(u);
        });
    return needed_whole_[i] = needed;
  }

  ValueRef copy(int32_t i, std::vector<ValueRef> inputs, size_t k) {
    const int32_t made = emit_.copy(i, std::move(inputs), device(k), "shard");
    emit_[made].replica = static_cast<int>(k);
    emit_[made].follows = -1;
    emit_[made].colocated.clear();
    return {made, 0};
  }

  // A read after writes of another device's copy is after those of its own.
  ValueRef read_part(int32_t read, size_t k) {
    const int32_t handle = graph()[read].inputs[0].node;
    const ValueRef made = copy(read, {variable_part(handle, k)}, k);
    const auto it = updates_.find(home_impl(graph()[handle].variable));
    if (it == updates_.end()) return made;
    const std::vector<int32_t> before = graph()[read].controls;
    for (const int32_t c : before) {
      const auto at = std::find(it->second.begin(), it->second.end(), c);
      if (at == it->second.end()) continue;
      for (const int32_t u : it->second) {
        if (number_of(u) == number_of(c)) emit_.order(u, made.node);
      }
    }
    return made;
  }

  // Which write of its variable on its device an update is.
  int number_of(int32_t update) const {
    const Node& n = graph()[update];
    int number = 0;
    for (const int32_t u :
         updates_.at(home_impl(graph()[n.inputs[0].node].variable))) {
      if (u == update) break;
      if (graph()[u].inputs[0] == n.inputs[0]) ++number;
    }
    return number;
  }

  // Device k's part of a sum over replicas, summed there.
  ValueRef scatter(int32_t sum, size_t k) {
    const auto [it, fresh] = sums_.try_emplace({sum, k});
    if (!fresh) return it->second;
    const Node n = graph()[sum];
    std::vector<ValueRef> pieces;
    Scatter s{.device = k};
    for (const ValueRef& piece : n.inputs) {
      pieces.push_back(rows(piece, k));
      s.views.push_back(pieces.back().node);
      s.last_piece = std::max(s.last_piece, piece.node);
    }
    // The bytes of all devices, each of which gets its part.
    const auto devices = static_cast<int64_t>(parts());
    const OutSpec spec = graph().spec(pieces[0]);
    s.bytes = spec.shape.num_elements() * devices *
              static_cast<int64_t>(size_of(spec.dtype));
    const ValueRef v =
        all_reduce(std::move(pieces), n, {static_cast<int64_t>(k)}, sum);
    s.sum = v.node;
    scatters_.push_back(std::move(s));
    return sums_[{sum, k}] = v;
  }

  // Another sum over the replicas of `like`, wanted by `takers`.
  ValueRef all_reduce(std::vector<ValueRef> pieces, const Node& like,
                      Ints takers, int32_t at) {
    std::vector<Attrs::Pair> attrs;
    for (const auto& [name, value] : like.attrs.get()->pairs()) {
      if (name == "replicas") {
        attrs.push_back({name, takers});
      } else if (name == "algorithm") {
        attrs.push_back({name, std::string("one_device")});
      } else if (name == "pack_bytes") {
        // Each device takes its part of a pack.
        const auto devices = static_cast<int64_t>(parts());
        attrs.push_back({name, (plan_.pack_bytes - 1) / devices + 1});
      } else {
        attrs.push_back({name, value});
      }
    }
    const ValueRef v =
        emit_.node("_AllReduce", std::move(pieces), AttrsRef(std::move(attrs)),
                   device(static_cast<size_t>(takers[0])), at, "scatter");
    emit_[v.node].requested.clear();
    emit_[v.node].replica = -1;
    return v;
  }

  // Readers of the variable before a write of it.
  void after_readers(int32_t update, int32_t made) {
    const std::vector<ValueRef> inputs = graph()[update].inputs;
    for (const ValueRef& v : inputs) {
      if (graph().spec(v).dtype != resource || v.node >= old_) continue;
      for (const int32_t read : users_[v.node]) {
        if (graph()[read].op->kind() != OpKind::kReadVariable) continue;
        if (read > update) continue;
        for (const int32_t u : users_[read]) {
          if (u < update && !is_update(graph()[u])) emit_.order(u, made);
        }
      }
    }
  }

  void update(int32_t u) {
    const std::vector<ValueRef> inputs = graph()[u].inputs;
    std::vector<int32_t> made;
    for (size_t k = 0; k < parts(); ++k) {
      if (!makes_part(u, k)) continue;
      std::vector<ValueRef> in;
      for (const ValueRef& v : inputs) {
        if (graph().spec(v).dtype == resource) {
          in.push_back(variable_part(v.node, k));
        } else if (elements(v) == 1) {
          in.push_back(scalar(v));
        } else {
          in.push_back(part(v, k));
        }
      }
      made.push_back(copy(u, std::move(in), k).node);
      after_readers(u, made.back());
    }
    emit_.drop(u, std::move(made));
  }

  // Whether of the copies of an update this one makes part k: that of device k
  // or, if it has none, the first.
  bool makes_part(int32_t u, size_t k) const {
    int32_t first = -1;
    for (const int32_t c :
         updates_.at(home_impl(graph()[graph()[u].inputs[0].node].variable))) {
      if (number_of(c) != number_of(u)) continue;
      if (device_number(c) == k) return c == u;
      if (first < 0) first = c;
    }
    return first == u;
  }

  // The device that has a copy of an update.
  size_t device_number(int32_t u) const {
    for (const ValueRef& v : graph()[u].inputs) {
      const Tensor& handle = graph()[v.node].variable;
      if (!handle.defined() || divided(v.node)) continue;
      for (size_t k = 0; k < parts(); ++k) {
        if (variable_state(handle).device == plan_.devices[k]) return k;
      }
    }
    return 0;
  }

  // Sums of all elements of a sum over replicas, such as the squares for a
  // norm, are sums over the parts.
  void add_norms() {
    std::map<std::string, std::vector<int32_t>> copies;  // by name
    for (int32_t i = 0; i < old_; ++i) {
      const Node& n = graph()[i];
      if (n.op->name() != "Sum" || n.outputs[0].shape.num_elements() != 1 ||
          !is_big(graph().spec(n.inputs[0]).shape, plan_) ||
          !of_sums(n.inputs[0])) {
        continue;
      }
      std::string name = n.name;
      const std::string end = fmt::format("/replica_{}", n.replica);
      if (n.replica > 0 && name.ends_with(end)) {
        name.resize(name.size() - end.size());
      }
      copies[name].push_back(i);
      norms_.insert(i);
    }
    for (const auto& [name, list] : copies) add_norm(list);
  }

  void add_norm(const std::vector<int32_t>& copies) {
    const ValueRef of = graph()[copies[0]].inputs[0];
    std::vector<ValueRef> pieces;
    Ints owners, takers;
    for (size_t k = 0; k < parts(); ++k) {
      pieces.push_back(emit_.node("Sum", {part(of, k)},
                                  AttrsRef({{"axis", Ints{0}}}), device(k),
                                  copies[0], "shard"));
      emit_[pieces.back().node].collective = false;
      owners.push_back(static_cast<int64_t>(k));
    }
    for (const int32_t i : copies) {
      takers.push_back(std::max(graph()[i].replica, 0));
    }
    const ValueRef sum = emit_.node(
        "_AllReduce", std::move(pieces),
        AttrsRef(
            {{"owners", owners}, {"replicas", takers}, {"starts", Ints{}}}),
        device(0), copies[0], "norm");
    emit_[sum.node].requested.clear();
    emit_[sum.node].replica = -1;
    for (size_t c = 0; c < copies.size(); ++c) {
      ValueRef whole{sum.node, static_cast<int32_t>(c)};
      const Shape shape = graph()[copies[c]].outputs[0].shape;
      if (shape.rank() > 0) {
        const DeviceId at = device(static_cast<size_t>(takers[c]));
        whole = emit_.reshape(whole, shape, at, copies[c]);
      }
      emit_.replace(copies[c], 0, whole);
      emit_.drop(copies[c], {whole.node});
    }
  }

  // Sums follow each other in the order in which gradients are made, so that a
  // device holds what arrives for two packs; after the backward pass, for one,
  // whose gradients all devices then have let go.
  void order_sums() {
    std::stable_sort(scatters_.begin(), scatters_.end(),
                     [](const Scatter& a, const Scatter& b) {
                       return a.last_piece < b.last_piece;
                     });
    const bool late = plan_.level == Sharding::kOptimizer;
    std::vector<std::vector<const Scatter*>> packs(1);
    const int64_t all_bytes = plan_.pack_bytes * static_cast<int64_t>(parts());
    int64_t bytes = 0;
    int32_t last = -1;  // parts of a gradient are of one pack
    for (const Scatter& s : scatters_) {
      if (bytes >= all_bytes && s.last_piece != last) {
        packs.emplace_back();
        bytes = 0;
      }
      last = s.last_piece;
      packs.back().push_back(&s);
      bytes += s.bytes;
    }
    const size_t open = late ? 1 : 2;
    for (size_t p = 0; p < packs.size(); ++p) {
      for (const Scatter* s : packs[p]) {
        for (const int32_t view : s->views) {
          if (late) emit_.order(scatters_.back().last_piece, view);
          if (p < open) continue;
          for (const Scatter* before : packs[p - open]) {
            if (late || before->device == s->device) {
              emit_.order(before->sum, view);
            }
          }
        }
      }
    }
  }

  // A sum that one device gets its part of.
  struct Scatter {
    int32_t sum = -1;
    size_t device = 0;
    int64_t bytes = 0;
    int32_t last_piece = -1;
    std::vector<int32_t> views;  // of the pieces
  };

  const ShardPlan& plan_;
  const OpDef& all_reduce_ = op_named("_AllReduce");
  const int32_t old_;
  Emit emit_;
  const std::vector<std::vector<int32_t>> users_;
  std::map<int64_t, DeviceId> devices_;  // the first of each replica
  std::map<const TensorImpl*, std::vector<int32_t>> handles_, updates_;
  std::map<std::pair<const TensorImpl*, size_t>, ValueRef> variables_;
  std::map<std::pair<ValueRef, size_t>, ValueRef> values_;
  std::map<std::pair<int32_t, size_t>, ValueRef> sums_;
  std::vector<int32_t> all_updates_;
  std::vector<Scatter> scatters_;
  std::set<int32_t> norms_;
  std::map<int32_t, bool> needed_whole_;
};

}  // namespace

void update_by_ranges(Graph& graph, const ShardPlan& plan) {
  RangeUpdates(graph, plan).run();
  dce(graph);
}

}  // namespace berth::distribute
