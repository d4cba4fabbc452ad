#include "profiler/analysis.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "profiler/busy.h"

namespace berth::profiler {

const char* name_of(IdleCause cause) {
  constexpr const char* kNames[kIdleCauses] = {
      "transfer", "sum",    "other device", "input",
      "host",     "memory", "end of step",  "other"};
  return kNames[static_cast<size_t>(cause)];
}

const char* name_of(OpLimit limit) {
  constexpr const char* kNames[] = {"", "compute", "memory", "launch",
                                    "neither"};
  return kNames[static_cast<size_t>(limit)];
}

namespace {

// The cause on which the device that works most idles longest, or its ops.
std::string verdict_of(const Analysis& a) {
  if (a.devices.empty()) return "No op is recorded on a device.";
  const DeviceTime& d =
      *std::max_element(a.devices.begin(), a.devices.end(),
                        [](auto& p, auto& q) { return p.busy_us < q.busy_us; });
  if (d.window_us <= 0) return "No step is recorded.";
  const auto cause = std::max_element(d.idle_us.begin(), d.idle_us.end());
  const double busy = 100 * d.busy_us / d.window_us;
  const double idle = 100 * *cause / d.window_us;
  if (busy >= idle) {
    return fmt::format("Compute limits the step: {} computes {:.0f} % of it.",
                       d.name, busy);
  }
  const char* why = name_of(static_cast<IdleCause>(cause - d.idle_us.begin()));
  return fmt::format(
      "{} computes {:.0f} % of the step and idles {:.0f} %, "
      "most of it for: {}.",
      d.name, busy, 100 - busy, why);
}

double input_per_step(const EventIndex& x) {
  if (x.steps.empty()) return 0;
  return measure(
             intersection(x.of_class(EventClass::kInput), union_of(x.steps))) /
         static_cast<double>(x.steps.size());
}

}  // namespace

Analysis analyze(const Timeline& timeline) {
  return analyze(EventIndex(timeline));
}

Analysis analyze(const EventIndex& x) {
  Analysis a;
  a.events = static_cast<int64_t>(x.events.size());
  a.dropped = x.dropped;
  if (x.simulated) a.clock = "simulated";
  a.step_name = x.step_name;
  a.steps = static_cast<int64_t>(x.steps.size());
  std::vector<double> durations;
  for (const Interval& s : x.steps) {
    a.step_spans.push_back({s.begin, s.end});
    durations.push_back(s.us());
  }
  if (!durations.empty()) a.first_step_us = durations.front();
  a.step_us = quantile(durations, 0.5);
  a.step_p90_us = quantile(durations, 0.9);
  double begin = 0, end = 0;
  for (size_t e = 0; e < x.events.size(); ++e) {
    if (!x.counts[e]) continue;
    if (end == 0) begin = x.events[e].begin_us;
    end = std::max(end, x.events[e].end_us);
  }
  a.span_us = end - begin;
  a.explained = explained(x);
  a.devices = device_use(x);
  a.transfers = overlap(x, EventClass::kTransfer);
  a.sums = overlap(x, EventClass::kSum);
  a.input_us = input_per_step(x);
  a.stages = stages(x);
  a.lags = lags(x);
  a.ops = op_rows(x);
  a.roofs = add_limits(x, &a.ops);
  follow_critical_path(x, &a);
  a.advice = advice_for(x, a);
  std::erase_if(a.ops, [](const OpSummary& row) { return row.count == 0; });
  std::stable_sort(a.ops.begin(), a.ops.end(),
                   [](auto& p, auto& q) { return p.total_us > q.total_us; });
  a.verdict = verdict_of(a);
  return a;
}

std::vector<OpDifference> compare(const Analysis& a, const Analysis& b) {
  std::map<std::array<std::string, 3>, OpDifference> rows;
  const auto add = [&](const Analysis& of, bool is_b) {
    for (const OpSummary& op : of.ops) {
      OpDifference& row = rows[{op.name, op.kind, op.device}];
      row.name = op.name;
      row.kind = op.kind;
      row.device = op.device;
      row.line = op.line;
      (is_b ? row.count_b : row.count_a) = op.count;
      (is_b ? row.median_b : row.median_a) = op.median_us;
      const double us =
          op.total_us / static_cast<double>(std::max<int64_t>(of.steps, 1));
      row.per_step_us += is_b ? us : -us;
    }
  };
  add(a, false);
  add(b, true);
  std::vector<OpDifference> all;
  for (auto& [key, row] : rows) all.push_back(std::move(row));
  std::stable_sort(all.begin(), all.end(), [](auto& p, auto& q) {
    return std::abs(p.per_step_us) > std::abs(q.per_step_us);
  });
  return all;
}

}  // namespace berth::profiler
