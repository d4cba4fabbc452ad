// profiler: a timeline of what ran where and when (tf.profiler).
//
//   profiler::start();
//   model.fit(x, y, {.epochs = 1});
//   profiler::stop().write("fit.pftrace");   // berth report, ui.perfetto.dev
//
// While it records, every run of a compiled step is timed, each region, op and
// copy on its device, and every eager op on the host. One recording at a time
// in a process. Options are written by name, in the order of their struct
// (berth.h). Thread-safe.

#ifndef BERTH_PROFILER_H_
#define BERTH_PROFILER_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "berth/site.h"

namespace berth::profiler {

struct TimelineEvent {
  // A device, or what else works: "eager ops", "input", "annotations".
  std::string track;
  std::string name;  // "dense/MatMul", or of a Trace
  // The type of an op, or one of "region", "copy", "call" (of a function),
  // "wait", "input" (of the next batch), "stage" (of a pipeline), "python" (a
  // function of the user), "sum" (over tasks), "checkpoint", "annotation".
  std::string kind;
  Site site = {};  // the user's line
  // Microseconds. Times of one track compare; those of simulated devices are
  // virtual, and those of GPUs may be shifted against the host's.
  double begin_us = 0, end_us = 0;
  // "/CPU:0 -> /GPU:0" of a copy; the ops of a region; whom a wait is for.
  std::string detail;
  int64_t bytes = 0;         // read and written, or copied
  double flops = 0;          // of the arithmetic
  double predicted_us = -1;  // by the plan before it ran; -1: unknown
  int64_t run = 0;           // of its plan, from 1; 0: of none
  // The events, by place in the timeline, that had to end before this began.
  std::vector<int32_t> after = {};
  std::string task;        // of a cluster, "worker:1"; empty: this process
  bool simulated = false;  // times are virtual: those of a simulated device
};

// What was recorded, in the order of the beginnings. A value.
class Timeline {
 public:
  Timeline() = default;
  explicit Timeline(std::vector<TimelineEvent> events, int64_t dropped = 0)
      : events_(std::move(events)), dropped_(dropped) {}
  const std::vector<TimelineEvent>& events() const { return events_; }
  // Events that were forgotten because the ring was full: the oldest.
  int64_t dropped() const { return dropped_; }

  // Chrome's trace event format: a row per track; "(simulated time)" from 0.
  std::string json() const;
  // Perfetto's protobuf format: a track per device, flows from what had to end
  // before. Holds all that events have: read() reads it.
  std::string perfetto() const;
  // Folded stacks for flame graphs: "track;layer;op MICROSECONDS" lines.
  std::string folded() const;
  // TensorBoard's profile plug-in: an XSpace, for LOGDIR/plugins/profile.
  std::string xspace() const;
  // Writes perfetto() to a path that ends in ".pftrace", folded() to one in
  // ".folded", xspace() to one in ".xplane.pb", and json() to all others.
  // Throws errors::InvalidArgument if the file cannot be written.
  void write(const std::string& path) const;
  // Reads what write() wrote in perfetto()'s format. Throws
  // errors::InvalidArgument for any other file.
  static Timeline read(const std::string& path);

 private:
  std::vector<TimelineEvent> events_;
  int64_t dropped_ = 0;
};

// Records from now on (tf.profiler.experimental.start). Throws
// errors::AlreadyExists while another recording is open.
void start(Site site = Site::here());
struct StartOptions {
  // Also checksums of what each region and eager op computes, for `berth
  // diff-run`; regions then run one after the other: slow.
  bool checksums = false;
};
void start(const StartOptions& options, Site site = Site::here());
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
