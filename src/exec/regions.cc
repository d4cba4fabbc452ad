#include "exec/regions.h"

#include <algorithm>
#include <numeric>
#include <set>
#include <unordered_map>

#include "base/thread_pool.h"
#include "exec/region_order.h"
#include "exec/slicing_cost.h"
#include "graph/node_part.h"
#include "graph/variable_range.h"

namespace berth {

namespace {

// How far after the last member a region looks for the next.
constexpr int kReach = 512;

// Transfers of at most so many bytes together go in one launch: to wait for the
// others costs less than a launch of its own.
constexpr size_t kMaxBatchBytes = 64 << 10;
// Steps of one stream between two meetings with other streams.
class Segment {
 public:
  Segment(const Graph& graph, const RegionStream& stream,
          const RegionOrder& order, PartBinder& binder, SlicingCost& cuts,
          std::vector<bool>& done, bool in_order)
      : graph_(graph),
        stream_(stream),
        order_(order),
        binder_(binder),
        slicing_cost_(cuts),
        done_(done),
        reach_(in_order ? 1 : kReach) {}

  // Appends the regions of `nodes`, in an order that runs. If the first node
  // waits for another stream, so do all: its region comes first.
  void run(std::vector<int32_t> nodes, bool waits, std::vector<Region>& out) {
    nodes_ = std::move(nodes);
    next_.resize(nodes_.size());
    std::iota(next_.begin(), next_.end(), size_t{1});
    for (size_t at = 0; at < nodes_.size(); at = left_after(at)) {
      // All that the first one needs is done.
      const int32_t first = nodes_[at];
      Growth best;
      if (may_seed(first)) {
        if (!waits) emit_tiny(at, out);
        best = best_region(at);
      }
      waits = false;
      if (worth(best)) {
        emit(best, out);
      } else {
        emit_whole(first, out);
      }
    }
  }

 private:
  struct Growth {
    int parts = 1;
    double work = 0;    // of the members, uncut
    double extra = 0;   // added by cutting
    int kernels = 0;    // members that compute
    bool self = false;  // one of them can fork by itself
    std::vector<RegionMember> members;
    std::vector<int32_t> ahead;  // free steps that must come before
    // By node: the outputs' axes, for members; null for what is ahead.
    std::unordered_map<int32_t, const SplitSignature*> split;
    std::set<ValueRef> reads;  // what members read that takes time to move

    double gain() const { return work * (1 - 1.0 / parts) - extra; }
  };

  // The next position after `at` whose step is still to be done. What is done
  // is never looked at again.
  size_t left_after(size_t at) {
    while (next_[at] < nodes_.size() && done_[nodes_[next_[at]]]) {
      next_[at] = next_[next_[at]];
    }
    return next_[at];
  }

  double work(int32_t node) { return slicing_cost_.cost(node).work; }
  // Steps that do nothing at run time.
  bool is_free(int32_t node) const {
    const OpKind kind = graph_[node].op->kind();
    return kind == OpKind::kAlias || kind == OpKind::kReadVariable;
  }
  bool may_seed(int32_t node) {
    return !is_free(node) && work(node) >= rule_.tiny &&
           !binder_.signatures(node).empty();
  }
  bool ready(int32_t node) const {
    auto is_done = [&](int32_t n) { return done_[n]; };
    return std::all_of(order_.producers[node].begin(),
                       order_.producers[node].end(), is_done) &&
           std::all_of(order_.before[node].begin(), order_.before[node].end(),
                       is_done);
  }

  // Small ops that can run now do, so that nothing waits for them later.
  void emit_tiny(size_t at, std::vector<Region>& out) {
    if (reach_ < kReach) return;
    at = left_after(at);
    for (int i = 1; i < kReach && at < nodes_.size(); ++i) {
      const int32_t n = nodes_[at];
      at = left_after(at);
      if ((is_free(n) || work(n) < rule_.tiny) && ready(n)) emit_whole(n, out);
    }
  }

  Growth best_region(size_t at) {
    const int32_t seed = nodes_[at];
    Growth best;
    const auto& rules = binder_.signatures(seed);
    for (size_t i = 0; i < rules.size(); ++i) {
      const int64_t length = binder_.cut_length(seed, rules[i]);
      const NodePart* part = graph_[seed].part.get();
      const auto parts = static_cast<int>(
          has_slices(part) ? std::min<int64_t>(part->count, length)
                           : std::min<int64_t>({stream_.slices, length,
                                                ThreadPool::kMaxChunks}));
      if (parts < 2) continue;
      Growth g;
      g.parts = parts;
      if (!join(g, seed, static_cast<int>(i))) continue;
      grow(g, at);
      if (best.members.empty() || g.gain() > best.gain()) best = std::move(g);
    }
    return best;
  }

