#include "passes/recompute_choice.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>
#include <random>
#include <unordered_map>
#include <utility>

namespace berth {

namespace {

constexpr size_t kMostTried = 12;  // values per round, by bytes for their time
// Random moves, and steps of profiles in all of them together.
constexpr int64_t kMostMoves = 30'000, kMostSteps = 3'000'000;

size_t at(int32_t i) { return static_cast<size_t>(i); }
// On another device it is a copy.
bool is_alias(const Graph& graph, int32_t i) {
  const Node& n = graph[i];
  return n.op->kind() == OpKind::kAlias &&
         graph[n.inputs[0].node].assigned == n.assigned;
}

// What is alive when a graph runs with copies in it.
struct Profile {
  std::vector<NodeCopy> steps;  // number 0: the node itself
  std::vector<int64_t> live;    // bytes per step
  std::vector<int32_t> last;  // per node: the last step that reads what it made
  double us = 0;              // of copies
  int64_t over = 0;           // bytes over the limit, of all steps together
  size_t fullest() const {
    return at(static_cast<int32_t>(std::max_element(live.begin(), live.end()) -
                                   live.begin()));
  }
  int64_t most() const { return live.empty() ? 0 : live[fullest()]; }
};

class Chooser {
 public:
  Chooser(const Graph& graph, const RecomputeCosts& costs, int64_t limit)
      : graph_(graph),
        costs_(costs),
        limit_(limit),
        readers_(readers_of(graph)),
        drops_{std::vector<std::vector<int32_t>>(graph.nodes.size()),
               std::vector<bool>(graph.nodes.size(), false)},
        may_cut_(graph.nodes.size()),
        bytes_(graph.nodes.size()) {
    for (int32_t i = 0; i < graph.size(); ++i) {
      for (int32_t o = 0; o < std::ssize(graph[i].outputs); ++o) {
        bytes_[at(i)].push_back(bytes_of(i, o));
      }
      may_cut_[at(i)] = !is_alias(graph, i) && costs.us[at(i)] >= 0;
    }
    find_written();
    for (const ValueRef v : graph.outputs)
      may_cut_[at(source_of(v.node))] = false;
    for (int32_t i = 0; i < graph.size(); ++i) {
      if (is_alias(graph, i) && costs.us[at(i)] < 0) {
        may_cut_[at(source_of(i))] = false;
      }
    }
  }

  Choice run() {
    Profile now = profile();
    if (now.over == 0) return {drops_, 0, now.most()};
    while (now.over > 0) {
      std::optional<Profile> better = cut_one(now);
      if (!better) break;
      now = std::move(*better);
    }
    now = anneal(std::move(now));
    return {drops_, now.us, now.most()};
  }

 private:
  // Bytes that the output of a node adds to the memory in question.
  int64_t bytes_of(int32_t i, int32_t output) const {
    const Node& n = graph_[i];
    const OutSpec& s = n.outputs[at(output)];
    if (n.op->graph_only() || n.op->kind() == OpKind::kReadVariable ||
        (is_alias(graph_, i) && output == 0) || s.dtype == resource ||
        !costs_.counted[at(i)]) {
      return 0;
    }
    return bytes_of_spec(s);
  }
  static int64_t bytes_of_spec(const OutSpec& s) {
    return std::max<int64_t>(s.shape.num_elements(), 1) *
           static_cast<int64_t>(size_of(s.dtype));
  }

  // A variable's value costs nothing until the variable is written: who reads
  // it later reads a copy.
  void find_written() {
    std::unordered_map<int32_t, std::vector<int32_t>> reads;  // by handle
    for (int32_t i = 0; i < graph_.size(); ++i) {
      const Node& n = graph_[i];
      for (int k = 0; k < static_cast<int>(n.inputs.size()); ++k) {
        const int32_t handle = n.inputs[at(k)].node;
        if (n.op->kind() == OpKind::kReadVariable && k == 0) {
          reads[handle].push_back(i);
        } else if (writes(n.op->input(k).access)) {
          for (const int32_t read : reads[handle])
            written_.emplace_back(read, i);
          reads[handle].clear();
        }
      }
    }
  }

  // The node whose bytes an alias shows.
  int32_t source_of(int32_t i) const {
    while (is_alias(graph_, i)) i = graph_[i].inputs[0].node;
    return i;
  }

  // Adds or removes a cut of a node, and of the aliases of what it made.
  void toggle(int32_t i, int32_t position) {
    std::vector<int32_t>& cuts = drops_.cuts[at(i)];
    const auto it = std::lower_bound(cuts.begin(), cuts.end(), position);
    if (it != cuts.end() && *it == position) {
      cuts.erase(it);
    } else {
      cuts.insert(it, position);
    }
    for (const int32_t reader : readers_[at(i)]) {
      if (reader <= position && is_alias(graph_, reader) &&
          graph_[reader].inputs[0].node == i) {
        toggle(reader, position);
      }
    }
  }

