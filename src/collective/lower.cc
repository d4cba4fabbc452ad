#include "collective/lower.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "collective/device_allreduce.h"
#include "collective/shared_memory.h"
#include "collective/task_buckets.h"
#include "device/memory_space.h"
#include "tensor/variable_state.h"

namespace berth {

namespace {

constexpr int64_t kDefaultPackBytes = 4 << 20;

using Ints = std::vector<int64_t>;

// Reads the reductions of a graph and packs them.
class Packer {
 public:
  explicit Packer(const Graph& graph)
      : graph_(graph),
        all_reduce_(op_named("_AllReduce")),
        users_(graph.users()) {
    for (const Node& n : graph.nodes) {
      if (n.replica >= 0 && !n.requested.empty()) {
        devices_.try_emplace(n.replica, n.requested);
      }
    }
    find_levels();
  }

  const std::vector<std::vector<int32_t>>& users() const { return users_; }
  const std::map<int64_t, DeviceId>& devices() const { return devices_; }

  struct Packed {
    Bucket bucket;
    bool one_memory = true;
    bool updates = false;
    bool last_level = false;  // no other reduction depends on these
    int32_t last_piece = -1;  // the last node
    int64_t bytes = 0, limit = 0;
  };

  std::vector<Packed> run() {
    for (int32_t i = 0; i < graph_.size(); ++i) {
      if (graph_[i].op == &all_reduce_) pack(i);
    }
    return std::move(packed_);
  }

 private:
  static constexpr int32_t kLast = INT32_MAX;  // level without dependents
  const Ints& list(const Node& n, const char* name) const {
    return n.op->attr<Ints>(n.attrs.get(), name);
  }

  // Reductions of one level do not depend on each other, and no other reduction
  // depends on those of the last level.
  void find_levels() {
    std::vector<int32_t> before(graph_.nodes.size(), 0);
    level_.assign(graph_.nodes.size(), kLast);
    std::vector<bool> feeds(graph_.nodes.size(), false);
    const auto visit = [&](const Node& n, auto&& fn) {
      for (const ValueRef& v : n.inputs) fn(v.node);
      for (const int32_t c : n.controls) fn(c);
    };
    for (int32_t i = graph_.size(); i-- > 0;) {
      const bool reduces = graph_[i].op == &all_reduce_;
      if (!reduces && !feeds[i]) continue;
      visit(graph_[i], [&](int32_t p) { feeds[p] = true; });
    }
    for (int32_t i = 0; i < graph_.size(); ++i) {
      visit(graph_[i], [&](int32_t p) {
        const int32_t add = graph_[p].op == &all_reduce_ ? 1 : 0;
        before[i] = std::max(before[i], before[p] + add);
      });
      if (feeds[i]) level_[i] = before[i];
    }
  }

  DeviceId device_of(const Node& n, int64_t replica) const {
    return device_or(n.requested, replica);
  }

  // Where a node that requests this device is.
  DeviceId device_or(DeviceId requested, int64_t replica) const {
    if (!requested.empty()) return requested;
    const auto it = devices_.find(replica);
    return it == devices_.end() ? DeviceId() : it->second;
  }

  // Where a reader of a result is; an update is where its variable lives.
  DeviceId device_of_reader(const Node& n, int64_t replica) const {
    if (n.requested.empty()) {
      for (const ValueRef& v : n.inputs) {
        const Tensor& variable = graph_[v.node].variable;
        if (variable.defined()) return variable_state(variable).device->id();
      }
    }
    return device_of(n, replica);
  }

  AllReduceRequest read(int32_t i) const {
    const Node& n = graph_[i];
    AllReduceRequest r;
    r.node = i;
    const Ints& owners = list(n, "owners");
    const Ints& starts = list(n, "starts");
    for (size_t k = 0; k < n.inputs.size(); ++k) {
      Addend p;
      p.value = n.inputs[k];
      p.owner = static_cast<int>(owners[k]);
      if (k < starts.size()) p.start = starts[k];
      p.device = device_or(device_of_maker(graph_, p.value), owners[k]);
      r.pieces.push_back(std::move(p));
    }
    if (!starts.empty()) find_ends(r.pieces);
    const Ints& replicas = list(n, "replicas");
    for (size_t o = 0; o < replicas.size(); ++o) {
      const ValueRef v{i, static_cast<int32_t>(o)};
      const Node* reader = nullptr;
      for (const int32_t u : users_[i]) {
        const auto& in = graph_[u].inputs;
        if (reader == nullptr && std::find(in.begin(), in.end(), v) != in.end())
          reader = &graph_[u];
      }
      const bool returned =
          std::find(graph_.outputs.begin(), graph_.outputs.end(), v) !=
          graph_.outputs.end();
      if (reader == nullptr && !returned) continue;
      SumReader result;
      result.output = static_cast<int>(o);
      result.replica = static_cast<int>(replicas[o]);
      result.device = reader != nullptr ? device_of_reader(*reader, replicas[o])
                                        : device_of(n, replicas[o]);
      r.results.push_back(std::move(result));
    }
    return r;
  }

