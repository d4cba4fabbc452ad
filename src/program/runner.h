// PlanRunner: what executes a program.
//
// The engine has its own (exec/runners.h): all steps on the calling thread,
// steps handed to streams, one thread per core set. A backend that can do
// better for its devices, such as replaying a recorded graph, registers a
// factory; its runner may keep the engine's and call it. Thread-safe.

#ifndef BERTH_PROGRAM_RUNNER_H_
#define BERTH_PROGRAM_RUNNER_H_

#include <functional>
#include <memory>
#include <string>

#include "program/program_run.h"

namespace berth {

// A run that a runner has prepared: launched any number of times, one launch
// at a time. Goes before its ProgramRun.
class PreparedRun {
 public:
  virtual ~PreparedRun() = default;

  // Launches every step once, on the operands where they now are, such that
  // all streams of the program come after what they wait for in the end. Steps
  // of this thread have ended on return. Throws what they throw. A warm launch
  // looks nothing up and allocates nothing.
  virtual void launch() = 0;

  // True when no thread of the runner looks at the run any more, beside the
  // work that ProgramRun::done stands for. Does not wait.
  virtual bool ended() const { return true; }
  // Waits until then.
  virtual void finish() {}
  // After a run that failed and has ended: what failed was this run's alone,
  // and devices accept work again.
  virtual void reset() {}
};

// A run whose steps may be launched one by one, by a runner that does the
// others itself: each once, after those that it waits for, those of a stream
// in the program's order; then end_launch(). launch() does all of it.
class SteppedRun : public PreparedRun {
 public:
  // Launches a step, with its waits, and records its event.
  virtual void launch_step(size_t step) = 0;
  // What the step does, called by work of its stream that launches it.
  virtual void call_step(size_t step) = 0;
  // Lets streams wait for what the program says they wait for in the end.
  virtual void end_launch() = 0;
};

// What executes one program; lives with it.
class PlanRunner {
 public:
  virtual ~PlanRunner() = default;
  // Allocates what launches of `run` need. Its addresses come later.
  virtual std::unique_ptr<PreparedRun> prepare(ProgramRun& run) const = 0;
  // Lines for the plan's text: what the runner does otherwise than the engine's
  // would, and where it does not and why.
  virtual std::string describe() const { return ""; }
};

// Returns a runner of the program, which may take `standard`, the engine's own;
// null, with `standard` as it was: the program is not for it.
using RunnerFactory = std::function<std::unique_ptr<PlanRunner>(
    const Program& program, std::unique_ptr<PlanRunner>& standard)>;

// Adds a factory, which is asked about every program that is built from now on,
// before those that are there: it looks at the program's devices and takes
// those that are its own.
void register_runner(RunnerFactory factory);

// Returns what the first factory that takes the program makes, else `standard`.
std::unique_ptr<PlanRunner> choose_runner(const Program& program,
                                          std::unique_ptr<PlanRunner> standard);

}  // namespace berth

#endif  // BERTH_PROGRAM_RUNNER_H_
