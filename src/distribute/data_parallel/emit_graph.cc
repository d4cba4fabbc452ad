#include "distribute/data_parallel/emit_graph.h"

#include <fmt/format.h>

#include <algorithm>

#include "berth/errors.h"
#include "device/device_manager.h"
#include "device/memory_space.h"
#include "graph/body.h"
#include "tensor/mirrors.h"
#include "tensor/variable_state.h"

namespace berth::distribute {

namespace {

using State = SplitState::Kind;
using Choice = SplitChoice::Kind;

bool is_there(const ValueRef& v) { return v.node >= 0; }

}  // namespace

SplitEmit::SplitEmit(const Graph& from, const SplitPlan& plan,
                     const SplitPlaces& places, const SplitAnalysis& analysis,
                     const SplitStates& states, const SplitNeeds& needs,
                     const SplitNeeds* of_all)
    : from_(from),
      plan_(plan),
      places_(places),
      analysis_(analysis),
      states_(states),
      needs_(needs),
      made_(from.nodes.size()),
      copies_(from.nodes.size()),
      of_all_(of_all) {
  to_.name = from.name;
  to_.declared_ops = from.declared_ops;
  for (int32_t i = 0; i < from.size(); ++i) {
    for (size_t o = 0; o < from[i].outputs.size(); ++o) {
      Made m;
      m.whole.resize(places.memories.size());
      m.parts.resize(places.examples.size());
      m.pieces.resize(places.pieces.size());
      made_[i].push_back(std::move(m));
    }
  }
  for (size_t r = 0; r < places.examples.size(); ++r) {
    SumPiece all{static_cast<int>(r), places.examples[r], 0, 0};
    if (places.slices > 0) {
      all.first = places.first_slice[r];
      all.count = places.first_slice[r + 1] - all.first;
    }
    by_replica_.push_back(all);
  }
  if (of_all_ != nullptr) find_meetings();
}

Graph SplitEmit::run() {
  for (int32_t i = 0; i < from_.size(); ++i) emit(i);
  for (const ValueRef& v : from_.outputs) {
    to_.outputs.push_back(whole_at(v, places_.home));
  }
  return std::move(to_);
}

void SplitEmit::emit(int32_t i) {
  const std::string& op = from_[i].op->name();
  if (op == "_Arg") return emit_arg(i);
  if (op == "VarHandleOp") return emit_handle(i);
  switch (states_.nodes[i].kind) {
    case Choice::kWhole:
      return emit_whole(i);
    case Choice::kCut:
      emit_cut(i);
      return reduce(i);
    case Choice::kThrough:
      emit_through(i);
      return reduce(i);
  }
}

void SplitEmit::emit_arg(int32_t i) {
  Node arg = from_[i];
  arg.controls.clear();
  arg.follows = -1;
  const ValueRef v{add(std::move(arg)), 0};
  to_.args.push_back(v.node);
  copies_[i].push_back({-1, -1, v.node});
  Made& m = made_[i][0];
  std::fill(m.whole.begin(), m.whole.end(), v);
  if (of_all_ != nullptr && needed_whole_[i]) gather_argument(i);
}

// The handles of the shards of a variable that is divided along an axis.
void SplitEmit::emit_shards(int32_t i) {
  for (size_t r = 0; r < places_.examples.size(); ++r) {
    if (places_.examples[r].rows == 0) continue;
    Node node = from_[i];
    node.controls.clear();
    node.follows = -1;
    node.assigned.clear();
    node.variable = variable_state(from_[i].variable).shards.at(r);
    const VariableState& shard = variable_state(node.variable);
    node.attrs = AttrsRef({{"shared_name", shard.name},
                           {"dtype", shard.dtype},
                           {"shape", shard.shape}});
    node.outputs[0].shape = shard.shape;
    node.name = unique_name(to_, fmt::format("{}/shard_{}", node.name, r));
    node.requested = shard.device->id();
    node.replica = static_cast<int>(r);
    made_[i][0].parts[r] = {add(std::move(node)), 0};
  }
}

void SplitEmit::emit_handle(int32_t i) {
  if (states_.values[i][0].kind == State::kSplit) emit_shards(i);
  for (size_t m = 0; m < places_.memories.size(); ++m) {
    const int memory = static_cast<int>(m);
    const int first = needs_.copy_of(i, memory);
    if (!(needs_.of({i, 0}) >> m & 1)) continue;
    ValueRef& at = made_[i][0].whole[m];
    ValueRef& same = made_[i][0].whole[static_cast<size_t>(first)];
    if (is_there(same)) {
      at = same;
      continue;
    }
    const Copy where{places_.memories[m].replica, memory, -1};
    Node node = from_[i];
    node.controls.clear();
    node.follows = -1;
    node.assigned.clear();
    if (first != places_.home && first != 0) {
      const int at_device = place_of_variable(node, places_);
      const DeviceId device =
          places_.memories[m].devices[static_cast<size_t>(at_device)];
      node.name += copy_suffix(where.replica);
      node.requested = device;
      node.replica = where.replica;
      if (node.variable.defined()) {
        node.variable = mirror_of(node.variable,
                                  DeviceManager::get().lookup(device.name()));
      }
    }
    node.name = unique_name(to_, node.name);
    at = same = {add(std::move(node)), 0};
    copies_[i].push_back({where.replica, memory, at.node});
  }
}

std::string SplitEmit::copy_suffix(int replica) const {
  return fmt::format("/{}_{}", plan_.layers ? "part" : "replica", replica);
}

Node SplitEmit::copy_of(int32_t i, const Copy& where) const {
  const Node& old = from_[i];
  Node node = old;
  node.inputs.clear();
  node.controls = controls(i, where);
  node.assigned.clear();
  node.follows = -1;
  node.colocated.clear();
  const bool several = places_.examples.size() > 1 || places_.central();
  if (several) node.replica = std::max(where.replica, 0);
  if (where.replica > 0) {
    node.name += copy_suffix(where.replica);
    for (const std::string& g : old.colocated) {
      node.colocated.push_back(g + copy_suffix(where.replica));
    }
  } else {
    node.colocated = old.colocated;
  }
  node.name = unique_name(to_, node.name);
  const std::vector<DeviceId> devices = devices_of(where);
  if (old.follows >= 0 && (!several || devices.size() > 1)) {
    for (const Copy& c : copies_[old.follows]) {
      if (c.replica == where.replica) node.follows = c.node;
    }
  }
  if (several || !devices[0].empty()) ask_for(node, old, devices);
  return node;
}

std::vector<DeviceId> SplitEmit::devices_of(const Copy& where) const {
  if (where.memory == places_.home && places_.central()) {
    return {plan_.central};
  }
  return plan_.replicas[static_cast<size_t>(where.replica)];
}

std::vector<int32_t> SplitEmit::controls(int32_t i, const Copy& where) const {
  std::vector<int32_t> list;
  for (const int32_t c : from_[i].controls) {
    const auto take = [&](auto&& fits) {
      const size_t before = list.size();
      for (const Copy& copy : copies_[c]) {
        if (fits(copy)) list.push_back(copy.node);
      }
      return list.size() > before;
    };
    const bool part = states_.nodes[i].kind != Choice::kWhole;
    if (part && take([&](const Copy& x) { return x.replica == where.replica; }))
      continue;
    if (take([&](const Copy& x) { return x.memory == where.memory; })) continue;
    take([](const Copy&) { return true; });
  }
  std::sort(list.begin(), list.end());
  list.erase(std::unique(list.begin(), list.end()), list.end());
  return list;
}

void SplitEmit::add_copy(int32_t i, Copy where, Node node) {
  where.node = add(std::move(node));
  copies_[i].push_back(where);
}

void SplitEmit::emit_whole(int32_t i) {
  const Node& old = from_[i];
  for (size_t m = 0; m < places_.memories.size(); ++m) {
    const int memory = static_cast<int>(m);
    if (!(needs_.node(i) >> m & 1)) continue;
    const Copy where{places_.memories[m].replica, memory, -1};
    std::vector<ValueRef> in;
    for (const ValueRef& v : old.inputs) in.push_back(whole_at(v, memory));
    Node node = copy_of(i, where);
    // Its bodies use the variables of this memory.
    std::map<const TensorImpl*, Tensor> here;
    for (size_t k = 0; k < in.size(); ++k) {
      const Tensor& v = from_[old.inputs[k].node].variable;
      if (v.defined()) here[v.impl()] = to_[in[k].node].variable;
    }
    const std::vector<DeviceId> devices = devices_of(where);
    change_bodies(node, [&](Node& n) {
      const auto it = here.find(n.variable.impl());
      if (it != here.end()) n.variable = it->second;
      n.replica = node.replica;
      if (!n.requested.empty() && !devices[0].empty()) {
        n.requested = device_for(n.requested, devices, n);
      }
    });
    node.inputs = std::move(in);
    add_copy(i, where, std::move(node));
    for (size_t o = 0; o < old.outputs.size(); ++o) {
      made_[i][o].whole[m] = {copies_[i].back().node, static_cast<int32_t>(o)};
    }
  }
}

std::shared_ptr<const NodePart> SplitEmit::part(int32_t i,
                                                const SumPiece& piece) const {
  const Node& old = from_[i];
  NodePart p;
  p.signature = states_.nodes[i].index;
  if (old.part && old.part->unsplit.rank() > 0) {
    p.unsplit = old.part->unsplit;  // of a part of a layer
  } else if (!old.inputs.empty()) {
    p.unsplit = from_.spec(old.inputs[0]).shape;
  }
  if (!old.outputs.empty() &&
      states_.values[i][0].kind == SplitState::Kind::kSplit) {
    p.origin = old.outputs[0].shape.num_elements() * piece.examples.row /
               places_.batch;
  }
  if (places_.slices > 0) {
    p.first = piece.first;
    p.count = piece.count;
    p.total = places_.slices;
    p.batch = places_.batch;
  }
  return std::make_shared<const NodePart>(p);
}

void SplitEmit::emit_cut(int32_t i) {
  const Node& old = from_[i];
  const SplitSignature& s = *states_.nodes[i].signature;
  const bool sums = std::any_of(
      states_.values[i].begin(), states_.values[i].end(),
      [](const SplitState& v) { return v.kind == State::kPartial; });
  const std::vector<SumPiece>& pieces = sums ? places_.pieces : by_replica_;
  for (size_t k = 0; k < pieces.size(); ++k) {
    const SumPiece& piece = pieces[k];
    if (piece.examples.rows == 0 || !is_here(piece.replica)) continue;
    const auto r = static_cast<size_t>(piece.replica);
    const Copy where{piece.replica, places_.memory_of[r], -1};
    std::vector<ValueRef> in;
    for (size_t n = 0; n < old.inputs.size(); ++n) {
      in.push_back(sums ? piece_of(old.inputs[n], k, s.inputs[n])
                        : part_of(old.inputs[n], piece.replica, s.inputs[n]));
    }
    LocalNode local;
    analysis_.localize(i, states_.nodes[i], piece.examples.rows, &local);
    Node node = copy_of(i, where);
    node.inputs = std::move(in);
    node.attrs = std::move(local.attrs);
    node.outputs = std::move(local.outputs);
    if (old.op->name() == "Range") {
      const int64_t before = old.outputs[0].shape[0] * piece.examples.row;
      node.attrs = SplitAnalysis::range_attrs(old, before / places_.batch,
                                              node.outputs[0].shape[0]);
    }
    node.part = part(i, piece);
    add_copy(i, where, std::move(node));
    for (size_t o = 0; o < old.outputs.size(); ++o) {
      const ValueRef v{copies_[i].back().node, static_cast<int32_t>(o)};
      Made& m = made_[i][o];
      if (states_.values[i][o].kind == State::kPartial) {
        m.pieces[k] = v;
      } else if (!sums) {
        m.parts[r] = v;
      } else {
        cuts_[{{i, static_cast<int32_t>(o)},
               places_.examples.size() + k,
               states_.values[i][o].axis}] = v;
      }
    }
  }
  if (sums) join_pieces(i);
  if (of_all_ == nullptr) return;
  for (size_t o = 0; o < old.outputs.size(); ++o) {
    const ValueRef v{i, static_cast<int32_t>(o)};
    if (state(v).kind == State::kSplit && meets(v)) gather_over_tasks(v);
  }
}

// An op with sums and other results: the pieces of the latter are parts too.
void SplitEmit::join_pieces(int32_t i) {
  for (size_t o = 0; o < from_[i].outputs.size(); ++o) {
    const SplitState& s = states_.values[i][o];
    if (s.kind != State::kSplit) continue;
    const ValueRef v{i, static_cast<int32_t>(o)};
    std::vector<std::vector<ValueRef>> of(places_.examples.size());
    for (size_t k = 0; k < places_.pieces.size(); ++k) {
      const auto it = cuts_.find({v, places_.examples.size() + k, s.axis});
      if (it == cuts_.end()) continue;
      of[static_cast<size_t>(places_.pieces[k].replica)].push_back(it->second);
    }
    for (size_t r = 0; r < of.size(); ++r) {
      if (of[r].empty()) continue;
      made_[i][o].parts[r] = joined(
          v, std::move(of[r]), {static_cast<int>(r), places_.memory_of[r], -1});
    }
  }
}

void SplitEmit::emit_through(int32_t i) {
  const Node& old = from_[i];
  for (size_t k = 0; k < places_.pieces.size(); ++k) {
    const int replica = places_.pieces[k].replica;
    if (!is_here(replica)) continue;
    const Copy where{replica, places_.memory_of[static_cast<size_t>(replica)],
                     -1};
    Node node = copy_of(i, where);
    for (const ValueRef& v : old.inputs) {
      node.inputs.push_back(made(v).pieces[k]);
    }
    add_copy(i, where, std::move(node));
    for (size_t o = 0; o < old.outputs.size(); ++o) {
      made_[i][o].pieces[k] = {copies_[i].back().node, static_cast<int32_t>(o)};
    }
  }
}

void SplitEmit::reduce(int32_t i) {
  static const OpDef& op = op_named("_AllReduce");
  for (size_t o = 0; o < from_[i].outputs.size(); ++o) {
    const ValueRef v{i, static_cast<int32_t>(o)};
    const MemorySet where = needs_.of(v);
    if (of_all_ != nullptr) {
      if (state(v).kind == State::kPartial && meets(v)) reduce_over_tasks(v);
      continue;
    }
    if (state(v).kind != State::kPartial || where == 0) continue;
    if (plan_.adds) {
      add_pieces(v);
      continue;
    }
    Made& m = made_[i][o];
    std::vector<int64_t> owners, starts, results;
    Node node;
    for (size_t k = 0; k < places_.pieces.size(); ++k) {
      owners.push_back(places_.pieces[k].replica);
      if (places_.slices > 0) starts.push_back(places_.pieces[k].first);
      node.inputs.push_back(m.pieces[k]);
    }
    if (node.inputs.size() == 1) {
      std::fill(m.whole.begin(), m.whole.end(), node.inputs[0]);
      continue;
    }
    for (size_t at = 0; at < places_.memories.size(); ++at) {
      if (!(where >> at & 1)) continue;
      m.whole[at] = {to_.size(), static_cast<int32_t>(results.size())};
      results.push_back(places_.memories[at].replica);
      node.outputs.push_back(from_[i].outputs[o]);
    }
    node.op = &op;
    node.name = unique_name(to_, from_[i].name + "/all_reduce");
    node.sources = from_[i].sources;
    node.attrs = AttrsRef({{"owners", owners},
                           {"replicas", results},
                           {"starts", starts},
                           {"algorithm", plan_.algorithm},
                           {"pack_bytes", plan_.pack_bytes}});
    add(std::move(node));
  }
}

// Adds the parts of a sum where it is needed.
void SplitEmit::add_pieces(ValueRef v) {
  static const OpDef& op = op_named("AddN");
  Made& m = made(v);
  std::vector<ValueRef> pieces;
  for (const ValueRef& piece : m.pieces) {
    if (is_there(piece)) pieces.push_back(piece);
  }
  for (size_t at = 0; at < places_.memories.size(); ++at) {
    if (!(needs_.of(v) >> at & 1)) continue;
    const int replica = places_.memories[at].replica;
    Node node;
    node.op = &op;
    node.inputs = pieces;
    node.name = unique_name(to_, from_[v.node].name + "/sum");
    node.sources = from_[v.node].sources;
    node.attrs = AttrsRef({{"N", static_cast<int64_t>(pieces.size())}});
    node.outputs = {from_.spec(v)};
    node.requested =
        device_for(from_[v.node].requested,
                   plan_.replicas[static_cast<size_t>(replica)], node);
    node.replica = replica;
    m.whole[at] = {add(std::move(node)), 0};
  }
}

// Where another form of the value is made: of several devices of a part of a
// layer, on the one that makes the value.
DeviceId SplitEmit::device_of(const Node& like, const Copy& where) const {
  const std::vector<DeviceId> devices = devices_of(where);
  return plan_.layers ? device_for(like.requested, devices, like) : devices[0];
}

ValueRef SplitEmit::whole_at(ValueRef v, int memory) {
  Made& m = made(v);
  ValueRef& at = m.whole[static_cast<size_t>(memory)];
  if (is_there(at)) return at;
  if (state(v).kind == State::kSplit) return at = gathered(v, memory);
  // A read of a variable that has one copy for several memories.
  for (const ValueRef& other : m.whole) {
    if (is_there(other)) return other;
  }
  throw errors::Internal(
      fmt::format("{} was not made for memory {}", from_[v.node].name, memory));
}

ValueRef SplitEmit::gathered(ValueRef v, int memory) {
  std::vector<ValueRef> parts;
  for (const ValueRef& part : made(v).parts) {
    if (is_there(part)) parts.push_back(part);
  }
  return joined(
      v, std::move(parts),
      {places_.memories[static_cast<size_t>(memory)].replica, memory, -1});
}

ValueRef SplitEmit::joined(ValueRef v, std::vector<ValueRef> parts,
                           const Copy& where) {
  if (parts.size() == 1) return parts[0];
  static const OpDef& op = op_named("ConcatV2");
  const int8_t axis = state(v).axis;
  OutSpec spec = from_.spec(v);
  int64_t length = 0;
  for (const ValueRef& part : parts) length += to_.spec(part).shape[axis];
  spec.shape[axis] = length;
  Node node;
  node.op = &op;
  node.inputs = std::move(parts);
  node.name = unique_name(to_, from_[v.node].name + "/gather");
  node.sources = from_[v.node].sources;
  node.attrs = AttrsRef({{"axis", int64_t{axis}}});
  node.outputs = {spec};
  node.requested = device_of(from_[v.node], where);
  node.replica = std::max(where.replica, 0);
  return {add(std::move(node)), 0};
}

ValueRef SplitEmit::part_of(ValueRef v, int replica, int8_t axis) {
  const SplitState& s = state(v);
  const auto r = static_cast<size_t>(replica);
  const int memory = places_.memory_of[r];
  if (axis < 0) return whole_at(v, memory);
  Made& m = made(v);
  if (s.kind == State::kSplit && s.axis == axis && is_there(m.parts[r])) {
    return m.parts[r];
  }
  const bool own = of_all_ != nullptr && axis == 0 && needed_whole_[v.node];
  const ValueRef all =
      own ? argument_[static_cast<size_t>(v.node)] : ValueRef();
  const auto [it, fresh] = cuts_.try_emplace({v, r, axis});
  if (!fresh) return it->second;
  const ExampleRange& e = places_.examples[r];
  const int64_t length = from_.spec(v).shape[axis];
  return it->second = cut(own ? all : whole_at(v, memory), axis,
                          length * e.row / places_.batch,
                          length * e.rows / places_.batch, from_[v.node],
                          {replica, memory, -1});
}

ValueRef SplitEmit::piece_of(ValueRef v, size_t k, int8_t axis) {
  const SumPiece& piece = places_.pieces[k];
  const auto r = static_cast<size_t>(piece.replica);
  const int memory = places_.memory_of[r];
  if (axis < 0) return whole_at(v, memory);
  const auto it = cuts_.find({v, places_.examples.size() + k, axis});
  if (it != cuts_.end()) return it->second;
  const ValueRef all = part_of(v, piece.replica, axis);
  const ExampleRange& e = places_.examples[r];
  if (piece.examples.rows == e.rows) return all;
  const int64_t length = from_.spec(v).shape[axis];
  return cuts_[{v, places_.examples.size() + k, axis}] = cut(
             all, axis, length * (piece.examples.row - e.row) / places_.batch,
             length * piece.examples.rows / places_.batch, from_[v.node],
             {piece.replica, memory, -1});
}

ValueRef SplitEmit::cut(ValueRef of, int8_t axis, int64_t begin, int64_t count,
                        const Node& like, const Copy& where) {
  const OutSpec& whole = to_.spec(of);
  if (begin == 0 && count == whole.shape[axis]) return of;
  static const OpDef& rows = op_named("_Rows");
  static const OpDef& slice = op_named("Slice");
  Node node;
  node.inputs = {of};
  node.outputs = {whole};
  node.outputs[0].shape[axis] = count;
  node.sources = like.sources;
  node.name = unique_name(to_, fmt::format("{}/examples", like.name));
  node.replica = std::max(where.replica, 0);
  if (axis == 0) {
    node.op = &rows;
    node.attrs = AttrsRef({{"begin", begin}, {"count", count}});
    // Arguments stay on the host: only the rows are copied.
    const DeviceId host = DeviceManager::get().host().id();
    if (like.op->kind() == OpKind::kArgument &&
        memory_of(devices_of(where)[0]) != memory_of(host)) {
      node.requested = host;
    }
  } else {
    std::vector<int64_t> from(static_cast<size_t>(whole.shape.rank()), 0);
    from[static_cast<size_t>(axis)] = begin;
    const Shape& size = node.outputs[0].shape;
    node.op = &slice;
    node.attrs =
        AttrsRef({{"begin", from},
                  {"size", std::vector<int64_t>(size.begin(), size.end())}});
    node.requested = device_of(like, where);
  }
  return {add(std::move(node)), 0};
}

}  // namespace berth::distribute
