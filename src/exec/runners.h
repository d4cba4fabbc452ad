// The engine's own runners, and what they have in common.
//
// - inline: every step on the calling thread, in order;
// - home: the same on the thread of the device, whose cores the caller's are
//   not;
// - stream: steps of the host here, others handed to their streams with waits;
// - walk: core sets alone; the thread of each walks its own steps.

#ifndef BERTH_EXEC_RUNNERS_H_
#define BERTH_EXEC_RUNNERS_H_

#include <memory>

#include "program/runner.h"

namespace berth {

// Returns what runs the program: one of the runners below, or what a backend
// registered. `nested`: a body, which runs where the step around it does.
std::unique_ptr<PlanRunner> make_runner(const Program& program, bool nested);

std::unique_ptr<PlanRunner> inline_runner(const Program& program);
std::unique_ptr<PlanRunner> home_runner(const Program& program,
                                        std::unique_ptr<PlanRunner> runner);
std::unique_ptr<PlanRunner> stream_runner(const Program& program);
// `streams` takes over runs with a deadline: a thread that waits in a walk does
// not check deadlines. Null when the program cannot be walked.
std::unique_ptr<PlanRunner> walk_runner(const Program& program,
                                        std::unique_ptr<PlanRunner>& streams);

// Runs a step on this thread. Errors name the node.
void run_step(const PlanStep& step, ProgramRun& run);
// Runs a step as work of its stream, which names the op of an error.
void run_as_work(const PlanStep& step, ProgramRun& run);
// Runs a region of several parts (run_region.cc).
void run_region(const PlanStep& step, ProgramRun& run);

// For a run with a deadline: waits for the event. Throws
// errors::DeadlineExceeded, which names who is missing.
void wait_in_time(ProgramRun& run, const Event& event);

}  // namespace berth

#endif  // BERTH_EXEC_RUNNERS_H_
