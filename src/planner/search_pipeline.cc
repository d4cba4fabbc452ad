// The search for pipelines.
//
// Layers are divided into contiguous stages on 1, 2, ... devices, by the least
// longest stage or by memory, in every order of tasks. A plan costs O(tasks) to
// estimate: its stages take the sums of their ops, and neighbours send what
// crosses their border. The best estimates are improved by moving borders and
// swapping devices; then the rules (pipeline_steps.h) decide among the best. If
// the layers are few, every device and stage is tried.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <ranges>
#include <set>
#include <tuple>
#include <utility>

#include "base/infinity.h"
#include "planner/layer_keys.h"
#include "planner/loads.h"
#include "planner/models.h"
#include "planner/step_units.h"
#include "simulate/copy_route.h"
#include "simulate/pipeline_steps.h"

namespace berth {

namespace {

constexpr size_t kKept = 6;               // estimates of a stream to evaluate
constexpr double kSearching = 0.7;        // share of a search; then evaluations
constexpr int32_t kMostChunks = 4;        // stages per device, interleaved
constexpr double kEqual = 1e-6;           // a difference that does not count
constexpr int64_t kMovesOfRules = 100;    // at least, of an evaluation
constexpr int kMovesToStall = 300;        // without an improvement
constexpr int32_t kMostTried = 7;         // layers whose plans are all tried
constexpr int64_t kMovesOfOne = 2;        // what one of these counts as
constexpr double kTrying = 0.5;           // their share of the budget
constexpr double kLeastRoom = 0.85;       // share of a limit
constexpr int64_t kFirstEvaluations = 4;  // per stream, in the first search

// Stages: runs of layers.
struct LayerCut {
  std::vector<int32_t> on;    // per stage: its device
  std::vector<int32_t> ends;  // per stage: the place after its last layer
  PipelineOrder order = PipelineOrder::k1F1B;
  double value = kInfinity;
  std::string name;
};

// What an estimate of bytes may use of a limit: this share, less these bytes.
struct MemoryRoom {
  double share = 1, lacking = 0;
};

// Layers with sums over their beginnings. Read-only once made.
class PipelineLayers {
 public:
  PipelineLayers(const PlanProblem& problem, const StepUnits& step_units)
      : p(problem), units(step_units), role(roles_of(problem)) {
    classes = p.costs.classes.size();
    limited = std::ranges::any_of(p.costs.devices, [](const DeviceCost& d) {
      return d.memory_limit > 0;
    });
    find_layers();
    sum_times();
    sum_values();
  }

  // The time of a stage from layer `begin` to `end` on a device. What it has
  // no kernel for runs elsewhere.
  double time(int kind, int32_t begin, int32_t end, int32_t device) const {
    const std::vector<double>& sums = times[kind];
    const size_t c = static_cast<size_t>(p.costs.devices[device].device_class);
    return sums[end * classes + c] - sums[begin * classes + c];
  }

  // That of a forward and a backward micro-batch together.
  double both_times(int32_t begin, int32_t end, int32_t device) const {
    return time(0, begin, end, device) + time(1, begin, end, device);
  }

  // The stage of every unit; then as many moves as are needed so that nothing
  // reads what comes later on the way through the stages.
  PlacePlan plan_of(const LayerCut& cut) const {
    std::vector<int32_t> stage(units.num_units, -1);
    for (size_t k = 0, s = 0; k < layer.size(); ++k) {
      while (cut.ends[s] <= static_cast<int32_t>(k)) ++s;
      stage[layer[k]] = static_cast<int32_t>(s);
    }
    for (int round = 0; round < 8; ++round) {
      bool moved = false;
      for (const int32_t i : units.order) {
        if (!p.takes_time(i) || role[i] != MicroBatchRole::kEach) continue;
        int32_t& s = stage[units.unit[i]];
        const bool late = training && backward[i];
        for (const int32_t b : units.before[i]) {
          if (role[b] != MicroBatchRole::kEach) continue;
          const int32_t from = stage[units.unit[b]];
          if (late != (training && backward[b])) continue;
          if (late ? s <= from : s >= from) continue;
          s = from;
          moved = true;
        }
      }
      if (!moved) break;
    }
    std::vector<int32_t> device(stage.size(), -1);
    for (const int32_t u : layer) device[u] = units.near(u, cut.on[stage[u]]);
    const bool one = cut.on.size() == 1;
    return plan_of(stage, device, one ? PipelineOrder::k1F1B : cut.order);
  }

