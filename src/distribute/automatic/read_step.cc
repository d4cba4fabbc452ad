#include "distribute/automatic/read_step.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <unordered_map>

#include "distribute/automatic/find_layouts.h"
#include "distribute/automatic/step_layers.h"
#include "distribute/pipeline/pipeline.h"
#include "exec/measure_costs.h"
#include "exec/measure_plan.h"
#include "exec/report.h"
#include "function/graph_callable.h"
#include "function/graph_rewrite.h"
#include "tensor/variable_state.h"

namespace berth::distribute {

namespace {

// Puts variables without memory in the place of a graph's.
void replace_variables(Graph& graph, Device& home) {
  for (Node& n : graph.nodes) {
    if (!n.variable.defined()) continue;
    const VariableState& v = variable_state(n.variable);
    Tensor other = make_unbacked_variable(home, v.name, v.dtype, v.shape);
    variable_state(other).trainable = v.trainable;
    variable_state(other).site = v.site;
    n.variable = std::move(other);
  }
}

// The whole step on one device; keeps the graph that is placed.
class AloneRewrite final : public GraphRewrite {
 public:
  explicit AloneRewrite(DeviceId device) : device_(device) {}
  void apply(Graph& graph) const override {
    for (Node& n : graph.nodes) {
      if (!n.op->graph_only()) n.requested = device_;
    }
    graph_ = graph;
  }
  const Graph& graph() const { return graph_; }

 private:
  const DeviceId device_;
  mutable Graph graph_;
};

int64_t bytes_of_value(const OutSpec& s) {
  return s.shape.num_elements() * static_cast<int64_t>(size_of(s.dtype));
}

class StepReader {
 public:
  explicit StepReader(const StepToRead& step)
      : step_(step), layers_(step.paths) {
    std::vector<std::string> names;
    for (const Device* d : step.devices) names.push_back(d->str());
    chain_.machine = part_of(this_machine(), names);
    for (DeviceCost& d : chain_.machine.devices) {
      if (step.memory_bytes > 0) d.memory_limit = step.memory_bytes;
    }
    for (const Shape& s : step.shapes) {
      if (s.rank() > 0) chain_.batch = s[0];
    }
    chain_.layers.resize(step.paths.size());
    for (size_t k = 0; k < step.paths.size(); ++k) {
      ChainLayer& l = chain_.layers[k];
      l.path = step.paths[k];
      const size_t n = names.size();
      l.forward = l.input = l.weight = std::vector<PassTime>(n);
      l.update_us = std::vector<double>(n, 0);
    }
  }

  ModelChain run() {
    Graph graph = step_.graph;
    Device& home = fastest();
    replace_variables(graph, home);
    auto rewrite = std::make_shared<AloneRewrite>(home.id());
    GraphCallable call(graph, {.name = graph.name, .rewrite = rewrite});
    const GraphCallable::Prepared made = call.prepare(step_.shapes);
    const Graph& placed = rewrite->graph();
    const std::vector<StepLayers::Place> at = layers_.places(placed);
    add_times(placed, at, *made.plan);
    add_variables(placed, at);
    add_values(placed, at);
    fit_peak(*made.plan, *made.placed, home);
    add_splits(placed);
    return std::move(chain_);
  }

 private:
  Device& fastest() const {
    Device* best = step_.devices[0];
    double most = 0;
    for (size_t d = 0; d < step_.devices.size(); ++d) {
      const double rate =
          chain_.machine.class_of(static_cast<int32_t>(d)).flops_per_us;
      if (rate <= most) continue;
      most = rate;
      best = step_.devices[d];
    }
    return *best;
  }

  // Regions of the plan belong to the layer of their first op.
  void add_times(const Graph& graph, const std::vector<StepLayers::Place>& at,
                 Plan& plan) {
    std::unordered_map<std::string, StepLayers::Place> places;
    for (int32_t i = 0; i < graph.size(); ++i) {
      if (at[i].layer < 0) continue;
      for (const NodeSource& s : graph[i].sources) places[s.name] = at[i];
    }
    const PlanCosts costs = costs_of_plan(plan, true);
    const Graph& g = plan.graph();
    for (const int32_t i : costs.order.sequence) {
      if (g[i].sources.empty() || g[i].op->kind() == OpKind::kTransfer) {
        continue;
      }
      const auto it = places.find(g[i].sources[0].name);
      if (it == places.end()) continue;
      const int32_t home = costs.order.device[i];
      for (size_t d = 0; d < step_.devices.size(); ++d) {
        const int32_t on = costs.costs.find(step_.devices[d]->str());
        double us = on < 0 ? kNoKernel : costs.costs.time(i, on).us;
        if (us == kNoKernel) us = costs.costs.time(i, home).us;
        if (us == kNoKernel || us == 0) continue;
        add_time(it->second, d, us);
      }
    }
  }

