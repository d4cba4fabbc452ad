#include "planner/problem_of_graph.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "berth/errors.h"
#include "graph/variable_range.h"
#include "place/disjoint_sets.h"
#include "place/order.h"
#include "place/placer.h"
#include "planner/plan_order.h"
#include "simulate/timing_tables.h"

namespace berth {

namespace {

// Results with fewer elements are not fused, and cost nothing to separate.
constexpr int64_t kMinFusedElements = 256;
// Graphs with more ops than this have coarser groups: an elementwise op that
// only passes a value on stays with it.
constexpr int32_t kManyOps = 2000;

// Per node, what must have run before it besides what it reads and waits for:
// accesses of one variable keep their order, and an op that reads the bytes of
// a read comes before the next write.
class AccessOrder {
 public:
  explicit AccessOrder(const Graph& graph)
      : graph_(graph),
        reads_(graph.nodes.size(), {-1}),
        before_(reads_.size()) {}

  std::vector<std::vector<int32_t>> run() {
    for (int32_t i = 0; i < graph_.size(); ++i) {
      for (size_t k = 0; k < graph_[i].inputs.size(); ++k) {
        if (graph_.spec(graph_[i].inputs[k]).dtype == resource) access(i, k);
        look(i, k);
      }
    }
    return std::move(before_);
  }

 private:
  void access(int32_t i, size_t k) {
    const Node& n = graph_[i];
    const bool write = n.op->kind() == OpKind::kCall ||
                       n.op->kind() == OpKind::kControl ||
                       writes(n.op->input(static_cast<int>(k)).access);
    accesses_.add(variable_range(graph_, n.inputs[k]), i, write, before_[i]);
  }

  // A reader of the value of a variable, through aliases too, counts as one
  // more read of it.
  void look(int32_t i, size_t k) {
    const Node& n = graph_[i];
    const ValueRef v = n.inputs[k];
    if (n.op->kind() == OpKind::kReadVariable) {
      reads_[i] = variable_range(graph_, v);
      return;
    }
    const VariableRange& read = reads_[v.node];
    if (read.handle < 0) return;
    if (n.op->kind() != OpKind::kAlias) {
      std::vector<int32_t> written;  // since then: it reads a copy
      accesses_.add(read, i, false, written);
    } else if (k == 0) {
      reads_[i] = read;
    }
  }

  const Graph& graph_;
  std::vector<VariableRange> reads_;  // per node: what it renames
  std::vector<std::vector<int32_t>> before_;
  VariableAccesses accesses_;
};

void add_controls(SimulatedGraph& g,
                  const std::vector<std::vector<int32_t>>& more) {
  Rows<int32_t> controls;
  std::vector<int32_t> row;
  for (int32_t i = 0; i < g.num_nodes(); ++i) {
    row.assign(g.controls[i].begin(), g.controls[i].end());
    for (const int32_t c : more[i]) {
      const bool read = std::ranges::any_of(
          g.reads[i], [&](int32_t v) { return g.producer[v] == c; });
      if (!read && c != i) row.push_back(c);
    }
    sort_unique(row);
    controls.add(row);
  }
  g.controls = std::move(controls);
  g.finish();
}

class Maker {
 public:
  Maker(const Graph& graph, const PlaceOptions& places, CostTable costs,
        const GraphProblemOptions& options)
      : graph_(graph), places_(places), options_(options) {
    p_.name = graph.name;
    p_.model = options.model;
    p_.costs = std::move(costs);
    p_.graph = SimulatedGraph(graph);
    add_controls(p_.graph, AccessOrder(graph).run());
  }

  PlanProblem run() {
    add_candidate("the scopes as written", PlacePolicy::kBerth);
    try {
      add_candidate("TensorFlow's rules", PlacePolicy::kTensorFlow);
    } catch (const errors::Error&) {
      // They have no placement: nothing to compare with.
    }
    describe_ops();
    if (p_.model == PlanModel::kPipeline) find_once();
    find_sets();
    allow_arguments();
    for (const ParsedContract& c : options_.contracts) restrict_to(c);
    restrict_to_blocks();
    if (options_.coarse) p_.candidates.clear();
    join_units();
    number_groups();
    return std::move(p_);
  }

 private:
  size_t size() const { return graph_.nodes.size(); }

  // The index in the costs of each device of a placer.
  std::vector<int32_t> numbers_of(const DeviceTable& devices) const {
    std::vector<int32_t> numbers;
    for (int32_t d = 0; d < devices.size(); ++d) {
      numbers.push_back(p_.costs.find(devices[d].id.text()));
      if (numbers.back() >= 0) continue;
      throw errors::InvalidArgument(fmt::format(
          "plan \"{}\": there are no costs for {}; expected those of all "
          "devices to place on",
          graph_.name, devices[d].id.text()));
    }
    return numbers;
  }