  // Per unit with ops: its stage and its device.
  PlacePlan plan_of(const std::vector<int32_t>& stage,
                    std::vector<int32_t> device, PipelineOrder order) const {
    PlacePlan plan;
    plan.order = order;
    units.place_rest(device, device[layer[0]]);
    for (int32_t i = 0; i < p.num_ops(); ++i) {
      const int32_t s = stage[units.unit[i]] < 0 ? 0 : stage[units.unit[i]];
      plan.device.push_back(device[units.unit[i]]);
      plan.stage.push_back({s, training && backward[i]});
    }
    plan.sequence = order_of_ops(p);
    return plan;
  }

  const PlanProblem& p;
  const StepUnits& units;
  const std::vector<MicroBatchRole> role;
  size_t classes = 0;
  bool training = false, limited = false;
  std::vector<uint8_t> backward;   // per node
  std::vector<int32_t> layer;      // units with ops, in order
  Rows<int32_t> groups;            // these, together those of one layer
  std::vector<int32_t> place;      // per unit: in `layer`; -1: none
  std::vector<double> times[3];    // forward, backward, once: [place * classes]
  std::vector<double> held, kept;  // sums per place: weights; activations
  // Per border and direction: values that cross it, and their bytes.
  std::vector<double> crossing[2], crossing_bytes[2];

 private:
  void find_layers() {
    training = std::ranges::count(p.backward, 1) > 0 ||
               std::ranges::count(role, MicroBatchRole::kStep) > 0;
    const LayerKeys keys =
        layer_keys(units, training ? LayerOrder::kFolded : LayerOrder::kPlain);
    backward = keys.backward;
    std::vector<double> key(units.num_units, kInfinity);
    for (int32_t u = 0; u < units.num_units; ++u) {
      if (units.ops[u].empty()) continue;
      layer.push_back(u);
      // That of its gradients is a guess, and counts if it has nothing else.
      double guess = kInfinity;
      for (const int32_t i : units.ops[u]) {
        double& least = backward[i] ? guess : key[u];
        least = std::min(least, keys.key[i]);
      }
      if (std::isinf(key[u])) key[u] = guess;
    }
    std::ranges::stable_sort(layer, {}, [&](int32_t u) { return key[u]; });
    place.assign(units.num_units, -1);
    for (size_t k = 0; k < layer.size(); ++k) {
      place[layer[k]] = static_cast<int32_t>(k);
    }
    for (auto at = layer.begin(); at != layer.end();) {
      const auto end = std::find_if(
          at, layer.end(), [&](int32_t u) { return key[u] != key[*at]; });
      groups.add(std::span(at, end));
      at = end;
    }
  }

  void sum_times() {
    for (std::vector<double>& sums : times) {
      sums.assign((layer.size() + 1) * classes, 0);
    }
    held.assign(layer.size() + 1, 0);
    for (size_t k = 0; k < layer.size(); ++k) {
      for (size_t c = 0; c < classes; ++c) {
        for (std::vector<double>& sums : times) {
          sums[(k + 1) * classes + c] = sums[k * classes + c];
        }
        for (const int32_t i : units.ops[layer[k]]) {
          const int kind = role[i] != MicroBatchRole::kEach ? 2
                           : training && backward[i]        ? 1
                                                            : 0;
          const double us = p.costs.times[i * classes + c].us;
          if (std::isfinite(us)) times[kind][(k + 1) * classes + c] += us;
        }
      }
      held[k + 1] = held[k] + units.held_bytes[layer[k]];
    }
  }

