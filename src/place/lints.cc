#include "place/lints.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "base/bytes_text.h"
#include "base/where.h"
#include "device/request_text.h"
#include "place/placer.h"
#include "place/traffic.h"

namespace berth {

namespace {

// An op that computes more than this per byte saved may have been moved for its
// arithmetic.
constexpr double kFlopsPerByte = 16;
// Moving must leave at most one part in this many of what is sent: 4 for a cast
// of bytes to floats on the wrong side.
constexpr int64_t kSaving = 4;

// Ops that were requested on one device and pass values to each other, with
// their gradients.
struct Island {
  std::vector<int32_t> nodes;
  bool keeps_state = false;  // reads or updates a variable of its device
};

class Linter {
 public:
  Linter(const Graph& graph, const PlaceOptions& options)
      : graph_(graph), t_(graph, options) {}

  std::vector<PlaceLint> run() {
    if (t_.num_devices() < 2) return {};
    find_asked();
    for (const Island& island : islands()) judge(island);
    for (int32_t i = 0; i < graph_.size(); ++i) judge_variable(i);
    for (int32_t i = 0; i < graph_.size(); ++i) judge_lacking(i);
    judge_pinned();
    return std::move(lints_);
  }

 private:
  // A request that was met. Others have been reported already.
  bool obeyed(int32_t i) {
    const Node& n = graph_[i];
    if (n.requested.empty()) return false;
    return n.requested.name().matches(t_.name(t_.device(i)).name());
  }
  // A gradient that a request keeps from where it would run by default.
  bool pinned(int32_t i) const {
    return graph_[i].follows >= 0 && home_[i] != t_.device(i) && asked_[i];
  }

  // A node without inputs is data: it belongs where it is made.
  static bool movable(const Node& n) {
    const bool computes =
        n.op->kind() == OpKind::kCompute || n.op->kind() == OpKind::kAlias;
    return computes && !n.inputs.empty() && !n.op->stateful() &&
           !n.op->has_variables();
  }

  void find_asked() {
    for (int32_t i = 0; i < graph_.size(); ++i) {
      const Node& n = graph_[i];
      const int32_t f = n.follows;
      home_.push_back(t_.device(i));
      if (f >= 0 && graph_[f].op->kind() == OpKind::kArgument) {
        // Arguments go where they are read.
        if (!n.inputs.empty()) home_[i] = home_[n.inputs[0].node];
      } else if (f >= 0) {
        home_[i] = t_.device(f);
      }
      const bool follows = n.requested.empty() && f >= 0 && f < i && asked_[f];
      asked_.push_back(obeyed(i) || (follows && t_.device(f) == t_.device(i)));
    }
  }

  std::vector<Island> islands() const {
    std::vector<int32_t> root(graph_.nodes.size());
    std::iota(root.begin(), root.end(), 0);
    const auto find = [&](int32_t i) {
      while (root[i] != i) i = root[i] = root[root[i]];
      return i;
    };
    const auto member = [&](int32_t i) {
      return asked_[i] && movable(graph_[i]) && !pinned(i);
    };
    for (int32_t i = 0; i < graph_.size(); ++i) {
      if (!member(i)) continue;
      for (const ValueRef& v : graph_[i].inputs) {
        if (member(v.node) && t_.device(v.node) == t_.device(i)) {
          root[find(i)] = find(v.node);
        }
      }
    }
    std::map<int32_t, Island> found;
    for (int32_t i = 0; i < graph_.size(); ++i) {
      if (!member(i)) continue;
      Island& island = found[find(i)];
      island.nodes.push_back(i);
      island.keeps_state |= touches_variable(i);
    }
    std::vector<Island> list;
    for (auto& [first, island] : found) list.push_back(std::move(island));
    return list;
  }

  // True when a neighbour of node i reads or writes a variable on its device.
  bool touches_variable(int32_t i) const {
    const auto touches = [&](int32_t other) {
      return graph_[other].op->has_variables() &&
             t_.device(other) == t_.device(i);
    };
    const auto& in = graph_[i].inputs;
    const auto& readers = t_.readers(i);
    return std::any_of(in.begin(), in.end(),
                       [&](const ValueRef& v) { return touches(v.node); }) ||
           std::any_of(
               readers.begin(), readers.end(),
               [&](const Traffic::Reader& r) { return touches(r.node); });
  }

