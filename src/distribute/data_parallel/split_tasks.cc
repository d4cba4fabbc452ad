// Where the tasks of a split step meet: sums over the replicas of all tasks,
// and values that a task needs whole while others have parts.
//
// Every task takes part in the same meetings, including those whose results it
// does not need and to which it adds nothing.

#include <algorithm>

#include "distribute/data_parallel/emit_graph.h"

namespace berth::distribute {

namespace {

using State = SplitState::Kind;
using Choice = SplitChoice::Kind;

constexpr int64_t kMostOutputs = 64;  // of a node that meets

}  // namespace

// Some task needs it whole, and tasks have at most parts of it.
bool SplitEmit::meets(ValueRef v) const {
  const State kind = state(v).kind;
  if (kind == State::kWhole) return needed_whole_[v.node];
  return of_all_->of(v) != 0;
}

void SplitEmit::find_meetings() {
  const size_t n = from_.nodes.size();
  needed_whole_.assign(n, false);
  argument_.resize(n);
  const auto is_part = [&](ValueRef v) {
    return plan_.tasks.own_rows && from_[v.node].op->name() == "_Arg" &&
           from_.spec(v).shape.rank() > 0;
  };
  for (int32_t i = 0; i < from_.size(); ++i) {
    const SplitChoice& choice = states_.nodes[i];
    const auto& in = from_[i].inputs;
    for (size_t k = 0; k < in.size(); ++k) {
      const bool rows =
          choice.kind == Choice::kCut && choice.signature->inputs[k] == 0;
      if (is_part(in[k]) && !rows) needed_whole_[in[k].node] = true;
    }
  }
  for (const ValueRef& v : from_.outputs) {
    if (is_part(v)) needed_whole_[v.node] = true;
  }
  std::vector<bool> meeting(n, false);
  for (int32_t i = 0; i < from_.size(); ++i) {
    for (size_t o = 0; o < from_[i].outputs.size(); ++o) {
      meeting[i] = meeting[i] || meets({i, static_cast<int32_t>(o)});
    }
  }
  level_.assign(n, 0);
  feeds_.assign(n, false);
  const auto visit = [&](int32_t i, auto&& fn) {
    for (const ValueRef& v : from_[i].inputs) fn(v.node);
    for (const int32_t c : from_[i].controls) fn(c);
  };
  for (int32_t i = 0; i < from_.size(); ++i) {
    visit(i, [&](int32_t p) {
      level_[i] = std::max(level_[i], level_[p] + (meeting[p] ? 1 : 0));
    });
  }
  for (int32_t i = from_.size(); i-- > 0;) {
    if (!meeting[i] && !feeds_[i]) continue;
    visit(i, [&](int32_t p) { feeds_[p] = true; });
  }
}

Node SplitEmit::meeting(ValueRef v, const char* op, const char* what,
                        std::vector<Attrs::Pair> attrs) {
  const OutSpec& spec = from_.spec(v);
  Node node;
  node.op = &op_named(op);
  node.name = unique_name(to_, from_[v.node].name + "/" + what);
  node.sources = from_[v.node].sources;
  node.collective = true;
  node.replica = plan_.tasks.first_here();
  std::vector<int64_t> replicas;
  for (size_t m = 0; m < places_.memories.size(); ++m) {
    if (needs_.of(v) >> m & 1) {
      replicas.push_back(places_.memories[m].replica);
    }
  }
  if (replicas.empty()) replicas = {plan_.tasks.first_here()};
  node.outputs.assign(replicas.size(), spec);
  attrs.insert(attrs.end(), {{"T", spec.dtype},
                             {"shape", spec.shape},
                             {"link", plan_.tasks.link},
                             {"ranks", int64_t{plan_.tasks.ranks()}},
                             {"replicas", replicas},
                             {"number", v.node * kMostOutputs + v.output},
                             {"level", level_[v.node]},
                             {"feeds", bool{feeds_[v.node]}},
                             {"pack_bytes", plan_.pack_bytes},
                             {"device", plan_.tasks.device.text()}});
  node.attrs = AttrsRef(std::move(attrs));
  return node;
}

// Every memory reads the result; a memory without its own reads the first.
void SplitEmit::put_results(ValueRef v, Node node) {
  Made& m = made(v);
  const ValueRef first{to_.size(), 0};
  std::fill(m.whole.begin(), m.whole.end(), first);
  int32_t next = 0;
  for (size_t at = 0; at < places_.memories.size(); ++at) {
    if (needs_.of(v) >> at & 1) m.whole[at] = {first.node, next++};
  }
  add(std::move(node));
}

void SplitEmit::reduce_over_tasks(ValueRef v) {
  std::vector<int64_t> starts, counts;
  std::vector<ValueRef> mine;
  for (size_t k = 0; k < places_.pieces.size(); ++k) {
    const SumPiece& piece = places_.pieces[k];
    if (!is_here(piece.replica)) continue;
    mine.push_back(made(v).pieces[k]);
    if (places_.slices == 0) continue;
    starts.push_back(piece.first);
    counts.push_back(piece.count);
  }
  Node node = meeting(v, "_TaskReduce", "reduce_over_tasks",
                      {{"starts", starts},
                       {"counts", counts},
                       {"slices", int64_t{places_.slices}}});
  node.inputs = std::move(mine);
  put_results(v, std::move(node));
}

void SplitEmit::gather_over_tasks(ValueRef v) {
  const int8_t axis = state(v).axis;
  const int64_t length = from_.spec(v).shape[axis];
  std::vector<int64_t> lengths(static_cast<size_t>(plan_.tasks.ranks()), 0);
  std::vector<ValueRef> parts;
  for (int k = 0; k < plan_.tasks.ranks(); ++k) {
    const auto at = static_cast<size_t>(k);
    for (int r = plan_.tasks.first[at]; r < plan_.tasks.first[at + 1]; ++r) {
      const auto replica = static_cast<size_t>(r);
      lengths[at] += length * places_.examples[replica].rows / places_.batch;
      const ValueRef part = made(v).parts[replica];
      if (part.node >= 0) parts.push_back(part);
    }
  }
  if (!parts.empty()) {
    const int memory = places_.home;
    parts = {
        joined(v, std::move(parts), {plan_.tasks.first_here(), memory, -1})};
  }
  Node node = meeting(v, "_TaskGather", "gather_over_tasks",
                      {{"axis", int64_t{axis}}, {"lengths", lengths}});
  node.inputs = std::move(parts);
  put_results(v, std::move(node));
}

// Tasks have their own rows of the argument.
void SplitEmit::gather_argument(int32_t i) {
  const ValueRef v{i, 0};
  const auto at = static_cast<size_t>(i);
  argument_[at] = made(v).whole[0];
  std::vector<int64_t> lengths;
  int64_t begin = 0;
  const int64_t length = from_.spec(v).shape[0];
  for (int k = 0; k < plan_.tasks.ranks(); ++k) {
    int64_t rows = 0;
    for (int r = plan_.tasks.first[k]; r < plan_.tasks.first[k + 1]; ++r) {
      rows += places_.examples[static_cast<size_t>(r)].rows;
    }
    lengths.push_back(length * rows / places_.batch);
    if (k < plan_.tasks.rank) begin += lengths.back();
  }
  const int64_t mine = lengths[static_cast<size_t>(plan_.tasks.rank)];
  std::vector<ValueRef> part;
  if (mine > 0) {
    part = {cut(argument_[at], 0, begin, mine, from_[i],
                {plan_.tasks.first_here(), places_.home, -1})};
  }
  Node node = meeting(v, "_TaskGather", "gather_over_tasks",
                      {{"axis", int64_t{0}}, {"lengths", lengths}});
  node.inputs = std::move(part);
  put_results(v, std::move(node));
}

}  // namespace berth::distribute
