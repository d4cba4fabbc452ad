// Busy time of devices, overlap of transfers with compute, stragglers, stages.

#include "profiler/busy.h"

#include <algorithm>
#include <map>
#include <set>

#include "profiler/tasks.h"

namespace berth::profiler {

Intervals compute_of(const EventIndex& x, int32_t device) {
  return intersection(x.of_class(EventClass::kCompute, device),
                      union_of(x.steps));
}

OverlapShare overlap(const EventIndex& x, EventClass of) {
  std::map<std::string, std::pair<Intervals, Intervals>> tasks;
  OverlapShare all;
  for (size_t e = 0; e < x.events.size(); ++e) {
    if (!x.counts[e] || x.step[e] < 0) continue;
    const Interval at = {x.events[e].begin_us, x.events[e].end_us};
    auto& [moves, computes] = tasks[x.tasks[x.track[e]]];
    if (x.classes[e] == of) {
      moves.push_back(at);
      all.bytes += x.events[e].bytes;
    } else if (x.classes[e] == EventClass::kCompute) {
      computes.push_back(at);
    }
  }
  for (auto& [task, sets] : tasks) {
    const Intervals moves = union_of(std::move(sets.first));
    all.total_us += measure(moves);
    all.hidden_us +=
        measure(intersection(moves, union_of(std::move(sets.second))));
  }
  return all;
}

std::vector<TaskLag> lags(const EventIndex& x) {
  // Arrivals at the k-th exchange of a name, by task.
  std::map<std::pair<std::string, int64_t>, std::map<std::string, double>>
      meets;
  std::map<std::pair<std::string, std::string>, int64_t> seen;
  for (size_t e = 0; e < x.events.size(); ++e) {
    if (x.classes[e] != EventClass::kSum || !x.counts[e]) continue;
    if (!exchange_event(x.events[e].name).enters) continue;
    const std::string& task = x.tasks[x.track[e]];
    const int64_t k = seen[{x.events[e].name, task}]++;
    meets[{x.events[e].name, k}].emplace(task, x.events[e].begin_us);
  }
  std::map<std::string, TaskLag> by_task;
  std::map<std::string, std::vector<double>> lost;
  for (const auto& [key, arrivals] : meets) {
    if (arrivals.size() < 2) continue;
    const auto last =
        std::max_element(arrivals.begin(), arrivals.end(),
                         [](auto& a, auto& b) { return a.second < b.second; });
    double waits = 0;
    for (const auto& [task, at] : arrivals) {
      TaskLag& lag = by_task[task];
      ++lag.sums;
      lag.waited_us += last->second - at;
      waits += last->second - at;
    }
    ++by_task[last->first].last;
    lost[last->first].push_back(waits /
                                static_cast<double>(arrivals.size() - 1));
  }
  std::vector<TaskLag> all;
  for (auto& [task, lag] : by_task) {
    lag.task = task;
    lag.median_lost_us = quantile(lost[task], 0.5);
    all.push_back(lag);
  }
  return all;
}

bool is_prefetch(const std::string& stage) {
  return stage.starts_with("prefetch");
}

std::vector<InputStageUse> stages(const EventIndex& x) {
  std::map<int32_t, InputStageUse> by_op;
  std::vector<std::pair<double, int32_t>> borders;  // ends: ~place
  for (size_t e = 0; e < x.events.size(); ++e) {
    if (x.classes[e] != EventClass::kStage) continue;
    const int32_t place = static_cast<int32_t>(e);
    InputStageUse& s = by_op[x.op[e]];
    if (s.count++ == 0) s = {x.events[e].name, line_of(x.events[e]), 1};
    borders.push_back({x.events[e].begin_us, place});
    borders.push_back({x.events[e].end_us, ~place});
  }
  std::sort(borders.begin(), borders.end());
  std::set<std::pair<double, int32_t>> open;  // the last is the innermost
  std::map<int32_t, int32_t> depth;           // open events by stage
  double since = 0;
  for (const auto& [at, place] : borders) {
    if (!open.empty()) by_op[x.op[open.rbegin()->second]].own_us += at - since;
    for (const auto& [op, n] : depth) {
      if (n > 0) by_op[op].busy_us += at - since;
    }
    since = at;
    const int32_t e = place < 0 ? ~place : place;
    if (place < 0) {
      open.erase({x.events[e].begin_us, e});
      --depth[x.op[e]];
    } else {
      if (!is_prefetch(x.events[e].name)) {
        open.insert({x.events[e].begin_us, e});
      }
      ++depth[x.op[e]];
    }
  }
  std::vector<InputStageUse> all;
  for (auto& [op, s] : by_op) all.push_back(std::move(s));
  std::stable_sort(all.begin(), all.end(),
                   [](auto& a, auto& b) { return a.own_us > b.own_us; });
  return all;
}

double quantile(std::vector<double> of, double share) {
  if (of.empty()) return 0;
  const auto at =
      of.begin() + static_cast<std::ptrdiff_t>(
                       static_cast<double>(of.size() - 1) * share + 0.5);
  std::nth_element(of.begin(), at, of.end());
  return *at;
}

}  // namespace berth::profiler
