// Makes the graphs of workers and servers from a split function.

#include <fmt/format.h>

#include <algorithm>

#include "berth/errors.h"
#include "berth/ops/array.h"
#include "distribute/parameter_server/partition_function.h"
#include "tensor/variable_state.h"

namespace berth::distribute {

namespace {

// A graph assembled from nodes of another graph.
struct PartGraph {
  Graph graph;

  ValueRef add_arg(const OutSpec& spec) {
    static const OpDef& op = op_named("_Arg");
    const auto index = static_cast<int64_t>(graph.args.size());
    Node node;
    node.op = &op;
    node.name = unique_name(graph, fmt::format("arg_{}", index));
    node.attrs = AttrsRef(
        {{"index", index}, {"dtype", spec.dtype}, {"shape", spec.shape}});
    node.outputs = {spec};
    graph.args.push_back(graph.add(std::move(node)));
    return {graph.args.back(), 0};
  }
  // Copies a node without its ties to its old place.
  int32_t add_copy(const Node& from, std::vector<ValueRef> inputs,
                   std::vector<int32_t> controls) {
    Node node = from;
    node.name = unique_name(graph, from.name);
    node.inputs = std::move(inputs);
    std::sort(controls.begin(), controls.end());
    controls.erase(std::unique(controls.begin(), controls.end()),
                   controls.end());
    node.controls = std::move(controls);
    node.requested.clear();
    node.assigned.clear();
    node.follows = -1;
    node.colocated.clear();
    return graph.add(std::move(node));
  }
};

AttrsRef with_attr(const AttrsRef& attrs, const char* name, AttrValue value) {
  std::vector<Attrs::Pair> pairs;
  if (attrs.get() != nullptr) pairs = attrs.get()->pairs();
  std::erase_if(pairs, [&](const auto& p) { return p.first == name; });
  pairs.emplace_back(name, std::move(value));
  return AttrsRef(std::move(pairs));
}

}  // namespace

class ProgramMaker {
 public:
  ProgramMaker(
      const ServerSplit& split,
      const std::function<const ServerVariable&(const Tensor&)>& placed,
      int servers)
      : s_(split), g_(split.g_), placed_(placed), servers_(servers) {}

  StepProgram make();

 private:
  using Role = ServerSplit::Role;

  // A server part under construction.
  struct Update {
    ServerPart part;
    PartGraph graph;
    std::map<std::pair<int32_t, int>, int32_t> nodes;  // by node and shard
    std::map<std::pair<std::string, int>, ValueRef> args;
    std::map<std::string, ValueRef> handles;
    int level = 0;
  };
  struct Worker {
    PartGraph graph;
    std::map<int32_t, int32_t> nodes;
    std::map<ValueRef, ValueRef> args;
  };

  int32_t number(ValueRef v) {
    const auto [it, fresh] = numbers_.try_emplace(v, program_.num_values);
    program_.num_values += fresh ? 1 : 0;
    return it->second;
  }
  const ServerVariable& variable(ValueRef handle) const {
    return placed_(s_.variables_[s_.variable_of(handle)]);
  }
  const ServerVariable& first_of(int group) const {
    return placed_(s_.groups_[group].handles[0]);
  }
  bool of_worker(int32_t i) const {
    return s_.needed_[i] && s_.roles_[i] == Role::kCompute &&
           !s_.on_server(i) && !s_.reads_rows(i);
  }
  void add_pull(StepStage& stage, int32_t node, const Node& read, int32_t ids);
  void add_pulls(int level, StepStage& stage);
  void add_worker(int level);
  ValueRef worker_value(Worker& w, ValueRef v, int level);
  void add_updates(int level);
  int32_t copy(Update& u, int32_t node, int shard);
  ValueRef server_value(Update& u, const Node& user, ValueRef v, int shard);
  ValueRef handle(Update& u, ValueRef v, int shard);
  ValueRef argument(Update& u, const Push& push, const OutSpec& spec);
  ValueRef pushed(Update& u, const Node& user, ValueRef v, int shard);
  void finish();

