// EventIndex: the events of a timeline by class, device, op and step.
//
// What the parts of analyze() share. A value; refers to the timeline.

#ifndef BERTH_PROFILER_EVENT_INDEX_H_
#define BERTH_PROFILER_EVENT_INDEX_H_

#include <cstdint>
#include <string>
#include <vector>

#include "berth/profiler.h"
#include "profiler/analysis.h"
#include "profiler/intervals.h"

namespace berth::profiler {

enum class EventClass : uint8_t {
  kCompute,  // an op or a region
  kTransfer,
  kSum,
  kCall,
  kInput,  // waiting for the next batch
  kStage,
  kHost,  // launching work, callbacks, Python, checkpoints
  kMemoryWait,
  kWait,    // any other
  kMemory,  // bytes in use, without duration
  kAnnotation,
  kSlice,  // of a region, on one thread
};
EventClass class_of(const TimelineEvent& e);

// Whose events steps and idle time are of: kMost is that of most ops.
enum class StepClock { kMost, kHost };

struct EventIndex {
  explicit EventIndex(const Timeline& timeline,
                      StepClock clock = StepClock::kMost);

  const std::vector<TimelineEvent>& events;
  int64_t dropped = 0;
  bool simulated = false;            // the clock of what follows
  std::vector<EventClass> classes;   // by event
  std::vector<int32_t> track;        // by event: place in tracks
  std::vector<int32_t> op;           // by event: place in the ops
  std::vector<std::string> tracks;   // "worker:1 /CPU:0"
  std::vector<std::string> tasks;    // by track
  std::vector<int32_t> devices;      // tracks with ops, of this clock
  std::vector<char> counts;          // by event: of this clock
  std::vector<int32_t> first_of_op;  // by op: one of its events
  // The steps, by begin; and by event the step in which it ends, or -1.
  std::vector<Interval> steps;
  std::vector<int32_t> step;
  std::string step_name;

  Intervals of_class(EventClass c, int32_t on_track = -1) const;
  // Events of devices, by begin: ops, copies, sums.
  bool is_work(int32_t e) const {
    return counts[e] && classes[e] <= EventClass::kSum;
  }
  // The event among those that had to end before which ended last; -1: none.
  int32_t last_before(int32_t e) const;

 private:
  void classify();
  void find_clock(StepClock clock);
  void find_steps();
  bool steps_of_marks();
  void steps_of_runs();
  std::vector<int32_t> previous_;  // by event: the one before on its track
};

// "net.py:7", or "".
std::string line_of(const TimelineEvent& e);

}  // namespace berth::profiler

#endif  // BERTH_PROFILER_EVENT_INDEX_H_
