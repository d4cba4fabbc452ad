// The partitioner: cuts the edges between devices.

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

#include "berth/errors.h"
#include "place/placer.h"
#include "place/schedule.h"
#include "tensor/tensor_impl.h"

namespace berth {

namespace {

class Partitioner {
 public:
  explicit Partitioner(Graph& graph)
      : graph_(graph),
        const_op_(op_named("Const")),
        transfer_op_(op_named("_Transfer")),
        hand_over_op_(op_named("_HandOver")),
        device_(graph.nodes.size()),
        wanted_(graph.nodes.size()),
        dead_(graph.nodes.size(), false),
        escapes_(graph.nodes.size(), false) {}

  void run() {
    number_devices();
    find_dead();
    find_escaping();
    find_cuts();
    if (any_) rebuild();
  }

 private:
  // A value that is wanted on another device than its own.
  struct Cut {
    int32_t output;
    int32_t from, device;
    int32_t node;  // in the new graph, once made
    bool copy;     // even where the memory is the same
  };

  void number_devices() {
    for (int32_t i = 0; i < graph_.size(); ++i) {
      const Node& n = graph_[i];
      if (n.assigned.empty()) {
        throw errors::FailedPrecondition(fmt::format(
            "partition: \"{}\" has no device; expected a placed graph: call "
            "place() first",
            n.name));
      }
      device_[i] = number_of(n.assigned);
    }
  }

  int32_t number_of(const std::string& device) {
    const auto [it, fresh] =
        numbers_.try_emplace(device, static_cast<int32_t>(names_.size()));
    if (fresh) {
      names_.push_back(device);
      memory_.push_back(memory_of(device));
    }
    return it->second;
  }

  // The device that has the host memory of `device`.
  int32_t host_of(int32_t device) {
    DeviceName name = DeviceName::parse(names_[device]);
    if (name.type == "CPU") return device;
    name.type = "CPU";
    name.id = 0;
    return number_of(name.str());
  }

  // Where a value is made, and where input `k` of a node wants its own: on the
  // node's device, in that device's memory or in the host's.
  int32_t place_of(const ValueRef& v) {
    return graph_[v.node].op->output_on_host(v.output)
               ? host_of(device_[v.node])
               : device_[v.node];
  }
  int32_t wanted_at(const Node& n, int32_t device, size_t k) {
    return n.op->input(static_cast<int>(k)).on_host ? host_of(device) : device;
  }

  bool is_transfer(int32_t i) const {
    return graph_[i].op == &transfer_op_ || graph_[i].op == &hand_over_op_;
  }

  // Transfers that an earlier call made and whose readers are gone since.
  void find_dead() {
    std::vector<bool> used(graph_.nodes.size(), false);
    for (const ValueRef& v : graph_.outputs) used[v.node] = true;
    for (int32_t i = graph_.size() - 1; i >= 0; --i) {
      if (is_transfer(i) && !used[i]) {
        any_ = dead_[i] = true;
        continue;
      }
      for (const ValueRef& v : graph_[i].inputs) used[v.node] = true;
      for (const int32_t c : graph_[i].controls) used[c] = true;
    }
  }

  // Values whose bytes become results: these are where the user asked.
  void find_escaping() {
    for (const ValueRef& v : graph_.outputs) escapes_[v.node] = true;
    for (int32_t i = graph_.size() - 1; i >= 0; --i) {
      const Node& n = graph_[i];
      if (escapes_[i] && n.op->kind() == OpKind::kAlias) {
        escapes_[n.inputs[0].node] = true;
      }
    }
  }

  bool small_const(int32_t i) const {
    const Node& n = graph_[i];
    if (n.op != &const_op_) return false;
    const Tensor& t = n.op->attr<Tensor>(n.attrs.get(), "value");
    return static_cast<size_t>(t.shape().num_elements()) * size_of(t.dtype()) <=
           kMaxDuplicatedConstBytes;
  }

  void find_cuts() {
    std::vector<bool> at_home(graph_.nodes.size(), false);
    for (int32_t i = 0; i < graph_.size(); ++i) {
      if (dead_[i]) continue;
      const bool copy = escapes_[i] && graph_[i].op->kind() == OpKind::kAlias;
      const Node& n = graph_[i];
      for (size_t k = 0; k < n.inputs.size(); ++k) {
        const ValueRef& v = n.inputs[k];
        const int32_t to = wanted_at(n, device_[i], k);
        if (place_of(v) == to || is_transfer(i)) {
          at_home[v.node] = true;
        } else if (graph_.spec(v).dtype != resource) {
          want(v, to, copy);
        }
      }
    }
    for (const ValueRef& v : graph_.outputs) at_home[v.node] = true;
    // A small constant that nobody uses at home moves instead.
    for (int32_t i = 0; i < graph_.size(); ++i) {
      if (wanted_[i].empty() || at_home[i] || !small_const(i) ||
          !graph_[i].requested.empty()) {
        continue;
      }
      device_[i] = wanted_[i][0].device;
      graph_[i].assigned = names_[device_[i]];
      wanted_[i].erase(wanted_[i].begin());
    }
    for (const auto& cuts : wanted_) any_ = any_ || !cuts.empty();
  }

