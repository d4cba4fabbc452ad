// What devices send each other of divided state: ranges that one has updated to
// the copies of the others, and shards to where a variable is read.

#include <algorithm>
#include <map>
#include <utility>

#include "distribute/data_parallel/shard_step.h"
#include "passes/pipeline.h"
#include "tensor/mirrors.h"
#include "tensor/shards.h"
#include "tensor/tensor_impl.h"

namespace berth::distribute {

namespace {

// Copies of variables that were updated by ranges get those of the others.
class RangeExchange {
 public:
  RangeExchange(Graph& graph, const ShardPlan& plan)
      : plan_(plan), old_(graph.size()), emit_(graph), users_(graph.users()) {
    for (int32_t i = 0; i < old_; ++i) {
      if (graph[i].op->update_value() < 0) continue;
      for (const ValueRef& v : graph[i].inputs) {
        if (graph[v.node].op != &range_) continue;
        const Tensor& handle = graph[graph[v.node].inputs[0].node].variable;
        const Tensor home = home_of(handle);
        const auto [it, fresh] = number_.try_emplace(
            home.defined() ? home.impl() : handle.impl(), copies_.size());
        if (fresh) copies_.emplace_back();
        Copies& of = copies_[it->second];
        of.resize(plan.devices.size());
        Copy& copy = of[device_number(handle)];
        copy.handle = graph[v.node].inputs[0].node;
        copy.range = v;
        copy.writes.push_back(i);
      }
    }
  }

  void run() {
    std::stable_sort(copies_.begin(), copies_.end(),
                     [](const Copies& a, const Copies& b) {
                       return a[0].writes.back() < b[0].writes.back();
                     });
    for (const Copies& copies : copies_) {
      const size_t writes = copies[0].writes.size();
      for (size_t t = 0; t < writes; ++t) {
        if (t + 1 == writes || is_read_after(copies, t)) exchange(copies, t);
      }
    }
    emit_.finish();
  }

 private:
  struct Copy {
    int32_t handle = -1;
    ValueRef range;               // the part that its device updates
    std::vector<int32_t> writes;  // of that part
  };
  using Copies = std::vector<Copy>;  // by device

  const Graph& graph() const { return emit_.graph(); }

  size_t device_number(const Tensor& handle) const {
    const auto& all = plan_.devices;
    const auto it =
        std::find(all.begin(), all.end(), variable_state(handle).device);
    return static_cast<size_t>(it - all.begin());
  }

  // Reads of a whole copy that come after a write and before the next.
  std::vector<int32_t> reads_after(const Copy& copy, size_t t) const {
    std::vector<int32_t> reads;
    for (const int32_t u : users_[copy.handle]) {
      if (u >= old_ || graph()[u].op == &range_) continue;
      const auto& before = graph()[u].controls;
      if (std::find(before.begin(), before.end(), copy.writes[t]) !=
          before.end()) {
        reads.push_back(u);
      }
    }
    return reads;
  }

  bool is_read_after(const Copies& copies, size_t t) const {
    return std::any_of(copies.begin(), copies.end(), [&](const Copy& c) {
      return !reads_after(c, t).empty();
    });
  }

  void exchange(const Copies& copies, size_t t) {
    for (size_t j = 0; j < copies.size(); ++j) {
      const Copy& from = copies[j];
      const ValueRef value =
          emit_.node("ReadVariableOp", {from.range}, {}, plan_.devices[j]->id(),
                     from.writes[t], "updated");
      emit_.order(from.writes[t], value.node);
      // Two packs are on their way at a time.
      for (const int32_t put : before_last_) emit_.order(put, value.node);
      if (t + 1 < from.writes.size()) {
        emit_.order(value.node, from.writes[t + 1]);
      }
      for (size_t k = 0; k < copies.size(); ++k) {
        if (k != j) put(copies[k], t, j, k, value);
      }
    }
    const Shape& shape = graph().spec({copies[0].handle, 0}).shape;
    const DType dtype = graph().spec({copies[0].handle, 0}).variable;
    bytes_ += shape.num_elements() * static_cast<int64_t>(size_of(dtype));
    if (bytes_ < plan_.pack_bytes) return;
    before_last_ = std::exchange(last_, std::exchange(puts_, {}));
    bytes_ = 0;
  }

