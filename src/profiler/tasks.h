// The events of several tasks of one run as one timeline, on one clock.

#ifndef BERTH_PROFILER_TASKS_H_
#define BERTH_PROFILER_TASKS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "berth/profiler.h"
#include "profiler/analysis.h"

namespace berth::profiler {

struct TaskEvents {
  std::string task;  // of events that have none
  std::vector<TimelineEvent> events;
  int64_t dropped = 0;
};

// Names devices "CPU:0", and "worker:1 CPU:0" of other tasks.
void shorten_devices(std::vector<TimelineEvent>* events);

// An exchange between tasks is two events of kind "sum": "x/start" hands this
// task's values over and waits for no one, "x/end" waits for those of the
// others. Other events of that kind are of one task.
struct ExchangeEvent {
  std::string exchange;  // empty: none
  bool enters = false;
};
ExchangeEvent exchange_event(const std::string& name);

// Estimates by how much the clocks of tasks differ from the first one's: no
// task leaves an exchange before every task has entered it. What that allows is
// a range for each task; the estimate is its middle, or 0 if that lies within.
std::vector<TaskClock> clocks_of(const std::vector<TaskEvents>& all);

// By begin, on the clock of the first task: `clocks` are those of clocks_of().
Timeline joined(std::vector<TaskEvents> all,
                const std::vector<TaskClock>& clocks);

}  // namespace berth::profiler

#endif  // BERTH_PROFILER_TASKS_H_