  bool worth(const Growth& g) const {
    return !g.members.empty() && g.work >= rule_.worth &&
           g.gain() > rule_.fork && !(g.kernels == 1 && g.self);
  }

  // Adds every later step that fits.
  void grow(Growth& g, size_t at) {
    int misses = 0;
    while ((at = left_after(at)) < nodes_.size() && misses < reach_) {
      misses = try_step(g, nodes_[at]) ? 0 : misses + 1;
    }
  }

  // False when one of `steps` is neither done, nor ahead, nor a member; sets
  // `inside` when one is a member.
  bool can_follow(const Growth& g, const std::vector<int32_t>& steps,
                  bool* inside) const {
    for (int32_t s : steps) {
      if (done_[s]) continue;
      const auto it = g.split.find(s);
      if (it == g.split.end()) return false;
      *inside |= it->second != nullptr;
    }
    return true;
  }

  bool try_step(Growth& g, int32_t n) {
    bool inside = false, ordered = false;
    if (!can_follow(g, order_.producers[n], &inside) ||
        !can_follow(g, order_.before[n], &ordered)) {
      return false;
    }
    if (!inside && !ordered && is_free(n)) {
      g.ahead.push_back(n);
      g.split[n] = nullptr;
      return true;
    }
    if (graph_[n].op->kind() == OpKind::kReadVariable) return false;
    if (!inside && !belongs(g, n)) return false;
    const auto& rules = binder_.signatures(n);
    for (size_t i = 0; i < rules.size(); ++i) {
      if (matches(g, n, rules[i]) && join(g, n, static_cast<int>(i))) {
        return true;
      }
    }
    return false;
  }

  // Is an op that takes nothing from the region worth having in it? Updates
  // save a fork; others read again what a member reads.
  bool belongs(const Growth& g, int32_t n) {
    const Node& node = graph_[n];
    if (work(n) < rule_.tiny) return false;
    if (node.outputs.empty()) return true;
    return std::any_of(node.inputs.begin(), node.inputs.end(),
                       [&](const ValueRef& v) { return g.reads.contains(v); });
  }

  // Does the cut fit those of the members that node `n` follows?
  bool matches(const Growth& g, int32_t n, const SplitSignature& split) {
    const Node& node = graph_[n];
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      const ValueRef& v = node.inputs[i];
      const auto it = g.split.find(v.node);
      if (it == g.split.end() || !it->second) continue;
      const int8_t made = it->second->outputs[static_cast<size_t>(v.output)];
      if (made < 0 || made != split.inputs[i]) return false;
      if (!same_borders(v.node, n)) return false;
    }
    for (int32_t b : order_.before[n]) {
      const auto it = g.split.find(b);
      if (it != g.split.end() && it->second &&
          !(same_borders(b, n) && same_variables(b, *it->second, n, split))) {
        return false;
      }
    }
    return true;
  }

  bool same_borders(int32_t a, int32_t b) const {
    return same_slices(graph_[a].part.get(), graph_[b].part.get());
  }

  // The variable that input `i` of a node is, or is read from; node -1: none.
  ValueRef variable_of(const Node& node, size_t i) const {
    const ValueRef& v = node.inputs[i];
    if (graph_.spec(v).dtype == resource) return v;
    const Node& from = graph_[v.node];
    return from.op->kind() == OpKind::kReadVariable ? from.inputs[0]
                                                    : ValueRef{};
  }

  // True when `b` must run after `a` for common variables alone, and both are
  // split along the same axis of each: then every slice may go its own way.
  bool same_variables(int32_t a, const SplitSignature& split_a, int32_t b,
                      const SplitSignature& split_b) const {
    bool common = false;
    for (size_t i = 0; i < graph_[a].inputs.size(); ++i) {
      const ValueRef v = variable_of(graph_[a], i);
      for (size_t j = 0; v.node >= 0 && j < graph_[b].inputs.size(); ++j) {
        const ValueRef w = variable_of(graph_[b], j);
        if (w.node < 0 ||
            !variable_range(graph_, w).overlaps(variable_range(graph_, v))) {
          continue;
        }
        if (w != v || split_a.inputs[i] < 0 ||
            split_a.inputs[i] != split_b.inputs[j]) {
          return false;
        }
        common = true;
      }
    }
    return common;
  }