  void sum_values() {
    const SimulatedGraph& g = p.graph;
    const std::vector<int32_t> renamed = renamed_values(g);
    kept.assign(layer.size() + 1, 0);
    std::vector<double> summed = kept;  // gradients
    for (int b : {0, 1}) {
      crossing[b].assign(layer.size() + 1, 0);
      crossing_bytes[b].assign(layer.size() + 1, 0);
    }
    struct Reach {
      int32_t least[2] = {INT32_MAX, INT32_MAX}, most[2] = {-1, -1};
      bool late = false, summed = false;
    };
    std::vector<Reach> reach(renamed.size());
    for (int32_t i = 0; i < p.num_ops(); ++i) {
      for (const int32_t v : g.reads[i]) {
        Reach& r = reach[renamed[v]];
        if (role[i] == MicroBatchRole::kStep) r.summed = true;
        const int32_t at = place[units.unit[i]];
        if (!p.takes_time(i) || role[i] != MicroBatchRole::kEach) continue;
        const int b = training && backward[i];
        r.least[b] = std::min(r.least[b], at);
        r.most[b] = std::max(r.most[b], at);
        r.late |= b != 0;
      }
    }
    for (int32_t v = 0; v < static_cast<int32_t>(reach.size()); ++v) {
      const int32_t i = g.producer[v], at = place[units.unit[i]];
      if (role[i] != MicroBatchRole::kEach || at < 0 || renamed[v] != v)
        continue;
      const double bytes = p.costs.bytes.item(v);
      const Reach& r = reach[v];
      if (r.summed) summed[at + 1] += bytes;
      if (g.everywhere[v]) continue;
      const bool late = training && backward[i];
      if (!late && r.late) kept[at + 1] += bytes;
      const auto cross = [&](int b, int32_t from, int32_t to, double sign) {
        if (from >= to) return;
        crossing[b][from + 1] += sign, crossing[b][to + 1] -= sign;
        crossing_bytes[b][from + 1] += sign * bytes;
        crossing_bytes[b][to + 1] -= sign * bytes;
      };
      if (!late) cross(0, at, std::max(r.most[0], r.most[1]), 1);
      if (late) cross(1, std::min(r.least[1], at), at, 1);
    }
    for (auto* sums : {&crossing[0], &crossing[1], &crossing_bytes[0],
                       &crossing_bytes[1], &kept, &summed}) {
      std::partial_sum(sums->begin(), sums->end(), sums->begin());
    }
    for (size_t k = 0; k < held.size(); ++k) held[k] += summed[k];
  }
};

// Estimates values; one per stream.
class PipelineTimer {
 public:
  explicit PipelineTimer(const PipelineLayers& layers)
      : l_(layers),
        p_(layers.p),
        m_(p_.pipeline.micro_batches),
        routes_(p_.costs) {}

  double value(const LayerCut& cut, const MemoryRoom& room) {
    set_order(cut);
    if (tasks_.empty()) return kInfinity;  // they would wait for each other
    const int32_t stages = cut.on.size();
    free_.assign(routes_.num_resources(), 0);
    arrived_.assign(2 * stages * m_, 0);
    times_.clear();
    for (int32_t part = 0; part < 2 * stages; ++part) {
      const int32_t s = std::min(part, 2 * stages - 1 - part);
      times_.push_back(
          l_.time(part >= stages, begin_of(cut, s), cut.ends[s], cut.on[s]));
    }
    for (const PipelineTask& t : tasks_) run(cut, t);
    double most = 0;
    for (int32_t s = 0; s < stages; ++s) {
      double& end = free_[cut.on[s]];
      end += l_.time(2, begin_of(cut, s), cut.ends[s], cut.on[s]);
      most = std::max(most, end);
    }
    return most * (1 + 1e3 * excess(cut, room));
  }

