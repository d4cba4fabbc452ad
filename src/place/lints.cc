#include "place/lints.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <unordered_map>

#include "base/bytes_text.h"
#include "base/where.h"
#include "op/kernel.h"
#include "place/placer.h"

namespace berth {

namespace {

// An op that computes more than this per byte saved may have been sent away
// for its arithmetic.
constexpr double kFlopsPerByte = 16;
// Moving must leave at most one part in so many of what is sent: 4 for a cast
// of bytes to floats on the wrong side.
constexpr int64_t kSaving = 4;

// Ops that somebody asked for on one device and that hand values to each
// other, with their gradients.
struct Island {
  std::vector<int32_t> nodes;
  bool keeps_state = false;  // reads a variable of its own device
};

class Linter {
 public:
  Linter(const Graph& graph, const PlaceOptions& options)
      : graph_(graph), options_(options), readers_(graph.nodes.size()) {}

  std::vector<PlaceLint> run() {
    number_devices();
    if (names_.size() < 2) return {};
    outputs_.insert(graph_.outputs.begin(), graph_.outputs.end());
    for (int32_t i = 0; i < graph_.size(); ++i) {
      for (const ValueRef& v : graph_[i].inputs) {
        readers_[v.node].push_back({v.output, i});
      }
    }
    find_asked();
    for (const Island& island : islands()) judge(island);
    for (int32_t i = 0; i < graph_.size(); ++i) judge_variable(i);
    judge_pinned();
    return std::move(lints_);
  }

 private:
  struct Reader {
    int32_t output;
    int32_t node;
  };

  void number_devices() {
    std::unordered_map<std::string, int32_t> numbers;
    for (const Node& n : graph_.nodes) {
      const auto [it, fresh] =
          numbers.try_emplace(n.assigned, static_cast<int32_t>(names_.size()));
      if (fresh) names_.push_back(n.assigned);
      device_.push_back(it->second);
    }
    placed_ = device_;
    for (const std::string& name : names_) {
      parsed_.push_back(DeviceName::parse(name));
      const auto it =
          std::find_if(options_.devices.begin(), options_.devices.end(),
                       [&](const PlaceDevice& d) { return d.name == name; });
      given_.push_back(it == options_.devices.end() ? nullptr : &*it);
    }
  }

  // A request that was obeyed. One that was not has been reported already.
  bool obeyed(int32_t i) {
    const Node& n = graph_[i];
    if (n.requested.empty()) return false;
    const auto [it, fresh] = requests_.try_emplace(n.requested);
    if (fresh) it->second = DeviceName::parse(n.requested);
    return it->second.matches(parsed_[device_[i]]);
  }
  bool pinned(int32_t i) const {
    const int32_t f = graph_[i].follows;
    return f >= 0 && device_[f] != device_[i] && asked_[i];
  }

  // What has no inputs is data: where it is made is where it is.
  static bool movable(const Node& n) {
    const bool computes =
        n.op->kind() == OpKind::kCompute || n.op->kind() == OpKind::kAlias;
    return computes && !n.inputs.empty() && !n.op->stateful() &&
           !n.op->has_variables();
  }

  void find_asked() {
    asked_.assign(graph_.nodes.size(), false);
    for (int32_t i = 0; i < graph_.size(); ++i) {
      const int32_t f = graph_[i].follows;
      asked_[i] = obeyed(i) || (graph_[i].requested.empty() && f >= 0 &&
                                f < i && asked_[f] && device_[f] == device_[i]);
    }
  }

