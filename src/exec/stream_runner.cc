// Steps of the host run here and now; others are handed to their stream, which
// waits as the program says.

#include <vector>

#include "base/clock.h"
#include "exec/arena_guard.h"
#include "exec/runners.h"
#include "exec/watch_results.h"

namespace berth {

namespace {

class StreamRun final : public SteppedRun {
 public:
  StreamRun(ProgramRun& run, const ArenaGuard& guard)
      : run_(run), guard_(guard), launches_(run.program.steps.size()) {
    const Program& p = run.program;
    for (size_t s = 0; s < p.steps.size(); ++s) {
      const PlanStep& step = p.steps[s];
      launches_[s].run = &run;
      launches_[s].step = &step;
      if (step.kind != StepKind::kNothing) {
        launches_[s].work = work_of(step, &launches_[s]);
      }
    }
  }

  void launch() override {
    const Program& p = run_.program;
    for (size_t s = 0; s < p.steps.size(); ++s) launch_step(s);
    end_launch();
  }

  void end_launch() override {
    const Program& p = run_.program;
    for (const PlanStream& stream : p.streams) {
      for (int32_t w : stream.final_waits) {
        if (stream.here) wait_in_time(run_, run_.events[w]);
        // The caller is told what failed on the host: only the order counts.
        if (p.host_threads && p.streams[p.steps[w].stream].host) {
          stream.stream->wait_for_reuse(run_.events[w]);
        } else {
          stream.stream->wait(run_.events[w]);
        }
      }
    }
  }

  void launch_step(size_t s) override {
    const PlanStep& step = run_.program.steps[s];
    const PlanStream& stream = run_.program.streams[step.stream];
    const bool timed_wait = run_.deadline.is_set() && stream.here;
    for (int32_t w : step.waits) {
      if (timed_wait) wait_in_time(run_, run_.events[w]);
      stream.stream->wait(run_.events[w]);
    }
    // Only steps of the host write its arenas; others read them late.
    if constexpr (kPoisons) {
      if (stream.here) guard_.before(run_, static_cast<int32_t>(s));
    }
    const bool timed_here = run_.sampled && stream.here;
    const double begin = timed_here ? host_clock_us() : 0;
    if (stream.here || step.kind == StepKind::kControl) {
      run_step(step, run_);
    } else if (step.kind != StepKind::kNothing) {
      Work& work = launches_[s].work;
      work.time = run_.sampled ? &run_.times[s] : nullptr;
      stream.stream->launch(work);
    }
    if (timed_here) run_.times[s] = {begin, host_clock_us()};
    if (watches_results()) [[unlikely]]
      watch_results(step, run_);
    if (step.signals || run_.deadline.is_set()) {
      run_.events[s] = stream.stream->record();
      run_.launched = static_cast<int32_t>(s) + 1;
    }
  }

  void call_step(size_t s) override {
    run_as_work(run_.program.steps[s], run_);
  }

 private:
  struct Launch {
    ProgramRun* run = nullptr;
    const PlanStep* step = nullptr;
    Work work;
  };

  Work work_of(const PlanStep& step, Launch* launch) const {
    const PlanOp& op = run_.program.ops[step.first_op];
    Work work;
    work.run = [](void* context, Stream&) {
      const Launch& launch = *static_cast<Launch*>(context);
      run_as_work(*launch.step, *launch.run);
    };
    work.context = launch;
    work.what = step.parts > 1 ? "a region" : op.op->name().c_str();
    // Errors of regions say which member failed.
    if (step.parts == 1) work.site = op.site;
    work.flops = step.cost.flops;
    work.moved_bytes = step.cost.bytes;
    work.crosses_link = step.kind == StepKind::kTransfer;
    return work;
  }

  ProgramRun& run_;
  const ArenaGuard& guard_;
  std::vector<Launch> launches_;  // by step
};

class StreamRunner final : public PlanRunner {
 public:
  explicit StreamRunner(const Program& program) : guard_(program) {}
  std::unique_ptr<PreparedRun> prepare(ProgramRun& run) const override {
    return std::make_unique<StreamRun>(run, guard_);
  }

 private:
  const ArenaGuard guard_;
};

}  // namespace

std::unique_ptr<PlanRunner> stream_runner(const Program& program) {
  return std::make_unique<StreamRunner>(program);
}

}  // namespace berth