  // What each device holds.
  const std::vector<double>& bytes_of(const LayerCut& cut) {
    set_order(cut);
    bytes_.assign(p_.costs.devices.size(), 0);
    for (size_t s = 0; s < cut.on.size(); ++s) {
      const int32_t begin = begin_of(cut, static_cast<int32_t>(s));
      const int32_t end = cut.ends[s];
      const double flying = flying_.empty() ? m_ : flying_[s];
      bytes_[cut.on[s]] +=
          l_.held[end] - l_.held[begin] +
          flying * (l_.kept[end] - l_.kept[begin] +
                    (l_.training ? l_.crossing_bytes[0][begin] : 0));
    }
    return bytes_;
  }

 private:
  static int32_t begin_of(const LayerCut& cut, int32_t stage) {
    return stage > 0 ? cut.ends[stage - 1] : 0;
  }

  void set_order(const LayerCut& cut) {
    if (cut.on == on_ && cut.order == order_) return;
    on_ = cut.on, order_ = cut.order;
    lanes_.lane = cut.on;
    lanes_.any.assign(cut.on.size(), 1);
    lanes_.any.resize(2 * cut.on.size(), l_.training);
    tasks_ = task_order(lanes_, m_, cut.order);
    flying_ = most_in_flight(tasks_, lanes_);
  }

  void run(const LayerCut& cut, const PipelineTask& t) {
    const int32_t stages = cut.on.size();
    const auto at = static_cast<size_t>(t.part) * m_ + t.micro_batch;
    const int32_t s = std::min(t.part, 2 * stages - 1 - t.part);
    const int32_t d = cut.on[s];
    const double end = std::max(free_[d], arrived_[at]) + times_[t.part];
    free_[d] = end;
    const int32_t next = t.part + 1;
    if (next == 2 * stages) return;
    double& arrives = arrived_[at + static_cast<size_t>(m_)];
    arrives = end;
    const int32_t to = cut.on[std::min(next, 2 * stages - 1 - next)];
    if (to == d) return;
    const int b = t.part >= stages;
    const int32_t border = b ? begin_of(cut, s) : cut.ends[s];
    const LinkCost& link = p_.costs.link(d, to);
    if (l_.crossing[b][border] <= 0) return;
    const double us = l_.crossing[b][border] * link.latency_us +
                      l_.crossing_bytes[b][border] / link.bytes_per_us;
    arrives = routes_.between(d, to).run(end, us, free_.data()).end_us;
  }

  // The share by which bytes exceed limits, summed over devices.
  double excess(const LayerCut& cut, const MemoryRoom& room) {
    if (!l_.limited) return 0;
    bytes_of(cut);
    double sum = 0;
    for (size_t d = 0; d < bytes_.size(); ++d) {
      const double limit = p_.costs.devices[d].memory_limit;
      if (limit <= 0) continue;
      const double most = std::max(room.share * limit - room.lacking, 1.0);
      sum += std::max(bytes_[d] / most - 1, 0.0);
    }
    return sum;
  }

  const PipelineLayers& l_;
  const PlanProblem& p_;
  const int32_t m_;
  const CopyRoutes routes_;
  std::vector<int32_t> on_, flying_;
  PipelineOrder order_ = PipelineOrder::k1F1B;
  PipelineLanes lanes_;
  std::vector<PipelineTask> tasks_;
  std::vector<double> free_, arrived_, times_, bytes_;
};

// Changes a cut of two stages or more.
void vary_stages(LayerCut& cut, int32_t devices, StreamRandom& random) {
  const uint32_t stages = cut.on.size();
  if (random.below(8) == 0) {
    // Two devices, in all their stages; or one for an unused one.
    const int32_t a = cut.on[random.below(stages)];
    const int32_t b = random.below(devices);
    for (int32_t& d : cut.on) d = d == a ? b : d == b ? a : d;
    return;
  }
  const uint32_t border = random.below(stages - 1);
  const int32_t least = (border > 0 ? cut.ends[border - 1] : 0) + 1;
  const int32_t most = cut.ends[border + 1] - 1;
  if (least > most) return;
  // Far at times, a layer or so at others.
  const int32_t far = std::max((most - least) >> random.below(8), 1);
  const auto by = static_cast<int32_t>(random.below(2 * far + 1)) - far;
  cut.ends[border] = std::clamp(cut.ends[border] + by, least, most);
}

// One stream of the search.
class PipelineStream {
 public:
  // Ends at this share of the stream's budget.
  PipelineStream(const PipelineLayers& layers, SearchStream& stream, double end,
                 const MemoryRoom& room)
      : l_(layers),
        p_(layers.p),
        stream_(stream),
        end_(end),
        timer_(layers),
        room_(room) {}

