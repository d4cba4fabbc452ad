// What runs of a plan did: records, samples, events of the timeline.

#include "exec/run_record.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
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
    run.slices.assign(program->calls.size(), WorkTime{});
    note();
    std::lock_guard lock(mutex);
    if (named_in != timeline::recording()) add_event_types();
    last_number = std::max(last_number + 1, run.runs_before + run.runs);
    run.number = last_number;
  }
  if (!run.recorded) run.slices.clear();
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

namespace {

// Threads of the host share it; times of simulated devices are of another
// clock.
bool has_slices(const Program& p, const PlanStep& step) {
  return step.kind != StepKind::kNothing && step.parts > 1 && step.forks &&
         !p.streams[step.stream].device->simulated();
}

// "/CPU:0 -> /GPU:0" of a copy; the ops of a region.
std::string detail_of(const Plan::Impl& plan, const PlanStep& step) {
  const Program& p = *plan.program;
  const PlanOp& first = p.ops[static_cast<size_t>(step.first_op)];
  const std::string& here = p.streams[step.stream].device->str();
  if (step.kind == StepKind::kTransfer) {
    const Node& copy = plan.graph[first.node];
    const Node& from = plan.graph[copy.inputs[0].node];
    return fmt::format("{} -> {}", from.assigned.text(), here);
  }
  std::string ops;
  for (int k = 0; k < step.num_ops && step.num_ops > 1; ++k) {
    if (k > 0) ops += ", ";
    if (k == 12) return ops + fmt::format("{} more", step.num_ops - k);
    ops += p.ops[static_cast<size_t>(step.first_op + k)].name;
  }
  return ops;
}

}  // namespace

void Plan::Impl::add_event_types() {
  named_in = timeline::recording();
  std::vector<timeline::EventType> types(program->steps.size() + 1);
  types.back() = {.track = "host", .name = "launch", .kind = "launch"};
  std::vector<int32_t> last(program->streams.size(), -1);  // by stream
  for (size_t s = 0; s < program->steps.size(); ++s) {
    const PlanStep& step = program->steps[s];
    timeline::EventType& type = types[s];
    int32_t& before = last[step.stream];
    std::vector<int32_t> waits = step.waits;
    if (before >= 0) waits.push_back(before);
    before = static_cast<int32_t>(s);
    for (const int32_t w : waits) {  // what does nothing passes its waits on
      if (program->steps[w].kind != StepKind::kNothing) {
        type.after.push_back(w);
      } else {
        type.after.insert(type.after.end(), types[w].after.begin(),
                          types[w].after.end());
      }
    }
    type.track = program->streams[step.stream].device->str();
    if (step.kind == StepKind::kNothing) continue;
    const PlanOp& op = program->ops[static_cast<size_t>(step.first_op)];
    const bool is_region = step.num_ops > 1;
    type.name = op.name;
    if (is_region) type.name += fmt::format(" and {} more", step.num_ops - 1);
    type.kind = graph[op.node].collective          ? "sum"
                : step.kind == StepKind::kTransfer ? "copy"
                : is_region                        ? "region"
                                                   : op.op->name();
    type.site = op.site;
    type.detail = detail_of(*this, step);
    type.bytes = std::llround(step.cost.bytes);
    type.flops = step.cost.flops;
    type.predicted_us = step.estimate_us / (step.forks ? step.parts : 1);
  }
  for (const PlanStep& step : program->steps) {
    if (!has_slices(*program, step)) continue;
    const timeline::EventType of = types[&step - program->steps.data()];
    types.resize(std::max(types.size(), slice_type(step, step.parts)));
    for (int c = 0; c < step.parts; ++c) {
      timeline::EventType& type = types[slice_type(step, c)];
      type.track = fmt::format("{} slice {}", of.track, c + 1);
      type.name = of.name;
      type.kind = "slice";
      type.site = of.site;
    }
  }
  first_type = timeline::add_types(std::move(types));
}

void Plan::Impl::add_events(const Instance& run) {
  if (named_in != timeline::recording()) return;
  events.clear();
  const auto number = static_cast<uint32_t>(run.number);
  const auto add = [&](const WorkTime& t, size_t type) {
    if (t.end_us < 0) return;
    events.push_back({t.begin_us, t.end_us,
                      first_type + static_cast<timeline::TypeId>(type),
                      number});
  };
  // Bodies are launched with their plan.
  add(run.host_time, program->steps.size());
  for (size_t s = 0; s < program->steps.size(); ++s) {
    const PlanStep& step = program->steps[s];
    if (step.kind == StepKind::kNothing) continue;
    add(run.times[s], s);
    if (!has_slices(*program, step)) continue;
    for (int c = 0; c < step.parts; ++c) {
      add(run.slices[step.first_call + c], slice_type(step, c));
    }
  }
  timeline::add(events);
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
