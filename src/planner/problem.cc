#include "planner/problem.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/infinity.h"
#include "berth/errors.h"
#include "simulate/timing_tables.h"

namespace berth {

namespace {

constexpr double kMostUs = 1e30;  // sums and products of more could overflow

[[noreturn]] void fail(const PlanProblem& p, const std::string& what) {
  throw errors::InvalidArgument(fmt::format("plan \"{}\": {}", p.name, what));
}

void expect_size(const PlanProblem& p, const char* what, size_t is,
                 size_t expected) {
  if (is == expected) return;
  fail(p, fmt::format("{} {}; expected {}, one each", is, what, expected));
}

void check_sizes(const PlanProblem& p) {
  const size_t n = p.num_ops();
  const size_t values = p.graph.producer.size();
  expect_size(p, "names", p.names.size(), n);
  expect_size(p, "allowed devices", p.allowed.size(), n);
  expect_size(p, "groups", p.group.size(), n);
  expect_size(p, "resident bytes", p.resident_bytes.size(), n);
  expect_size(p, "backward flags", p.backward.size(), n);
  if (!p.ids.empty()) expect_size(p, "ids", p.ids.size(), n);
  expect_size(p, "op times", p.costs.times.size(), n * p.costs.classes.size());
  if (!p.once.empty()) expect_size(p, "once flags", p.once.size(), n);
  if (!p.touch_us.empty()) {
    expect_size(p, "transfer times", p.touch_us.size(), values);
    expect_size(p, "free flags", p.free_of_touch.size(),
                p.costs.devices.size());
  }
  expect_size(p, "values with bytes", p.costs.bytes.num_items(), values);
  if (p.costs.devices.empty() || p.costs.devices.size() > kMaxPlaceDevices) {
    fail(p, fmt::format("{} devices; expected 1 to {}", p.costs.devices.size(),
                        kMaxPlaceDevices));
  }
}

void check_numbers(const PlanProblem& p) {
  const size_t classes = p.costs.classes.size();
  for (int32_t i = 0; i < p.num_ops(); ++i) {
    const size_t at = i;
    if (p.group[at] < 0 || p.group[at] >= p.num_groups) {
      fail(p, fmt::format("op \"{}\" is in group {} of {}", p.names[at],
                          p.group[at], p.num_groups));
    }
    for (size_t c = 0; c < classes; ++c) {
      const double us = p.costs.times[at * classes + c].us;
      if (!(us >= 0) || (std::isfinite(us) && us > kMostUs)) {
        fail(p, fmt::format("op \"{}\" takes {} on \"{}\"; expected 0 to {:g}",
                            p.names[at], us, p.costs.classes[c].name, kMostUs));
      }
    }
    if (!(p.resident_bytes[at] >= 0) || std::isinf(p.resident_bytes[at])) {
      fail(p, fmt::format("op \"{}\" holds {} bytes; expected 0 or more",
                          p.names[at], p.resident_bytes[at]));
    }
  }
}

void check_links(const PlanProblem& p) {
  int64_t most = 0;
  for (int32_t v = 0; v < p.costs.bytes.num_items(); ++v) {
    most = std::max(most, p.costs.bytes.item(v));
  }
  for (const LinkCost& link : p.costs.links) {
    const double us = link.time_us(most);
    if (us >= 0 && us <= kMostUs) continue;
    fail(p, fmt::format("{} bytes take {} on a link; expected 0 to {:g}", most,
                        us, kMostUs));
  }
}

void check_order(const PlanProblem& p) {
  std::vector<uint8_t> stuck(p.names.size(), 1);
  for (const int32_t i : topological_order(p.graph)) stuck[i] = 0;
  const auto first = std::ranges::find(stuck, 1);
  if (first == stuck.end()) return;
  fail(p, fmt::format(
              "op \"{}\" waits for itself, through others; expected a graph "
              "without cycles",
              p.names[first - stuck.begin()]));
}

}  // namespace

const char* model_name(PlanModel model) {
  return model == PlanModel::kLoad       ? "throughput"
         : model == PlanModel::kPipeline ? "pipeline"
                                         : "latency";
}

int64_t limit_of(const PlanProblem& problem, double bytes) {
  return static_cast<int64_t>(std::min(bytes * problem.bytes_scale, 0x1p62));
}

std::vector<DeviceSet> devices_of_classes(const PlanProblem& p) {
  std::vector<DeviceSet> devices(p.costs.classes.size());
  for (int32_t d = 0; d < p.num_devices(); ++d) {
    devices[p.costs.devices[d].device_class] |= device_bit(d);
  }
  return devices;
}

std::vector<DeviceSet> allowed_of_ops(const PlanProblem& p) {
  std::vector<DeviceSet> allowed = p.allowed;
  const std::vector<DeviceSet> of_class = devices_of_classes(p);
  const DeviceSet all = DeviceSet::below(p.num_devices());
  for (int32_t i = 0; i < p.num_ops(); ++i) {
    allowed[i] &= all;
    if (!p.takes_time(i)) continue;
    const size_t first = static_cast<size_t>(i) * of_class.size();
    for (size_t c = 0; c < of_class.size(); ++c) {
      if (std::isinf(p.costs.times[first + c].us)) allowed[i] &= ~of_class[c];
    }
  }
  return allowed;
}

std::vector<DeviceSet> allowed_of_groups(const PlanProblem& p) {
  std::vector<DeviceSet> allowed(p.num_groups,
                                 DeviceSet::below(p.num_devices()));
  const std::vector<DeviceSet> of_op = allowed_of_ops(p);
  for (int32_t i = 0; i < p.num_ops(); ++i) allowed[p.group[i]] &= of_op[i];
  return allowed;
}

std::vector<int32_t> all_on(const PlanProblem& p,
                            const std::vector<DeviceSet>& allowed, int32_t d) {
  std::vector<int32_t> device;
  for (const int32_t group : p.group) {
    const DeviceSet& mask = allowed[group];
    device.push_back(mask == 0 || mask.has(d) ? d : mask.first());
  }
  return device;
}

std::vector<int32_t> order_of_ops(const PlanProblem& p) {
  std::vector<int32_t> order = topological_order(p.graph);
  std::erase_if(order, [&](int32_t i) { return !p.takes_time(i); });
  return order;
}

std::vector<double> speeds_of(const PlanProblem& p) {
  const size_t classes = p.costs.classes.size();
  std::vector<double> total(classes, 0);
  for (int32_t i = 0; i < p.num_ops(); ++i) {
    if (!p.takes_time(i)) continue;
    const OpTime* times = &p.costs.times[static_cast<size_t>(i) * classes];
    double dearest = 0;
    for (size_t c = 0; c < classes; ++c) {
      if (std::isfinite(times[c].us)) dearest = std::max(dearest, times[c].us);
    }
    // An op without a kernel there runs on another device, and this one waits.
    for (size_t c = 0; c < classes; ++c) {
      total[c] += std::isfinite(times[c].us) ? times[c].us : 2 * dearest;
    }
  }
  double least = kInfinity;
  for (const DeviceCost& d : p.costs.devices) {
    least = std::min(least, total[d.device_class]);
  }
  std::vector<double> speed;
  for (const DeviceCost& d : p.costs.devices) {
    const double us = total[d.device_class];
    speed.push_back(us > 0 ? least / us : 1);
  }
  return speed;
}

void check_problem(const PlanProblem& p) {
  check_sizes(p);
  check_numbers(p);
  check_links(p);
  check_order(p);
}

}  // namespace berth