  std::vector<Island> islands() const {
    const auto member = [&](int32_t i) {
      return asked_[i] && movable(graph_[i]) && !pinned(i);
    };
    std::vector<int32_t> root(graph_.nodes.size());
    std::iota(root.begin(), root.end(), 0);
    const auto find = [&](int32_t i) {
      while (root[i] != i) i = root[i] = root[root[i]];
      return i;
    };
    for (int32_t i = 0; i < graph_.size(); ++i) {
      if (!member(i)) continue;
      for (const ValueRef& v : graph_[i].inputs) {
        if (member(v.node) && device_[v.node] == device_[i]) {
          root[find(i)] = find(v.node);
        }
      }
    }
    std::map<int32_t, Island> found;
    for (int32_t i = 0; i < graph_.size(); ++i) {
      if (!member(i)) continue;
      Island& island = found[find(i)];
      island.nodes.push_back(i);
      for (const ValueRef& v : graph_[i].inputs) {
        island.keeps_state |=
            graph_[v.node].op->has_variables() && device_[v.node] == device_[i];
      }
    }
    std::vector<Island> list;
    for (auto& [first, island] : found) list.push_back(std::move(island));
    return list;
  }

  // Bytes of a value on the wire, 0 when unknown or never sent.
  int64_t bytes_of(ValueRef v) const {
    const OutSpec& s = graph_.spec(v);
    if (s.dtype == resource || s.dtype == string_ || s.dtype == variant) {
      return 0;
    }
    // What has no inputs and nobody asked for is made where it is used.
    const Node& n = graph_[v.node];
    if (n.inputs.empty() && n.requested.empty() && n.op->name() != "_Arg") {
      return 0;
    }
    const int64_t elements = s.shape.num_elements();
    return elements < 0 ? 0 : elements * static_cast<int64_t>(size_of(s.dtype));
  }

  // Bytes sent for a value: once to each other device that reads it. A result
  // of the function counts as read where its op was placed.
  int64_t sent(ValueRef v) const {
    const int64_t bytes = bytes_of(v);
    if (bytes == 0) return 0;
    std::vector<int32_t> to;
    const auto add = [&](int32_t d) {
      if (d != device_[v.node] &&
          std::find(to.begin(), to.end(), d) == to.end())
        to.push_back(d);
    };
    for (const Reader& r : readers_[v.node]) {
      if (r.output == v.output) add(device_[r.node]);
    }
    if (outputs_.contains(v)) add(placed_[v.node]);
    return bytes * static_cast<int64_t>(to.size());
  }

  // Values that go into `nodes`, and those that come out of them.
  struct Border {
    std::vector<ValueRef> in, out;
  };
  Border border_of(const std::vector<int32_t>& nodes) const {
    Border b;
    for (int32_t i : nodes) {
      for (const ValueRef& v : graph_[i].inputs) {
        if (!std::binary_search(nodes.begin(), nodes.end(), v.node)) {
          b.in.push_back(v);
        }
      }
      for (size_t o = 0; o < graph_[i].outputs.size(); ++o) {
        b.out.push_back({i, static_cast<int32_t>(o)});
      }
    }
    std::sort(b.in.begin(), b.in.end());
    b.in.erase(std::unique(b.in.begin(), b.in.end()), b.in.end());
    return b;
  }
  int64_t sent(const std::vector<ValueRef>& values) const {
    int64_t sum = 0;
    for (const ValueRef& v : values) sum += sent(v);
    return sum;
  }
  // The same for all values of the border, with node i on where(i).
  template <class Where>
  int64_t sent_with(const std::vector<int32_t>& nodes, const Border& border,
                    Where&& where) {
    for (int32_t i : nodes) device_[i] = where(i);
    const int64_t bytes = sent(border.in) + sent(border.out);
    for (int32_t i : nodes) device_[i] = placed_[i];
    return bytes;
  }

  bool can_run(int32_t i, int32_t device) const {
    const PlaceDevice* d = given_[device];
    const Node& n = graph_[i];
    if (d == nullptr || n.op->kind() != OpKind::kCompute) return true;
    const DType dtype = kernel_dtype(input_specs(n), n.outputs);
    if (d->runs) return d->runs(*n.op, dtype);
    return d->kernels == nullptr || berth::can_run(*d->kernels, *n.op, dtype);
  }

  std::vector<SpecView> input_specs(const Node& n) const {
    std::vector<SpecView> in;
    for (const ValueRef& v : n.inputs) in.push_back(graph_.spec(v).view());
    return in;
  }