  // Adds a node cut by its signature number `index`, if that pays.
  bool join(Growth& g, int32_t n, int index) {
    const SplitSignature& split = binder_.signatures(n)[index];
    // Where sums are split must not depend on the company.
    const SlicingCost::Fixed& fixed = slicing_cost_.fixed(n, stream_);
    if (fixed.signature >= 0
            ? index != fixed.signature || g.parts != fixed.parts
            : SlicingCost::adds(split)) {
      return false;
    }
    const NodePart* part = graph_[n].part.get();
    if (has_slices(part) && g.parts != part->count) return false;
    const double extra = slicing_cost_.extra_work(n, split, g.parts, stream_);
    if (extra < 0) return false;
    const PartKernels* kernels =
        binder_.bind(n, index, g.parts, *stream_.device);
    if (!kernels) return false;
    g.members.push_back({n, &split, kernels});
    g.split[n] = &split;
    for (const ValueRef& v : graph_[n].inputs) {
      if (SlicingCost::work_to_move(graph_.spec(v)) >= rule_.tiny)
        g.reads.insert(v);
    }
    g.extra += extra;
    if (is_free(n)) return true;
    g.work += work(n);
    ++g.kernels;
    g.self |= kernels->def->parallel;
    return true;
  }

  void emit_whole(int32_t n, std::vector<Region>& out) {
    done_[n] = true;
    out.push_back(slicing_cost_.alone(n, stream_));
  }

  void emit(Growth& g, std::vector<Region>& out) {
    for (int32_t n : g.ahead) emit_whole(n, out);
    Region r;
    r.parts = g.parts;
    r.members = std::move(g.members);
    for (const RegionMember& m : r.members) done_[m.node] = true;
    out.push_back(std::move(r));
  }

  const Graph& graph_;
  const RegionStream& stream_;
  const RegionOrder& order_;
  PartBinder& binder_;
  SlicingCost& slicing_cost_;
  std::vector<bool>& done_;  // by node
  const int reach_;
  const SlicingRule rule_ = stream_.rule;
  std::vector<int32_t> nodes_;
  std::vector<size_t> next_;  // by position: left_after()
};

// Cuts the streams into segments, each up to a step that others wait for or
// that waits itself, and puts the schedule together again.
class Grower {
 public:
  Grower(const Graph& graph, const std::vector<RegionStream>& streams,
         PartBinder& binder, Schedule& schedule, bool in_order)
      : graph_(graph),
        streams_(streams),
        binder_(binder),
        slicing_cost_(graph, binder),
        schedule_(schedule),
        order_(find_order(graph, schedule)),
        done_(graph.nodes.size(), true),
        open_(streams.size()),
        batches_(streams.size()),
        region_of_(schedule.steps.size(), -1),
        step_of_(graph.nodes.size(), -1),
        in_order_(in_order) {}

  std::vector<Region> run() {
    const auto n = static_cast<int32_t>(schedule_.steps.size());
    std::vector<bool> signals(static_cast<size_t>(n), false);
    auto note = [&](const std::vector<int32_t>& waits) {
      for (int32_t w : waits) signals[w] = true;
    };
    for (int32_t i = 0; i < n; ++i) {
      step_of_[schedule_.steps[i].node] = i;
      done_[schedule_.steps[i].node] = false;
      note(schedule_.steps[i].waits);
    }
    for (int32_t i = 0; i < n; ++i) {
      const ScheduleStep& step = schedule_.steps[i];
      const bool cut = streams_[step.stream].slices > 1;
      if (!step.waits.empty()) {
        close(step.stream);
        if (!cut) {
          add_alone(step.node, step.stream);
          continue;
        }
      }
      open_[step.stream].push_back(step.node);
      if (signals[i] || !cut) close(step.stream);
    }
    for (size_t s = 0; s < open_.size(); ++s) close(static_cast<int32_t>(s));
    replace_schedule();
    return std::move(regions_);
  }