  const ServerSplit& s_;
  const Graph& g_;
  const std::function<const ServerVariable&(const Tensor&)>& placed_;
  const int servers_;
  StepProgram program_;
  std::map<ValueRef, int32_t> numbers_;
  std::vector<Worker> workers_;               // by level
  std::vector<std::vector<Update>> updates_;  // by level
};

void ProgramMaker::add_pull(StepStage& stage, int32_t node, const Node& read,
                            int32_t ids) {
  const ServerVariable& v = variable(read.inputs[0]);
  Pull pull{.value = number({node, 0}),
            .ids = ids,
            .dtype = read.outputs[0].dtype,
            .shape = variable_state(v.handle).shape,
            .parts = {}};
  for (size_t i = 0; i < v.shards.size(); ++i) {
    const ServerShard& s = v.shards[i];
    pull.parts.push_back({s.server, v.key(i), s.begin, s.end});
    if (v.everywhere) break;
  }
  stage.pulls.push_back(std::move(pull));
  program_.reads.insert(v.id);
}

void ProgramMaker::add_pulls(int level, StepStage& stage) {
  for (int32_t i = 0; i < g_.size(); ++i) {
    if (s_.level_[i] != level) continue;
    const Node& n = g_[i];
    if (s_.roles_[i] == Role::kRead && s_.pulled_[i]) {
      add_pull(stage, i, n, -1);
    } else if (s_.needed_[i] && s_.reads_rows(i)) {
      add_pull(stage, i, g_[n.inputs[0].node], number(n.inputs[1]));
    }
  }
}

ValueRef ProgramMaker::worker_value(Worker& w, ValueRef v, int level) {
  if (const auto it = w.nodes.find(v.node); it != w.nodes.end()) {
    return {it->second, v.output};
  }
  if (g_[v.node].op->kind() == OpKind::kConstant) {
    w.nodes[v.node] = w.graph.add_copy(g_[v.node], {}, {});
    return {w.nodes[v.node], v.output};
  }
  const auto [it, fresh] = w.args.try_emplace(v);
  if (fresh) {
    it->second = w.graph.add_arg(g_.spec(v));
    program_.stages[level].worker.args.push_back(number(v));
  }
  return it->second;
}

void ProgramMaker::add_worker(int level) {
  Worker& w = workers_[level];
  w.graph.graph.name = g_.name;
  for (int32_t i = 0; i < g_.size(); ++i) {
    if (s_.level_[i] != level) continue;
    if (s_.needed_[i] && g_[i].op->kind() == OpKind::kConstant) {
      worker_value(w, {i, 0}, level);
    }
    if (!of_worker(i)) continue;
    std::vector<ValueRef> inputs;
    for (const ValueRef& v : g_[i].inputs) {
      inputs.push_back(worker_value(w, v, level));
    }
    std::vector<int32_t> controls;
    for (const int32_t c : g_[i].controls) {
      const auto it = w.nodes.find(c);
      if (it != w.nodes.end()) controls.push_back(it->second);
    }
    w.nodes[i] =
        w.graph.add_copy(g_[i], std::move(inputs), std::move(controls));
  }
}

ValueRef ProgramMaker::handle(Update& u, ValueRef v, int shard) {
  const ServerVariable& variable = this->variable(v);
  const auto at = static_cast<size_t>(std::max(shard, 0));
  const std::string key = variable.key(at);
  const auto [it, fresh] = u.handles.try_emplace(key);
  if (!fresh) return it->second;
  Node node = g_[v.node];
  const Shape shape = variable.shard_shape(at);
  node.name = key;
  node.attrs = AttrsRef({{"shared_name", key},
                         {"dtype", node.outputs[0].variable},
                         {"shape", shape}});
  node.outputs[0].shape = shape;
  node.variable = Tensor();
  it->second = {u.graph.add_copy(node, {}, {}), 0};
  return it->second;
}

ValueRef ProgramMaker::argument(Update& u, const Push& push,
                                const OutSpec& spec) {
  const std::pair<std::string, int> key(
      fmt::format("{}:{}:{}", push.value, push.begin, push.end),
      static_cast<int>(push.cut));
  const auto [it, fresh] = u.args.try_emplace(key);
  if (fresh) {
    it->second = u.graph.add_arg(spec);
    u.part.args.push_back(push);
  }
  return it->second;
}

// Slices a worker's value for a shard.
ValueRef ProgramMaker::pushed(Update& u, const Node& user, ValueRef v,
                              int shard) {
  Push push{.value = number(v)};
  OutSpec spec = g_.spec(v);
  if (shard < 0) return argument(u, push, spec);
  const int place = s_.place_[&user - g_.nodes.data()];
  const ServerVariable& variable = first_of(place);
  const Shape& shape = variable_state(variable.handle).shape;
  const ServerShard& s = variable.shards[static_cast<size_t>(shard)];
  const bool gradient = user.op->name() == "GatherGrad";
  const bool sparse =
      gradient || user.op->name().starts_with("ResourceScatter");
  push.begin = s.begin;
  push.end = s.end;
  push.rows = shape[0];
  if (sparse) {
    const ValueRef ids = user.inputs[1];
    if (v == ids) {
      push.cut = Push::Cut::kSparseIds;
      spec = {int64, Shape{kUnknownDim}};
    } else {
      push.cut = Push::Cut::kSparseRows;
      push.ids = number(ids);
      Shape rows = shape;
      rows[0] = kUnknownDim;
      spec.shape = rows;
    }
  } else if (spec.shape.rank() == shape.rank() && spec.shape[0] == shape[0]) {
    push.cut = Push::Cut::kRows;
    spec.shape[0] = s.end - s.begin;
  } else {
    push.begin = push.end = 0;
  }
  return argument(u, push, spec);
}

ValueRef ProgramMaker::server_value(Update& u, const Node& user, ValueRef v,
                                    int shard) {
  if (s_.is_handle(v)) return handle(u, v, shard);
  const int place = s_.place_[&user - g_.nodes.data()];
  const Node& from = g_[v.node];
  if (from.op->kind() == OpKind::kConstant) {
    const Tensor& t = from.op->attr<Tensor>(from.attrs.get(), "value");
    const Shape shape =
        place < 0 ? Shape() : variable_state(first_of(place).handle).shape;
    if (shard < 0 || t.rank() != shape.rank() || t.rank() == 0 ||
        t.shape()[0] != shape[0]) {
      return {copy(u, v.node, -1), v.output};
    }
    const auto [it, fresh] = u.nodes.try_emplace({v.node, shard});
    if (fresh) {
      Node node = from;
      node.attrs = AttrsRef(
          {{"value", first_of(place).shard_of(t, static_cast<size_t>(shard))}});
      node.outputs[0].shape[0] =
          first_of(place).shard_shape(static_cast<size_t>(shard))[0];
      it->second = u.graph.add_copy(node, {}, {});
    }
    return {it->second, 0};
  }
  if (s_.derived_[v.node]) return {copy(u, v.node, -1), v.output};
  if (place >= 0 && s_.has_on_server(v, place)) {
    const bool here =
        s_.roles_[v.node] == Role::kRead || s_.level_[v.node] == u.level;
    if (here) return {copy(u, v.node, shard), v.output};
  }
  return pushed(u, user, v, shard);
}

int32_t ProgramMaker::copy(Update& u, int32_t i, int shard) {
  if (const auto it = u.nodes.find({i, shard}); it != u.nodes.end()) {
    return it->second;
  }
  const Node& n = g_[i];
  std::vector<ValueRef> inputs;
  for (const ValueRef& v : n.inputs) {
    if (s_.place_[i] >= 0) {
      inputs.push_back(server_value(u, n, v, shard));
    } else if (s_.is_handle(v)) {
      inputs.push_back(handle(u, v, shard));
    } else {  // counters and values derived from them
      inputs.push_back({copy(u, v.node, -1), v.output});
    }
  }
  std::vector<int32_t> controls;
  for (const int32_t c : n.controls) {
    // What nodes after a write read from before it is read now.
    const auto later = [&](int32_t user) {
      return user > i && s_.place_[user] == s_.place_[i];
    };
    if (s_.roles_[i] == Role::kEffect && s_.roles_[c] == Role::kRead &&
        std::any_of(s_.users_[c].begin(), s_.users_[c].end(), later)) {
      copy(u, c, shard);
    }
    for (const int k : {shard, -1}) {
      const auto it = u.nodes.find({c, k});
      if (it != u.nodes.end()) controls.push_back(it->second);
    }
  }
  Node node = n;
  if (shard >= 0 && n.op->name() == "GatherGrad") {
    const ServerVariable& v = first_of(s_.place_[i]);
    node.attrs = with_attr(node.attrs, "shape",
                           v.shard_shape(static_cast<size_t>(shard)));
  }
  const int32_t made =
      u.graph.add_copy(node, std::move(inputs), std::move(controls));
  u.nodes[{i, shard}] = made;
  return made;
}

void ProgramMaker::add_updates(int level) {
  for (int server = 0; server < servers_; ++server) {
    Update u;
    u.level = level;
    u.part.server = server;
    u.graph.graph.name = fmt::format("{}_server", g_.name);
    for (int32_t i = 0; i < g_.size(); ++i) {
      if (!s_.on_server(i) || s_.level_[i] != level) continue;
      const ServerVariable& v = first_of(s_.place_[i]);
      if (s_.roles_[i] == Role::kEffect) {
        for (const Tensor& t : s_.groups_[s_.place_[i]].handles) {
          program_.writes.insert(placed_(t).id);
        }
      }
      if (v.everywhere) {
        copy(u, i, -1);
        continue;
      }
      for (size_t k = 0; k < v.shards.size(); ++k) {
        if (v.shards[k].server != server) continue;
        copy(u, i, v.sharded() ? static_cast<int>(k) : -1);
      }
    }
    if (u.graph.graph.nodes.empty()) continue;
    updates_[level].push_back(std::move(u));
  }
}

// Renumbered values become outputs of the part that makes them.
void ProgramMaker::finish() {
  for (const auto& [v, n] : numbers_) {
    const int level = s_.level_[v.node];
    if (s_.on_server(v.node)) {
      const ServerVariable& home = first_of(s_.place_[v.node]);
      if (home.sharded()) {
        throw errors::Unimplemented(fmt::format(
            "ParameterServerStrategy: {} \"{}\" of a sharded variable is used "
            "elsewhere; expected a read of the variable instead",
            g_[v.node].op->name(), g_[v.node].name));
      }
      for (Update& u : updates_[level]) {
        const auto it = u.nodes.find({v.node, -1});
        if (it == u.nodes.end()) continue;
        u.graph.graph.outputs.push_back({it->second, v.output});
        u.part.outs.push_back(n);
        break;
      }
      continue;
    }
    Worker& w = workers_[level];
    const auto it = w.nodes.find(v.node);
    if (it == w.nodes.end()) continue;  // an argument, or pulled
    w.graph.graph.outputs.push_back({it->second, v.output});
    program_.stages[level].worker.outs.push_back(n);
  }
}

StepProgram ProgramMaker::make() {
  for (const int32_t a : g_.args) number({a, 0});
  program_.num_args = program_.num_values;
  const auto levels = static_cast<size_t>(s_.num_levels_);
  program_.stages.resize(levels);
  workers_.resize(levels);
  updates_.resize(levels);
  for (int l = 0; l < s_.num_levels_; ++l) {
    add_pulls(l, program_.stages[l]);
    add_worker(l);
    add_updates(l);
  }
  for (const ValueRef& v : g_.outputs) program_.results.push_back(number(v));
  finish();
  std::string all;
  for (size_t l = 0; l < levels; ++l) {
    StepStage& stage = program_.stages[l];
    if (!workers_[l].graph.graph.outputs.empty() ||
        std::any_of(workers_[l].graph.graph.nodes.begin(),
                    workers_[l].graph.graph.nodes.end(),
                    [](const Node& n) { return n.has_effect(); })) {
      stage.worker.text = print(workers_[l].graph.graph);
    } else {
      stage.worker.args.clear();
    }
    for (Update& u : updates_[l]) {
      u.graph.graph.infer();
      u.part.text = print(u.graph.graph);
      u.part.hash = text_hash(u.part.text);
      all += u.part.text;
      stage.updates.push_back(std::move(u.part));
    }
  }
  program_.hash = text_hash(all + encode_program(program_).text);
  return std::move(program_);
}

StepProgram ServerSplit::program(
    const std::function<const ServerVariable&(const Tensor&)>& placed,
    int servers) const {
  return ProgramMaker(*this, placed, servers).make();
}

}  // namespace berth::distribute