  double flops(const std::vector<int32_t>& nodes) const {
    double sum = 0;
    for (int32_t i : nodes) {
      const Node& n = graph_[i];
      if (n.op->kind() != OpKind::kCompute) continue;
      const std::vector<SpecView> in = input_specs(n);
      std::vector<OutSpec> out = n.outputs;
      sum += n.op->cost(InferContext(*n.op, n.attrs.get(), in, out)).flops;
    }
    return sum;
  }

  std::vector<int32_t> neighbours(const Border& border) const {
    std::vector<int32_t> list;
    const auto add = [&](int32_t d) {
      if (std::find(list.begin(), list.end(), d) == list.end())
        list.push_back(d);
    };
    for (const ValueRef& v : border.in) add(device_[v.node]);
    for (const ValueRef& v : border.out) {
      for (const Reader& r : readers_[v.node]) add(device_[r.node]);
    }
    return list;
  }

  static bool worth_it(int64_t now, int64_t then, int64_t times) {
    return now - then >= kLintBytes && now >= times * then;
  }

  void judge(const Island& island) {
    if (island.keeps_state) return;
    const int32_t home = device_[island.nodes[0]];
    const Border border = border_of(island.nodes);
    const int64_t in = sent(border.in), out = sent(border.out);
    if (in + out < kLintBytes) return;
    int32_t best = -1;
    int64_t least = in + out;
    for (int32_t d : neighbours(border)) {
      if (d == home) continue;
      const bool all = std::all_of(island.nodes.begin(), island.nodes.end(),
                                   [&](int32_t i) { return can_run(i, d); });
      if (!all) continue;
      const int64_t there =
          sent_with(island.nodes, border, [d](int32_t) { return d; });
      if (there < least) {
        least = there;
        best = d;
      }
    }
    if (best < 0 || said(border) || !worth_it(in + out, least, kSaving)) return;
    const auto saved = static_cast<double>(in + out - least);
    if (flops(island.nodes) > kFlopsPerByte * saved) return;
    const char* id = std::min(in, out) * 4 >= std::max(in, out) ? "ping-pong"
                     : in >= out ? "reduce-placement"
                                 : "expand-placement";
    say_moved(id, island, border, best, in + out, least);
  }

  // One word per value that crosses: the first of two neighbours gets it.
  bool said(const Border& border) const {
    const auto heard = [&](const ValueRef& v) { return said_.contains(v); };
    return std::any_of(border.in.begin(), border.in.end(), heard) ||
           std::any_of(border.out.begin(), border.out.end(), heard);
  }

  void say_moved(const char* id, const Island& island, const Border& border,
                 int32_t best, int64_t now, int64_t then) {
    for (const auto* side : {&border.in, &border.out}) {
      for (const ValueRef& v : *side) {
        if (sent(v) > 0) said_.insert(v);
      }
    }
    const int32_t node = speaker(island, border, id[0] == 'e');
    const size_t others = island.nodes.size() - 1;
    const std::string more = others == 0
                                 ? ""
                                 : fmt::format(" (with {} more op{})", others,
                                               others == 1 ? "" : "s");
    const std::string there = short_device(names_[best]);
    lints_.push_back(
        {id, node, names_[best], now, then,
         fmt::format("{}{} was asked for on {}, which sends {} between devices "
                     "per call; on {} it would send {}: ask for \"/{}\" there, "
                     "or leave the scope out",
                     describe(node), more, short_device(names_[device_[node]]),
                     bytes_text(now), there, bytes_text(then), there)});
  }

  // The member to name: the one with the most bytes across the border, on the
  // side that costs.
  int32_t speaker(const Island& island, const Border& border,
                  bool gives) const {
    int32_t node = island.nodes[0];
    int64_t most = -1;
    const auto offer = [&](int32_t i, int64_t bytes) {
      if (graph_[i].requested.empty() || bytes <= most) return;
      node = i;
      most = bytes;
    };
    if (gives) {
      for (const ValueRef& v : border.out) offer(v.node, sent(v));
      return node;
    }
    for (int32_t i : island.nodes) {
      for (const ValueRef& v : graph_[i].inputs) {
        if (device_[v.node] != device_[i]) offer(i, bytes_of(v));
      }
    }
    return node;
  }