  void add_candidate(const char* name, PlacePolicy policy) {
    Graph copy = graph_;
    PlaceOptions places = places_;
    places.policy = policy;
    Placer placer(copy, places);
    run_rules(placer);
    const std::vector<int32_t> numbers = numbers_of(placer.devices);
    PlanCandidate c;
    c.name = name;
    for (int32_t i = 0; i < graph_.size(); ++i) {
      c.plan.device.push_back(numbers[placer.device_of[placer.root(i)]]);
    }
    for (size_t a = 0; a < graph_.args.size(); ++a) {
      if (const int32_t d = argument_on(a); d >= 0) {
        c.plan.device[graph_.args[a]] = d;
      }
    }
    if (order_.empty()) order_ = program_order();
    c.plan.sequence = order_;
    p_.candidates.push_back(std::move(c));
  }

  int32_t argument_on(size_t index) const {
    return index < options_.arguments_on.size() ? options_.arguments_on[index]
                                                : -1;
  }

  std::vector<int32_t> program_order() const {
    return ordered_ops(p_.graph, options_.order.empty()
                                     ? find_work(graph_).order
                                     : options_.order);
  }

  void describe_ops() {
    for (int32_t i = 0; i < graph_.size(); ++i) {
      p_.names.push_back(graph_[i].name);
      p_.backward.push_back(graph_[i].follows >= 0);
    }
    p_.resident_bytes.assign(size(), 0);
  }

  // Constants, variables, reads of these; updates of variables that nothing
  // but updates waits for. (What waits for others, such as those of random
  // generators, is computed again for every micro-batch.)
  void find_once() {
    const SimulatedGraph& g = p_.graph;
    std::vector<int32_t> order = topological_order(g);
    std::vector<uint8_t>& once = p_.once;
    once.assign(size(), 0);
    for (const int32_t i : order) {
      const bool source = g.kind[i] == SimulatedGraph::Kind::kSource;
      once[i] = source ? graph_[i].op->kind() != OpKind::kArgument
                       : !p_.takes_time(i) && g.controls[i].empty() &&
                             std::ranges::all_of(g.reads[i], [&](int32_t v) {
                               return once[g.producer[v]] != 0;
                             });
    }
    std::vector<uint8_t> last(size(), 1);  // only updates wait for it
    std::ranges::reverse(order);
    for (const int32_t i : order) {
      const auto waits = [&](int32_t next) { last[i] &= last[next]; };
      for_each_after(g, i, waits);
      if (updates(i)) {
        once[i] = last[i];
      } else if (p_.takes_time(i)) {
        last[i] = 0;
      }
    }
  }
  bool updates(int32_t i) const {
    const Node& n = graph_[i];
    for (size_t k = 0; k < n.inputs.size() && p_.takes_time(i); ++k) {
      if (graph_.spec(n.inputs[k]).dtype == resource &&
          n.op->kind() != OpKind::kCall && n.op->kind() != OpKind::kControl &&
          writes(n.op->input(static_cast<int>(k)).access)) {
        return true;
      }
    }
    return false;
  }

  // What must be together, and where it may be.
  void find_sets() {
    Graph free = graph_;
    for (const int32_t v : options_.movable) free[v].variable = Tensor();
    if (!options_.keep_scopes) {
      for (Node& n : free.nodes) {
        if (!obeys_contract(n)) n.requested.clear();
      }
    }
    Placer placer(free, places_);
    const std::vector<int32_t> numbers = numbers_of(placer.devices);
    sets_ = DisjointSets(size());
    std::vector<int32_t> first(placer.device_of.size(), -1);
    DeviceSet numbered = 0, mask = 0;  // most sets are that of the op before
    for (int32_t i = 0; i < graph_.size(); ++i) {
      const size_t root = placer.root(i);
      if (first[root] >= 0) {
        sets_.join(first[root], i);
        p_.allowed.push_back(p_.allowed[first[root]]);
        continue;
      }
      first[root] = i;
      const DeviceSet left = placer.candidates(placer.root(i));
      if (left != numbered) {
        numbered = left;
        mask = 0;
        for (size_t d = 0; d < numbers.size(); ++d) {
          if (left.has(d)) mask |= device_bit(numbers[d]);
        }
      }
      p_.allowed.push_back(mask);
    }
  }

  bool obeys_contract(const Node& n) const {
    for (const ParsedContract& c : options_.contracts) {
      if (c.contract.no_fallback) return true;
    }
    for (const NodeSource& s : n.sources) {
      for (auto* at = s.contracts.get(); at; at = at->outer.get()) {
        if (at->scope->parsed.contract.no_fallback) return true;
      }
    }
    return false;
  }

  void allow_arguments() {
    for (size_t a = 0; a < graph_.args.size(); ++a) {
      const int32_t d = argument_on(a);
      if (d >= 0) p_.allowed[sets_.find(graph_.args[a])] = device_bit(d);
    }
  }

  DeviceSet matching(const DeviceName& name) const {
    DeviceSet mask = 0;
    for (int32_t d = 0; d < p_.num_devices(); ++d) {
      const std::string& full = p_.costs.devices[d].name;
      if (name.matches(DeviceId(full).name())) mask |= device_bit(d);
    }
    return mask;
  }