  void want(const ValueRef& v, int32_t device, bool copy) {
    for (Cut& c : wanted_[v.node]) {
      if (c.output != v.output || c.device != device) continue;
      c.copy = c.copy || copy;
      return;
    }
    wanted_[v.node].push_back({v.output, place_of(v), device, -1, copy});
  }

  // Copies the graph with the transfers of a value right behind its producer.
  void rebuild() {
    std::vector<Node> old = std::move(graph_.nodes);
    graph_.nodes.clear();
    std::vector<int32_t> new_id(old.size());
    int32_t next = 0;
    for (size_t i = 0; i < old.size(); ++i) {
      new_id[i] = dead_[i] ? -1 : next;
      if (dead_[i]) continue;
      next += 1 + static_cast<int32_t>(wanted_[i].size());
    }
    graph_.nodes.reserve(static_cast<size_t>(next));
    // Names are checked against all old nodes, also those still to come.
    std::unordered_map<std::string, int> taken;
    for (const Node& n : old) taken.try_emplace(n.name, 1);
    for (size_t i = 0; i < old.size(); ++i) {
      if (dead_[i]) continue;
      Node& n = old[i];
      const bool transfer = n.op == &transfer_op_ || n.op == &hand_over_op_;
      for (size_t k = 0; k < n.inputs.size(); ++k) {
        const int32_t to = transfer ? -1 : wanted_at(n, device_[i], k);
        n.inputs[k] = moved(n.inputs[k], to, new_id);
      }
      for (int32_t& c : n.controls) c = new_id[c];
      if (n.follows >= 0) n.follows = new_id[n.follows];
      graph_.add(std::move(n));
      for (Cut& cut : wanted_[i]) add_cut(new_id[i], cut, taken);
    }
    for (int32_t& a : graph_.args) a = new_id[a];
    for (ValueRef& v : graph_.outputs) v.node = new_id[v.node];
  }

  ValueRef moved(const ValueRef& v, int32_t device,
                 const std::vector<int32_t>& new_id) const {
    for (const Cut& c : wanted_[v.node]) {
      if (c.output == v.output && c.device == device) return {c.node, 0};
    }
    return {new_id[v.node], v.output};
  }

  void add_cut(int32_t from, Cut& cut,
               std::unordered_map<std::string, int>& taken) {
    const Node& producer = graph_[from];
    Node n;
    if (producer.op == &const_op_ && small_const(from)) {
      n.op = &const_op_;
      n.attrs = producer.attrs;
      n.controls = producer.controls;
    } else {
      const bool here = memory_[cut.from] == memory_[cut.device];
      const bool text = producer.outputs[cut.output].dtype == string_;
      n.op = here && !cut.copy && !text ? &hand_over_op_ : &transfer_op_;
      n.inputs = {{from, cut.output}};
    }
    n.outputs = {producer.outputs[cut.output]};
    n.assigned = names_[cut.device];
    n.sources = producer.sources;
    std::string name = producer.name;
    if (cut.output > 0) name += fmt::format("/output_{}", cut.output);
    name += "/to_" + short_device(n.assigned);
    if (const auto it = taken.find(name); it != taken.end()) {
      std::string other;
      do {
        other = fmt::format("{}_{}", name, it->second++);
      } while (taken.contains(other));
      name = std::move(other);
    }
    taken.emplace(name, 1);
    n.name = std::move(name);
    cut.node = graph_.add(std::move(n));
  }

  Graph& graph_;
  const OpDef& const_op_;
  const OpDef& transfer_op_;
  const OpDef& hand_over_op_;
  std::unordered_map<std::string, int32_t> numbers_;
  std::vector<std::string> names_;   // of the devices
  std::vector<std::string> memory_;  // per device: whose it has
  std::vector<int32_t> device_;      // per node
  std::vector<std::vector<Cut>> wanted_;
  std::vector<bool> dead_;     // per node: nobody needs it
  std::vector<bool> escapes_;  // per node: a result has its bytes
  bool any_ = false;
};

}  // namespace

void partition(Graph& graph) { Partitioner(graph).run(); }

}  // namespace berth
