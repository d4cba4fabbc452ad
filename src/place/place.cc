#include "place/place.h"

#include <fmt/format.h>

#include "place/placer.h"

namespace berth {

namespace {

// A generator has no inputs and always gives the same value, so it may float
// to whoever uses it.
bool is_generator(const Node& node) {
  return node.inputs.empty() && !node.op->stateful() && !node.op->random();
}

bool follows_input(const Node& node) {
  return !node.inputs.empty() &&
         (node.op->kind() == OpKind::kAlias || node.op->metadata());
}

constexpr int32_t kNoOpinion = -1;
constexpr int32_t kMixed = -2;

class RulePlacer {
 public:
  RulePlacer(Graph& graph, const PlaceOptions& options)
      : graph_(graph), state_(graph, options) {}

  Placement run() {
    place_variables(state_);
    const int32_t n = graph_.size();
    floating_.assign(n, false);
    waiting_.assign(n, false);
    stamp_.assign(n, -1);
    for (int32_t i = 0; i < n; ++i) decide(i);
    settle_floating();
    for (int32_t i = 0; i < n; ++i) settle(i);
    for (int32_t i = 0; i < n; ++i) {
      graph_[i].assigned = state_.devices[state_.device_of[i]].full_name;
    }
    return std::move(state_.placement);
  }

 private:
  bool decided(int32_t i) const { return state_.device_of[i] >= 0; }

  // First round: everything that does not depend on floating nodes.
  void decide(int32_t i) {
    if (decided(i) || waiting_[i]) return;
    if (!graph_[i].requested.empty()) return state_.obey_request(i);
    if (leader(i) >= 0) return follow_leaders(i);
    if (is_generator(graph_[i])) {
      floating_[i] = true;
      return;
    }
    if (follows_input(graph_[i])) {
      const int32_t in = graph_[i].inputs[0].node;
      if (!decided(in)) {
        floating_[i] = true;
        return;
      }
      if (state_.try_set(i, state_.device_of[in], PlaceRule::kInput, in)) {
        return;
      }
    }
    state_.use_default(i);
  }

  int32_t leader(int32_t i) const {
    const int32_t c = graph_[i].follows;
    return c == i ? -1 : c;
  }

  // Decides the chain of colocations from `i` on, last node first.
  void follow_leaders(int32_t i) {
    std::vector<int32_t> chain;
    int32_t at = i;
    while (!decided(at) && !waiting_[at] && !floating_[at] &&
           graph_[at].requested.empty() && leader(at) >= 0) {
      if (stamp_[at] == i) state_.fail_cycle(chain);
      stamp_[at] = i;
      chain.push_back(at);
      at = leader(at);
    }
    // A leader further down that has none itself is decided by its own rules,
    // unless these need nodes that come later.
    if (!decided(at) && !waiting_[at] && !floating_[at]) {
      const bool early =
          at < i || !graph_[at].requested.empty() || is_generator(graph_[at]);
      if (early) {
        decide(at);
      } else {
        waiting_[i] = true;
        return;
      }
    }
    if (!decided(at)) {
      for (int32_t c : chain) waiting_[c] = true;
      return;
    }
    for (auto it = chain.rbegin(); it != chain.rend(); ++it) join_leader(*it);
  }

  void join_leader(int32_t i) {
    const int32_t with = leader(i);
    if (state_.try_set(i, state_.device_of[with], PlaceRule::kColocated,
                       with)) {
      return;
    }
    state_.use_default(i);
    state_.note_colocation_ignored(i, with);
  }