  void restrict_op(int32_t i, const ParsedContract& c) {
    const Node& n = graph_[i];
    if (n.op->graph_only()) return;
    DeviceSet mask = matching(c.stays_on);
    for (size_t k = 0; k < c.ops.size(); ++k) {
      const std::string& pattern = c.contract.ops[k].op;
      bool named = names_op(pattern, n.name);
      for (const NodeSource& s : n.sources) {
        named = named || names_op(pattern, s.name);
      }
      if (named) mask &= matching(c.ops[k]);
    }
    DeviceSet& allowed = p_.allowed[sets_.find(i)];
    if ((allowed & mask) == 0) {
      throw errors::InvalidArgument(fmt::format(
          "{} cannot be where contract \"{}\" wants it: neither its kernels, "
          "its variables nor what else was asked for allow a device that "
          "matches; change the contract or what binds the op",
          describe(graph_, i), c.contract.name));
    }
    allowed &= mask;
  }

  void restrict_to(const ParsedContract& c) {
    for (int32_t i = 0; i < graph_.size(); ++i) restrict_op(i, c);
    for (size_t k = 0; k < c.memory.size(); ++k) {
      const DeviceSet mask = matching(c.memory[k]);
      for (int32_t d = 0; d < p_.num_devices(); ++d) {
        int64_t& limit = p_.costs.devices[d].memory_limit;
        const int64_t bytes = c.contract.peak_memory[k].bytes;
        if (mask.has(d)) limit = limit > 0 ? std::min(limit, bytes) : bytes;
      }
    }
  }

  void restrict_to_blocks() {
    for (int32_t i = 0; i < graph_.size(); ++i) {
      for (const NodeSource& s : graph_[i].sources) {
        for (auto* at = s.contracts.get(); at; at = at->outer.get()) {
          restrict_op(i, at->scope->parsed);
        }
      }
    }
  }

  // Joins two ops if that forbids no candidate and leaves a device.
  void join(int32_t a, int32_t b) {
    const bool apart =
        std::ranges::any_of(p_.candidates, [&](const PlanCandidate& c) {
          return c.plan.device[a] != c.plan.device[b];
        });
    if (apart) return;
    const auto [x, y] = std::minmax({sets_.find(a), sets_.find(b)});
    const DeviceSet both = p_.allowed[x] & p_.allowed[y];
    if (both == 0) return;
    p_.allowed[x] = both;
    sets_.join(x, y);
  }

  void join_units() {
    std::vector<int32_t> users(size(), 0);
    for (const Node& n : graph_.nodes) {
      for (const ValueRef& v : n.inputs) ++users[v.node];
    }
    for (const ValueRef& v : graph_.outputs) ++users[v.node];
    const bool coarse = graph_.size() > kManyOps;
    for (int32_t i = 0; i < graph_.size(); ++i) {
      const Node& n = graph_[i];
      if (n.inputs.empty()) continue;
      if (p_.graph.alias_of[i] >= 0 || n.op->metadata()) {
        join(i, n.inputs[0].node);
        continue;
      }
      if (options_.coarse) join_variables(i);
      if (!fusible(n)) continue;
      for (const ValueRef& v : n.inputs) {
        const Node& from = graph_[v.node];
        if (users[v.node] != 1 || !p_.takes_time(v.node)) continue;
        const bool fuse =
            fusible(from) && from.outputs[0].shape == n.outputs[0].shape;
        if (fuse || (coarse && v == n.inputs[0])) join(i, v.node);
      }
    }
  }

  // Joins an op with the variables that it reads.
  void join_variables(int32_t i) {
    int64_t made = 0;
    for (const int64_t bytes : p_.costs.bytes[i]) made += bytes;
    for (const ValueRef& v : graph_[i].inputs) {
      int32_t from = v.node;
      while (graph_[from].op->kind() == OpKind::kAlias) {
        from = graph_[from].inputs[0].node;
      }
      if (graph_[from].op->kind() == OpKind::kReadVariable &&
          p_.costs.bytes[from][0] > made) {
        join(i, from);
      }
    }
  }

  static bool fusible(const Node& n) {
    return n.op->kind() == OpKind::kCompute && n.op->elementwise() &&
           !n.op->stateful() && !n.op->random() && n.outputs.size() == 1 &&
           n.outputs[0].shape.num_elements() >= kMinFusedElements;
  }

  void number_groups() {
    std::vector<int32_t> number(size(), -1);
    p_.group.resize(size());
    for (int32_t i = 0; i < graph_.size(); ++i) {
      const size_t root = sets_.find(i);
      if (number[root] < 0) number[root] = p_.num_groups++;
      p_.group[i] = number[root];
      p_.allowed[i] = p_.allowed[root];
    }
  }

  const Graph& graph_;
  const PlaceOptions& places_;
  const GraphProblemOptions& options_;
  PlanProblem p_;
  DisjointSets sets_;           // of sets, and of units
  std::vector<int32_t> order_;  // of all candidates
};

}  // namespace

PlanProblem problem_of(const Graph& graph, const PlaceOptions& places,
                       CostTable costs, const GraphProblemOptions& options) {
  return Maker(graph, places, std::move(costs), options).run();
}

}  // namespace berth
