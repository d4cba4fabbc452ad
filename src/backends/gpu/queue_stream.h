// QueueStream: a stream whose work is handed to an in-order queue of a driver.
//
// launch() calls the work at once, on the caller's thread, which appends to
// the queue; the work counts as ended when the queue has passed what it
// appended. Nobody watches the queue: who launches, polls or waits sees what
// has ended, and drops it. A failure that the card reports later, such as an
// index out of range, belongs to the launch that caused it; what came after
// that counts as failed, too. Thread-safe.

#ifndef BERTH_BACKENDS_GPU_QUEUE_STREAM_H_
#define BERTH_BACKENDS_GPU_QUEUE_STREAM_H_

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "backends/gpu/card.h"
#include "backends/gpu/ring.h"
#include "backends/gpu/work_trace.h"
#include "device/failure_log.h"
#include "device/stream.h"

namespace berth::gpu {

// Texts for what kernels report() (Recipe::fault), to a slot of this size.
using FaultTexts = std::shared_ptr<const std::vector<std::string>>;
constexpr size_t kFaultBytes = 32;  // (code, three numbers)

// Host memory that the card copies to.
std::unique_ptr<MemorySource> pinned_or_host(Card& card);

// Memory of a source, given back at the end.
class HeldMemory {
 public:
  // data() is null when the source has none.
  HeldMemory(std::unique_ptr<MemorySource> source, size_t bytes)
      : source_(std::move(source)),
        bytes_(bytes),
        data_(source_->reserve(bytes)) {}
  ~HeldMemory() {
    if (data_ != nullptr) source_->release(data_, bytes_);
  }
  HeldMemory(const HeldMemory&) = delete;
  HeldMemory& operator=(const HeldMemory&) = delete;

  std::byte* data() const { return data_; }

 private:
  const std::unique_ptr<MemorySource> source_;
  const size_t bytes_;
  std::byte* const data_;
};

class StreamRecording;
struct RecordedFaults;

class QueueStream final : public Stream {
 public:
  QueueStream(Device* device, Card& card);
  // Waits for what was launched.
  ~QueueStream() override;

  Card& card() { return card_; }
  // The driver's queue, for work of this stream while it is called.
  Queue& queue() { return *queue_; }
  void* native() override { return queue_.get(); }

  // Says that the work which is being called may report() faults; returns the
  // address for it, in the card's memory.
  void* watch_fault(const FaultTexts& texts);
  // The same of work that was recorded, by work that replays it.
  void watch_faults(const std::shared_ptr<const RecordedFaults>& faults) {
    replayed_ = faults;
  }

  // How often work was skipped, since the stream had failed. Any thread, also
  // work of other streams.
  uint64_t skipped() const { return skipped_.load(); }

  void launch(const Work& work) override;
  Event record() override;
  void wait(Event event) override { append_wait(event, false); }
  void wait_for_reuse(Event event) override { append_wait(event, true); }
  bool done(Event event) override;
  void synchronize(Event event) override;

  // Waits for what was launched, then accepts work again; what failed stays
  // failed. A card that is lost stays so.
  void reset_error();

 private:
  friend class StreamRecording;
  using Lock = std::unique_lock<std::recursive_mutex>;
  // Work that was launched, or a wait.
  struct Entry {
    uint64_t position = 0;  // of the queue behind it
    Work work;
    Event waits_for;     // whose failure is this one's
    FailureRef failure;  // known at the launch
    FaultTexts faults;
    std::shared_ptr<const RecordedFaults> replayed;
    double launched_us = 0;
  };
  // A mark in the queue. There are fewer than entries: they are made when
  // somebody wants to know.
  struct Point {
    Mark mark = nullptr;
    uint64_t position = 0;
    int waiters = 0;  // threads that look at the mark
    bool passed = false;
  };

  bool inside() const { return depth_ > 0; }
  void push(Entry e);
  // Calls work and queues its end; returns what it launched, if anything.
  Work call(const Work& work);
  // Appends what ends an entry.
  void end_of(Entry& e);
  // Makes a point behind everything so far, if there is none.
  void make_point();
  // Ends what is passed now and then; waits when too much is queued.
  void make_room();
  void append_wait(Event event, bool order_only);
  // The number of a point behind entry `sequence`, which has one waiter more;
  // 0: the queue has passed it.
  uint64_t hold_point(uint64_t sequence);
  void let_go(uint64_t point);
  // Waits until `sequence` is passed.
  void await(uint64_t sequence);
  // Ends entries up to `last` that are passed and drops their work, the lock
  // not held. `ask`: makes a point for those that have none.
  void retire(bool ask, uint64_t last = UINT64_MAX);
  // Ends the first entry; false: it is not passed yet.
  bool end_first(Lock& lock, bool ask, Work* drop);
  // True when the queue has passed the first entry.
  bool first_passed(bool ask);
  void pass_point(Point& point);
  FailureRef failure_from(const errors::Error& error, const Work& work);
  FailureRef reported(const Entry& e, uint64_t sequence);
  // What kernels of `work` reported, if they did: `numbers` of a fault slot.
  FailureRef reported(const int64_t* numbers, const FaultTexts& texts,
                      const Work& work);
  // Notes when an entry that has ended ran.
  void note_time(const Entry& e);
  // What the entry at `sequence` failed with, once it is passed.
  FailureRef failure_at(uint64_t sequence);
  std::byte* fault_slot(uint64_t sequence) const;
  int64_t* mirror_slot(uint64_t sequence) const;

  Card& card_;
  const std::unique_ptr<Queue> queue_;
  WorkTrace* const trace_;      // null: the queue traces, or nobody asked
  std::recursive_mutex mutex_;  // all below
  Ring<Entry> entries_;         // by sequence
  Ring<Point> points_;
  uint64_t marked_ = 0, passed_ = 0;  // positions
  uint64_t ended_ = 0;                // of the last entry that ended
  FailureRef failed_;                 // what the driver said there
  int depth_ = 0;                     // of work that is being called
  FaultTexts faults_;                 // of that work
  std::shared_ptr<const RecordedFaults> replayed_;
  StreamRecording* recording_ = nullptr;  // what that work is recorded into
  std::vector<Work> nested_;              // launched by it
  FailureLog failures_;
  FailureRef lost_;  // the card is
  std::atomic<uint64_t> skipped_{0};
  bool timed_ = false;
  double end_us_ = 0, end_before_us_ = 0;  // of the last points
  const HeldMemory fault_memory_;
  const HeldMemory mirror_memory_;  // what was read from there
};

}  // namespace berth::gpu

#endif  // BERTH_BACKENDS_GPU_QUEUE_STREAM_H_