  // Second round, backwards: what floats goes where all its consumers are.
  void settle_floating() {
    std::vector<int32_t> opinion(graph_.size(), kNoOpinion);
    std::vector<int32_t> witness(graph_.size(), -1);
    for (int32_t i = graph_.size() - 1; i >= 0; --i) {
      if (floating_[i]) settle_opinion(i, opinion[i], witness[i]);
      int32_t mine = state_.device_of[i];
      if (mine < 0) mine = floating_[i] ? opinion[i] : kNoOpinion;
      if (mine == kNoOpinion) continue;
      for (const ValueRef& v : graph_[i].inputs) {
        int32_t& theirs = opinion[v.node];
        if (theirs == kNoOpinion) {
          theirs = mine;
          witness[v.node] = i;
        } else if (theirs != mine) {
          theirs = kMixed;
        }
      }
    }
    // Nobody's opinion: arguments wait on the host, the rest is made where
    // the default would have it.
    for (int32_t i = 0; i < graph_.size(); ++i) {
      if (!floating_[i] || decided(i) || !graph_[i].inputs.empty()) continue;
      if (graph_[i].op == &state_.arg_op) {
        state_.set(i, state_.host, PlaceRule::kHost);
      } else {
        state_.use_default(i);
      }
    }
  }

  void settle_opinion(int32_t i, int32_t& opinion, int32_t witness) {
    if (opinion >= 0 &&
        !state_.try_set(i, opinion, PlaceRule::kConsumers, witness)) {
      opinion = kMixed;
    }
  }

  // Last round: aliases of what floated, and nodes colocated with it.
  void settle(int32_t i) {
    if (decided(i)) return;
    if (waiting_[i]) {
      std::vector<int32_t> chain;
      int32_t at = i;
      while (!decided(at) && waiting_[at]) {
        if (stamp_[at] == graph_.size() + i) state_.fail_cycle(chain);
        stamp_[at] = graph_.size() + i;
        chain.push_back(at);
        at = leader(at);
      }
      if (!decided(at)) settle_alone(at);
      for (auto it = chain.rbegin(); it != chain.rend(); ++it) {
        join_leader(*it);
      }
      return;
    }
    settle_alone(i);
  }

  void settle_alone(int32_t i) {
    if (follows_input(graph_[i])) {
      const int32_t in = graph_[i].inputs[0].node;
      if (decided(in) &&
          state_.try_set(i, state_.device_of[in], PlaceRule::kInput, in)) {
        return;
      }
    }
    state_.use_default(i);
  }

  Graph& graph_;
  PlacerState state_;
  std::vector<bool> floating_;  // generators and their aliases
  std::vector<bool> waiting_;   // colocated with something that floats
  std::vector<int32_t> stamp_;
};

}  // namespace

Placement place(Graph& graph, const PlaceOptions& options) {
  return RulePlacer(graph, options).run();
}

std::string explain(const Graph& graph, const Placement& placement,
                    int32_t node) {
  const Node& n = graph[node];
  const PlaceReason reason = placement.reasons[node];
  const std::string other =
      reason.because >= 0 ? graph[reason.because].name : "";
  std::string why;
  switch (reason.rule) {
    case PlaceRule::kNone:
      why = "not placed";
      break;
    case PlaceRule::kAssigned:
      why = "it was assigned before";
      break;
    case PlaceRule::kGroup:
      why = fmt::format("shares a device with \"{}\"", other);
      break;
    case PlaceRule::kVariable:
      why = reason.because == node
                ? "the variable lives there"
                : fmt::format("touches variable \"{}\"", other);
      break;
    case PlaceRule::kRequest:
      why = fmt::format("asked for \"{}\"", n.requested);
      break;
    case PlaceRule::kColocated:
      why = fmt::format("colocated with \"{}\"", other);
      break;
    case PlaceRule::kConsumers:
      why = fmt::format("where \"{}\" and all other consumers are", other);
      break;
    case PlaceRule::kInput:
      why = fmt::format("where its input \"{}\" is", other);
      break;
    case PlaceRule::kHost:
      why = "an argument; no single device reads it";
      break;
    case PlaceRule::kDefault:
      why = "the first device that can run it";
      break;
  }
  return fmt::format("on {}: {}", short_device(n.assigned), why);
}

int64_t crossing_bytes(const Graph&, int32_t) { return 0; }
void report_fallbacks(const Graph&, const Placement&, config::SoftPlacement) {}
void log_placement(const Graph&) {}

}  // namespace berth
