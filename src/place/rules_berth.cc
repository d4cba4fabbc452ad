// Berth's rules over the constraint sets.

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "berth/errors.h"
#include "place/placer.h"

namespace berth {

namespace {

// A generator has no inputs and always gives the same value, so it may float to
// its users. A variable or a reference is a place, not a value.
bool is_generator(const Node& n) {
  return n.inputs.empty() && !n.op->stateful() && !n.op->random() &&
         (n.outputs.empty() ||
          (n.outputs[0].dtype != resource && !n.op->output_is_ref(0)));
}

bool follows_input(const Node& n) {
  return !n.inputs.empty() &&
         (n.op->kind() == OpKind::kAlias || n.op->metadata());
}

constexpr int32_t kNoOpinion = -1;
constexpr int32_t kMixed = -2;

// All methods refer to sets by their roots.
class BerthRules {
 public:
  explicit BerthRules(Placer& placer)
      : p_(placer),
        graph_(placer.graph),
        arg_op_(op_named("_Arg")),
        facts_(placer.device_of.size()) {}

  void run() {
    for (int32_t i = 0; i < graph_.size(); ++i) {
      if (p_.root(i) == i || p_.members(p_.root(i))[0] == i) learn(p_.root(i));
    }
    for (int32_t i = 0; i < graph_.size(); ++i) decide(p_.root(i));
    settle_floating();
    for (int32_t i = 0; i < graph_.size(); ++i) settle(p_.root(i));
  }

 private:
  struct Facts {
    int32_t first = -1;     // member
    int32_t leader = -1;    // node that the set follows
    int32_t follower = -1;  // the member that follows it
    int32_t stamp = -1;
    bool generator = true;  // all members are generators
    bool alone = true;
    bool floating = false;  // generators and their aliases
    bool waiting = false;   // followers of something that floats
  };

  void learn(int32_t u) {
    Facts& f = facts_[u];
    if (f.first >= 0) return;
    const auto members = p_.members(u);
    f.first = members[0];
    f.alone = members.size() == 1;
    bool handles = false;
    for (const int32_t m : members) {
      const bool handle = p_.sets.handle(m);
      if (handle && !handles) f.leader = -1;  // handles decide for their ops
      const int32_t with = graph_[m].follows;
      f.generator = f.generator && is_generator(graph_[m]);
      if (with >= 0 && f.leader < 0 && p_.root(with) != u &&
          handle >= handles) {
        f.leader = with;
        f.follower = m;
      }
      handles = handles || handle;
    }
  }

  bool decided(int32_t u) const { return p_.decided(u); }
  bool open(int32_t u) const {
    return !decided(u) && !facts_[u].waiting && !facts_[u].floating;
  }
  bool asked(int32_t u) const {
    return p_.set(u).pinned || p_.set(u).requested != DeviceTable::kAny;
  }
  int32_t input_of(int32_t u) const {
    const Facts& f = facts_[u];
    return f.alone && follows_input(graph_[f.first])
               ? graph_[f.first].inputs[0].node
               : -1;
  }

  // First round: everything that does not depend on floating sets.
  void decide(int32_t u) {
    if (!open(u) || p_.obey(u)) return;
    Facts& f = facts_[u];
    if (f.leader >= 0) return follow_leaders(u);
    if (f.generator) {
      f.floating = true;
      return;
    }
    if (const int32_t in = input_of(u); in >= 0) {
      const int32_t from = p_.root(in);
      if (!decided(from)) {
        f.floating = true;
        return;
      }
      if (p_.try_decide(u, p_.device_of[from], PlaceRule::kInput, f.first,
                        in)) {
        return;
      }
    }
    p_.use_default(u);
  }

  // Decides the chain of followers from `u` on, the last set first.
  void follow_leaders(int32_t u) {
    std::vector<int32_t> chain;
    int32_t at = u;
    while (open(at) && !asked(at) && facts_[at].leader >= 0) {
      if (facts_[at].stamp == u) {
        break_cycle(chain);
        return decide(u);
      }
      facts_[at].stamp = u;
      chain.push_back(at);
      at = p_.root(facts_[at].leader);
    }
    // A leader further along that follows nothing is decided by its own rules,
    // unless these need later nodes.
    if (open(at)) {
      const Facts& f = facts_[at];
      const bool early = f.first < facts_[u].first || asked(at) || f.generator;
      if (early) decide(at);
    }
    if (!decided(at)) {
      for (const int32_t c : chain) facts_[c].waiting = true;
      return;
    }
    for (auto it = chain.rbegin(); it != chain.rend(); ++it) join_leader(*it);
  }