  static bool worth_it(int64_t now, int64_t then, int64_t times) {
    return now - then >= kLintBytes && now >= times * then;
  }

  void judge(const Island& island) {
    if (island.keeps_state) return;
    const Traffic::Border border = t_.border_of(island.nodes);
    const int64_t now = t_.sent(border);
    if (now < kLintBytes || said(border)) return;
    int32_t best = -1;
    int64_t least = now;
    for (int32_t d : t_.neighbours(border)) {
      if (d == t_.device(island.nodes[0])) continue;
      const bool all = std::all_of(island.nodes.begin(), island.nodes.end(),
                                   [&](int32_t i) { return t_.can_run(i, d); });
      if (!all) continue;
      const int64_t there = t_.sent_if(
          island.nodes, std::vector<int32_t>(island.nodes.size(), d), border);
      if (there < least) {
        least = there;
        best = d;
      }
    }
    if (best < 0 || !worth_it(now, least, kSaving)) return;
    const auto saved = static_cast<double>(now - least);
    if (t_.flops(island.nodes) > kFlopsPerByte * saved) return;
    say_moved(island, border, best, now, least);
  }

  // One report per value that crosses: the first of two neighbours gets it.
  bool said(const Traffic::Border& border) const {
    const auto heard = [&](const ValueRef& v) { return said_.contains(v); };
    return std::any_of(border.in.begin(), border.in.end(), heard) ||
           std::any_of(border.out.begin(), border.out.end(), heard);
  }

  void say_moved(const Island& island, const Traffic::Border& border,
                 int32_t best, int64_t now, int64_t then) {
    for (const auto* side : {&border.in, &border.out}) {
      for (const ValueRef& v : *side) {
        if (t_.sent(v) > 0) said_.insert(v);
      }
    }
    const int64_t in = t_.sent({border.in, {}}), out = now - in;
    const char* id = std::min(in, out) * 4 >= std::max(in, out) ? "ping-pong"
                     : in >= out ? "reduce-placement"
                                 : "expand-placement";
    const int32_t node = in >= out ? most_reading(island) : most_giving(border);
    const size_t others = island.nodes.size() - 1;
    const std::string more = others == 0
                                 ? ""
                                 : fmt::format(" (with {} more op{})", others,
                                               others == 1 ? "" : "s");
    const DeviceId there = t_.name(best);
    lints_.push_back(
        {id, node, t_.name(best), now, then,
         fmt::format("{}{} was asked for on {}, which sends {} between devices "
                     "per call; on {} it would send {}: ask for \"{}\" there, "
                     "or leave the scope out",
                     describe(node), more, device_text(node), bytes_text(now),
                     short_device(there), bytes_text(then),
                     request_text(there.name()))});
  }

  // The member to name: the one with the most bytes across the border.
  int32_t most_reading(const Island& island) const {
    int32_t node = island.nodes[0];
    int64_t most = -1;
    for (int32_t i : island.nodes) {
      for (const ValueRef& v : graph_[i].inputs) {
        if (t_.device(v.node) == t_.device(i) || graph_[i].requested.empty() ||
            t_.bytes_of(v) <= most) {
          continue;
        }
        most = t_.bytes_of(v);
        node = i;
      }
    }
    return node;
  }
  int32_t most_giving(const Traffic::Border& border) const {
    const auto less = [&](const ValueRef& a, const ValueRef& b) {
      return t_.sent(a) < t_.sent(b);
    };
    return std::max_element(border.out.begin(), border.out.end(), less)->node;
  }