  // The plans to begin with, the best first.
  const std::vector<LayerCut>& make_starts() {
    const auto devices = ranked();
    const int32_t n = devices.size();
    for (int32_t k = n; k >= 1; k = k > 16 ? k / 2 : k - 1) {
      for (const PipelineOrder order :
           {PipelineOrder::k1F1B, PipelineOrder::kGPipe,
            PipelineOrder::kInterleaved}) {
        if (p_.pipeline.order && order != *p_.pipeline.order && k > 1) continue;
        const bool chunks = order == PipelineOrder::kInterleaved;
        const bool gpipe = order == PipelineOrder::kGPipe;
        if (k == 1 && (chunks || gpipe)) continue;
        for (int32_t v = chunks ? 2 : 1; v <= (chunks ? kMostChunks : 1); ++v) {
          std::vector<int32_t> on(devices.begin(), devices.begin() + k);
          add_start(on, v, order);
          if (!equal_) {
            std::ranges::reverse(on);
            add_start(on, v, order);
          }
          std::ranges::sort(on);
          add_start(on, v, order);
        }
      }
    }
    std::ranges::stable_sort(starts_, {}, &LayerCut::value);
    if (starts_.size() > 4 * kKept) starts_.resize(4 * kKept);
    return starts_;
  }

  // Returns what improving them gave. For one search.
  std::vector<LayerCut> run(const std::vector<LayerCut>& starts) {
    starts_ = starts;
    for (LayerCut& s : starts_) s.value = timer_.value(s, room_);
    std::ranges::stable_sort(starts_, {}, &LayerCut::value);
    for (size_t k = 0; !starts_.empty() && stream_.spent() < end_; ++k) {
      // The best start first, then others, the better the more often.
      const size_t most = std::min(starts_.size(), kKept);
      size_t at = k < most ? k : stream_.random.below(most);
      LayerCut cut = starts_[at];
      improve(cut);
      if (cut.value < starts_[at].value) starts_[at] = cut;
      kept_.push_back(cut);
    }
    return kept_;
  }

 private:
  // Devices, the fastest first.
  std::vector<int32_t> ranked() {
    std::vector<int32_t> on(p_.num_devices());
    std::iota(on.begin(), on.end(), 0);
    const int32_t n = l_.layer.size();
    const auto total = [&](int32_t d) { return l_.both_times(0, n, d); };
    std::ranges::stable_sort(on, {}, total);
    equal_ = total(on[0]) == total(on.back());
    return on;
  }

  void add_start(const std::vector<int32_t>& devices, int32_t v,
                 PipelineOrder order) {
    const size_t stages = devices.size() * static_cast<size_t>(v);
    if (stages > l_.layer.size()) return;
    for (const bool by_memory : {false, true}) {
      if (by_memory && (!l_.limited || stages == 1)) continue;
      LayerCut cut;
      cut.order = order;
      for (size_t s = 0; s < stages; ++s) {
        cut.on.push_back(devices[s % devices.size()]);
      }
      cut.ends = cut_evenly(cut, by_memory);
      cut.name = fmt::format("{} stage{}{}, {}", stages, stages > 1 ? "s" : "",
                             by_memory ? " by memory" : "", order_name(order));
      cut.value = timer_.value(cut, room_);
      stream_.take(1);
      if (std::isfinite(cut.value)) starts_.push_back(std::move(cut));
    }
  }

