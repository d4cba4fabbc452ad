// Everything runs here and now, in order: nobody waits for anybody.

#include <vector>

#include "base/clock.h"
#include "exec/arena_guard.h"
#include "exec/runners.h"
#include "exec/watch_results.h"

namespace berth {

namespace {

class InlineRun final : public PreparedRun {
 public:
  InlineRun(ProgramRun& run, const ArenaGuard& guard)
      : run_(run), guard_(guard) {
    for (const PlanStep& step : run.program.steps) {
      if (step.kind == StepKind::kNothing) continue;
      Item item{nullptr, nullptr, &run.calls[step.first_call], &step, false};
      if (step.parts == 1 && step.kind == StepKind::kKernel) {
        item.kernel = &run.program.ops[step.first_op].kernel;
        item.direct = item.kernel->direct;
        item.writes = run.written != nullptr &&
                      !run.written->of_op[step.first_op].empty();
      }
      items_.push_back(item);
    }
  }

  void launch() override {
    watches_ = watches_results();
    run_.sampled || watches_ ? run_all<true>() : run_all<false>();
  }

 private:
  // No more than this is looked at per step.
  struct Item {
    DirectKernel direct;        // null: no direct kernel
    const BoundKernel* kernel;  // null: several parts, or no kernel
    const KernelCall* call;
    const PlanStep* step;
    bool writes;  // else nothing, or run_step() says it
  };

  template <bool kTimed>
  void run_all() {
    const Program& p = run_.program;
    const Item* at = nullptr;
    double begin = kTimed ? host_clock_us() : 0;
    try {
      for (const Item& i : items_) {
        at = &i;
        if constexpr (kPoisons) {
          guard_.before(run_, static_cast<int32_t>(i.step - p.steps.data()));
        }
        if (i.writes) run_.begin_writes(i.step->first_op);
        if (i.direct) {
          i.direct(*i.call);
        } else if (i.kernel) {
          i.kernel->run(*i.call);
        } else {
          run_step(*i.step, run_);
        }
        if constexpr (kTimed) {
          const double end = host_clock_us();
          run_.times[i.step - p.steps.data()] = {begin, end};
          begin = end;
          if (watches_) [[unlikely]]
            watch_results(*i.step, run_);
        }
      }
    } catch (const errors::Error& e) {
      if (at->kernel == nullptr) throw;  // run_step() has named the node
      raise_at(p.ops[at->step->first_op], e);
    }
  }

  ProgramRun& run_;
  const ArenaGuard& guard_;
  std::vector<Item> items_;
  bool watches_ = false;  // in this run
};

class InlineRunner final : public PlanRunner {
 public:
  explicit InlineRunner(const Program& program) : guard_(program) {}
  std::unique_ptr<PreparedRun> prepare(ProgramRun& run) const override {
    return std::make_unique<InlineRun>(run, guard_);
  }

 private:
  const ArenaGuard guard_;
};

}  // namespace

std::unique_ptr<PlanRunner> inline_runner(const Program& program) {
  return std::make_unique<InlineRunner>(program);
}

}  // namespace berth