  void pack(int32_t i) {
    const Node& n = graph_[i];
    Packed p;
    AllReduceRequest r = read(i);
    if (r.pieces.empty()) return;
    std::string memory = memory_of(r.pieces[0].device);
    std::string key;
    std::vector<int> owners;
    for (const Addend& piece : r.pieces) {
      p.one_memory = p.one_memory && memory_of(piece.device) == memory;
      key += fmt::format("{}:{}:{} ", piece.owner, piece.start,
                         piece.device.text());
      owners.push_back(piece.owner);
      p.last_piece = std::max(p.last_piece, piece.value.node);
    }
    p.last_level = level_[i] == kLast;
    for (const SumReader& result : r.results) {
      p.one_memory = p.one_memory && memory_of(result.device) == memory;
    }
    std::sort(owners.begin(), owners.end());
    owners.erase(std::unique(owners.begin(), owners.end()), owners.end());
    p.updates = p.one_memory && only_updates(graph_, users_, r);
    for (const SumReader& result : r.results) {
      if (!p.updates) key += fmt::format("-> {} ", result.device.text());
    }
    Bucket& b = p.bucket;
    const auto& reduction = n.op->attr<std::string>(n.attrs.get(), "reduction");
    b.mean = reduction == "mean";
    b.owners = static_cast<int>(owners.size());
    b.algorithm = n.op->attr<std::string>(n.attrs.get(), "algorithm");
    b.dtype =
        n.outputs.empty() ? graph_.spec(n.inputs[0]).dtype : n.outputs[0].dtype;
    p.limit = n.op->attr<int64_t>(n.attrs.get(), "pack_bytes");
    if (p.limit <= 0) p.limit = kDefaultPackBytes;
    p.bytes = graph_.spec(n.inputs[0]).shape.num_elements() *
              static_cast<int64_t>(size_of(b.dtype));
    key += fmt::format("{} {} {} {} {} {}", reduction, b.algorithm, p.limit,
                       name_of(b.dtype), p.updates, level_[i]);
    b.items.push_back(std::move(r));
    put(key, std::move(p));
  }

  void put(const std::string& key, Packed p) {
    const auto [it, fresh] = open_.try_emplace(key, packed_.size());
    if (!fresh && packed_[it->second].bytes + p.bytes <= p.limit) {
      Packed& to = packed_[it->second];
      to.bytes += p.bytes;
      to.last_piece = std::max(to.last_piece, p.last_piece);
      to.bucket.items.push_back(std::move(p.bucket.items[0]));
      return;
    }
    it->second = packed_.size();
    packed_.push_back(std::move(p));
  }

  const Graph& graph_;
  const OpDef& all_reduce_;
  const std::vector<std::vector<int32_t>> users_;
  std::map<int64_t, DeviceId> devices_;  // the first of each replica
  std::vector<int32_t> level_;           // by node
  std::vector<Packed> packed_;
  std::map<std::string, size_t> open_;  // key -> the last one in packed_
};

// Adds pieces within one memory, on the device of the first piece.
void add_within_memories(Emit& emit, AllReduceRequest& r) {
  std::map<std::string, std::vector<Addend>> memories;
  for (const Addend& p : r.pieces) memories[memory_of(p.device)].push_back(p);
  std::vector<Addend> left;
  for (auto& [memory, pieces] : memories) {
    const DeviceId device = pieces[0].device;
    for (Addend& p : add_up(emit, std::move(pieces), device, r.node)) {
      left.push_back(std::move(p));
    }
  }
  std::stable_sort(
      left.begin(), left.end(), [](const Addend& a, const Addend& b) {
        return a.start != b.start ? a.start < b.start : a.owner < b.owner;
      });
  r.pieces = std::move(left);
}

// Lowers reductions between memories whose copies can overlap with the
// computation of later pieces.
void lower_in_turn(Emit& emit, std::vector<Packer::Packed*> list) {
  std::sort(list.begin(), list.end(), [](const auto* a, const auto* b) {
    return a->last_piece < b->last_piece;
  });
  Turn turn;
  for (const Packer::Packed* p : list) {
    auto& nodes = turn.last_pieces.emplace_back();
    for (const AllReduceRequest& r : p->bucket.items) {
      for (const Addend& piece : r.pieces) {
        int32_t& node = nodes.try_emplace(piece.device, -1).first->second;
        node = std::max(node, piece.value.node);
      }
    }
  }
  for (Packer::Packed* p : list) {
    for (AllReduceRequest& r : p->bucket.items) add_within_memories(emit, r);
    lower_device_allreduce(emit, p->bucket, turn);
    ++turn.number;
    turn.last_pieces.erase(turn.last_pieces.begin());
  }
}

}  // namespace

void lower_collectives(Graph& graph, double timeout_seconds) {
  lower_task_reductions(graph, timeout_seconds);
  Packer packer(graph);
  auto packed = packer.run();
  if (packed.empty()) return;
  Emit emit(graph);
  for (const auto& [replica, device] : packer.devices()) {
    emit.set_replica(device, static_cast<int>(replica));
  }
  std::vector<Packer::Packed*> in_turn;
  for (auto& p : packed) {
    p.bucket.timeout_seconds = timeout_seconds;
    if (p.updates) {
      lower_updates(emit, p.bucket, packer.users());
    } else if (p.one_memory) {
      lower_values(emit, p.bucket);
    } else if (p.last_level) {
      in_turn.push_back(&p);
    } else {
      for (AllReduceRequest& r : p.bucket.items) add_within_memories(emit, r);
      lower_device_allreduce(emit, p.bucket, {});
    }
  }
  lower_in_turn(emit, std::move(in_turn));
  emit.finish();
}

}  // namespace berth
