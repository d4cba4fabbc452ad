// Calls that return resources: their bodies determine the devices.

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

#include "op/control_flow.h"
#include "place/constraint_sets.h"

namespace berth {

namespace {

// Nested bodies, deeper than in any program.
constexpr int kMaxDepth = 64;
thread_local int t_depth = 0;

struct Depth {
  Depth() { ++t_depth; }
  ~Depth() { --t_depth; }
};

bool returns_resource(const Node& n) {
  return std::any_of(n.outputs.begin(), n.outputs.end(),
                     [](const OutSpec& s) { return s.dtype == resource; });
}

// For each argument of a callee, the node's input.
std::vector<int> inputs_of(const Node& n, const Callable& callee) {
  if (n.op->kind() == OpKind::kControl) {
    return callee_inputs(*n.op, n.attrs.get(), callee);
  }
  std::vector<int> same(callee.body()->args.size());
  for (size_t i = 0; i < same.size(); ++i) same[i] = static_cast<int>(i);
  return same;
}

}  // namespace

void ConstraintSets::connect_calls() {
  for (int32_t i = 0; i < graph_.size(); ++i) {
    const Node& n = graph_[i];
    if (n.attrs.get() != nullptr && returns_resource(n)) connect_call(i);
  }
}

int32_t ConstraintSets::add_call_value(const CallValue& value, int32_t after) {
  if (first_call_value_.empty()) {
    first_call_value_.assign(graph_.nodes.size(), -1);
  }
  int32_t& first = first_call_value_[value.value.node];
  if (first < 0) first = static_cast<int32_t>(call_values_.size());
  call_values_.push_back(value);
  Set s;
  s.allowed = value.allowed;
  s.resource = s.requested = value.resource;
  s.pinned = value.pinned;
  s.pin = value.pin;
  s.first = after;
  const int32_t element = num_elements();
  sets_.push_back(s);
  parent_.push_back(element);
  return element;
}

// Each body is read once per request of its calls, however often it is called.
const ConstraintSets::BodyFacts& ConstraintSets::facts_of(
    const Callable& callee, DeviceId request) {
  const auto [it, fresh] = bodies_->try_emplace({&callee, request});
  BodyFacts& facts = it->second;
  if (!fresh || t_depth >= kMaxDepth) return facts;
  const Depth depth;
  Graph body = *callee.body();
  // The call's request applies in a body that requests nothing.
  for (Node& b : body.nodes) {
    if (b.requested.empty() && b.op->kind() != OpKind::kArgument)
      b.requested = request;
  }
  ConstraintSets inside(body, options_, devices_);
  inside.bodies_ = bodies_;
  inside.connect();
  for (const ValueRef& v : body.outputs) {
    const int32_t root = inside.find(inside.element_of(v));
    const Set& s = inside.sets_[root];
    facts.results.push_back({root, s.allowed, s.resource, s.pinned, s.pin});
  }
  for (const int32_t a : body.args) facts.args.push_back(inside.find(a));
  return facts;
}

void ConstraintSets::connect_call(int32_t i) {
  const Node& n = graph_[i];
  for (const auto& [name, attr] : n.attrs.get()->pairs()) {
    const auto* f = std::get_if<std::shared_ptr<Callable>>(&attr);
    if (f != nullptr && *f != nullptr && (*f)->body() != nullptr) {
      connect_callee(i, **f);
    }
  }
}

// Contradictions inside a body are reported with the call, innermost first.
template <class Failure>
void ConstraintSets::fail_in_body(int32_t call, const Callable& callee,
                                  const Failure& inside) {
  PlaceConflict conflict = inside.conflict();
  for (PlaceConstraint& c : conflict.constraints) {
    if (c.function.empty()) c.function = callee.body()->name;
  }
  throw Failure(
      fmt::format("{}: inside function \"{}\": {}", describe(graph_, call),
                  callee.body()->name, inside.what()),
      std::move(conflict));
}

const ConstraintSets::BodyFacts& ConstraintSets::facts_in_call(
    int32_t call, const Callable& callee) {
  try {
    return facts_of(callee, graph_[call].requested);
  } catch (const PlaceInvalid& e) {
    fail_in_body(call, callee, e);
  } catch (const PlaceNoKernel& e) {
    fail_in_body(call, callee, e);
  }
}

void ConstraintSets::connect_callee(int32_t i, const Callable& callee) {
  const Node& n = graph_[i];
  const BodyFacts& facts = facts_in_call(i, callee);
  // For each set of the body, the element here that stands for it.
  std::unordered_map<int32_t, int32_t> known;
  for (size_t k = 0; k < facts.results.size() && k < n.outputs.size(); ++k) {
    if (n.outputs[k].dtype != resource) continue;
    const BodyFacts::Result& r = facts.results[k];
    const ValueRef v = {i, static_cast<int32_t>(k)};
    // A second branch adds to the facts of the first.
    const int32_t old = element_of(v);
    const int32_t element =
        add_call_value({v, r.allowed, r.resource, r.pinned, r.pin}, i);
    if (old != i) unite_edge(old, element, Kind::kCall);
    const auto [it, fresh] = known.try_emplace(r.root, element);
    if (!fresh) unite_edge(it->second, element, Kind::kCall);
  }
  const std::vector<int> in = inputs_of(n, callee);
  for (size_t a = 0; a < facts.args.size() && a < in.size(); ++a) {
    const auto k = static_cast<size_t>(in[a]);
    if (k >= n.inputs.size()) continue;
    if (graph_.spec(n.inputs[k]).dtype != resource) continue;
    const auto it = known.find(facts.args[a]);
    if (it == known.end()) continue;
    unite_edge(element_of(n.inputs[k]), it->second, Kind::kCall);
  }
}

}  // namespace berth
