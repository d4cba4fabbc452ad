// The order of a pipeline's step: a topological order that takes the ready
// node whose instruction begins first.

#include <algorithm>
#include <functional>
#include <limits>
#include <map>
#include <queue>
#include <tuple>

#include "berth/errors.h"
#include "distribute/pipeline/pipeline.h"

namespace berth::distribute {

namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

// When each instruction begins, if all passes take equally long.
class Begins {
 public:
  explicit Begins(const PipelineActions& actions) {
    int32_t stages = 0;
    for (const auto& list : actions) {
      for (const PipelineAction& a : list) stages = std::max(stages, a.stage);
    }
    const std::vector<double> one(static_cast<size_t>(stages) + 1, 1);
    const PipelineTiming t = time_of(actions, {one, one, one, 0});
    for (size_t d = 0; d < actions.size(); ++d) {
      for (size_t i = 0; i < actions[d].size(); ++i) {
        const PipelineAction& a = actions[d][i];
        at_[{a.stage, a.micro_batch, a.pass}] = t.begin_us[d][i];
      }
    }
  }

  // kNever: there is no such instruction. Lists given may have a whole backward
  // pass where the schedule has halves, and the other way round.
  double of(const StagePlace& place, int micro_batch) const {
    const char* same = place.pass == 'F'   ? "F"
                       : place.pass == 'W' ? "WB"
                       : place.pass == 'I' ? "IB"
                                           : "BI";
    for (; *same != '\0'; ++same) {
      const auto it = at_.find({place.stage, micro_batch, *same});
      if (it != at_.end()) return it->second;
    }
    return kNever;
  }

 private:
  std::map<std::tuple<int32_t, int32_t, char>, double> at_;
};

// The node computes part of a micro-batch.
bool is_part(const Node& n) { return n.part != nullptr || n.replica > 0; }

}  // namespace

void order_by_schedule(Graph& graph, const StagePlaces& places,
                       const PipelineActions& actions) {
  const Begins begins(actions);
  const auto n = graph.nodes.size();
  std::vector<double> when(n, -1);
  for (int32_t i = 0; i < graph.size(); ++i) {
    const Node& node = graph[i];
    for (const ValueRef& v : node.inputs) {
      when[i] = std::max(when[i], when[v.node]);
    }
    for (const int32_t c : node.controls) when[i] = std::max(when[i], when[c]);
    if (!is_part(node) || node.sources.empty()) continue;
    const auto it = places.find(node.sources[0].name);
    if (it == places.end()) continue;
    const double begin = begins.of(it->second, std::max(node.replica, 0));
    if (begin < kNever) when[i] = std::max(when[i], begin);
  }
  const auto users = graph.users();
  // What only constants and variables feed is made for its first reader.
  for (int32_t i = graph.size(); i-- > 0;) {
    if (when[i] >= 0) continue;
    when[i] = kNever;
    for (const int32_t u : users[i]) when[i] = std::min(when[i], when[u]);
  }
  std::vector<int32_t> missing(n, 0);
  for (const auto& list : users) {
    for (const int32_t u : list) ++missing[u];
  }
  using Turn = std::pair<double, int32_t>;
  std::priority_queue<Turn, std::vector<Turn>, std::greater<>> ready;
  for (int32_t i = 0; i < graph.size(); ++i) {
    if (missing[i] == 0) ready.push({when[i], i});
  }
  std::vector<int32_t> to(n, -1);
  int32_t next = 0;
  for (; !ready.empty(); ++next) {
    const int32_t i = ready.top().second;
    ready.pop();
    to[i] = next;
    for (const int32_t u : users[i]) {
      if (--missing[u] == 0) ready.push({when[u], u});
    }
  }
  if (next != graph.size()) {
    throw errors::Internal("a pipeline's step: nodes that wait for each other");
  }
  graph.renumber(to);
}

}  // namespace berth::distribute
