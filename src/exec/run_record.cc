#include "exec/run_record.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "base/timeline.h"
#include "device/device_manager.h"
#include "exec/plan_impl.h"

namespace berth {

namespace {

// The place of the median sample; there is one.
size_t median_of(const RunRecord& r) {
  const auto n =
      std::min(static_cast<size_t>(r.samples), RunRecord::kKeptSteps);
  std::array<size_t, RunRecord::kKeptSteps> order{};
  std::iota(order.begin(), order.end(), size_t{0});
  const auto middle = order.begin() + static_cast<std::ptrdiff_t>(n / 2);
  std::nth_element(
      order.begin(), middle, order.begin() + static_cast<std::ptrdiff_t>(n),
      [&](size_t a, size_t b) { return r.step_us[a] < r.step_us[b]; });
  return *middle;
}

// From the first begin to the last end by one clock.
struct Span {
  double begin = 0, end = -1;
  void add(const WorkTime& t) {
    begin = end < 0 ? t.begin_us : std::min(begin, t.begin_us);
    end = std::max(end, t.end_us);
  }
  double us() const { return end < 0 ? 0 : end - begin; }
};

}  // namespace

void RunRecord::add_sample(double us, const std::vector<float>& parts) {
  const size_t at = static_cast<size_t>(samples++) % kKeptSteps;
  step_us[at] = us;
  kept_us.resize(kKeptSteps * parts.size(), -1);
  std::copy(parts.begin(), parts.end(),
            kept_us.begin() + static_cast<std::ptrdiff_t>(at * parts.size()));
}

double RunRecord::median_step_us() const {
  return samples == 0 ? -1 : step_us[median_of(*this)];
}

double RunRecord::typical_us(size_t step) const {
  if (samples == 0) return -1;
  return kept_us[median_of(*this) * steps.size() + step];
}

void Plan::Impl::begin_run(Instance& run) {
  if (run.sampled) {
    std::lock_guard lock(mutex);
    harvest(run);
  }
  run.sampled = is_sampled(run.runs_before + ++run.runs);
  run.recorded = timeline::is_on();
  if (run.recorded) [[unlikely]] {
    run.sampled = true;
    note();
  }
  if (wanted_samples.load(std::memory_order_relaxed) > 0) {
    run.sampled = true;
    wanted_samples.fetch_sub(1, std::memory_order_relaxed);
  }
  if (run.sampled) std::fill(run.times.begin(), run.times.end(), WorkTime{});
}

void Plan::Impl::harvest(Instance& run) {
  run.sampled = false;
  const std::vector<PlanStep>& steps = program->steps;
  const bool virtual_time = !DeviceManager::get().config().sim_real_clock;
  Span host, simulated;  // each by its own clock
  for (size_t s = 0; s < steps.size(); ++s) {
    if (steps[s].kind == StepKind::kNothing) continue;
    const WorkTime& t = run.times[s];
    // Control steps wait for the bodies, which have records of their own.
    if (steps[s].kind == StepKind::kControl && t.end_us < 0) continue;
    if (t.end_us < 0) return;  // the run failed
    Device& device = *program->streams[steps[s].stream].device;
    (virtual_time && device.simulated() ? simulated : host).add(t);
  }
  if (run.recorded) add_events(run);
  std::vector<float>& parts = record.scratch;
  parts.assign(steps.size(), -1);
  for (size_t s = 0; s < steps.size(); ++s) {
    if (run.times[s].end_us < 0) continue;
    const double us = run.times[s].end_us - run.times[s].begin_us;
    ++record.steps[s].samples;
    record.steps[s].total_us += us;
    parts[s] = static_cast<float>(us);
  }
  record.add_sample(simulated.end >= 0 ? simulated.us() : host.us(), parts);
}

void Plan::Impl::add_events(const Instance& run) const {
  for (size_t s = 0; s < program->steps.size(); ++s) {
    const PlanStep& step = program->steps[s];
    const WorkTime& t = run.times[s];
    if (step.kind == StepKind::kNothing || t.end_us < 0) continue;
    const PlanOp& op = program->ops[static_cast<size_t>(step.first_op)];
    const bool is_region = step.num_ops > 1;
    std::string name = op.name;
    if (is_region) name += fmt::format(" and {} more", step.num_ops - 1);
    timeline::add({program->streams[step.stream].device->str(), std::move(name),
                   step.kind == StepKind::kTransfer ? "copy"
                   : is_region                      ? "region"
                                                    : op.op->name(),
                   op.site, t.begin_us, t.end_us});
  }
}

void Plan::Impl::harvest_all() {
  std::vector<std::unique_ptr<Instance>> sampled;
  {
    std::lock_guard lock(mutex);
    for (auto& instance : idle) {
      if (instance->sampled) sampled.push_back(std::move(instance));
    }
    std::erase(idle, nullptr);
  }
  for (auto& instance : sampled) {
    for (const Event& e : instance->done) berth::finish(e);
    std::lock_guard lock(mutex);
    harvest(*instance);
    idle.push_back(std::move(instance));
  }
}

void Plan::Impl::note_argument(size_t index, const Device& from) {
  std::lock_guard lock(mutex);
  for (RunRecord::Argument& a : record.arguments) {
    if (a.index == static_cast<int32_t>(index) && a.from == from.slot()) {
      ++a.count;
      return;
    }
  }
  record.arguments.push_back({static_cast<int32_t>(index), from.slot(), 1});
}

}  // namespace berth
