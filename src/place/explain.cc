#include "place/explain.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "berth/errors.h"
#include "device/virtual_clock.h"
#include "place/placer.h"
#include "place/what_if_moves.h"

namespace berth {

const char* rule_name(PlaceRule rule) {
  switch (rule) {
    case PlaceRule::kAssigned:
      return "assigned";
    case PlaceRule::kVariable:
      return "variable";
    case PlaceRule::kRequest:
      return "request";
    case PlaceRule::kGroup:
      return "group";
    case PlaceRule::kColocated:
      return "colocation";
    case PlaceRule::kConsumers:
      return "consumers";
    case PlaceRule::kInput:
      return "input";
    case PlaceRule::kHost:
      return "host";
    case PlaceRule::kDefault:
      return "default";
    case PlaceRule::kPlanned:
      return "planned";
    case PlaceRule::kNone:
      break;
  }
  return "none";
}

namespace {

using placement::Because;
using placement::Explanation;

// Longer chains of followers are truncated.
constexpr size_t kLongestChain = 1000;

// Follows the reasons from a node to the decision.
class Chain {
 public:
  Chain(const Graph& placed, const Placement& placement, ConstraintSets& sets)
      : g_(placed), placement_(placement), sets_(sets) {}

  std::vector<Because> of(int32_t node) {
    while (node >= 0 && chain_.size() < kLongestChain) node = step(node);
    return std::move(chain_);
  }

 private:
  // Adds what there is to say about a node; returns the next one, -1: the end.
  int32_t step(int32_t i) {
    const PlaceReason r = placement_.reasons[i];
    const Node& n = g_[i];
    const std::string name = fmt::format("{} \"{}\"", n.op->name(), n.name);
    const std::string at = short_device(n.assigned);
    const std::string other = r.because >= 0 ? g_[r.because].name : "";
    switch (r.rule) {
      case PlaceRule::kAssigned:
        return end(i, fmt::format("{} was assigned to {}", name, at));
      case PlaceRule::kVariable:
        if (r.because != i) return through(i, r.because);
        return end(i, n.variable.defined() || n.requested.empty()
                          ? fmt::format("variable \"{}\" lives on {}",
                                        variable_name(n), at)
                          : asked(i, fmt::format("variable \"{}\"",
                                                 variable_name(n))));
      case PlaceRule::kRequest:
        return end(i, asked(i, name));
      case PlaceRule::kGroup:
        return through(i, r.because);
      case PlaceRule::kColocated:
        add(i, fmt::format("{} follows \"{}\": gradients run where their "
                           "forward op runs",
                           name, other));
        return r.because;
      case PlaceRule::kConsumers:
        add(i, fmt::format("all consumers of {} are on {}, \"{}\" among them",
                           name, at, other));
        return r.because;
      case PlaceRule::kInput:
        add(i, fmt::format("{} goes with its input \"{}\"", name, other));
        return r.because;
      case PlaceRule::kHost:
        return end(i, fmt::format("argument \"{}\" has no single device that "
                                  "reads it: it waits on the host",
                                  n.name));
      case PlaceRule::kPlanned:
        return end(i, fmt::format("{} was planned on {}", name, at));
      default:
        return by_default(i, name, at);
    }
  }

  int32_t by_default(int32_t i, const std::string& name,
                     const std::string& at) {
    // The member that lacks a kernel on a device before this one.
    if (const auto c = lacking(i)) add(c->node, c->text);
    return end(i, fmt::format("nobody asked for a device of {}: {} is the "
                              "first, in order of preference, that can run it",
                              name, at));
  }

  std::optional<PlaceConstraint> lacking(int32_t i) {
    const int32_t root = sets_.find(i);
    for (int32_t m = 0; m < g_.size(); ++m) {
      if (sets_.find(m) != root) continue;
      for (PlaceConstraint& c : sets_.own_constraints(m)) {
        if (!c.binary() && c.mask != sets_.devices().all() &&
            (c.kind == PlaceConstraint::Kind::kKernels ||
             c.kind == PlaceConstraint::Kind::kHost)) {
          return std::move(c);
        }
      }
    }
    return {};
  }

  std::string asked(int32_t i, const std::string& name) const {
    for (const PlaceFallback& f : placement_.fallbacks) {
      if (f.node != i) continue;
      return fmt::format("{} was asked for on \"{}\", and fell back to {}: {}",
                         name, f.requested.text(), short_device(g_[i].assigned),
                         f.reason);
    }
    return fmt::format("{} was asked for on \"{}\"", name,
                       g_[i].requested.text());
  }