  // The ends with which the largest stage is as small as possible: its time, or
  // the share that its bytes have of its device's limit.
  std::vector<int32_t> cut_evenly(const LayerCut& cut, bool by_memory) const {
    const int32_t n = l_.layer.size();
    const int32_t stages = cut.on.size();
    const auto size = [&](int32_t s, int32_t begin, int32_t end) {
      const int32_t d = cut.on[s];
      if (!by_memory) return l_.both_times(begin, end, d);
      const double limit = p_.costs.devices[d].memory_limit;
      const double flying =
          cut.order == PipelineOrder::k1F1B
              ? std::min(stages - s, p_.pipeline.micro_batches)
              : p_.pipeline.micro_batches;
      const double bytes = l_.held[end] - l_.held[begin] +
                           flying * (l_.kept[end] - l_.kept[begin]);
      return limit > 0 ? bytes / limit : bytes * 1e-18;
    };
    const auto ends_under = [&](double most) {
      std::vector<int32_t> ends;
      for (int32_t s = 0, at = 0; s + 1 < stages; ++s) {
        // At least one layer each, and as many as fit.
        const auto more = std::views::iota(at + 2, n - (stages - 1 - s) + 1);
        const auto fits = [&](int32_t end) { return size(s, at, end) <= most; };
        at += 1 + (std::ranges::partition_point(more, fits) - more.begin());
        ends.push_back(at);
      }
      ends.push_back(n);
      return ends;
    };
    const auto largest = [&](const std::vector<int32_t>& ends) {
      double most = 0;
      for (int32_t s = 0; s < stages; ++s) {
        most = std::max(most, size(s, s > 0 ? ends[s - 1] : 0, ends[s]));
      }
      return most;
    };
    double low = 0, high = 0;
    for (int32_t s = 0; s < stages; ++s) high = std::max(high, size(s, 0, n));
    for (int k = 0; k < 40; ++k) {
      const double middle = (low + high) / 2;
      (largest(ends_under(middle)) <= middle ? high : low) = middle;
    }
    return ends_under(high);
  }

  void improve(LayerCut& cut) {
    const uint32_t stages = cut.on.size();
    LayerCut next;
    for (int stalled = 0; stalled < kMovesToStall; ++stalled) {
      stream_.take(1);
      if (stalled % 16 == 0 && stream_.spent() >= end_) return;
      if (stages < 2) continue;
      next = cut;
      vary_stages(next, p_.num_devices(), stream_.random);
      next.value = timer_.value(next, room_);
      if (next.value > cut.value) continue;
      // Other devices must be better: a plan keeps the order of equal ones.
      if (next.value == cut.value && next.on != cut.on) continue;
      if (next.value < cut.value) stalled = 0;
      std::swap(cut, next);
    }
  }

  const PipelineLayers& l_;
  const PlanProblem& p_;
  SearchStream& stream_;
  const double end_;
  PipelineTimer timer_;
  const MemoryRoom room_;
  bool equal_ = true;
  std::vector<LayerCut> starts_, kept_;
};

// About as many estimates as take as long as an evaluation.
int64_t moves_of_rules(const PlanProblem& p) {
  return std::max(kMovesOfRules, int64_t{p.num_ops()});
}

// Keeps the best by the rules.
class PipelineJudge {
 public:
  PipelineJudge(const PipelineLayers& layers, const Budget& budget, Found& best)
      : l_(layers), timer_(layers), budget_(budget), best_(best) {}

