// Layout: the rows of a timeline, and which events of a row nest.
//
// A value; refers to the events it was made of.

#ifndef BERTH_PROFILER_LAYOUT_H_
#define BERTH_PROFILER_LAYOUT_H_

#include <cstdint>
#include <string_view>
#include <vector>

#include "berth/profiler.h"

namespace berth::profiler {

// A track of a task.
struct Row {
  std::string_view task, track;
  bool simulated = false;
  int32_t lanes = 0;  // events of one lane nest or follow each other
  bool has_memory = false;
};

struct Layout {
  explicit Layout(const std::vector<TimelineEvent>& events);

  std::vector<Row> rows;
  // By place of the event.
  std::vector<int32_t> row;
  std::vector<int32_t> lane;              // in its row; -1 of "memory" events
  std::vector<int32_t> within;            // the event it lies in; -1: none
  std::vector<int64_t> begin_ns, end_ns;  // ends are not before begins
  // Places by begin, the longer event first.
  std::vector<int32_t> order;
};

// The value of bytes in use after it, not a stretch of time.
inline bool is_memory(const TimelineEvent& e) { return e.kind == "memory"; }

}  // namespace berth::profiler

#endif  // BERTH_PROFILER_LAYOUT_H_
