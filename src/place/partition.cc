// The partitioner: splits a placed graph at the edges between devices.

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

#include "berth/errors.h"
#include "device/memory_space.h"
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
        own_reads_(graph.nodes.size()),
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
  // A value that is needed on another device.
  struct Cut {
    int32_t output;
    int32_t device;
    int32_t node;  // in the new graph, once made
    bool copy;     // even where the memory is the same
  };

  // An input that is sent for one reader only: a read through a reference sees
  // what the buffer holds at that time.
  struct OwnRead {
    size_t input;
    Cut cut;
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

  int32_t number_of(DeviceId name) {
    const auto [it, fresh] =
        numbers_.try_emplace(name, static_cast<int32_t>(names_.size()));
    if (fresh) {
      names_.push_back(name);
      memory_.push_back(memory_of(name));
      hosts_.push_back(-1);
    }
    return it->second;
  }

  // The CPU whose memory is the host memory of a device: its own, for a CPU.
  int32_t host_of(int32_t device) {
    if (hosts_[device] < 0) {
      DeviceName host = names_[device].name();
      if (host.type != "CPU") host.id = 0;
      host.type = "CPU";
      const int32_t number = number_of(host.str());
      hosts_[device] = number;
    }
    return hosts_[device];
  }

  // The memory that holds output `i` of a node on `device`.
  int32_t place_of_output(const OpDef& op, int32_t i, int32_t device) {
    return op.output_on_host(i) ? host_of(device) : device;
  }
  // The memory from which a node on `device` reads input `k`.
  int32_t place_of_input(const OpDef& op, size_t k, int32_t device) {
    const bool host =
        !op.inputs().empty() && op.input(static_cast<int>(k)).on_host;
    return host ? host_of(device) : device;
  }

  bool is_transfer(int32_t i) const {
    return graph_[i].op == &transfer_op_ || graph_[i].op == &hand_over_op_;
  }

  // Transfers of an earlier call that have lost their readers.
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

  // Values whose bytes become results: they stay where the user requested them.
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
      for (size_t k = 0; k < graph_[i].inputs.size(); ++k) {
        const ValueRef v = graph_[i].inputs[k];
        const OpDef& made_by = *graph_[v.node].op;
        const int32_t place = place_of_input(*graph_[i].op, k, device_[i]);
        if (place_of_output(made_by, v.output, device_[v.node]) == place ||
            is_transfer(i)) {
          at_home[v.node] = true;
        } else if (graph_.spec(v).dtype == resource) {
          continue;
        } else if (made_by.output_is_ref(v.output)) {
          own_reads_[i].push_back({k, {v.output, place, -1, copy}});
          any_ = true;
        } else {
          want(v, place, copy);
        }
      }
    }
    for (const ValueRef& v : graph_.outputs) at_home[v.node] = true;
    // A small constant that is not used at home moves instead.
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
    wanted_[v.node].push_back({v.output, device, -1, copy});
  }

  // Copies the graph with the transfers of a value right after its producer.
  void rebuild() {
    std::vector<Node> old = std::move(graph_.nodes);
    graph_.nodes.clear();
    std::vector<int32_t> new_id(old.size());
    int32_t next = 0;
    for (size_t i = 0; i < old.size(); ++i) {
      if (!dead_[i]) next += static_cast<int32_t>(own_reads_[i].size());
      new_id[i] = dead_[i] ? -1 : next;
      if (!dead_[i]) next += 1 + static_cast<int32_t>(wanted_[i].size());
    }
    graph_.nodes.reserve(static_cast<size_t>(next));
    // Names are checked against all old nodes, including those not yet copied.
    std::unordered_map<std::string, int> taken;
    for (const Node& n : old) taken.try_emplace(n.name, 1);
    for (size_t i = 0; i < old.size(); ++i) {
      if (dead_[i]) continue;
      Node& n = old[i];
      for (int32_t& c : n.controls) c = new_id[c];
      if (n.follows >= 0) n.follows = new_id[n.follows];
      read_moved(static_cast<int32_t>(i), n, new_id, taken);
      const int32_t id = graph_.add(std::move(n));
      for (Cut& cut : wanted_[i]) {
        cut.node = add_cut(id, device_[i], cut, taken);
      }
    }
    for (int32_t& a : graph_.args) a = new_id[a];
    for (ValueRef& v : graph_.outputs) v.node = new_id[v.node];
  }

  // Makes node `i` read what was sent to it; sends what only it reads.
  void read_moved(int32_t i, Node& n, const std::vector<int32_t>& new_id,
                  std::unordered_map<std::string, int>& taken) {
    for (size_t k = 0; k < n.inputs.size(); ++k) {
      const ValueRef v = n.inputs[k];
      n.inputs[k].node = new_id[v.node];
      if (n.op == &transfer_op_ || n.op == &hand_over_op_) continue;
      const int32_t place = place_of_input(*n.op, k, device_[i]);
      const OpDef& made_by = *graph_[new_id[v.node]].op;
      if (place_of_output(made_by, v.output, device_[v.node]) == place)
        continue;
      for (const Cut& c : wanted_[v.node]) {
        if (c.output != v.output || c.device != place) continue;
        n.inputs[k] = {c.node, 0};
        break;
      }
    }
    for (const OwnRead& read : own_reads_[i]) {
      ValueRef& v = n.inputs[read.input];
      const int32_t sent =
          add_cut(v.node, number_of(graph_[v.node].assigned), read.cut, taken);
      graph_[sent].controls = n.controls;
      v = {sent, 0};
    }
  }

  // A variable of the same memory is read where its value is wanted, without
  // waiting for its own device.
  bool reads_here(const Node& producer, int32_t device, const Cut& cut) const {
    return producer.op->kind() == OpKind::kReadVariable && !cut.copy &&
           memory_[device] == memory_[cut.device];
  }

  // Adds a node that brings the value of `from` on `device` to its new place.
  int32_t add_cut(int32_t from, int32_t device, const Cut& cut,
                  std::unordered_map<std::string, int>& taken) {
    const Node& producer = graph_[from];
    Node n;
    if ((producer.op == &const_op_ && small_const(from)) ||
        reads_here(producer, device, cut)) {
      n.op = producer.op;
      n.attrs = producer.attrs;
      n.inputs = producer.inputs;
      n.controls = producer.controls;
    } else {
      const int32_t lies = place_of_output(*producer.op, cut.output, device);
      const bool here = memory_[lies] == memory_[cut.device];
      const bool text = producer.outputs[cut.output].dtype == string_;
      n.op = here && !cut.copy && !text ? &hand_over_op_ : &transfer_op_;
      n.inputs = {{from, cut.output}};
    }
    n.outputs = {producer.outputs[cut.output]};
    n.assigned = names_[cut.device];
    n.sources = producer.sources;
    n.collective = producer.collective;
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
    return graph_.add(std::move(n));
  }

  Graph& graph_;
  const OpDef& const_op_;
  const OpDef& transfer_op_;
  const OpDef& hand_over_op_;
  std::vector<DeviceId> names_;      // of the devices
  std::vector<std::string> memory_;  // per device: which memory it uses
  std::vector<int32_t> hosts_;       // per device: host_of(); -1: not known yet
  std::unordered_map<DeviceId, int32_t> numbers_;
  std::vector<int32_t> device_;  // per node
  std::vector<std::vector<Cut>> wanted_;
  std::vector<std::vector<OwnRead>> own_reads_;  // per reader
  std::vector<bool> dead_;                       // per node: no longer needed
  std::vector<bool> escapes_;  // per node: a result has its bytes
  bool any_ = false;
};

}  // namespace

void partition(Graph& graph) { Partitioner(graph).run(); }

}  // namespace berth
