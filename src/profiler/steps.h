// steps_of: the steps of training, testing or predicting in a timeline.
// Thread-safe.

#ifndef BERTH_PROFILER_STEPS_H_
#define BERTH_PROFILER_STEPS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "profiler/layout.h"

namespace berth::profiler {

struct Step {
  std::string name;
  int64_t begin_ns = 0, end_ns = 0;
};

// By begin; they do not overlap. Calls and annotations whose names begin with
// "train", "test" or "predict"; without such, the runs of the plan whose ops
// ran most often. The last input before a step belongs to it.
std::vector<Step> steps_of(const std::vector<TimelineEvent>& events,
                           const Layout& layout);

}  // namespace berth::profiler

#endif  // BERTH_PROFILER_STEPS_H_
