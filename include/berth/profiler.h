// profiler: a timeline of what ran where and when (tf.profiler).
//
//   profiler::start();
//   model.fit(x, y, {.epochs = 1});
//   profiler::stop().write("fit.trace.json");   // Perfetto, chrome://tracing
//
// While it records, every run of a compiled step is timed, each region, op and
// copy on its device, and every eager op on the host. One recording at a time
// in a process. Thread-safe.

#ifndef BERTH_PROFILER_H_
#define BERTH_PROFILER_H_

#include <memory>
#include <string>
#include <vector>

#include "berth/site.h"

namespace berth::profiler {

struct TimelineEvent {
  std::string track;  // a device, "eager ops", or "annotations"
  std::string name;   // "dense/MatMul", or of a Trace
  std::string kind;   // type of the op, "region", "copy" or "annotation"
  Site site = {};     // the user's line
  // Microseconds. Times of one track compare; those of simulated devices are
  // virtual, and those of GPUs may be shifted against the host's.
  double begin_us = 0, end_us = 0;
};

// What was recorded, in the order of the beginnings. A value.
class Timeline {
 public:
  Timeline() = default;
  explicit Timeline(std::vector<TimelineEvent> events)
      : events_(std::move(events)) {}
  const std::vector<TimelineEvent>& events() const { return events_; }
  // Chrome's trace event format: a row per track; "(simulated time)" from 0.
  std::string json() const;
  // Writes json(). Throws errors::InvalidArgument if the file cannot be
  // written.
  void write(const std::string& path) const;

 private:
  std::vector<TimelineEvent> events_;
};

// Records from now on (tf.profiler.experimental.start). Throws
// errors::AlreadyExists while another recording is open.
void start(Site site = Site::here());
// Ends the recording; waits for timed work that is on its way
// (tf.profiler.experimental.stop). Throws errors::FailedPrecondition if there
// is none.
Timeline stop(Site site = Site::here());

// A name for what happens while it lives, as an event of the track
// "annotations" (tf.profiler.experimental.Trace). Belongs to its thread; does
// nothing if nobody records.
class [[nodiscard]] Trace {
 public:
  explicit Trace(std::string name, Site site = Site::here());
  ~Trace();
  Trace(const Trace&) = delete;
  Trace& operator=(const Trace&) = delete;

 private:
  std::string name_;
  Site site_;
  double begin_us_ = -1;
};

}  // namespace berth::profiler

#endif  // BERTH_PROFILER_H_