  Profile profile() const {
    Profile p;
    std::vector<int32_t> first(graph_.nodes.size());  // of a node's results
    int32_t count = 0;
    for (int32_t i = 0; i < graph_.size(); ++i) {
      first[at(i)] = count;
      count += static_cast<int32_t>(bytes_[at(i)].size() *
                                    (drops_.cuts[at(i)].size() + 1));
    }
    const auto result = [&](int32_t node, int copy, int32_t output) {
      return at(first[at(node)] + output +
                copy * static_cast<int32_t>(bytes_[at(node)].size()));
    };
    std::vector<int32_t> born(at(count), -1), last(at(count), -1),
        root(at(count));
    std::vector<int64_t> bytes(at(count), 0);
    std::vector<std::pair<int32_t, int32_t>> leaving;  // until when, who
    for (int32_t i = 0; i < graph_.size(); ++i) {
      if (!drops_.away[at(i)]) continue;
      leaving.emplace_back(
          waits_for_leaving(graph_, costs_, drops_.cuts[at(i)][0]), i);
    }
    std::sort(leaving.begin(), leaving.end());
    const auto add = [&](const NodeCopy& step) {
      const auto t = static_cast<int32_t>(p.steps.size());
      p.steps.push_back(step);
      const Node& node = graph_[step.node];
      const bool alias = is_alias(graph_, step.node);
      const bool arrives = step.number > 0 && drops_.away[at(step.node)];
      for (size_t k = 0; k < node.inputs.size() && !arrives; ++k) {
        const ValueRef v = node.inputs[k];
        const int copy = copy_read(drops_.cuts[at(v.node)], step.position);
        const int32_t read = root[result(v.node, copy, v.output)];
        last[at(read)] = t;
        if (alias && k == 0) root[result(step.node, step.number, 0)] = read;
      }
      for (int32_t o = alias ? 1 : 0; o < std::ssize(node.outputs); ++o) {
        const size_t made = result(step.node, step.number, o);
        root[made] = static_cast<int32_t>(made);
        born[made] = last[made] = t;
        bytes[made] = bytes_[at(step.node)][at(o)];
      }
      if (step.number == 0) return;
      p.us += std::max(0.0, arrives ? costs_.away_us[at(step.node)]
                                    : costs_.us[at(step.node)]);
    };
    const std::vector<NodeCopy> copies = copies_of(readers_, drops_);
    auto next = copies.begin();
    auto left = leaving.begin();
    std::vector<int32_t> step_of;
    for (int32_t i = 0; i < graph_.size(); ++i) {
      for (; next != copies.end() && next->position == i; ++next) add(*next);
      step_of.push_back(static_cast<int32_t>(p.steps.size()));
      add({i, 0, i});
      for (; left != leaving.end() && left->first == i; ++left) {
        last[result(left->second, 0, 0)] = step_of.back();
      }
    }
    for (const auto& [read, write] : written_) {
      const size_t v = result(read, 0, 0);
      if (last[v] > step_of[at(write)] && costs_.counted[at(read)]) {
        bytes[v] = bytes_of_spec(graph_[read].outputs[0]);
      }
    }
    for (const ValueRef v : graph_.outputs) {
      last[at(root[result(v.node, 0, v.output)])] =
          static_cast<int32_t>(p.steps.size()) - 1;
    }
    p.live.assign(p.steps.size() + 1, 0);
    for (size_t v = 0; v < born.size(); ++v) {
      if (born[v] < 0 || bytes[v] == 0) continue;
      p.live[at(born[v])] += bytes[v];
      p.live[at(last[v]) + 1] -= bytes[v];
    }
    p.live.pop_back();
    std::partial_sum(p.live.begin(), p.live.end(), p.live.begin());
    for (const int64_t live : p.live)
      p.over += std::max<int64_t>(live - limit_, 0);
    for (int32_t i = 0; i < graph_.size(); ++i) {
      p.last.push_back(bytes_[at(i)].empty() ? -1 : last[result(i, 0, 0)]);
    }
    return p;
  }

