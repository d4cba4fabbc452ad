// QueueStream: a stream that gives its work to an in-order queue of a driver.
//
// launch() calls the work at once on the caller's thread, which appends
// commands to the queue. The work has ended when the queue has passed these
// commands. No thread watches the queue: a thread that launches, polls or waits
// finds what has ended and drops it. A failure that the card reports later,
// such as an index out of range, belongs to the launch that caused it; work
// after that counts as failed, too. Thread-safe.

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

// Texts for the reports of kernels (Recipe::fault), to a slot of this size.
using FaultTexts = std::shared_ptr<const std::vector<std::string>>;
constexpr size_t kFaultBytes = 32;  // (code, three numbers)

// Returns host memory that the card copies to.
std::unique_ptr<MemorySource> pinned_or_host(Card& card);

// Memory of a source, returned by the destructor.
class HeldMemory {
 public:
  // data() is null when the source has no memory left.
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
  // Waits for launched work.
  ~QueueStream() override;

  Card& card() { return card_; }
  // The driver's queue, for this stream's work while it is called; opened at
  // its first use. Throws what the driver reports.
  Queue& queue() {
    open();
    return *queue_;
  }
  void* native() override { return &queue(); }

  // Declares that the running work may report() faults; returns the address for
  // them in the card's memory.
  void* watch_fault(const FaultTexts& texts);
  // Watches faults of recorded work; called by the work that replays it.
  void watch_faults(const std::shared_ptr<const RecordedFaults>& faults) {
    replayed_ = faults;
  }

  // How often work was skipped because the stream had failed. Any thread, also
  // work of other streams.
  uint64_t skipped() const { return skipped_.load(); }

  void launch(const Work& work) override;
  Event record() override;
  void wait(Event event) override { append_wait(event, false); }
  void wait_for_reuse(Event event) override { append_wait(event, true); }
  bool done(Event event) override;
  void synchronize(Event event) override;

  // Waits for launched work, then accepts work again; what failed stays failed.
  // A lost card stays lost.
  void reset_error();

 private:
  friend class StreamRecording;
  using Lock = std::unique_lock<std::recursive_mutex>;
  // Launched work, or a wait.
  struct Entry {
    uint64_t position = 0;  // in the queue, after it
    Work work;
    Event waits_for;     // its failure is this one's
    FailureRef failure;  // known at launch
    FaultTexts faults;
    std::shared_ptr<const RecordedFaults> replayed;
    double launched_us = 0;
  };
  // A mark in the queue. Only some entries have one: a mark is made when a
  // thread asks.
  struct Point {
    Mark mark = nullptr;
    uint64_t position = 0;
    int waiters = 0;  // threads using the mark
    bool passed = false;
  };

  // Makes the queue and its memory, once.
  void open();
  bool inside() const { return depth_ > 0; }
  void push(Entry e);
  // Calls work and queues its end; returns the work that it launched, if any.
  Work call(const Work& work);
  // Appends the end of an entry.
  void end_of(Entry& e);
  // Makes a point after everything so far, if there is none.
  void make_point();
  // Ends passed entries now and then; waits when too many are queued.
  void make_room();
  void append_wait(Event event, bool order_only);
  // Returns the number of a point after entry `sequence`, with one more
  // waiter; 0: the queue has passed it.
  uint64_t hold_point(uint64_t sequence);
  void let_go(uint64_t point);
  // Waits until `sequence` is passed.
  void await(uint64_t sequence);
  // Ends passed entries up to `last` and drops their work without the lock.
  // `ask`: makes a point for entries that have none.
  void retire(bool ask, uint64_t last = UINT64_MAX);
  // Ends the first entry; returns false if it is not passed yet.
  bool end_first(Lock& lock, bool ask, Work* drop);
  // True when the queue has passed the first entry.
  bool first_passed(bool ask);
  void pass_point(Point& point);
  FailureRef failure_from(const errors::Error& error, const Work& work);
  FailureRef reported(const Entry& e, uint64_t sequence);
  // Returns what kernels of `work` reported, if so: `numbers` of a fault slot.
  FailureRef reported(const int64_t* numbers, const FaultTexts& texts,
                      const Work& work);
  // Records when an ended entry ran.
  void note_time(const Entry& e);
  // Returns the failure of the entry at `sequence`, once that is passed.
  FailureRef failure_at(uint64_t sequence);
  std::byte* fault_slot(uint64_t sequence) const;
  int64_t* mirror_slot(uint64_t sequence) const;

  Card& card_;
  std::atomic<bool> is_open_{false};
  std::recursive_mutex mutex_;    // guards all below
  std::unique_ptr<Queue> queue_;  // set by open(), like its memory
  std::unique_ptr<HeldMemory> fault_memory_;
  std::unique_ptr<HeldMemory> mirror_memory_;  // host copy of that
  WorkTrace* trace_ = nullptr;  // null: traced by the queue, or not traced
  Ring<Entry> entries_;         // by sequence
  Ring<Point> points_;
  uint64_t marked_ = 0, passed_ = 0;  // positions
  uint64_t ended_ = 0;                // of the last entry that ended
  FailureRef failed_;                 // the driver's error there
  int depth_ = 0;                     // nesting of running work
  FaultTexts faults_;                 // of that work
  std::shared_ptr<const RecordedFaults> replayed_;
  StreamRecording* recording_ = nullptr;  // the recording of that work
  std::vector<Work> nested_;              // launched by it
  FailureLog failures_;
  FailureRef lost_;  // why the card is lost
  std::atomic<uint64_t> skipped_{0};
  bool timed_ = false;
  double end_us_ = 0, end_before_us_ = 0;  // of the last points
};

}  // namespace berth::gpu

#endif  // BERTH_BACKENDS_GPU_QUEUE_STREAM_H_
