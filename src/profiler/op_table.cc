// The table of ops, and the roofline of each device.

#include <algorithm>
#include <map>

#include "profiler/busy.h"

namespace berth::profiler {

std::vector<OpSummary> op_rows(const EventIndex& x) {
  std::vector<OpSummary> rows(x.first_of_op.size());
  std::vector<std::vector<double>> times(rows.size());
  std::vector<std::vector<double>> predicted(rows.size());
  for (size_t e = 0; e < x.events.size(); ++e) {
    if (!x.is_work(static_cast<int32_t>(e))) continue;
    const TimelineEvent& event = x.events[e];
    times[x.op[e]].push_back(event.end_us - event.begin_us);
    if (event.predicted_us >= 0) {
      predicted[x.op[e]].push_back(event.predicted_us);
    }
  }
  for (size_t k = 0; k < rows.size(); ++k) {
    const int32_t first = x.first_of_op[k];
    const TimelineEvent& event = x.events[first];
    OpSummary& row = rows[k];
    row.name = event.name;
    row.kind = event.kind;
    row.device = x.tracks[x.track[first]];
    row.line = line_of(event);
    row.detail = event.detail;
    row.bytes = event.bytes;
    row.flops = event.flops;
    row.is_transfer = x.classes[first] != EventClass::kCompute;
    row.count = static_cast<int64_t>(times[k].size());
    for (const double us : times[k]) row.total_us += us;
    row.median_us = quantile(std::move(times[k]), 0.5);
    if (!predicted[k].empty()) {
      row.predicted_us = quantile(std::move(predicted[k]), 0.5);
    }
  }
  return rows;
}

namespace {

constexpr double kNearRoof = 0.6;

void set_limit(OpSummary* row, const DeviceRoof& roof) {
  if (row->median_us <= 0) return;
  const double bytes = static_cast<double>(row->bytes);
  const double compute = roof.flops_per_us > 0
                             ? row->flops / roof.flops_per_us / row->median_us
                             : 0;
  const double memory =
      roof.bytes_per_us > 0 ? bytes / roof.bytes_per_us / row->median_us : 0;
  row->roof_share = std::max(compute, memory);
  if (row->median_us < 3 * roof.launch_us) {
    row->limit = OpLimit::kLaunch;
  } else if (row->roof_share <= 0) {
    row->limit = OpLimit::kUnknown;
  } else if (row->roof_share < kNearRoof) {
    row->limit = OpLimit::kNeither;
  } else {
    row->limit = compute >= memory ? OpLimit::kCompute : OpLimit::kMemory;
  }
}

}  // namespace

std::vector<DeviceRoof> add_limits(const EventIndex& x,
                                   std::vector<OpSummary>* ops) {
  std::map<std::string, DeviceRoof> roofs;
  std::map<std::string, std::vector<double>> gaps;  // between ops in a row
  std::vector<double> last(x.tracks.size(), -1);
  for (size_t e = 0; e < x.events.size(); ++e) {
    if (x.classes[e] != EventClass::kCompute || !x.counts[e]) continue;
    const double gap = x.events[e].begin_us - last[x.track[e]];
    if (last[x.track[e]] >= 0 && gap > 0 && gap < 20) {
      gaps[x.tracks[x.track[e]]].push_back(gap);
    }
    last[x.track[e]] = std::max(last[x.track[e]], x.events[e].end_us);
  }
  for (const OpSummary& row : *ops) {
    if (row.is_transfer || row.count == 0 || row.median_us <= 0) continue;
    DeviceRoof& roof = roofs[row.device];
    const double bytes = static_cast<double>(row.bytes);
    roof.flops_per_us = std::max(roof.flops_per_us, row.flops / row.median_us);
    roof.bytes_per_us = std::max(roof.bytes_per_us, bytes / row.median_us);
  }
  std::vector<DeviceRoof> all;
  for (auto& [device, roof] : roofs) {
    roof.device = device;
    roof.launch_us = quantile(gaps[device], 0.5);
    all.push_back(roof);
  }
  for (OpSummary& row : *ops) {
    if (!row.is_transfer && row.count > 0) set_limit(&row, roofs[row.device]);
  }
  return all;
}

}  // namespace berth::profiler