  // The positions at which a node and its copies read what node i makes, also
  // through aliases, ascending, from its own on.
  std::vector<int32_t> reads_of(int32_t i, const Profile& now) const {
    std::vector<bool> of(graph_.nodes.size(), false);
    of[at(i)] = true;
    std::vector<int32_t> found = {i};
    for (const NodeCopy& step : now.steps) {
      for (const ValueRef v : graph_[step.node].inputs) {
        if (!of[at(v.node)]) continue;
        found.push_back(step.position);
        if (is_alias(graph_, step.node)) of[at(step.node)] = true;
      }
    }
    std::sort(found.begin(), found.end());
    found.erase(std::unique(found.begin(), found.end()), found.end());
    return found;
  }

  // Cuts a node, and with `deep` what its copy reads if nobody else reads that
  // so late.
  void cut(int32_t i, int32_t position, bool deep) {
    toggle(i, position);
    if (!deep) return;
    const Profile now = profile();
    int32_t back = graph_.size();
    for (const NodeCopy& step : now.steps) {
      if (step.node == i && step.position > position) {
        back = std::min(back, step.position);
      }
    }
    for (const ValueRef v : graph_[i].inputs) {
      const int32_t source = source_of(v.node);
      if (!may_cut_[at(source)] || !drops_.cuts[at(source)].empty()) continue;
      const std::vector<int32_t> reads = reads_of(source, now);
      const auto late = std::lower_bound(reads.begin(), reads.end(), back);
      // Its last reader is this copy, and the one before it is early.
      if (reads.end() - late == 1 && late != reads.begin() &&
          *std::prev(late) <= position) {
        cut(source, position, true);
      }
    }
  }

  // Nodes whose results lie idle at a step, the most bytes for their time
  // first.
  std::vector<int32_t> idle_at(const Profile& now, size_t step) const {
    const int32_t position = now.steps[step].position;
    std::vector<std::pair<double, int32_t>> found;
    for (int32_t i = 0; i < position; ++i) {
      if (!may_cut_[at(i)] || drops_.away[at(i)] ||
          now.last[at(i)] <= static_cast<int32_t>(step)) {
        continue;
      }
      const int64_t bytes = std::accumulate(bytes_[at(i)].begin(),
                                            bytes_[at(i)].end(), int64_t{0});
      found.emplace_back(
          -static_cast<double>(bytes) / (costs_.us[at(i)] + 1e-3), i);
    }
    std::sort(found.begin(), found.end());
    if (found.size() > kMostTried) found.resize(kMostTried);
    std::vector<int32_t> nodes;
    for (const auto& [worth, i] : found) nodes.push_back(i);
    return nodes;
  }

  // Makes the cuts that are best at the fullest point; none if nothing helps.
  std::optional<Profile> cut_one(const Profile& now) {
    const size_t fullest = now.fullest();
    const int32_t position = now.steps[fullest].position;
    const Drops kept = drops_;
    double best = 0;
    std::optional<Profile> found;
    Drops best_drops;
    for (const int32_t i : idle_at(now, fullest)) {
      for (const How how : {How::kAgain, How::kDeep, How::kAway}) {
        drops_ = kept;
        if (how != How::kAway) {
          cut(i, position, how == How::kDeep);
        } else if (may_leave(i, position)) {
          toggle(i, position);
          drops_.away[at(i)] = true;
        } else {
          continue;
        }
        Profile p = profile();
        const auto less = static_cast<double>(now.over - p.over);
        const double worth = less / (std::max(p.us - now.us, 0.0) + 1e-3);
        if (less <= 0 || worth <= best) continue;
        best = worth;
        best_drops = drops_;
        found = std::move(p);
      }
    }
    drops_ = found ? best_drops : kept;
    return found;
  }

  // Whether a result that is cut once, there, may wait on the host.
  bool may_leave(int32_t i, int32_t position) const {
    return costs_.away_us[at(i)] >= 0 && drops_.cuts[at(i)].empty() &&
           waits_for_leaving(graph_, costs_, position) < graph_.size();
  }

