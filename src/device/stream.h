// Stream and Event: ordered asynchronous work of one device.
//
// Work of a stream runs in order; work of different streams runs in any order
// that waits allow. An Event is a point on a stream (a timeline semaphore).
// A host device has an inline stream: launch() runs the work at once on the
// calling thread, so its events are always done.
// Thread-safe: any thread may launch; order is the order of calls.

#ifndef BERTH_DEVICE_STREAM_H_
#define BERTH_DEVICE_STREAM_H_

#include <cstddef>
#include <cstdint>

#include "berth/site.h"

namespace berth {

class Device;
class Stream;

// A point on a stream: all work launched before it. Null stream: always done.
struct Event {
  Stream* stream = nullptr;
  uint64_t sequence = 0;
};

// When work ran, in microseconds of its device's clock; end < 0: not yet, or
// never.
struct WorkTime {
  double begin_us = 0;
  double end_us = -1;
};

// One piece of work. `run` does it, or hands it to the device's own queue
// after `stream`; `drop` (may be null) is called exactly once when it has
// ended, also when it was skipped because of an error.
struct Work {
  void (*run)(void* context, Stream& stream) = nullptr;
  void (*drop)(void* context) = nullptr;
  void* context = nullptr;
  const char* what = "";  // op name, static storage, for errors and traces
  Site site = {};
  double flops = 0;           // for devices with a declared speed
  double moved_bytes = 0;     // read and written
  bool crosses_link = false;  // moved_bytes go between devices
  WorkTime* time = nullptr;   // filled in before the work counts as done
};

class Stream {
 public:
  explicit Stream(Device* device) : device_(device) {}
  virtual ~Stream() = default;
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  Device& device() const { return *device_; }

  // True when launch() runs the work on the calling thread before it returns.
  virtual bool runs_inline() const { return false; }
  // What kernels hand their work to, for example a cudaStream_t; null where
  // they compute by themselves.
  virtual void* native() { return nullptr; }

  // Appends work. An inline stream throws what the work throws; others keep
  // the first error, skip all later work and throw at synchronize().
  virtual void launch(const Work& work) = 0;

  // Returns the point after everything launched so far.
  virtual Event record() = 0;

  // Lets work launched from now on start only after `event`. An inline stream
  // blocks the caller until then.
  virtual void wait(Event event) = 0;

  // Waits for memory that is about to be written again: only the order counts,
  // a failure before `event` does not carry over.
  virtual void wait_for_reuse(Event event) { wait(event); }

  // True when `event` of this stream has been reached, failed or not. May run
  // other work on the calling thread: call it with no lock held that work or
  // destructors take. Never throws.
  virtual bool done(Event event) = 0;

  // Blocks until `event` of this stream is reached. Throws the stream's error
  // if work before the event failed or was skipped.
  virtual void synchronize(Event event) = 0;

 private:
  Device* device_;
};

// Blocks until `event`; throws its stream's error. No-op for a null event. A
// wait of the host for a device is an event of the timeline.
void synchronize(const Event& event);

// Blocks until `event`, failed or not.
void finish(const Event& event) noexcept;

}  // namespace berth

#endif  // BERTH_DEVICE_STREAM_H_
