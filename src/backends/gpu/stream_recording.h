// StreamRecording: work of a stream that is recorded once and replayed.
//
//   launch work of the stream that calls   recording.record(...)
//   then, any number of times, work that calls   recording.replay()
//
// Reports of kernels during a replay are found when that work ends, and name
// the op that reported. A replay begins when the one before it has ended. One
// thread at a time; it must live as long as work of the stream that replays it.

#ifndef BERTH_BACKENDS_GPU_STREAM_RECORDING_H_
#define BERTH_BACKENDS_GPU_STREAM_RECORDING_H_

#include <functional>
#include <memory>
#include <vector>

#include "backends/gpu/queue_stream.h"
#include "device/block.h"

namespace berth::gpu {

// The sources of reports in a recording, by slot.
struct RecordedFaults {
  struct Op {
    FaultTexts texts;
    Work work;  // what and where
  };
  RecordedFaults(QueueStream& stream, size_t most);

  std::byte* slot(size_t i) const { return slots->data + i * kFaultBytes; }
  const int64_t* mirror_slot(size_t i) const {
    return reinterpret_cast<const int64_t*>(mirror.data() + i * kFaultBytes);
  }

  const size_t most;
  std::vector<Op> ops;
  const BlockRef slots;     // on the card, 0 before each replay
  const HeldMemory mirror;  // host copy of the slots
};

class StreamRecording {
 public:
  // For work whose kernels report() from at most `most_faults` places. Throws
  // errors::ResourceExhausted.
  StreamRecording(QueueStream& stream, size_t most_faults);

  // Called by work of the stream: keeps what `append` appends, replacing
  // earlier content. Passes on exceptions, and is empty then.
  void record(const std::function<void(StreamRecording&)>& append);
  // Called by `append`: what follows belongs to this op.
  void next(const char* what, Site site);
  // Called by work of the stream: appends the kept commands.
  void replay();

  explicit operator bool() const { return recording_ != nullptr; }

 private:
  friend class QueueStream;
  void* watch_fault(const FaultTexts& texts);
  // Appends what reads the faults for the replaying work, and clears them.
  void append_end();

  QueueStream& stream_;
  const std::shared_ptr<RecordedFaults> faults_;
  std::unique_ptr<Recording> recording_;
  Work now_;
};

}  // namespace berth::gpu

#endif  // BERTH_BACKENDS_GPU_STREAM_RECORDING_H_