  // A variable whose value is read, step by step, on another device alone.
  void judge_variable(int32_t i) {
    const Node& n = graph_[i];
    if (n.op->kind() != OpKind::kReadVariable || readers_[i].empty()) return;
    int32_t there = -1;
    bool somebody_asked = false;
    for (const Reader& r : readers_[i]) {
      const int32_t d = device_[r.node];
      if (d == device_[i] || (there >= 0 && d != there)) return;
      there = d;
      somebody_asked |= obeyed(r.node);
    }
    const int64_t bytes = bytes_of({i, 0});
    if (!somebody_asked || bytes < kLintBytes || outputs_.contains({i, 0})) {
      return;
    }
    const Node& handle = graph_[n.inputs[0].node];
    const std::string d = short_device(names_[there]);
    lints_.push_back(
        {"variable-elsewhere", i, names_[there], bytes, 0,
         fmt::format("variable \"{}\"{} lives on {} but only {} reads it, {} "
                     "per call; create it in a scope of device \"/{}\"",
                     handle.name, place_of(handle),
                     short_device(names_[device_[i]]), d, bytes_text(bytes),
                     d)});
  }

  // Gradients that a scope or an option keeps from their forward ops.
  void judge_pinned() {
    std::map<int32_t, std::vector<int32_t>> by_device;
    for (int32_t i = 0; i < graph_.size(); ++i) {
      const int32_t f = graph_[i].follows;
      if (pinned(i) && movable(graph_[i]) && can_run(i, device_[f])) {
        by_device[device_[i]].push_back(i);
      }
    }
    for (const auto& [d, nodes] : by_device) {
      const Border border = border_of(nodes);
      const int64_t now = sent(border.in) + sent(border.out);
      const int64_t then = sent_with(
          nodes, border, [&](int32_t i) { return placed_[graph_[i].follows]; });
      if (!worth_it(now, then, 2)) continue;
      const int32_t f = graph_[nodes[0]].follows;
      const std::string here = short_device(names_[d]);
      lints_.push_back(
          {"gradient-elsewhere", nodes[0], names_[device_[f]], now, then,
           fmt::format("{} gradient op{} pinned to {} while the forward ops "
                       "({}, ...) ran on {}, which sends {} between devices "
                       "per call; without the pin it would be {}",
                       nodes.size(), nodes.size() == 1 ? " is" : "s are", here,
                       describe(f), short_device(names_[device_[f]]),
                       bytes_text(now), bytes_text(then))});
    }
  }

  static std::string place_of(const Node& n) {
    return n.sources.empty() ? "" : where_text(nullptr, n.sources[0].site);
  }
  std::string describe(int32_t i) const {
    const Node& n = graph_[i];
    return fmt::format("{} \"{}\"{}", n.op->name(), n.name, place_of(n));
  }

  const Graph& graph_;
  const PlaceOptions& options_;
  std::vector<std::vector<Reader>> readers_;
  std::vector<std::string> names_;         // of the devices
  std::vector<DeviceName> parsed_;         // the same
  std::vector<const PlaceDevice*> given_;  // the same; null: hypothetical
  std::vector<int32_t> placed_;            // per node
  std::vector<int32_t> device_;  // the same, but while something is tried out
  std::set<ValueRef> outputs_;   // of the graph
  std::set<ValueRef> said_;
  std::unordered_map<std::string, DeviceName> requests_;
  std::vector<bool> asked_;  // per node: obeyed, or follows one that was
  std::vector<PlaceLint> lints_;
};

}  // namespace

std::vector<PlaceLint> lint_placement(const Graph& graph,
                                      const PlaceOptions& options) {
  return Linter(graph, options).run();
}

}  // namespace berth