  // Writes part j of the copy on device k.
  void put(const Copy& to, size_t t, size_t j, size_t k, ValueRef value) {
    const DeviceId device = plan_.devices[k]->id();
    const auto [it, fresh] = ranges_.try_emplace({to.handle, j});
    if (fresh) {
      const int64_t n = graph().spec({to.handle, 0}).shape.num_elements();
      const auto [begin, end] = plan_.range(n, j);
      it->second =
          emit_.node("_VariableRange", {{to.handle, 0}},
                     AttrsRef({{"begin", begin}, {"count", end - begin}}),
                     device, to.handle, "range");
    }
    const ValueRef range = it->second;
    const int32_t put = emit_
                            .node("AssignVariableOp", {range, value}, {},
                                  device, to.writes[t], "put")
                            .node;
    puts_.push_back(put);
    // After what the device's own write comes after.
    const std::vector<int32_t> before = graph()[to.writes[t]].controls;
    for (const int32_t c : before) emit_.order(c, put);
    for (const int32_t read : reads_after(to, t)) emit_.order(put, read);
  }

  const ShardPlan& plan_;
  const OpDef& range_ = op_named("_VariableRange");
  const int32_t old_;
  Emit emit_;
  const std::vector<std::vector<int32_t>> users_;
  std::vector<Copies> copies_;                  // by variable
  std::map<const TensorImpl*, size_t> number_;  // of a home, in copies_
  std::map<std::pair<int32_t, size_t>, ValueRef> ranges_;
  // Writes of ranges of others: of the pack that is being filled, the one
  // before and the one before that.
  std::vector<int32_t> puts_, last_, before_last_;
  int64_t bytes_ = 0;
};

// Readers of a divided variable that share one gathering of it.
struct Gather {
  int32_t read = -1;  // the ReadVariableOp of the whole variable
  int64_t bytes = 0;
  std::vector<int32_t> users;  // in order
};

class Gathers {
 public:
  Gathers(Graph& graph, const ShardPlan& plan)
      : graph_(graph), plan_(plan), users_(graph.users()) {
    for (int32_t i = 0; i < graph.size(); ++i) {
      const Node& n = graph[i];
      if (n.variable.defined() && is_shard(variable_state(n.variable))) {
        shards_[n.variable.impl()] = {i, 0};
      }
      if (n.op->kind() != OpKind::kReadVariable) continue;
      const Tensor& v = graph[n.inputs[0].node].variable;
      if (!v.defined() || !is_divided(variable_state(v), plan)) continue;
      Gather g{i, static_cast<int64_t>(variable_state(v).size_bytes()), {}};
      for (const int32_t u : users_[i]) {
        const auto& in = graph[u].inputs;
        if (std::find(in.begin(), in.end(), ValueRef{i, 0}) != in.end()) {
          g.users.push_back(u);
        }
      }
      std::sort(g.users.begin(), g.users.end());
      reads_.push_back(std::move(g));
    }
  }

  void run() {
    if (reads_.empty()) return;
    for (const Gather& g : reads_) cut(g);
    std::stable_sort(gathers_.begin(), gathers_.end(),
                     [](const Gather& a, const Gather& b) {
                       return first_of(a) < first_of(b);
                     });
    Emit emit(graph_);
    std::map<int32_t, std::vector<int32_t>> made;  // by read
    for (size_t g = 0; g < gathers_.size(); ++g) {
      const auto nodes = gather(emit, g);
      auto& all = made[gathers_[g].read];
      all.insert(all.end(), nodes.begin(), nodes.end());
    }
    for (auto& [read, nodes] : made) emit.drop(read, std::move(nodes));
    emit.finish();
    dce(graph_);
  }

 private:
  static int32_t first_of(const Gather& g) {
    return g.users.empty() ? INT32_MAX : g.users[0];
  }

  // Between two readers the value is released if other variables, as large, are
  // used there.
  void cut(const Gather& of) {
    Gather g{of.read, of.bytes, {}};
    for (const int32_t u : of.users) {
      if (!g.users.empty() && is_used_between(of, g.users.back(), u)) {
        gathers_.push_back(std::exchange(g, {of.read, of.bytes, {}}));
      }
      g.users.push_back(u);
    }
    gathers_.push_back(std::move(g));
  }

