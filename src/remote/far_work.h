// FarWork: the work of other tasks in a step, as rows of a report. Pure.

#ifndef BERTH_REMOTE_FAR_WORK_H_
#define BERTH_REMOTE_FAR_WORK_H_

#include <vector>

#include "place/contracts.h"
#include "remote/split.h"

namespace berth::remote {

// Adds the ops of `far`, and a transfer per edge between tasks; `near` is this
// task's graph. Other tasks are not timed.
void add_far_work(StepWork& work, const Graph& near,
                  const std::vector<const TaskGraph*>& far);

}  // namespace berth::remote

#endif  // BERTH_REMOTE_FAR_WORK_H_
