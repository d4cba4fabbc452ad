#include "function/state_homes.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "berth/errors.h"
#include "device/device_manager.h"
#include "graph/body.h"
#include "tensor/tensor_impl.h"
#include "tensor/variable_state.h"

namespace berth {

namespace {

bool is_default(const Device& device) {
  return DeviceManager::get().default_device().id() == device.id();
}

// What nobody asked for elsewhere found no room on the default device; but
// whole numbers live on the host by the rules.
bool could_be_on(const VariableState& v, const Device& device) {
  if (v.asked || !can_move(v)) return false;
  return v.device == &device || (is_default(device) && is_floating(v.dtype));
}

// Which variables are written together, and which are read whole.
class Uses {
 public:
  explicit Uses(const Graph& graph)
      : handles_(variables_of(graph)), next_(handles_.size()) {
    for (size_t i = 0; i < handles_.size(); ++i) {
      index_[handles_[i].impl()] = i;
    }
    std::iota(next_.begin(), next_.end(), size_t{0});
    read_.resize(handles_.size());
    walk(graph);
  }
  const std::vector<Tensor>& handles() const { return handles_; }
  size_t group_of(size_t i) {
    while (next_[i] != i) i = next_[i] = next_[next_[i]];
    return i;
  }
  bool is_read(size_t i) const { return read_[i]; }

 private:
  void walk(const Graph& graph) {
    for (const Node& n : graph.nodes) {
      if (n.op->kind() == OpKind::kReadVariable) {
        const Tensor& v = graph[n.inputs[0].node].variable;
        if (v.defined()) read_[index_.at(v.impl())] = true;
      }
      bool inner = false;
      visit_bodies(n, [&](const std::string&, const Graph& body) {
        inner = true;
        walk(body);
      });
      if (inner) continue;
      const std::vector<Tensor> written = written_by(graph, n);
      for (const Tensor& v : written) {
        next_[group_of(index_.at(v.impl()))] =
            group_of(index_.at(written[0].impl()));
      }
    }
  }

  const std::vector<Tensor> handles_;
  std::map<const TensorImpl*, size_t> index_;
  std::vector<size_t> next_;
  std::vector<bool> read_;
};

}  // namespace

void replace_handles(Graph& graph, const HandleMap& to) {
  const auto change = [&](Node& n) {
    const auto it = to.find(n.variable.impl());
    if (it != to.end()) n.variable = it->second;
  };
  for (Node& n : graph.nodes) {
    change(n);
    change_bodies(n, change);
  }
}

StateHomes::StateHomes(const Graph& graph, Device& device) : device_(device) {
  if (&device == &DeviceManager::get().host()) return;
  Uses uses(graph);
  std::map<size_t, Group> groups;
  std::map<size_t, bool> stays;
  for (size_t i = 0; i < uses.handles().size(); ++i) {
    const VariableState& v = variable_state(uses.handles()[i]);
    const size_t of = uses.group_of(i);
    Group& g = groups[of];
    g.handles.push_back(uses.handles()[i]);
    const auto bytes = static_cast<int64_t>(v.size_bytes());
    g.bytes += bytes;
    if (uses.is_read(i)) g.read_bytes += bytes;
    stays[of] = stays[of] || !could_be_on(v, device);
  }
  for (auto& [of, g] : groups) {
    if (!stays[of]) groups_.push_back(std::move(g));
  }
  // First what frees most for each byte that a step sends; then what is used
  // late, whose copies live short.
  const auto sent = [](const Group& g) {
    return static_cast<double>(g.read_bytes) / static_cast<double>(g.bytes);
  };
  std::reverse(groups_.begin(), groups_.end());
  std::stable_sort(
      groups_.begin(), groups_.end(),
      [&](const Group& a, const Group& b) { return sent(a) < sent(b); });
}

bool StateHomes::let_go(int64_t bytes) {
  bool any = false;
  for (Group& g : groups_) {
    if (bytes <= 0) break;
    if (g.on_host) continue;
    g.on_host = any = true;
    bytes -= g.bytes - g.read_bytes;
  }
  if (any || groups_.empty()) return any;
  return !std::exchange(streams_, true);
}

int64_t StateHomes::bytes_on_host() const {
  int64_t bytes = 0;
  for (const Group& g : groups_) bytes += g.on_host ? g.bytes : 0;
  return bytes;
}

Graph StateHomes::planned(const Graph& graph) {
  stand_in_.clear();
  for (const Group& g : groups_) {
    Device& on = g.on_host ? DeviceManager::get().host() : device_;
    for (const Tensor& handle : g.handles) {
      const VariableState& v = variable_state(handle);
      stand_in_[handle.impl()] =
          make_unbacked_variable(on, v.name, v.dtype, v.shape);
    }
  }
  Graph g = graph;
  replace_handles(g, stand_in_);
  return g;
}

void StateHomes::restore(Graph& graph) const {
  HandleMap real;
  for (const Group& g : groups_) {
    for (const Tensor& v : g.handles) real[stand_in_.at(v.impl()).impl()] = v;
  }
  replace_handles(graph, real);
}

void StateHomes::move_to(const Group& g, Device& to) {
  for (const Tensor& handle : g.handles) move_variable(handle, to);
}

void StateHomes::unite() const {
  const auto device_of = [](const Tensor& handle) {
    return variable_state(handle).device;
  };
  for (const Group& g : groups_) {
    const bool together =
        std::all_of(g.handles.begin(), g.handles.end(), [&](const Tensor& v) {
          return device_of(v) == device_of(g.handles[0]);
        });
    if (!together) move_to(g, DeviceManager::get().host());
  }
}

bool StateHomes::leave() {
  if (groups_.empty() || std::exchange(left_, true)) return false;
  for (const Group& g : groups_) move_to(g, DeviceManager::get().host());
  device_.allocator().empty_cache();
  return true;
}

void StateHomes::move() const {
  Device& host = DeviceManager::get().host();
  for (const Group& g : groups_) {
    try {
      move_to(g, g.on_host ? host : device_);
    } catch (const errors::ResourceExhausted&) {
      move_to(g, host);
    }
  }
}

}  // namespace berth