  void add_time(StepLayers::Place at, size_t d, double us) {
    ChainLayer& l = chain_.layers[static_cast<size_t>(at.layer)];
    if (at.pass == 'U') {
      l.update_us[d] += us;
      return;
    }
    PassTime& of = at.pass == 'F'   ? l.forward[d]
                   : at.pass == 'I' ? l.input[d]
                                    : l.weight[d];
    const double launch = std::min(
        us, chain_.machine.class_of(static_cast<int32_t>(d)).launch_us);
    of.fixed_us += launch;
    of.example_us += (us - launch) / static_cast<double>(chain_.batch);
  }

  // Variables that only updates use are the optimizer's.
  void add_variables(const Graph& graph,
                     const std::vector<StepLayers::Place>& at) {
    std::vector<int32_t> number;
    for (const StepLayers::Place& p : at) number.push_back(p.layer);
    const std::vector<int32_t> of = number_of_variables(graph, number);
    std::vector<bool> read(graph.nodes.size(), false);
    for (int32_t i = 0; i < graph.size(); ++i) {
      if (at[i].pass != 'F' || graph[i].follows >= 0 ||
          graph[i].op->kind() == OpKind::kReadVariable) {
        continue;
      }
      for (const ValueRef& v : graph[i].inputs) {
        const int32_t w = variable_of(graph, v);
        if (w >= 0) read[w] = true;
      }
    }
    for (int32_t i = 0; i < graph.size(); ++i) {
      if (!graph[i].variable.defined() || of[i] < 0) continue;
      const VariableState& v = variable_state(graph[i].variable);
      ChainLayer& l = chain_.layers[static_cast<size_t>(of[i])];
      const auto bytes = static_cast<int64_t>(v.size_bytes());
      if (v.trainable) {
        l.trained_bytes += bytes;
        ++l.num_trained;
      } else {
        (read[i] ? l.other_bytes : l.slot_bytes) += bytes;
      }
    }
  }

  // What the backward pass reads of the forward pass, and what later layers do.
  void add_values(const Graph& graph,
                  const std::vector<StepLayers::Place>& at) {
    const auto users = graph.users();
    for (int32_t i = 0; i < graph.size(); ++i) {
      const Node& n = graph[i];
      if (at[i].layer < 0 || at[i].pass != 'F' ||
          n.op->kind() != OpKind::kCompute) {
        continue;
      }
      double bytes = 0;
      for (const OutSpec& o : n.outputs) {
        bytes += static_cast<double>(bytes_of_value(o));
      }
      bytes /= static_cast<double>(chain_.batch);
      int32_t last = at[i].layer;
      bool kept = false;
      for (const int32_t u : users[i]) {
        kept = kept || graph[u].follows >= 0;
        if (at[u].pass == 'F') last = std::max(last, at[u].layer);
      }
      if (kept)
        chain_.layers[static_cast<size_t>(at[i].layer)].kept_bytes += bytes;
      for (int32_t k = at[i].layer; k < last; ++k) {
        chain_.layers[static_cast<size_t>(k)].sent_bytes += bytes;
      }
    }
  }

  // The plan says what one device holds at its peak: what is above variables
  // is kept by layers, then gradients, then held for moments.
  void fit_peak(Plan& plan, const PlacedGraph& placed, const Device& home) {
    double peak = 0, state = 0, trained = 0, kept = 0;
    for (const placement::DeviceRow& row :
         work_of(plan, placed).report.devices) {
      if (row.device == home.str()) peak = static_cast<double>(row.peak_bytes);
    }
    for (const ChainLayer& l : chain_.layers) {
      trained += static_cast<double>(l.trained_bytes);
      state +=
          static_cast<double>(l.trained_bytes + l.slot_bytes + l.other_bytes);
      kept += l.kept_bytes * static_cast<double>(chain_.batch);
    }
    double rest = std::max(0.0, peak - state);
    const double share = kept > 0 ? std::min(1.0, rest / kept) : 1;
    for (ChainLayer& l : chain_.layers) l.kept_bytes *= share;
    rest = std::max(0.0, rest - kept);
    chain_.gradients_held = trained > 0 ? std::min(1.0, rest / trained) : 0;
    chain_.transient_bytes =
        std::max(0.0, rest - trained) / static_cast<double>(chain_.batch);
  }

  void add_splits(const Graph& graph) {
    const size_t n = step_.devices.size();
    for (size_t parts = 2; parts <= n; ++parts) {
      const auto p = static_cast<int>(parts);
      for (const LayoutAim aim : {LayoutAim::kTime, LayoutAim::kMemory}) {
        const auto axes = find_layouts(graph, p, chain_.machine, aim);
        if (axes.empty()) continue;
        ChainSplit split =
            split_of(graph, layers_, chain_.batch, p, axes, chain_.machine);
        const bool known = !chain_.splits.empty() &&
                           chain_.splits.back().parts == p &&
                           chain_.splits.back().layouts == split.layouts;
        if (!known) chain_.splits.push_back(std::move(split));
      }
    }
  }

