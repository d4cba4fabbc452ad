// StrategyPlan as readable text and as JSON (docs/json.md).

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/bytes_text.h"
#include "berth/distribute.h"
#include "device/virtual_clock.h"
#include "place/device_table.h"

namespace berth::distribute {

namespace {

using Json = nlohmann::ordered_json;

std::string in_us(double us) {
  return us <= 0    ? "-"
         : us < 100 ? fmt::format("{:.1f} us", us)
                    : fmt::format("{:.0f} us", us);
}

// "CPU:0" of "/job:localhost/replica:0/task:0/device:CPU:0".
std::string short_name(const std::string& device) {
  const size_t at = device.rfind("device:");
  return at == std::string::npos ? device : device.substr(at + 7);
}

Clocks clocks_of(const StrategyPlan::ReplicaShare& r) {
  Clocks clocks;
  for (const std::string& d : r.devices) clocks.add(d);
  return clocks;
}

Clocks clocks_of(const StrategyPlan& p) {
  Clocks clocks;
  for (const auto& r : p.replicas) {
    for (const std::string& d : r.devices) clocks.add(d);
  }
  return clocks;
}

// Rows with times name their clock.
std::string device_text(const StrategyPlan::ReplicaShare& r) {
  std::vector<std::string> names;
  for (const std::string& d : r.devices) names.push_back(short_name(d));
  return fmt::format("{}{}", fmt::join(names, "+"),
                     clocks_of(r).virtual_time ? " (simulated)" : "");
}

// The first few names and the number of the others.
std::string some_of(const std::vector<std::string>& names) {
  constexpr size_t kShown = 6;
  const size_t n = std::min(names.size(), kShown);
  const auto end = names.begin() + static_cast<std::ptrdiff_t>(n);
  std::string text = fmt::format("{}", fmt::join(names.begin(), end, ", "));
  if (n < names.size()) text += fmt::format(" and {} more", names.size() - n);
  return text;
}

void add_replicas(const StrategyPlan& p, std::string& s) {
  size_t width = 6;
  for (const auto& r : p.replicas) {
    width = std::max(width, device_text(r).size());
  }
  s += fmt::format("  {:>7}  {:<{}}  {:>8}  {:>6}  {:>9}  {:>9}\n", "replica",
                   "device", width, "examples", "slices", "compute", "peak");
  for (const auto& r : p.replicas) {
    s += fmt::format("  {:>7}  {:<{}}  {:>8}  {:>6}  {:>9}  {:>9}\n", r.replica,
                     device_text(r), width, r.examples,
                     r.slices > 0 ? std::to_string(r.slices) : "-",
                     in_us(r.compute_us), bytes_text(r.peak_bytes));
  }
}

void add_pipeline(const StrategyPlan::PipelinePlan& p, std::string& s) {
  s += fmt::format("  {:>5}  {:<8}  {:>9}  {:>9}  layers\n", "stage", "device",
                   "forward", "backward");
  for (size_t k = 0; k < p.stages.size(); ++k) {
    const StrategyPlan::Stage& stage = p.stages[k];
    s += fmt::format("  {:>5}  {:<8}  {:>9}  {:>9}  {}\n", k,
                     short_name(stage.device), in_us(stage.forward_us),
                     in_us(stage.backward_us), some_of(stage.layers));
  }
  s += fmt::format("  schedule {}, {} micro-batches\n", p.schedule,
                   p.micro_batches);
  std::string line;
  size_t device = 0;
  for (const char c : p.instructions) {
    if (c != '\n') {
      line += c;
      continue;
    }
    s += fmt::format(
        "    device {}: at most {} held, peak {}: {}\n", device,
        p.in_flight[device],
        device < p.peak_bytes.size() ? bytes_text(p.peak_bytes[device]) : "-",
        line);
    line.clear();
    ++device;
  }
  if (p.bubble_of_equal_stages <= 0) return;
  s += fmt::format(
      "  waiting: {:.1f} % of the devices' time; these stages alone {:.1f} %, "
      "equal stages {:.1f} %\n",
      100 * p.bubble, 100 * p.bubble_of_stages, 100 * p.bubble_of_equal_stages);
}

void add_buckets(const StrategyPlan& p, std::string& s) {
  for (size_t b = 0; b < p.buckets.size(); ++b) {
    const auto& bucket = p.buckets[b];
    s += fmt::format("  bucket {}: {}, {}: {}\n", b, bytes_text(bucket.bytes),
                     bucket.algorithm, some_of(bucket.variables));
  }
  s += fmt::format("  between devices: {} per step\n",
                   bytes_text(p.bytes_per_step));
}

void add_tasks(const StrategyPlan& p, const Clocks& clocks, std::string& s) {
  for (const StrategyPlan::Link& l : p.links) {
    s += fmt::format("  {} to {}: {} per step, {}{}\n", l.from, l.to,
                     bytes_text(l.bytes), in_us(l.us),
                     l.measured ? "" : ", estimated");
  }
  if (p.task_counts.empty()) return;
  s += fmt::format(
      "  sums between tasks: {}{}; by number of tasks:", in_us(p.exchange_us),
      p.exchange_measured ? ""
                          : ", estimated (berth calibrate --cluster measures)");
  for (const StrategyPlan::TaskCount& c : p.task_counts) {
    s += fmt::format("{} {}: {}", &c == p.task_counts.data() ? "" : ",",
                     c.tasks, in_us(c.step_us));
  }
  s += fmt::format("{}\n", clocks.mark());
}

}  // namespace

std::string StrategyPlan::str() const {
  const Clocks clocks = clocks_of(*this);
  std::string s =
      fmt::format("{}, {} replica{}, batch {}\n", strategy, replicas.size(),
                  replicas.size() == 1 ? "" : "s", batch);
  add_replicas(*this, s);
  if (pipeline) add_pipeline(*pipeline, s);
  add_buckets(*this, s);
  if (!unused.empty()) {
    s += fmt::format("  no gradient, not trained: {}\n", some_of(unused));
  }
  if (!whole.empty()) {
    s += fmt::format("  not cut, run whole: {}\n", some_of(whole));
  }
  if (step_us > 0) {
    s += fmt::format("  predicted: {} per step", in_us(step_us));
    if (all_reduce_us > 0) {
      s += fmt::format(", {} of it adding gradients", in_us(all_reduce_us));
    }
    s += clocks.mark();
    s += "\n";
  } else {
    s += "  predicted: unknown, not all of the step can be measured\n";
  }
  // A step on both clocks has no time to compare with.
  if (one_device_us > 0 && step_us > 0 && one_device_us != step_us &&
      !clocks.both()) {
    s += fmt::format("  against {}: {}{}, speed-up {:.2f}x\n", one_device,
                     in_us(one_device_us), clocks.mark(), speed_up());
  }
  add_tasks(*this, clocks, s);
  for (const TooSmall& d : too_small) {
    s += fmt::format("  does not fit {} ({} of {})\n",
                     short_device(DeviceId(d.device)), bytes_text(d.peak_bytes),
                     bytes_text(d.limit_bytes));
  }
  if (!too_small.empty()) {
    s += largest_batch > 0
             ? fmt::format("  the largest batch that fits: {}\n", largest_batch)
             : "  no batch fits\n";
  }
  if (!advice.empty()) s += "  " + advice + "\n";
  return s;
}

std::string StrategyPlan::json() const {
  const auto time = [](double us) { return us > 0 ? Json(us) : Json(nullptr); };
  Json j = {{"strategy", strategy}, {"batch", batch}};
  j["replicas"] = Json::array();
  for (const ReplicaShare& r : replicas) {
    j["replicas"].push_back({{"replica", r.replica},
                             {"devices", r.devices},
                             {"examples", r.examples},
                             {"slices", r.slices},
                             {"compute_us", time(r.compute_us)},
                             {"peak_bytes", r.peak_bytes}});
  }
  if (pipeline) {
    Json stages = Json::array();
    for (const Stage& k : pipeline->stages) {
      stages.push_back({{"device", k.device},
                        {"layers", k.layers},
                        {"forward_us", time(k.forward_us)},
                        {"backward_us", time(k.backward_us)}});
    }
    j["pipeline"] = {
        {"schedule", pipeline->schedule},
        {"micro_batches", pipeline->micro_batches},
        {"stages", stages},
        {"instructions", pipeline->instructions},
        {"in_flight", pipeline->in_flight},
        {"peak_bytes", pipeline->peak_bytes},
        {"bubble", pipeline->bubble},
        {"bubble_of_stages", pipeline->bubble_of_stages},
        {"bubble_of_equal_stages", pipeline->bubble_of_equal_stages}};
  }
  if (!too_small.empty()) {
    j["too_small"] = Json::array();
    for (const TooSmall& d : too_small) {
      j["too_small"].push_back({{"device", d.device},
                                {"peak_bytes", d.peak_bytes},
                                {"limit_bytes", d.limit_bytes}});
    }
    j["largest_batch"] = largest_batch;
  }
  j["buckets"] = Json::array();
  for (const Bucket& b : buckets) {
    j["buckets"].push_back({{"variables", b.variables},
                            {"bytes", b.bytes},
                            {"algorithm", b.algorithm}});
  }
  j["unused"] = unused;
  j["whole"] = whole;
  j["bytes_per_step"] = bytes_per_step;
  j["step_us"] = time(step_us);
  j["all_reduce_us"] = time(all_reduce_us);
  j["one_device"] = one_device;
  j["one_device_us"] = time(one_device_us);
  j["speed_up"] = speed_up() > 0 ? Json(speed_up()) : Json(nullptr);
  if (!links.empty()) {
    j["links"] = Json::array();
    for (const Link& l : links) {
      j["links"].push_back({{"from", l.from},
                            {"to", l.to},
                            {"bytes", l.bytes},
                            {"us", l.us},
                            {"measured", l.measured}});
    }
    j["exchange_us"] = exchange_us;
    j["exchange_measured"] = exchange_measured;
    j["task_counts"] = Json::array();
    for (const TaskCount& c : task_counts) {
      j["task_counts"].push_back(
          {{"tasks", c.tasks}, {"step_us", time(c.step_us)}});
    }
  }
  j["advice"] = advice;
  return j.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace berth::distribute
