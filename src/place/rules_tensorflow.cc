// TensorFlow's placer: two passes and two heuristics over the constraint sets
// (core/common_runtime/placer.cc).

#include <vector>

#include "place/placer.h"

namespace berth {

namespace {

bool makes_one_value(const Node& n) {
  return n.inputs.empty() && n.outputs.size() == 1 && !n.op->output_is_ref(0);
}

class TensorFlowRules {
 public:
  explicit TensorFlowRules(Placer& placer)
      : p_(placer), out_(placer.graph.nodes.size()) {}

  void run() {
    count_edges();
    const Graph& g = p_.graph;
    for (int32_t i = 0; i < g.size(); ++i) {
      if (!later(i) && !p_.decided(p_.root(i))) first_pass(i);
    }
    for (int32_t i = 0; i < g.size(); ++i) ask_consumer(i, later(i));
    for (int32_t i = 0; i < g.size(); ++i) {
      if (later(i) && !p_.decided(p_.root(i))) second_pass(i);
    }
  }

 private:
  static constexpr int32_t kNobody = -1;
  static constexpr int32_t kSeveral = -2;
  // The outgoing edges of a node, including control edges.
  struct Out {
    int32_t edges = 0;
    int32_t user = -1;
    int32_t device = kNobody;  // of all users
  };

  // Generators get their device in the second pass, unless they have one.
  bool later(int32_t i) const {
    const Node& n = p_.graph[i];
    const bool stays = !n.assigned.empty() && p_.options.keep_assigned;
    return makes_one_value(n) && !stays;
  }

  void count_edges() {
    const Graph& g = p_.graph;
    const auto count = [&](int32_t of, int32_t user) {
      ++out_[of].edges;
      out_[of].user = user;
    };
    for (int32_t i = 0; i < g.size(); ++i) {
      for (const ValueRef& v : g[i].inputs) count(v.node, i);
      for (const int32_t c : g[i].controls) count(c, i);
    }
  }

  // An Identity between two nodes with the same request.
  bool passes_on(int32_t i) const {
    const Node& n = p_.graph[i];
    return n.op->name() == "Identity" && n.requested.empty() &&
           n.inputs.size() == 1 && n.controls.empty() && out_[i].edges == 1 &&
           p_.graph[n.inputs[0].node].requested ==
               p_.graph[out_[i].user].requested;
  }

  void first_pass(int32_t i) {
    const Node& n = p_.graph[i];
    const int32_t root = p_.root(i);
    const DeviceSet devices = p_.candidates(root);
    if (!n.inputs.empty() && (n.op->metadata() || passes_on(i))) {
      const int32_t in = n.inputs[0].node;
      const int32_t there = p_.device_of[p_.root(in)];
      if (there >= 0 && !later(in) && devices.has(there)) {
        return p_.decide(root, there, PlaceRule::kInput, i, in);
      }
    }
    if (!p_.obey(root)) p_.use_default(root);
  }

  void ask_consumer(int32_t i, bool later) {
    const int32_t mine = later ? kSeveral : p_.device_of[p_.root(i)];
    const auto tell = [&](int32_t of) {
      int32_t& device = out_[of].device;
      if (device == kNobody) {
        device = mine;
        out_[of].user = i;
      } else if (device != mine) {
        device = kSeveral;
      }
    };
    for (const ValueRef& v : p_.graph[i].inputs) tell(v.node);
    for (const int32_t c : p_.graph[i].controls) tell(c);
  }

  void second_pass(int32_t i) {
    const int32_t root = p_.root(i);
    const DeviceSet devices = p_.candidates(root);
    const Out& out = out_[i];
    if (out.device >= 0 && devices.has(out.device)) {
      return p_.decide(root, out.device, PlaceRule::kConsumers, i, out.user);
    }
    if (!p_.obey(root)) p_.use_default(root);
  }

  Placer& p_;
  std::vector<Out> out_;
};

}  // namespace

void place_by_tensorflows_rules(Placer& placer) {
  TensorFlowRules(placer).run();
}

}  // namespace berth