  const StepToRead& step_;
  const StepLayers layers_;
  ModelChain chain_;
};

// The layers with which a stage may begin: names that mean one layer, at
// borders where least is sent, spread evenly among equals.
std::vector<size_t> good_borders(const ModelChain& chain, size_t most) {
  std::vector<size_t> all;
  for (size_t k = 1; k < chain.layers.size(); ++k) {
    const std::string& path = chain.layers[k].path;
    const bool one = std::none_of(
        chain.layers.begin(), chain.layers.end(),
        [&](const ChainLayer& l) { return l.path.ends_with("/" + path); });
    if (one) all.push_back(k);
  }
  if (all.size() <= most) return all;
  const auto sent = [&](size_t k) { return chain.layers[k - 1].sent_bytes; };
  std::vector<double> sizes;
  for (const size_t k : all) sizes.push_back(sent(k));
  std::nth_element(sizes.begin(), sizes.begin() + most - 1, sizes.end());
  const double limit = sizes[most - 1];
  size_t under = 0, equal = 0;
  for (const size_t k : all) {
    under += sent(k) < limit;
    equal += sent(k) == limit;
  }
  std::vector<size_t> good;
  size_t seen = 0;
  for (const size_t k : all) {
    if (sent(k) < limit) good.push_back(k);
    if (sent(k) != limit) continue;
    const size_t room = most - under;
    if (seen * room / equal != (seen + 1) * room / equal) good.push_back(k);
    ++seen;
  }
  return good;
}

void add_layer(ChainLayer& to, const ChainLayer& l) {
  const auto add = [](std::vector<PassTime>& a,
                      const std::vector<PassTime>& b) {
    for (size_t d = 0; d < a.size(); ++d) {
      a[d].fixed_us += b[d].fixed_us;
      a[d].example_us += b[d].example_us;
    }
  };
  add(to.forward, l.forward);
  add(to.input, l.input);
  add(to.weight, l.weight);
  for (size_t d = 0; d < l.update_us.size(); ++d) {
    to.update_us[d] += l.update_us[d];
  }
  to.trained_bytes += l.trained_bytes;
  to.slot_bytes += l.slot_bytes;
  to.other_bytes += l.other_bytes;
  to.num_trained += l.num_trained;
  to.kept_bytes += l.kept_bytes;
  to.sent_bytes = l.sent_bytes;
}

// The mean of two shares, by what they are of.
double joined(double a, double weight_a, double b, double weight_b) {
  const double all = weight_a + weight_b;
  return all > 0 ? (a * weight_a + b * weight_b) / all : 1;
}

void add_split(SplitLayer& to, const ChainLayer& of, const SplitLayer& s,
               const ChainLayer& l) {
  const auto us = [](const std::vector<PassTime>& p) {
    return p[0].example_us;
  };
  to.forward = joined(to.forward, us(of.forward), s.forward, us(l.forward));
  to.backward = joined(to.backward, us(of.input) + us(of.weight), s.backward,
                       us(l.input) + us(l.weight));
  to.update = joined(to.update, of.update_us[0], s.update, l.update_us[0]);
  to.trained = joined(to.trained, static_cast<double>(of.trained_bytes),
                      s.trained, static_cast<double>(l.trained_bytes));
  to.kept = joined(to.kept, of.kept_bytes, s.kept, l.kept_bytes);
  to.forward_bytes += s.forward_bytes;
  to.backward_bytes += s.backward_bytes;
  to.forward_sums += s.forward_sums;
  to.backward_sums += s.backward_sums;
}

ModelChain joined_at(const ModelChain& chain, std::vector<size_t> borders) {
  ModelChain to = chain;
  to.layers.clear();
  for (ChainSplit& s : to.splits) s.layers.clear();
  borders.push_back(chain.layers.size());
  size_t first = 0;
  for (const size_t end : borders) {
    ChainLayer layer = chain.layers[first];
    std::vector<SplitLayer> split;
    for (const ChainSplit& s : chain.splits) split.push_back(s.layers[first]);
    for (size_t k = first + 1; k < end; ++k) {
      for (size_t s = 0; s < split.size(); ++s) {
        add_split(split[s], layer, chain.splits[s].layers[k], chain.layers[k]);
      }
      add_layer(layer, chain.layers[k]);
    }
    to.layers.push_back(std::move(layer));
    for (size_t s = 0; s < split.size(); ++s) {
      to.splits[s].layers.push_back(split[s]);
    }
    first = end;
  }
  return to;
}

}  // namespace

Machine part_of(const Machine& all, const std::vector<std::string>& names) {
  Machine part = all;
  part.devices.clear();
  part.links.clear();
  part.host.clear();
  part.num_hosts = 0;
  std::vector<int32_t> numbers;
  for (const std::string& name : names) {
    numbers.push_back(all.find(name));
    part.devices.push_back(all.devices[static_cast<size_t>(numbers.back())]);
  }
  for (const int32_t from : numbers) {
    for (const int32_t to : numbers) part.links.push_back(all.link(from, to));
  }
  return part;
}

ModelChain read_step(const StepToRead& step, size_t most) {
  const ModelChain chain = StepReader(step).run();
  return joined_at(chain, good_borders(chain, most - 1));
}

}  // namespace berth::distribute