  // Cuts single nodes or mends them, at random, now and then for the worse.
  Profile anneal(Profile now) {
    std::vector<int32_t> nodes;
    double all_us = 0;
    for (int32_t i = 0; i < graph_.size(); ++i) {
      if (!may_cut_[at(i)] || readers_[at(i)].size() < 2) continue;
      nodes.push_back(i);
      all_us += costs_.us[at(i)];
    }
    if (nodes.empty()) return now;
    const auto cost = [&](const Profile& p) {
      const double over = static_cast<double>(p.over) /
                          static_cast<double>(std::max<int64_t>(limit_, 1));
      return p.us + (p.over > 0 ? all_us * (1 + 4 * over) : 0);
    };
    Drops best_drops = drops_;
    Profile best = now;
    const int64_t moves =
        std::min(kMostSteps / std::ssize(now.steps), kMostMoves);
    std::mt19937_64 random(1);
    std::uniform_real_distribution<double> chance(0, 1);
    for (int64_t k = 0; k < moves; ++k) {
      const double heat =
          all_us * static_cast<double>(moves - k) / static_cast<double>(moves);
      const int32_t i = nodes[random() % nodes.size()];
      const std::vector<int32_t>& cuts = drops_.cuts[at(i)];
      int32_t position = 0;
      if (!cuts.empty() && random() % 2 == 0) {
        position = cuts[random() % cuts.size()];
      } else {
        const std::vector<int32_t> reads = reads_of(i, now);
        if (reads.size() < 2) continue;
        position = reads[random() % (reads.size() - 1)];
      }
      const bool was_away = drops_.away[at(i)];
      if (was_away && cuts[0] != position) continue;
      const bool leaves = may_leave(i, position) && random() % 2 == 0;
      toggle(i, position);
      drops_.away[at(i)] = leaves;
      Profile p = profile();
      const double worse = cost(p) - cost(now);
      if (worse > 0 && chance(random) >= std::exp(-worse / heat)) {
        toggle(i, position);
        drops_.away[at(i)] = was_away;
        continue;
      }
      now = std::move(p);
      if (cost(now) < cost(best)) {
        best = now;
        best_drops = drops_;
      }
    }
    drops_ = std::move(best_drops);
    return best;
  }

  enum class How : uint8_t { kAgain, kDeep, kAway };

  const Graph& graph_;
  const RecomputeCosts& costs_;
  const int64_t limit_;
  const std::vector<std::vector<int32_t>> readers_;
  Drops drops_;
  std::vector<bool> may_cut_;
  std::vector<std::pair<int32_t, int32_t>> written_;  // a read, the next write
  std::vector<std::vector<int64_t>> bytes_;           // per node and output
};

}  // namespace

int copy_read(const std::vector<int32_t>& cuts, int32_t position) {
  int number = 0;
  for (const int32_t cut : cuts) number += cut < position ? 1 : 0;
  return number;
}

std::vector<std::vector<int32_t>> readers_of(const Graph& graph) {
  std::vector<std::vector<int32_t>> readers(graph.nodes.size());
  for (int32_t i = 0; i < graph.size(); ++i) {
    for (const ValueRef v : graph[i].inputs) {
      std::vector<int32_t>& r = readers[at(v.node)];
      if (r.empty() || r.back() != i) r.push_back(i);
    }
  }
  return readers;
}

std::vector<NodeCopy> copies_of(
    const std::vector<std::vector<int32_t>>& readers, const Drops& drops) {
  const auto& [cuts, away] = drops;
  constexpr int32_t kNobody = std::numeric_limits<int32_t>::max();
  std::vector<NodeCopy> copies;
  std::vector<std::vector<int32_t>> runs(readers.size());  // per copy, from 1
  for (auto i = static_cast<int32_t>(readers.size()); i-- > 0;) {
    if (cuts[at(i)].empty()) continue;
    std::vector<int32_t>& before = runs[at(i)];
    before.assign(cuts[at(i)].size() + 1, kNobody);
    const auto read = [&](int32_t position) {
      int32_t& first = before[at(copy_read(cuts[at(i)], position))];
      first = std::min(first, position);
    };
    for (const int32_t reader : readers[at(i)]) {
      read(reader);
      for (size_t k = 1; k < runs[at(reader)].size() && !away[at(reader)];
           ++k) {
        if (runs[at(reader)][k] != kNobody) read(runs[at(reader)][k]);
      }
    }
    for (size_t k = 1; k < before.size(); ++k) {
      if (before[k] == kNobody) continue;
      copies.push_back({i, static_cast<int>(k), before[k]});
    }
  }
  std::sort(copies.begin(), copies.end(), [](const auto& a, const auto& b) {
    return std::pair(a.position, a.node) < std::pair(b.position, b.node);
  });
  return copies;
}

int32_t waits_for_leaving(const Graph& graph, const RecomputeCosts& costs,
                          int32_t cut) {
  int behind = 3;
  for (int32_t i = cut + 1; i < graph.size(); ++i) {
    const bool runs =
        costs.counted[at(i)] && graph[i].op->kind() == OpKind::kCompute;
    if (runs && --behind == 0) return i;
  }
  return graph.size();
}

Choice choose_drops(const Graph& graph, const RecomputeCosts& costs,
                    int64_t limit) {
  return Chooser(graph, costs, limit).run();
}

int64_t most_bytes_alive(const Graph& graph, const RecomputeCosts& costs) {
  return choose_drops(graph, costs, std::numeric_limits<int64_t>::max()).bytes;
}

}  // namespace berth
