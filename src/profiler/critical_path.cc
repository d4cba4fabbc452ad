// The critical path of each step: from its end back along what ended last.

#include <algorithm>
#include <map>

#include "profiler/busy.h"

namespace berth::profiler {

namespace {

std::string gap_cause(const Intervals& input, const Intervals& host,
                      Interval gap) {
  if (measure(clipped(input, gap)) * 2 > gap.us()) return "input";
  if (measure(clipped(host, gap)) * 2 > gap.us()) return "Python, checkpoints";
  return "launch, host";
}

}  // namespace

void follow_critical_path(const EventIndex& x, Analysis* a) {
  const size_t n = x.steps.size();
  std::vector<int32_t> last(n, -1);  // by step: what ends last
  std::vector<double> durations;
  for (int32_t e = 0; e < static_cast<int32_t>(x.events.size()); ++e) {
    const int32_t s = x.step[e];
    if (s < 0 || !x.is_work(e)) continue;
    if (last[s] < 0 || x.events[e].end_us > x.events[last[s]].end_us)
      last[s] = e;
  }
  for (const Interval& s : x.steps) durations.push_back(s.us());
  const double typical = quantile(durations, 0.5);
  const auto median_step = static_cast<size_t>(
      std::find(durations.begin(), durations.end(), typical) -
      durations.begin());
  const Intervals input = x.of_class(EventClass::kInput);
  const Intervals host = x.of_class(EventClass::kHost);
  std::map<std::string, double> by_device;
  for (size_t s = 0; s < n; ++s) {
    std::vector<PathPart> path;  // backwards
    double until = x.steps[s].end;
    const auto gap_to = [&](double from) {
      if (from >= until) return;
      path.push_back(
          {-1, from, until, gap_cause(input, host, {from, until}), ""});
    };
    for (int32_t e = last[s]; e >= 0; e = x.last_before(e)) {
      const double end = std::min(x.events[e].end_us, until);
      if (end <= x.steps[s].begin) break;
      gap_to(end);
      const double begin =
          std::max(std::min(x.events[e].begin_us, end), x.steps[s].begin);
      path.push_back({e, begin, end, x.events[e].name, x.tracks[x.track[e]]});
      until = begin;
    }
    gap_to(x.steps[s].begin);
    const double share = 1 / static_cast<double>(n);
    for (const PathPart& p : path) {
      const double us = (p.end_us - p.begin_us) * share;
      std::string key = p.event < 0 ? p.what : p.where;
      if (p.event >= 0) {
        a->ops[x.op[p.event]].critical_us += us;
        if (x.classes[p.event] == EventClass::kTransfer) {
          key = "transfer " + x.events[p.event].detail;
        } else if (x.classes[p.event] == EventClass::kSum) {
          key = "sum";
        }
      }
      by_device[key] += us;
    }
    if (s == median_step) a->path.assign(path.rbegin(), path.rend());
  }
  a->path_by_device.assign(by_device.begin(), by_device.end());
  std::stable_sort(a->path_by_device.begin(), a->path_by_device.end(),
                   [](auto& p, auto& q) { return p.second > q.second; });
}

}  // namespace berth::profiler
