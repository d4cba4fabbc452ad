#include "distribute/data_parallel/sharding_analysis.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/immortal.h"
#include "base/where.h"
#include "berth/errors.h"
#include "exec/slicing_cost.h"
#include "tensor/variable_state.h"

namespace berth::distribute {

namespace {

constexpr int8_t kWhole = SplitSignature::kWhole;
constexpr int8_t kPartialSum = SplitSignature::kPartialSum;

using State = SplitState::Kind;
using Choice = SplitChoice::Kind;

bool is_range(const Node& n) { return n.op->name() == "Range"; }

[[noreturn]] void refuse_update(const Node& n) {
  const Site site = n.sources.empty() ? Site{} : n.sources[0].site;
  throw errors::Unimplemented(fmt::format(
      "{}{}: {} updates variables of which some are divided along an axis and "
      "some are not, or along another; expected one layout for a variable and "
      "what its optimizer keeps of it",
      n.name, where_text(nullptr, site), n.op->name()));
}

// Replaces the dimensions of the whole in `dims` by those of the part; open
// dimensions stay open. Returns nothing if `dims` is another shape.
template <class Dims>
void put_shape(Dims& dims, size_t rank, const Shape& whole, const Shape& part) {
  const auto n = static_cast<size_t>(whole.rank());
  if (rank != n) return;
  for (size_t i = 0; i < n; ++i) {
    const int axis = static_cast<int>(i);
    if (dims[axis] >= 0 && dims[axis] != whole[axis]) return;
  }
  for (size_t i = 0; i < n; ++i) {
    const int axis = static_cast<int>(i);
    if (dims[axis] >= 0) dims[axis] = part[axis];
  }
}

// Attributes that hold the shape of the result get that of the part.
AttrsRef with_shape(const Attrs* attrs, const Shape& whole, const Shape& part) {
  if (attrs == nullptr) return {};
  auto pairs = attrs->pairs();
  for (auto& [name, value] : pairs) {
    if (auto* shape = std::get_if<Shape>(&value)) {
      put_shape(*shape, static_cast<size_t>(shape->rank()), whole, part);
    } else if (auto* list = std::get_if<std::vector<int64_t>>(&value)) {
      put_shape(*list, list->size(), whole, part);
    }
  }
  return AttrsRef(std::move(pairs));
}

}  // namespace

SplitAnalysis::SplitAnalysis(const Graph& graph, int64_t batch,
                             std::vector<int64_t> lengths, int64_t unit,
                             bool exact, bool layers)
    : graph_(graph),
      batch_(batch),
      lengths_(std::move(lengths)),
      unit_(unit),
      exact_(exact),
      layers_(layers),
      binder_(graph) {}

AttrsRef SplitAnalysis::range_attrs(const Node& n, int64_t first,
                                    int64_t count) {
  const Attrs* attrs = n.attrs.get();
  const auto of = [&](const char* name) {
    return n.op->attr<int64_t>(attrs, name);
  };
  const int64_t start = of("start") + first * of("delta");
  return AttrsRef({{"start", start},
                   {"limit", start + count * of("delta")},
                   {"delta", of("delta")},
                   {"dtype", n.op->attr<DType>(attrs, "dtype")}});
}

SplitState SplitAnalysis::state_of(int8_t axis) {
  if (axis >= 0) return {State::kSplit, axis};
  return {axis == kPartialSum ? State::kPartial : State::kWhole, 0};
}

OutSpec SplitAnalysis::local(const OutSpec& whole, SplitState state,
                             int64_t examples) const {
  OutSpec part = whole;
  if (state.kind == State::kSplit) {
    int64_t& length = part.shape[state.axis];
    length = length * examples / batch_;
  }
  return part;
}

bool SplitAnalysis::localize(int32_t node, const SplitChoice& choice,
                             int64_t examples, LocalNode* out) const {
  const Node& n = graph_[node];
  const SplitSignature& s = *choice.signature;
  std::vector<OutSpec> in;
  for (size_t i = 0; i < n.inputs.size(); ++i) {
    in.push_back(
        local(graph_.spec(n.inputs[i]), state_of(s.inputs[i]), examples));
  }
  std::vector<SpecView> views;
  for (const OutSpec& spec : in) views.push_back(spec.view());
  std::vector<OutSpec> want;
  for (size_t o = 0; o < n.outputs.size(); ++o) {
    want.push_back(local(n.outputs[o], state_of(s.outputs[o]), examples));
  }
  const auto fits = [&](AttrsRef attrs) {
    out->attrs = std::move(attrs);
    out->outputs.assign(n.outputs.size(), {});
    try {
      infer_outputs(*n.op, out->attrs.get(), views, out->outputs);
    } catch (const errors::Error&) {
      return false;
    }
    return out->outputs == want;
  };
  if (is_range(n))
    return fits(range_attrs(n, 0, examples * n.outputs[0].shape[0] / batch_));
  if (!want.empty() && !(want[0].shape == n.outputs[0].shape) &&
      fits(with_shape(n.attrs.get(), n.outputs[0].shape, want[0].shape))) {
    return true;
  }
  return fits(n.attrs);
}

bool SplitAnalysis::accepts(int32_t node, const SplitSignature& s,
                            int* gathers) const {
  const Node& n = graph_[node];
  if (s.inputs.size() != n.inputs.size() ||
      s.outputs.size() != n.outputs.size()) {
    return false;
  }
  const auto whole_examples = [&](int8_t axis, const OutSpec& spec) {
    return axis < 0 || (axis < spec.shape.rank() && can_cut(spec.shape[axis]));
  };
  int cuts = 0;
  for (size_t i = 0; i < n.inputs.size(); ++i) {
    const ValueRef v = n.inputs[i];
    const SplitState& state = states_.values[v.node][v.output];
    const int8_t want = s.inputs[i];
    if (!whole_examples(want, graph_.spec(v))) return false;
    if (state.kind == State::kSplit) {
      if (want == state.axis) {
        ++cuts;
      } else if (want < 0 || n.has_effect()) {
        ++*gathers;
      } else {
        return false;
      }
    } else if (want >= 0 && graph_.spec(v).dtype == resource) {
      return false;
    }
  }
  for (size_t o = 0; o < n.outputs.size(); ++o) {
    if (!whole_examples(s.outputs[o], n.outputs[o])) return false;
  }
  if (exact_ && !is_first_axis(node, s)) return false;
  // With whole inputs only, splitting pays only if these are small.
  if (cuts == 0) {
    if (layers_) return is_range(n) && s.outputs[0] == 0;
    const bool made = std::all_of(s.inputs.begin(), s.inputs.end(),
                                  [](int8_t axis) { return axis == kWhole; }) &&
                      !s.outputs.empty() && s.outputs[0] == 0 &&
                      n.outputs[0].shape[0] == batch_ && *gathers == 0;
    if (!made) return false;
  }
  return true;
}

// Slices, which fix the bits, are split along a first axis only; ops that only
// move elements, or compute each by itself, have the same bits anyway.
bool SplitAnalysis::is_first_axis(int32_t node, const SplitSignature& s) const {
  const Node& n = graph_[node];
  const bool moves = n.op->elementwise() || n.op->kind() == OpKind::kAlias ||
                     work_of_op(graph_, node).cost.flops == 0;
  if (moves && !SlicingCost::adds(s)) return true;
  for (size_t i = 0; i < n.inputs.size(); ++i) {
    if (!cut_is_dense(graph_.spec(n.inputs[i]).shape, s.inputs[i])) {
      return false;
    }
  }
  for (size_t o = 0; o < n.outputs.size(); ++o) {
    if (!cut_is_dense(n.outputs[o].shape, s.outputs[o])) return false;
  }
  return true;
}

// Adds partial sums of two values, or only forwards one.
bool SplitAnalysis::linear(const Node& n) const {
  const std::string& op = n.op->name();
  const bool alias = n.op->kind() == OpKind::kAlias && n.inputs.size() == 1;
  if (!alias && (exact_ || (op != "AddV2" && op != "AddN" && op != "Neg"))) {
    return false;
  }
  return std::all_of(n.inputs.begin(), n.inputs.end(), [&](ValueRef v) {
    return states_.values[v.node][v.output].kind == State::kPartial;
  });
}

// {from} -> {to}, for the axes that the two rules below use.
const SplitSignature* rule_of(int from, int to) {
  constexpr size_t kMost = 8;
  using Rules = std::array<std::array<SplitSignature, kMost>, kMost>;
  static const Rules& rules = immortal<Rules>([] {
    Rules all;
    for (size_t a = 0; a < kMost; ++a) {
      for (size_t b = 0; b < kMost; ++b) {
        all[a][b] = {{static_cast<int8_t>(a)}, {static_cast<int8_t>(b)}};
      }
    }
    return all;
  }());
  const auto a = static_cast<size_t>(from), b = static_cast<size_t>(to);
  return a < kMost && b < kMost ? &rules[a][b] : nullptr;
}

// Parts along an axis are contiguous in each row of the axes before it,
// whatever the shape of what follows.
const SplitSignature* SplitAnalysis::reshape_rule(int32_t node) const {
  const Node& n = graph_[node];
  if (n.op->name() != "Reshape") return nullptr;
  const ValueRef v = n.inputs[0];
  const SplitState& state = states_.values[v.node][v.output];
  const Shape &in = graph_.spec(v).shape, &out = n.outputs[0].shape;
  if (state.kind != State::kSplit || !can_cut(in[state.axis])) return nullptr;
  int64_t rows = 1, before = 1;
  for (int d = 0; d < state.axis; ++d) rows *= in[d];
  int axis = 0;
  while (axis < out.rank() && (before < rows || out[axis] == 1)) {
    before *= out[axis++];
  }
  if (before != rows || axis == out.rank() || out[axis] == 0 ||
      !can_cut(out[axis])) {
    return nullptr;
  }
  return rule_of(state.axis, axis);
}

// A variable that is divided is read in parts.
const SplitSignature* SplitAnalysis::read_rule(int32_t node) const {
  const Node& n = graph_[node];
  if (n.op->kind() != OpKind::kReadVariable) return nullptr;
  const ValueRef v = n.inputs[0];
  const SplitState& state = states_.values[v.node][v.output];
  return state.kind == State::kSplit ? rule_of(state.axis, state.axis)
                                     : nullptr;
}

bool SplitAnalysis::has_divided_variable(const Node& n) const {
  return std::any_of(n.inputs.begin(), n.inputs.end(), [&](ValueRef v) {
    return graph_.spec(v).dtype == resource &&
           states_.values[v.node][v.output].kind == State::kSplit;
  });
}

SplitChoice SplitAnalysis::choose(int32_t node) {
  const Node& n = graph_[node];
  const OpKind kind = n.op->kind();
  const auto is = [&](State s) {
    return std::any_of(n.inputs.begin(), n.inputs.end(), [&](ValueRef v) {
      return states_.values[v.node][v.output].kind == s;
    });
  };
  const bool on_variable = kind == OpKind::kReadVariable || n.has_effect();
  if ((on_variable && !has_divided_variable(n)) ||
      (n.op->graph_only() && kind != OpKind::kTransfer)) {
    return {};
  }
  if (is(State::kPartial) && !is(State::kSplit) && linear(n)) {
    return {Choice::kThrough, nullptr, -1};
  }
  SplitChoice best;
  int least = INT32_MAX;
  const auto consider = [&](const SplitSignature& s, int32_t index) {
    int gathers = 0;
    if (!accepts(node, s, &gathers) || gathers >= least) return;
    const SplitChoice choice{Choice::kCut, &s, index};
    LocalNode local;
    for (const int64_t examples : lengths_) {
      if (!localize(node, choice, examples, &local)) return;
    }
    best = choice;
    least = gathers;
  };
  if (const SplitSignature* rule = reshape_rule(node)) consider(*rule, -1);
  if (const SplitSignature* rule = read_rule(node)) consider(*rule, -1);
  const auto& rules = binder_.signatures(node);
  for (size_t i = 0; i < rules.size(); ++i) {
    consider(rules[i], static_cast<int32_t>(i));
  }
  return best;
}

void SplitAnalysis::start() {
  states_ = {};
  states_.nodes.resize(graph_.nodes.size());
  states_.values.resize(graph_.nodes.size());
  for (int32_t i = 0; i < graph_.size(); ++i) {
    states_.values[i].resize(graph_[i].outputs.size());
  }
}

void SplitAnalysis::visit(int32_t i) {
  const Node& n = graph_[i];
  auto& values = states_.values[i];
  if (n.op->kind() == OpKind::kHandle) {
    const int axis = layers_ && n.variable.defined()
                         ? variable_state(n.variable).split_axis
                         : -1;
    if (axis >= 0) values[0] = state_of(static_cast<int8_t>(axis));
    return;
  }
  if (n.op->kind() == OpKind::kArgument) {
    const Shape& shape = n.outputs[0].shape;
    // A single example cannot be split: it is computed where variables live.
    const bool cut =
        !layers_ && shape.rank() > 0 && shape[0] == batch_ && batch_ > 1;
    if (cut) values[0].kind = State::kSplit;
    return;
  }
  const SplitChoice choice = choose(i);
  states_.nodes[i] = choice;
  if (choice.kind == Choice::kWhole && n.op->update_value() >= 0 &&
      has_divided_variable(n)) {
    refuse_update(n);
  }
  if (choice.kind == Choice::kThrough) {
    for (SplitState& v : values) v.kind = State::kPartial;
  } else if (choice.kind == Choice::kCut) {
    for (size_t o = 0; o < values.size(); ++o) {
      values[o] = state_of(choice.signature->outputs[o]);
    }
  } else if (std::any_of(n.inputs.begin(), n.inputs.end(), [&](ValueRef v) {
               const SplitState& s = states_.values[v.node][v.output];
               // One number of each part is gathered on purpose.
               const bool few =
                   layers_ && graph_.spec(v).shape[s.axis] == batch_;
               return s.kind == State::kSplit && !few;
             })) {
    states_.whole.push_back(i);
  }
}

SplitStates SplitAnalysis::run() {
  start();
  for (int32_t i = 0; i < graph_.size(); ++i) visit(i);
  return std::move(states_);
}

}  // namespace berth::distribute
