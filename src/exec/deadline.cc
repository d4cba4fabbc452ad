#include "exec/deadline.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/immortal.h"
#include "base/where.h"
#include "berth/errors.h"
#include "exec/plan_impl.h"
#include "exec/runners.h"

namespace berth {

double& DeadlineScope::current() {
  static thread_local double seconds = 0;
  return seconds;
}

namespace {

// Steps of inline streams have ended once they are launched. Those that were
// not launched wait for the caller.
bool is_done(const ProgramRun& run, int32_t step) {
  if (step >= run.launched) return false;
  const Event& e = run.events[step];
  return e.stream == nullptr || e.stream->done(e);
}

std::string step_text(const Program& plan, const PlanStep& step) {
  const PlanOp& op = plan.ops[step.first_op];
  return fmt::format("{} ({}){}", op.name, op.op->name(),
                     where_text(nullptr, op.site));
}

// Devices that wait for an argument that has not come: all of a plan do.
void add_arguments(const ProgramRun& run, std::vector<std::string>& missing,
                   std::set<std::string>& late) {
  for (size_t i = 0; i < run.args.size(); ++i) {
    if (run.program.arg_device[i] < 0 || !run.args[i].defined()) continue;
    const Event& ready = run.args[i].impl()->block->ready;
    if (ready.stream == nullptr || ready.stream->done(ready)) continue;
    const std::string who = ready.stream->device().short_name();
    late.insert(who);
    missing.push_back(fmt::format("{} has not ended argument {}", who, i));
  }
}

// Names the devices that have not ended, and their steps; those that only wait
// come last.
std::string missing_text(const ProgramRun& run) {
  const Program& plan = run.program;
  std::vector<bool> asked(plan.streams.size(), false);
  std::vector<std::string> missing;
  std::set<std::string> late, waiting;
  add_arguments(run, missing, late);
  const bool none_began = !missing.empty();
  for (size_t s = 0; s < plan.steps.size(); ++s) {
    const PlanStep& step = plan.steps[s];
    const auto at = static_cast<int32_t>(s);
    if (at > run.launched) break;
    if (asked[step.stream] || is_done(run, at)) continue;
    asked[step.stream] = true;  // the first of its steps that is not done
    const std::string who = plan.streams[step.stream].device->short_name();
    if (none_began || at == run.launched ||
        std::any_of(step.waits.begin(), step.waits.end(),
                    [&](int32_t w) { return !is_done(run, w); })) {
      waiting.insert(who);
    } else {
      late.insert(who);
      missing.push_back(
          fmt::format("{} has not ended {}", who, step_text(plan, step)));
    }
  }
  std::string text = fmt::format("{}", fmt::join(missing, "; "));
  if (text.empty()) text = "who is missing is not known";
  for (const std::string& who : late) waiting.erase(who);
  if (!waiting.empty()) {
    text += fmt::format("; waiting for it: {}", fmt::join(waiting, ", "));
  }
  return text;
}

}  // namespace

void wait_in_time(ProgramRun& run, const Event& event) {
  if (run.deadline.wait(event)) return;
  run.late = true;
  throw errors::DeadlineExceeded(fmt::format(
      "step \"{}\" has not ended within {:g} s: {}; what it writes is torn: "
      "config::reset_device_error() its devices and restore the variables, or "
      "give it more time (timeout_seconds)",
      run.program.name, run.deadline.seconds(), missing_text(run)));
}

void Plan::Impl::wait_for_end(Instance& run) {
  if (!run.deadline.is_set()) return;
  join_after(run);
  for (const Event& e : run.done) wait_in_time(run, e);
  for (const Event& e : run.done) synchronize(e);
}

bool Plan::Impl::has_ended(const Instance& instance) {
  return instance.prepared->ended() &&
         std::all_of(
             instance.done.begin(), instance.done.end(),
             [](const Event& e) { return !e.stream || e.stream->done(e); });
}

void Plan::Impl::leave_behind(std::unique_ptr<Instance> instance) {
  std::lock_guard lock(mutex);
  left_behind.push_back(std::move(instance));
}

// What hangs refers to the plan: it stays with it for ever.
void Plan::Impl::end(std::unique_ptr<Impl> impl) {
  const auto& left = impl->left_behind;
  if (std::all_of(left.begin(), left.end(),
                  [](const auto& i) { return has_ended(*i); })) {
    return;
  }
  static std::mutex mutex;
  static auto& hanging = immortal<std::vector<std::unique_ptr<Impl>>>();
  std::lock_guard lock(mutex);
  hanging.push_back(std::move(impl));
}

}  // namespace berth
