#include "distribute/automatic/chain_reader.h"

#include <algorithm>
#include <cmath>

#include "distribute/automatic/find_layouts.h"
#include "distribute/pipeline/pipeline.h"
#include "tensor/variable_state.h"

namespace berth::distribute {

namespace {

// Parts that are looked at: of more devices powers of two alone.
constexpr int kMostParts = 8;

int64_t bytes_of_value(const OutSpec& s) {
  return s.shape.num_elements() * static_cast<int64_t>(size_of(s.dtype));
}

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

ChainReader::ChainReader(std::vector<std::string> paths, Machine machine,
                         int64_t batch)
    : layers_(std::move(paths)) {
  chain_.machine = std::move(machine);
  chain_.batch = batch;
  const size_t n = chain_.machine.devices.size();
  for (const std::string& path : layers_.paths()) {
    ChainLayer& l = chain_.layers.emplace_back();
    l.path = path;
    l.forward = l.input = l.weight = std::vector<PassTime>(n);
    l.update_us = std::vector<double>(n, 0);
  }
}

void ChainReader::add_time(StepLayers::Place at, size_t d, double us) {
  if (us == kNoKernel || us == 0) return;
  ChainLayer& l = chain_.layers[static_cast<size_t>(at.layer)];
  if (at.pass == 'U') {
    l.update_us[d] += us;
    return;
  }
  PassTime& of = at.pass == 'F'   ? l.forward[d]
                 : at.pass == 'I' ? l.input[d]
                                  : l.weight[d];
  const double launch =
      std::min(us, chain_.machine.class_of(static_cast<int32_t>(d)).launch_us);
  of.fixed_us += launch;
  of.example_us += (us - launch) / static_cast<double>(chain_.batch);
}

// Variables that only updates use are the optimizer's.
void ChainReader::add_variables(const Graph& graph,
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
void ChainReader::add_values(const Graph& graph,
                             const std::vector<StepLayers::Place>& at) {
  const StepLayers::Values v = layers_.values(graph, at, [&](int32_t i) {
    int64_t bytes = 0;
    for (const OutSpec& o : graph[i].outputs) bytes += bytes_of_value(o);
    return bytes;
  });
  for (size_t k = 0; k < chain_.layers.size(); ++k) {
    chain_.layers[k].kept_bytes = v.kept[k] / static_cast<double>(chain_.batch);
    chain_.layers[k].sent_bytes = v.sent[k] / static_cast<double>(chain_.batch);
  }
}

// What is above variables is kept by layers, then gradients, then held for
// moments.
void ChainReader::fit_peak(double peak) {
  double state = 0, trained = 0, kept = 0;
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

void ChainReader::add_splits(const Graph& graph) {
  const auto n = static_cast<int>(chain_.machine.devices.size());
  const int most = std::min(n, kMostParts);
  for (int parts = 2; parts <= most; n > kMostParts ? parts *= 2 : ++parts) {
    for (const LayoutAim aim :
         {LayoutAim::kLinks, LayoutAim::kTime, LayoutAim::kMemory}) {
      const auto axes = find_layouts(graph, parts, chain_.machine, aim);
      if (axes.empty()) continue;
      ChainSplit split =
          split_of(graph, layers_, chain_.batch, parts, axes, chain_.machine);
      const bool known = std::any_of(
          chain_.splits.begin(), chain_.splits.end(), [&](const ChainSplit& s) {
            return s.parts == parts && s.layouts == split.layouts;
          });
      if (!known) chain_.splits.push_back(std::move(split));
    }
  }
}

ModelChain ChainReader::chain(const Graph& graph,
                              const std::vector<StepLayers::Place>& at,
                              double peak) {
  add_variables(graph, at);
  add_values(graph, at);
  fit_peak(peak);
  add_splits(graph);
  return joined_at(chain_, good_borders(chain_, kMostLayers - 1));
}

}  // namespace berth::distribute
