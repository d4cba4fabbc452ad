// Which stage of a pipeline is the slow one.
//
// Every stream times the calls of its next(), in the thread that reads it. The
// own time of a stage is that without the time of its inputs. One in kTimedOne
// of cheap calls is timed. Thread-safe.

#ifndef BERTH_DATA_STAGE_TIMES_H_
#define BERTH_DATA_STAGE_TIMES_H_

#include <memory>
#include <optional>
#include <string>

#include "data/node.h"

namespace berth::data {

// Returns `stream` of `node`, timed.
std::unique_ptr<ElementStream> timed(const Node& node,
                                     std::unique_ptr<ElementStream> stream);

// What the passes of a node took with all that they read, whose rows may be
// computed elsewhere.
int64_t with_inputs_ns(const Node& node);

struct SlowStage {
  const Node* node;
  int64_t own_ns;    // of all its passes, per thread
  int64_t all_ns;    // of all stages
  int64_t elements;  // that it made
  // "map (train.py:12): 5.10 ms for each of 200 elements, 96 % of the time of
  // the pipeline", and what to do.
  std::string str() const;
};
// The stage at or before `last` that took most; none: nothing has run, or all
// of it took less than a millisecond.
std::optional<SlowStage> slow_stage(const Node& last);

}  // namespace berth::data

#endif  // BERTH_DATA_STAGE_TIMES_H_