  // A cyclic chain is an error, unless a set has members other than the
  // followers: these decide.
  void break_cycle(const std::vector<int32_t>& chain) {
    for (const int32_t u : chain) facts_[u].stamp = -1;
    for (const int32_t u : chain) {
      if (facts_[u].alone) continue;
      facts_[u].leader = -1;
      return;
    }
    std::string names;
    for (size_t i = 0; i < std::min<size_t>(chain.size(), 8); ++i) {
      names += fmt::format("\"{}\" -> ", graph_[facts_[chain[i]].first].name);
    }
    throw errors::InvalidArgument(fmt::format(
        "{} follows itself through others: {}...; expected a chain that ends",
        describe(graph_, facts_[chain[0]].first), names));
  }

  void join_leader(int32_t u) {
    const Facts& f = facts_[u];
    if (p_.try_decide(u, p_.device_of[p_.root(f.leader)], PlaceRule::kColocated,
                      f.follower, f.leader)) {
      return;
    }
    p_.use_default(u);
    p_.note_colocation_ignored(f.follower, f.leader);
  }

  // Second round, backwards: floating sets go where all their consumers are.
  void settle_floating() {
    std::vector<int32_t> opinion(facts_.size(), kNoOpinion);
    std::vector<int32_t> witness(facts_.size(), -1);
    for (int32_t i = graph_.size() - 1; i >= 0; --i) {
      const int32_t u = p_.root(i);
      const Facts& f = facts_[u];
      // A set of several generators is settled once all its users have been.
      if (f.floating && i == f.first) settle_opinion(u, opinion[u], witness[u]);
      int32_t mine = p_.device_of[u];
      if (mine < 0) mine = f.floating ? opinion[u] : kNoOpinion;
      if (mine == kNoOpinion) continue;
      for (const ValueRef& v : graph_[i].inputs) {
        const int32_t from = p_.root(v.node);
        int32_t& theirs = opinion[from];
        if (theirs == kNoOpinion) {
          theirs = mine;
          witness[from] = i;
        } else if (theirs != mine) {
          theirs = kMixed;
        }
      }
    }
    // No opinion: arguments stay on the host, the rest is made on the default
    // device.
    for (int32_t i = 0; i < graph_.size(); ++i) {
      const int32_t u = p_.root(i);
      const Facts& f = facts_[u];
      if (!f.floating || decided(u) || !graph_[i].inputs.empty()) continue;
      const bool arg = graph_[i].op == &arg_op_;
      if (!arg ||
          !p_.try_decide(u, p_.devices.host(), PlaceRule::kHost, i, -1)) {
        p_.use_default(u);
      }
    }
  }

  void settle_opinion(int32_t u, int32_t& opinion, int32_t witness) {
    if (opinion >= 0 && !p_.try_decide(u, opinion, PlaceRule::kConsumers,
                                       facts_[u].first, witness)) {
      opinion = kMixed;
    }
  }

  // Last round: aliases of what floated, and their followers.
  void settle(int32_t u) {
    if (decided(u)) return;
    if (!facts_[u].waiting) return settle_alone(u);
    std::vector<int32_t> chain;
    int32_t at = u;
    const int32_t stamp = static_cast<int32_t>(facts_.size()) + u;
    while (!decided(at) && facts_[at].waiting && facts_[at].leader >= 0) {
      if (facts_[at].stamp == stamp) {
        break_cycle(chain);
        return settle(u);
      }
      facts_[at].stamp = stamp;
      chain.push_back(at);
      at = p_.root(facts_[at].leader);
    }
    if (!decided(at)) settle_alone(at);
    for (auto it = chain.rbegin(); it != chain.rend(); ++it) join_leader(*it);
  }

  void settle_alone(int32_t u) {
    if (const int32_t in = input_of(u); in >= 0) {
      const int32_t from = p_.root(in);
      if (decided(from) &&
          p_.try_decide(u, p_.device_of[from], PlaceRule::kInput,
                        facts_[u].first, in)) {
        return;
      }
    }
    if (!decided(u)) p_.use_default(u);
  }

  Placer& p_;
  const Graph& graph_;
  const OpDef& arg_op_;
  std::vector<Facts> facts_;
};

}  // namespace

void place_by_berths_rules(Placer& placer) { BerthRules(placer).run(); }

}  // namespace berth
