// ConstraintSets: nodes that must share a device, and what binds them to one.
//
// Union-find over nodes. A set knows which devices all its members allow and
// which they request. A forest of proofs remembers the constraint behind every
// union, so the connection between two members can be read off. It also tracks
// values that come out of a call, whose node may itself be on many devices. One
// thread.

#ifndef BERTH_PLACE_CONSTRAINT_SETS_H_
#define BERTH_PLACE_CONSTRAINT_SETS_H_

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "op/callable.h"
#include "place/node_kernels.h"

namespace berth {

class ConstraintSets {
 public:
  using Kind = PlaceConstraint::Kind;
  using NameId = DeviceTable::NameId;

  struct Set {
    DeviceSet allowed = 0;   // assigned, variables, kernels, host data
    NameId resource = 0;     // where its handles were requested
    NameId requested = 0;    // a specialisation of `resource`
    int32_t priorities = 0;  // of kernels
    int32_t size = 1;
    int32_t first = 0;    // the member with the lowest index
    bool pinned = false;  // by an assigned device or a variable
    DeviceSet pin = 0;    // to that device; `allowed` is then that device, or
                          // for a composite device all that kernels allow
  };

  // A resource that a call returns; element graph.size() + i.
  struct CallValue {
    ValueRef value;
    DeviceSet allowed = 0;
    NameId resource = 0;
    bool pinned = false;
    DeviceSet pin = 0;
  };

  // Reads the constraints on single nodes. Throws PlaceInvalid and
  // PlaceNoKernel for those that cannot be satisfied by themselves.
  ConstraintSets(const Graph& graph, const PlaceOptions& options,
                 DeviceTable& devices);

  // Reads the constraints that connect nodes, and joins the sets. Throws
  // PlaceInvalid and PlaceNoKernel. Contradictory colocations go into
  // `ignored_groups` unless requests are hard.
  void connect();

  int32_t find(int32_t i) {
    while (parent_[i] != i) i = parent_[i] = parent_[parent_[i]];
    return i;
  }
  Set& set_of(int32_t i) { return sets_[find(i)]; }
  const Set& at_root(int32_t root) const { return sets_[root]; }
  bool together(int32_t a, int32_t b) { return find(a) == find(b); }
  int32_t num_elements() const { return static_cast<int32_t>(sets_.size()); }
  // The node that an element is or comes from.
  int32_t node_of(int32_t element) const {
    return element < graph_.size()
               ? element
               : call_values_[element - graph_.size()].value.node;
  }
  NameId request(int32_t node) const { return requests_[node]; }
  bool handle(int32_t i) const;  // makes a variable: no inputs, one resource

  struct IgnoredGroup {
    int32_t node, with;
    std::string name;
  };
  std::vector<IgnoredGroup> ignored_groups;
  std::vector<IgnoredGroup> lone_groups;  // with no other member

  // What an element allows by itself, without irrelevant constraints.
  std::vector<PlaceConstraint> own_constraints(int32_t element);
  // The constraints that connect two members of a set, from a to b.
  std::vector<PlaceConstraint> connection(int32_t a, int32_t b) const;

  // Throws the reason why the set of element `i` has no device.
  [[noreturn]] void fail(int32_t i);

  const Graph& graph() const { return graph_; }
  const PlaceOptions& options() const { return options_; }
  DeviceTable& devices() { return devices_; }
  NodeKernels& kernels() { return kernels_; }
  bool hard() const { return options_.soft == config::SoftPlacement::kError; }

 private:
  friend class ConflictFinder;
  struct Link {  // a binary constraint that joined two sets
    int32_t from, to;
    Kind kind;
    int32_t name;  // its group
  };
  struct Proof {
    int32_t parent = -1;
    int32_t link = -1;
  };

  void init(int32_t i);
  DeviceSet assigned_to(int32_t i);
  void read_request(int32_t i);
  NameId resource_of(int32_t i);
  void connect_edges();
  void connect_calls();
  struct BodyFacts {
    struct Result {
      int32_t root;  // its set inside
      DeviceSet allowed;
      NameId resource;
      bool pinned;
      DeviceSet pin;
    };
    std::vector<Result> results;
    std::vector<int32_t> args;  // roots
  };
  using BodyCache = std::map<std::pair<const Callable*, DeviceId>, BodyFacts>;
  const BodyFacts& facts_of(const Callable& callee, DeviceId request);
  const BodyFacts& facts_in_call(int32_t call, const Callable& callee);
  template <class Failure>
  [[noreturn]] void fail_in_body(int32_t call, const Callable& callee,
                                 const Failure& inside);
  void connect_call(int32_t i);
  void connect_callee(int32_t i, const Callable& callee);
  int32_t add_call_value(const CallValue& value, int32_t after);
  void connect_groups();
  void find_lone_groups(
      const std::unordered_map<std::string_view, int32_t>& heads);
  bool host_only(ValueRef variant) const;
  bool shares_memory(ValueRef variable, int32_t range);
  void restrict_to_host(int32_t i);

  // The element that makes a value.
  int32_t element_of(ValueRef v) const;
  // False: contradiction, nothing changed. `from` is the source of an edge.
  bool unite(int32_t from, int32_t to, Kind kind, int32_t name = -1);
  bool merge(const Set& a, const Set& b, Kind kind, Set* both);
  void link(int32_t from, int32_t to, Kind kind, int32_t name);
  void root_proofs_at(int32_t i);
  void unite_edge(int32_t from, int32_t to, Kind kind);
  bool leaves_composite(int32_t from, int32_t to);
  PlaceConstraint text_of(const Link& l) const;

  const Graph& graph_;
  const PlaceOptions& options_;
  DeviceTable& devices_;
  NodeKernels kernels_;
  std::vector<std::string> memories_;  // per device: which memory it uses
  std::vector<int32_t> parent_;
  std::vector<Set> sets_;         // at roots
  std::vector<NameId> requests_;  // per node
  DeviceId last_request_;         // parsed from last_name_
  NameId last_name_ = 0;
  std::vector<Proof> proofs_;  // empty until the first union
  std::vector<Link> links_;
  std::vector<std::string> group_names_;
  std::vector<CallValue> call_values_;
  std::shared_ptr<BodyCache> bodies_ = std::make_shared<BodyCache>();
  std::vector<int32_t> first_call_value_;  // per node, -1; empty: no calls
  std::vector<int32_t> on_host_;           // nodes with host data
  std::vector<int32_t> reads_host_variants_;
  int32_t broken_ = -1;  // a member of a set that edges make unsatisfiable
  std::vector<NameId> active_requests_;  // of sets that cannot be joined
};

// Returns `MatMul "dense/MatMul" (model.cc:41)`.
std::string describe(const Graph& graph, int32_t node);
Site site_of(const Graph& graph, int32_t node);
// The user's name for the variable or resource behind the node's handle:
// "dense/kernel" for "dense/VarHandleOp".
const std::string& variable_name(const Node& node);

}  // namespace berth

#endif  // BERTH_PLACE_CONSTRAINT_SETS_H_
