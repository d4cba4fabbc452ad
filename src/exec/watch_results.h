// What the steps of a plan computed, while somebody wants to know: checksums
// for a recording, and NaN for debugging::enable_check_numerics(). Thread-safe.

#ifndef BERTH_EXEC_WATCH_RESULTS_H_
#define BERTH_EXEC_WATCH_RESULTS_H_

#include "program/program_run.h"

namespace berth {

// Two loads; asked once per run.
bool watches_results();

// Waits for the step, which its stream has, and looks at what it wrote. Throws
// errors::InvalidArgument for the first NaN or infinity, if that is asked.
void watch_results(const PlanStep& step, const ProgramRun& run);

}  // namespace berth

#endif  // BERTH_EXEC_WATCH_RESULTS_H_