  // Evaluates the first ones of plans that it has not seen.
  void add(std::vector<LayerCut> cuts, size_t most) {
    std::ranges::stable_sort(cuts, {}, &LayerCut::value);
    for (const LayerCut& cut : cuts) {
      if (most == 0) return;
      if (!seen_.emplace(cut.ends, cut.on, cut.order).second) continue;
      --most;
      const double before = budget_.seconds_left();
      if (best_.any() && before < longest_) return;
      add(cut);
      longest_ = std::max(longest_, before - budget_.seconds_left());
    }
  }

  const LayerCut& cut() const { return best_cut_; }  // of the best

  // Changes the best one while that makes it better.
  void refine(const Budget& budget, StreamRandom& random) {
    if (!best_.any() || best_cut_.on.size() < 2) return;
    for (int64_t moves = 0;
         budget.spent(moves) < 1 && budget.seconds_left() > longest_ &&
         !budget.enough(best_.value);
         moves += moves_of_rules(l_.p)) {
      LayerCut cut = best_cut_;
      vary_stages(cut, l_.p.num_devices(), random);
      add(cut);
      best_.moves += moves_of_rules(l_.p);
    }
  }

  // Whether a plan broke a limit since the last call.
  bool refused() { return std::exchange(refused_, false); }
  // The most bytes by which a full device had more than the estimate says.
  double lacking() const { return lacking_; }

  // Tries every device and stage of a few layers, except what must be slower
  // than the best plan; goes on where the last call ended. Returns whether all
  // were tried.
  bool try_all(const Budget& budget) {
    at_.resize(l_.groups.size());
    device_ = stage_ = std::vector<int32_t>(l_.units.num_units, -1);
    load_.assign(l_.p.num_devices(), 0);
    moves_ = 0;
    const bool all = try_from(0, 0, budget);
    best_.moves += moves_;
    return all;
  }

 private:
  // Layer k and those after it; `used`: the stages of those before.
  bool try_from(int32_t k, uint32_t used, const Budget& budget) {
    const Rows<int32_t>& layers = l_.groups;
    if (k == layers.size())
      return (used & (used + 1)) != 0 || try_orders(budget);
    const int32_t begin = layers.begin_of(k), end = layers.begin_of(k + 1);
    const double m = l_.p.pipeline.micro_batches;
    auto& [d, s] = at_[k];
    for (; d < l_.p.num_devices(); ++d, s = 0) {
      const double before = load_[d];
      load_[d] += m * l_.both_times(begin, end, d) + l_.time(2, begin, end, d);
      for (; s < layers.size(); ++s) {
        if (load_[d] >= best_.value * (1 - kEqual)) break;
        if (!put(layers[k], d, s)) continue;
        if (!try_from(k + 1, used | 1U << s, budget)) return false;
      }
      load_[d] = before;
    }
    d = 0;
    for (const int32_t u : layers[k]) stage_[u] = -1;
    return true;
  }

  // Returns whether a layer may be there, in no stage before what it reads.
  bool put(std::span<const int32_t> layer, int32_t device, int32_t stage) {
    for (const int32_t u : layer) stage_[u] = stage, device_[u] = device;
    return std::ranges::all_of(layer, [&](int32_t u) {
      return l_.units.allowed[u].has(device) &&
             std::ranges::all_of(l_.units.ops[u], [&](int32_t i) {
               if (l_.training && l_.backward[i]) return true;
               return std::ranges::all_of(l_.units.before[i], [&](int32_t b) {
                 return stage_[l_.units.unit[b]] <= stage;
               });
             });
    });
  }

  bool try_orders(const Budget& budget) {
    const PipelineSettings& steps = l_.p.pipeline;
    for (const auto order : {PipelineOrder::k1F1B, PipelineOrder::kGPipe}) {
      const bool gpipe = order == PipelineOrder::kGPipe;
      if (gpipe && steps.order) continue;
      add(l_.plan_of(stage_, device_, steps.order.value_or(order)), nullptr);
      moves_ += kMovesOfOne;
    }
    return budget.spent(moves_) < 1;
  }