 private:
  void add_alone(int32_t node, int32_t stream) {
    done_[node] = true;
    if (join_batch(node, stream)) return;
    Region r = slicing_cost_.alone(node, streams_[stream]);
    r.stream = stream;
    regions_.push_back(std::move(r));
  }

  // A small transfer that waits for nothing but the transfers before it on its
  // stream, from the same device, goes with them: one launch.
  bool join_batch(int32_t node, int32_t stream) {
    if (graph_[node].op != &transfer_op_) return false;
    Batch& batch = batches_[stream];
    const DeviceId from = graph_[graph_[node].inputs[0].node].assigned;
    const OutSpec& value = graph_[node].outputs[0];
    const size_t bytes = value.dtype == string_
                             ? kMaxBatchBytes + 1
                             : static_cast<size_t>(value.shape.num_elements()) *
                                   size_of(value.dtype);
    if (batch.region >= 0 && batch.from == from &&
        schedule_.steps[step_of_[node]].waits.empty() &&
        batch.bytes + bytes <= kMaxBatchBytes) {
      regions_[batch.region].members.push_back({node});
      batch.bytes += bytes;
      return true;
    }
    batch = {static_cast<int32_t>(regions_.size()), from, bytes};
    return false;
  }

  void close(int32_t stream) {
    std::vector<int32_t>& nodes = open_[stream];
    if (nodes.size() != 1 || graph_[nodes[0]].op != &transfer_op_) {
      batches_[stream].region = -1;
    }
    if (nodes.size() == 1 && streams_[stream].slices == 1) {
      add_alone(nodes[0], stream);
    } else if (!nodes.empty()) {
      const size_t first = regions_.size();
      const bool waits = !schedule_.steps[step_of_[nodes[0]]].waits.empty();
      Segment(graph_, streams_[stream], order_, binder_, slicing_cost_, done_,
              in_order_)
          .run(std::move(nodes), waits, regions_);
      for (size_t r = first; r < regions_.size(); ++r) {
        regions_[r].stream = stream;
      }
    }
    nodes.clear();
  }

  void replace_schedule() {
    for (size_t r = 0; r < regions_.size(); ++r) {
      for (const RegionMember& m : regions_[r].members) {
        region_of_[step_of_[m.node]] = static_cast<int32_t>(r);
      }
    }
    // A stream that waits for a step relies on what the step's stream did
    // before it, which may be in a later region.
    std::vector<int32_t> until(region_of_.size());
    std::vector<int32_t> last(streams_.size(), -1);
    for (size_t i = 0; i < until.size(); ++i) {
      int32_t& latest = last[schedule_.steps[i].stream];
      until[i] = latest = std::max(latest, region_of_[i]);
    }
    auto rename = [&](std::vector<int32_t>& waits) {
      for (int32_t& w : waits) w = until[w];
      std::sort(waits.begin(), waits.end());
    };
    std::vector<ScheduleStep> steps;
    for (const Region& r : regions_) {
      ScheduleStep step;
      step.node = r.members[0].node;
      step.stream = r.stream;
      for (const RegionMember& m : r.members) {
        auto& waits = schedule_.steps[step_of_[m.node]].waits;
        step.waits.insert(step.waits.end(), waits.begin(), waits.end());
      }
      rename(step.waits);
      steps.push_back(std::move(step));
    }
    schedule_.steps = std::move(steps);
    for (auto& waits : schedule_.final_waits) rename(waits);
  }

  // The transfers that were added last to a stream, from one device.
  struct Batch {
    int32_t region = -1;
    DeviceId from;
    size_t bytes = 0;
  };

  const Graph& graph_;
  const OpDef& transfer_op_ = op_named("_Transfer");
  const std::vector<RegionStream>& streams_;
  PartBinder& binder_;
  SlicingCost slicing_cost_;
  Schedule& schedule_;
  const RegionOrder order_;
  std::vector<bool> done_;
  std::vector<std::vector<int32_t>> open_;  // by stream: nodes
  std::vector<Batch> batches_;              // by stream
  std::vector<int32_t> region_of_;          // by step
  std::vector<int32_t> step_of_;            // by node
  const bool in_order_;
  std::vector<Region> regions_;
};

}  // namespace

std::vector<Region> grow_regions(const Graph& graph,
                                 const std::vector<RegionStream>& streams,
                                 PartBinder& binder, Schedule& schedule,
                                 bool in_order) {
  return Grower(graph, streams, binder, schedule, in_order).run();
}

}  // namespace berth
