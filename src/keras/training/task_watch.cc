// Times of a fit's steps and waits, compared with other tasks.

#include "keras/training/task_watch.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <numeric>
#include <sstream>

#include "device/device_manager.h"
#include "distribute/multi_worker/gradient_exchange.h"
#include "distribute/multi_worker/step_consensus.h"
#include "op/device_scope.h"
#include "tensor/tensor_impl.h"

namespace berth::keras {

namespace {

constexpr int64_t kUntimedSteps = 2;  // they compile
constexpr int64_t kProbeBytes = 64 << 10;
constexpr double kBehind = 1.25;  // times the median of the others

double task_clock_us() {
  return std::chrono::duration<double, std::micro>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

// The best of a few messages to the first task and back.
double network_to_first_us(cluster::Member& member) {
  constexpr const char* kService = "berth/echo";
  constexpr int kTries = 4;
  member.serve(kService,
               [](const distribute::TaskId&, cluster::Message m) { return m; });
  if (member.rank() == 0) return -1;
  const Tensor bytes =
      make_tensor(DeviceManager::get().host(), uint8, Shape{kProbeBytes});
  std::fill_n(bytes.impl()->data(), kProbeBytes, std::byte{0});
  double best = -1;
  for (int i = 0; i < kTries; ++i) {
    const double start = task_clock_us();
    member.call(member.ranks().front(), kService, {"", {bytes}}).get();
    const double took = task_clock_us() - start;
    if (best < 0 || took < best) best = took;
  }
  return best;
}

double median_of(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<int64_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// A line for each task that is slower than the median of all others by
// `kBehind` and by so many microseconds.
template <class Get>
void say_who_is_behind(const std::vector<TaskReport::Task>& tasks, Get get,
                       double least_us, const char* text, std::string* lines) {
  for (const TaskReport::Task& t : tasks) {
    std::vector<double> others;
    for (const TaskReport::Task& o : tasks) {
      if (&o != &t && get(o) >= 0) others.push_back(get(o));
    }
    const double usual = median_of(others);
    if (others.empty() || get(t) < kBehind * usual ||
        get(t) < usual + least_us) {
      continue;
    }
    *lines += fmt::format(fmt::runtime(text), t.name, get(t) / 1e3, usual / 1e3,
                          100 * (get(t) / usual - 1));
  }
}

}  // namespace

int64_t TaskReport::duplicates() const {
  int64_t sum = 0;
  for (const Task& t : tasks) sum += t.samples;
  return std::max<int64_t>(0, sum - samples);
}

std::string TaskReport::stragglers() const {
  std::string lines;
  say_who_is_behind(
      tasks, [](const Task& t) { return t.compute_us(); }, 50,
      "straggler: {} computes {:.2f} ms per step, the others {:.2f} ms "
      "(median; "
      "{:.0f} % more): they wait for it\n",
      &lines);
  say_who_is_behind(
      tasks, [](const Task& t) { return t.input_us; }, 50,
      "straggler: {} waits {:.2f} ms per step for its input, the others {:.2f} "
      "ms (median; {:.0f} % more)\n",
      &lines);
  say_who_is_behind(
      tasks, [](const Task& t) { return t.network_us; }, 500,
      "straggler: the network of {}: 64 KiB to the first task and back take "
      "{:.2f} ms, those of the others {:.2f} ms (median; {:.0f} % more)\n",
      &lines);
  return lines;
}

std::string TaskReport::str() const {
  std::string text = "samples:";
  int64_t sum = 0;
  for (const Task& t : tasks) {
    text += fmt::format(" {} {},", t.name, t.samples);
    sum += t.samples;
  }
  text.back() = ';';
  text += fmt::format(" {} in all, {} of them twice\n", sum, duplicates());
  for (size_t e = 0; e < epochs.size(); ++e) {
    if (epochs[e].twice == 0 && epochs[e].never == 0) continue;
    text += fmt::format(
        "epoch {}: {} examples once, {} more often, {} never: tasks came and "
        "went\n",
        e + 1, epochs[e].once, epochs[e].twice, epochs[e].never);
  }
  return text + stragglers();
}

TaskWatch::TaskWatch(std::shared_ptr<distribute::StrategyCore> core)
    : core_(core && core->link() ? std::move(core) : nullptr) {
  if (!core_) return;
  mine_.name = core_->link()->member().task().str();
  core_->link()->take_times();
}

bool TaskWatch::wait(const NextBatch& next, Tensors& element) {
  if (!core_) return next(element);
  const double start = task_clock_us();
  const bool more = next(element);
  if (more && steps_ >= kUntimedSteps)
    mine_.input_us += task_clock_us() - start;
  return more;
}

void TaskWatch::before_step() {
  if (core_) begun_us_ = task_clock_us();
}

void TaskWatch::after_step(int64_t examples) {
  if (!core_) return;
  const distribute::TaskPart& tasks = core_->tasks();
  const auto rank = static_cast<size_t>(tasks.rank);
  if (rank < tasks.rows.size()) {
    mine_.samples += tasks.rows[rank];
  } else {
    const std::vector<int64_t> all = core_->examples(examples);
    const auto first = all.begin() + core_->first_here();
    mine_.samples +=
        std::accumulate(first, first + core_->num_here(), int64_t{0});
  }
  samples_ += examples;
  const double waited = core_->link()->take_times().waited_us;
  if (steps_++ < kUntimedSteps) return;
  ++timed_;
  mine_.step_us += task_clock_us() - begun_us_;
  mine_.waited_us += waited;
}

std::optional<TaskReport> TaskWatch::report() {
  if (!core_ || steps_ == 0) return std::nullopt;
  TaskReport report;
  report.steps = steps_;
  report.samples = samples_;
  const double n = static_cast<double>(std::max<int64_t>(timed_, 1));
  distribute::CollectiveExecutor& link = *core_->link();
  const std::string said =
      fmt::format("{} {} {} {} {} {}", mine_.name, mine_.samples,
                  mine_.step_us / n, mine_.waited_us / n, mine_.input_us / n,
                  network_to_first_us(link.member()));
  for (const std::string& text :
       distribute::gather_texts(link, said, "who did how much")) {
    TaskReport::Task t;
    std::istringstream in(text);
    in >> t.name >> t.samples >> t.step_us >> t.waited_us >> t.input_us >>
        t.network_us;
    report.tasks.push_back(std::move(t));
  }
  return report;
}

}  // namespace berth::keras