  // Returns whether it is the best.
  bool add(PlacePlan plan, const LayerCut* cut) {
    Evaluation e = evaluate(l_.p, plan);
    if (cut != nullptr) compare_bytes(*cut, e);
    if (!e.violations.empty() || !std::isfinite(e.value)) {
      refused_ = true;
      return false;
    }
    double bytes = 0;  // the fewer of equally fast plans
    for (const DeviceUse& use : e.devices) bytes = std::max(bytes, use.bytes);
    if (e.value > best_.value * (1 - kEqual) &&
        (e.value > best_.value * (1 + kEqual) || bytes >= bytes_)) {
      return false;
    }
    bytes_ = bytes;
    best_.value = e.value;
    best_.plan = std::move(plan);
    best_.evaluation = std::move(e);
    return true;
  }

  void add(const LayerCut& cut) {
    if (add(l_.plan_of(cut), &cut)) best_cut_ = cut;
  }

  void compare_bytes(const LayerCut& cut, const Evaluation& e) {
    if (!l_.limited) return;
    const std::vector<double>& estimated = timer_.bytes_of(cut);
    for (size_t d = 0; d < e.devices.size(); ++d) {
      const double limit = l_.p.costs.devices[d].memory_limit;
      if (e.devices[d].bytes < limit / 2) continue;
      lacking_ = std::max(lacking_, e.devices[d].bytes - estimated[d]);
    }
  }

  const PipelineLayers& l_;
  PipelineTimer timer_;
  const Budget& budget_;
  Found& best_;
  LayerCut best_cut_;
  double bytes_ = kInfinity;  // of its fullest device
  double longest_ = 0;        // seconds of an evaluation
  double lacking_ = 0;
  bool refused_ = false;
  std::set<
      std::tuple<std::vector<int32_t>, std::vector<int32_t>, PipelineOrder>>
      seen_;
  int64_t moves_ = 0;                            // of try_all(), like the rest
  std::vector<int32_t> stage_, device_;          // per unit
  std::vector<double> load_;                     // per device
  std::vector<std::pair<int32_t, int32_t>> at_;  // per layer: device and stage
};

}  // namespace

Found search_pipeline(const PlanProblem& p, const Budget& whole,
                      uint64_t seed) {
  Found best;
  const StepUnits units(p);
  if (!units.ordered || units.num_ops == 0) return best;
  const PipelineLayers layers(p, units);
  PipelineJudge judge(layers, whole, best);
  bool few = layers.groups.size() <= kMostTried;
  // Estimates of bytes are corrected by what plans turn out to need. If plans
  // are refused even so, less of the limits is used.
  MemoryRoom room;
  SearchSeries series(whole, kFirstEvaluations * moves_of_rules(p), seed);
  while (series.next(best.value)) {
    const Budget& budget = series.budget();
    const double end = few ? kTrying : 1, searched = kSearching * end;
    PipelineStream first(layers, series.streams()[0], searched, room);
    std::vector<LayerCut> starts = first.make_starts();
    judge.add(starts, 2);
    room.lacking = judge.lacking();
    if (best.any()) {
      if (series.number() == 0) best.start = {judge.cut().name, best.value};
      starts.push_back(judge.cut());
    }
    if (few && judge.try_all(budget.part(0, kTrying))) {
      // No cut is another plan if every unit is a layer.
      if (layers.groups.size() == std::ssize(layers.layer)) break;
      few = false;
    }
    std::vector<std::vector<LayerCut>> found(series.streams().size());
    series.run([&](SearchStream& s) {
      found[s.number()] = PipelineStream(layers, s, searched, room).run(starts);
    });
    for (const auto& f : found) starts.insert(starts.end(), f.begin(), f.end());
    judge.add(std::move(starts), kKept);
    judge.refine(budget.part(searched, end), series.streams()[0].random);
    const bool less = judge.refused() && series.number() > 0;
    if (less) room.share = std::max(room.share * 0.95, kLeastRoom);
    room.lacking = judge.lacking();
  }
  best.moves += series.moves();
  return best;
}

}  // namespace berth