  int32_t through(int32_t i, int32_t to) {
    if (to < 0) return -1;
    for (const PlaceConstraint& c : sets_.connection(i, to)) {
      chain_.push_back({c.text, c.site});
    }
    return to;
  }

  void add(int32_t i, std::string text) {
    chain_.push_back({std::move(text), site_of(g_, i)});
  }
  int32_t end(int32_t i, std::string text) {
    add(i, std::move(text));
    return -1;
  }

  const Graph& g_;
  const Placement& placement_;
  ConstraintSets& sets_;
  std::vector<Because> chain_;
};

// Why no change to the program's own requests can put the node there.
std::string why_not(ConstraintSets& sets, const Graph& g, int32_t node,
                    int32_t device) {
  const int32_t root = sets.find(node);
  std::string found;
  for (int32_t m = 0; m < g.size(); ++m) {
    if (sets.find(m) != root) continue;
    for (const PlaceConstraint& c : sets.own_constraints(m)) {
      const bool binds = c.kind == PlaceConstraint::Kind::kKernels ||
                         c.kind == PlaceConstraint::Kind::kHost ||
                         c.kind == PlaceConstraint::Kind::kAssigned;
      if (!binds || c.mask.has(device)) continue;
      const std::string text =
          c.kind != PlaceConstraint::Kind::kKernels
              ? c.text
              : fmt::format("{} \"{}\" has no kernel for {} there",
                            g[m].op->name(), g[m].name,
                            name_of(node_dtype(g, g[m])));
      if (m == node) return text;
      if (found.empty()) found = text;
    }
  }
  return found.empty() ? "the rules have no place for it there" : found;
}

// "... was planned on GPU:0: elsewhere the step takes 12 us more".
void say_prices(Explanation& e) {
  double least = 0;
  bool any = false;
  Clocks clocks;
  clocks.add(e.device);
  for (const placement::Alternative& a : e.alternatives) {
    clocks.add(a.device);
    if (a.step_us < 0) continue;
    least = any ? std::min(least, a.delta_us) : a.delta_us;
    any = true;
  }
  if (!any || e.chain.empty()) return;
  e.chain.back().text +=
      fmt::format(": elsewhere, all else as it is, the step takes {:+.3g} us{}",
                  least, clocks.mark());
}

}  // namespace

Explanation explain_placement(const Graph& graph, const Placement& placement,
                              const PlaceOptions& options, int32_t node,
                              const PriceFn& price) {
  if (node < 0 || node >= graph.size() ||
      placement.reasons.size() != graph.nodes.size()) {
    throw errors::InvalidArgument(
        fmt::format("explain: there is no node {} in the placed graph; "
                    "expected one in [0, {})",
                    node, placement.reasons.size()));
  }
  Explanation e;
  e.op = graph[node].name;
  e.device = graph[node].assigned.text();
  e.rule = rule_name(placement.reasons[node].rule);
  // Restore the graph as it was: drop the devices that place() assigned.
  Graph before = graph;
  for (int32_t i = 0; i < before.size(); ++i) {
    if (placement.reasons[i].rule != PlaceRule::kAssigned) {
      before[i].assigned.clear();
    }
  }
  DeviceTable devices(options);
  ConstraintSets sets(before, options, devices);
  sets.connect();
  e.chain = Chain(graph, placement, sets).of(node);
  if (const int32_t replica = graph[node].replica; replica >= 0) {
    e.chain.insert(e.chain.begin(),
                   {fmt::format("it belongs to replica {}", replica), {}});
  }
  MoveFinder finder(before, placement, options, node);
  for (const PlaceDevice& given : options.devices) {
    const int32_t d = devices.find_given(&given);
    const std::string& name = devices[d].id.text();
    if (name == e.device) continue;
    placement::Alternative a;
    a.device = name;
    auto changes = finder.find(d);
    a.possible = changes && !needs_kernel(*changes);
    if (!a.possible) a.why_not = why_not(sets, before, node, d);
    if (changes) e.moves.push_back({name, std::move(*changes)});
    if (a.possible && price) {
      const Price p = price(node, devices[d].position);
      a.step_us = p.step_us;
      a.delta_us = p.delta_us;
      a.delta_bytes = p.delta_bytes;
    }
    e.alternatives.push_back(std::move(a));
  }
  if (placement.reasons[node].rule == PlaceRule::kPlanned) say_prices(e);
  return e;
}

}  // namespace berth