  bool is_used_between(const Gather& of, int32_t a, int32_t b) const {
    return std::any_of(reads_.begin(), reads_.end(), [&](const Gather& g) {
      if (g.read == of.read || g.bytes < of.bytes) return false;
      const auto it = std::upper_bound(g.users.begin(), g.users.end(), a);
      return it != g.users.end() && *it < b;
    });
  }

  // The gathering before `g` of at least half as many bytes; -1: none.
  int before(int g) const {
    if (g < 0) return -1;
    const int64_t bytes = gathers_[static_cast<size_t>(g)].bytes;
    for (int p = g - 1; p >= 0; --p) {
      if (2 * gathers_[static_cast<size_t>(p)].bytes >= bytes) return p;
    }
    return -1;
  }

  size_t memory_of(int32_t user) const {
    const int replica = graph_[user].replica;
    return static_cast<size_t>(std::max(replica, 0));
  }

  // Returns the nodes that gather. They begin while the devices use the
  // gathering before it.
  std::vector<int32_t> gather(Emit& emit, size_t number) {
    const Gather& g = gathers_[number];
    const Tensor home = graph_[graph_[g.read].inputs[0].node].variable;
    const Shape shape = variable_state(home).shape;
    std::vector<ValueRef> parts;
    for (size_t j = 0; j < plan_.devices.size(); ++j) {
      const ValueRef handle = handle_of(emit, home, j, g.read);
      const DeviceId device = plan_.devices[j]->id();
      const int32_t read = emit.copy(g.read, {handle}, device, "shard");
      emit[read].replica = static_cast<int>(j);
      emit[read].collective = true;
      parts.push_back({read, 0});
    }
    const int wait = before(before(static_cast<int>(number)));
    if (wait >= 0) {
      std::map<size_t, int32_t> first;  // by memory
      for (const int32_t u : gathers_[static_cast<size_t>(wait)].users) {
        first.try_emplace(memory_of(u), u);
      }
      for (const auto& [memory, u] : first) {
        for (const ValueRef& part : parts) emit.order(u, part.node);
      }
    }
    std::map<size_t, ValueRef> whole;  // by memory
    emit.set_late(true);
    for (const int32_t u : g.users) {
      const auto [it, fresh] = whole.try_emplace(memory_of(u));
      if (fresh) it->second = join(emit, parts, shape, it->first, g.read);
      for (ValueRef& v : emit[u].inputs) {
        if (v == ValueRef{g.read, 0}) v = it->second;
      }
    }
    const bool returned =
        std::find(graph_.outputs.begin(), graph_.outputs.end(),
                  ValueRef{g.read, 0}) != graph_.outputs.end();
    if (returned) {
      const auto [it, fresh] = whole.try_emplace(0);
      if (fresh) it->second = join(emit, parts, shape, 0, g.read);
      emit.replace(g.read, 0, it->second);
    }
    emit.set_late(false);
    std::vector<int32_t> nodes;
    for (const auto& [memory, v] : whole) nodes.push_back(v.node);
    return nodes;
  }

  ValueRef handle_of(Emit& emit, const Tensor& home, size_t k, int32_t like) {
    const Tensor shard = variable_state(home).shards.at(k);
    const auto [it, fresh] = shards_.try_emplace(shard.impl());
    if (fresh) {
      it->second = add_handle(emit, shard, plan_.devices[k]->id(), like);
    }
    return it->second;
  }

  ValueRef join(Emit& emit, const std::vector<ValueRef>& parts,
                const Shape& shape, size_t memory, int32_t like) const {
    const DeviceId device = plan_.devices[memory]->id();
    const ValueRef flat =
        emit.node("ConcatV2", parts, AttrsRef({{"axis", int64_t{0}}}), device,
                  like, "gathered");
    return shape.rank() == 1 ? flat : emit.reshape(flat, shape, device, like);
  }

  Graph& graph_;
  const ShardPlan& plan_;
  const std::vector<std::vector<int32_t>> users_;
  std::map<const TensorImpl*, ValueRef> shards_;
  std::vector<Gather> reads_, gathers_;
};

}  // namespace

void exchange_ranges(Graph& graph, const ShardPlan& plan) {
  RangeExchange(graph, plan).run();
}

void gather_shards(Graph& graph, const ShardPlan& plan) {
  Gathers(graph, plan).run();
}

}  // namespace berth::distribute