  // A variable whose value is read in every step, and only on another device.
  void judge_variable(int32_t i) {
    const Node& n = graph_[i];
    if (n.op->kind() != OpKind::kReadVariable || t_.readers(i).empty()) return;
    int32_t there = -1;
    bool somebody_asked = false;
    for (const Traffic::Reader& r : t_.readers(i)) {
      const int32_t d = t_.device(r.node);
      if (d == t_.device(i) || (there >= 0 && d != there)) return;
      there = d;
      somebody_asked |= obeyed(r.node);
    }
    const int64_t bytes = t_.bytes_of({i, 0});
    if (!somebody_asked || bytes < kLintBytes || t_.is_result({i, 0})) return;
    const Node& handle = graph_[n.inputs[0].node];
    const DeviceId d = t_.name(there);
    lints_.push_back(
        {"variable-elsewhere", i, t_.name(there), bytes, 0,
         fmt::format("variable \"{}\"{} lives on {} but only {} reads it, {} "
                     "per call; create it in a scope of device \"{}\"",
                     variable_name(handle), place_of(handle), device_text(i),
                     short_device(d), bytes_text(bytes),
                     request_text(d.name()))});
  }

  // True when an op of the device reads what node i gives.
  bool reads(int32_t i, int32_t device) const {
    const auto& readers = t_.readers(i);
    return std::any_of(
        readers.begin(), readers.end(),
        [&](const Traffic::Reader& r) { return t_.device(r.node) == device; });
  }

  // An op that nobody placed, between ops of a device that lacks it.
  void judge_lacking(int32_t i) {
    const Node& n = graph_[i];
    if (!n.requested.empty() || asked_[i] || !movable(n)) return;
    const Traffic::Border border = t_.border_of({i});
    const int64_t now = t_.sent(border);
    if (now < kLintBytes) return;
    for (const int32_t d : t_.neighbours(border)) {
      if (d == t_.device(i) || t_.can_run(i, d) || !reads(i, d)) continue;
      const DeviceId there = t_.name(d);
      lints_.push_back(
          {"kernel-missing", i, there, now, 0,
           fmt::format("{} runs on {}, for {} has no kernel for it, which "
                       "sends {} between devices per call; use an op that it "
                       "has, or ask for \"{}\" for the ops around it",
                       describe(i), device_text(i), short_device(there),
                       bytes_text(now),
                       request_text(t_.name(t_.device(i)).name()))});
      return;
    }
  }

  // Gradients that a scope or an option keeps from their forward ops.
  void judge_pinned() {
    std::map<int32_t, std::vector<int32_t>> by_device;
    for (int32_t i = 0; i < graph_.size(); ++i) {
      if (pinned(i) && movable(graph_[i]) && t_.can_run(i, home_[i])) {
        by_device[t_.device(i)].push_back(i);
      }
    }
    t_.forget_results();
    for (const auto& [d, nodes] : by_device) {
      const Traffic::Border border = t_.border_of(nodes);
      std::vector<int32_t> homes;
      for (int32_t i : nodes) homes.push_back(home_[i]);
      const int64_t now = t_.sent(border);
      const int64_t then = t_.sent_if(nodes, homes, border);
      if (worth_it(now, then, 2)) say_pinned(nodes, now, then);
    }
  }

  void say_pinned(const std::vector<int32_t>& nodes, int64_t now,
                  int64_t then) {
    const int32_t first = nodes[0];
    const DeviceId home = t_.name(home_[first]);
    lints_.push_back(
        {"gradient-elsewhere", first, home, now, then,
         fmt::format("{} gradient op{} pinned to {} while the forward ops ({}, "
                     "...) ran on {}, which sends {} between devices per call; "
                     "without the pin it would be {}",
                     nodes.size(), nodes.size() == 1 ? " is" : "s are",
                     device_text(first), describe(graph_[first].follows),
                     short_device(home), bytes_text(now), bytes_text(then))});
  }

  std::string device_text(int32_t i) const {
    return short_device(t_.name(t_.device(i)));
  }
  static std::string place_of(const Node& n) {
    return n.sources.empty() ? "" : where_text(nullptr, n.sources[0].site);
  }
  std::string describe(int32_t i) const {
    const Node& n = graph_[i];
    return fmt::format("{} \"{}\"{}", n.op->name(), n.name, place_of(n));
  }

  const Graph& graph_;
  Traffic t_;
  std::vector<bool> asked_;    // request met, or follows one that was
  std::vector<int32_t> home_;  // where gradients would be without a pin
  std::set<ValueRef> said_;
  std::vector<PlaceLint> lints_;
};

}  // namespace

std::vector<PlaceLint> lint_placement(const Graph& graph,
                                      const PlaceOptions& options) {
  return Linter(graph, options).run();
}

}  // namespace berth
