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

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "backends/gpu/card.h"
#include "device/failure_log.h"
#include "device/stream.h"

namespace berth::gpu {

// Texts for what kernels report() (Recipe::fault).
using FaultTexts = std::shared_ptr<const std::vector<std::string>>;

class QueueStream final : public Stream {
 public:
  QueueStream(Device* device, Card& card);
  // Waits for what was launched.
  ~QueueStream() override;

  // The driver's queue, for work of this stream while it is called.
  Queue& queue() { return *queue_; }
  void* native() override { return queue_.get(); }

  // Says that the work which is being called may report() faults; returns the
  // address for it, in the card's memory.
  void* watch_fault(const FaultTexts& texts);

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
  using Lock = std::unique_lock<std::recursive_mutex>;
  struct Entry {
    Mark mark = nullptr;  // null: it appended nothing
    Work work;
    Event waits_for;     // whose failure is this one's
    FailureRef failure;  // known at the launch
    FailureRef failed;   // what the driver said when it had passed
    FaultTexts faults;
    double launched_us = 0;
    int waiters = 0;  // threads that look at the mark
  };

  bool inside() const { return depth_ > 0; }
  Entry& entry(uint64_t sequence) {
    return ring_[sequence & (ring_.size() - 1)];
  }
  void push(Entry e);
  // Calls work and queues its end; returns what it launched, if anything.
  Work call(const Work& work);
  // Appends what ends an entry: its mark.
  void end_of(Entry& e);
  // Ends what is passed now and then; waits when too much is queued.
  void make_room();
  void append_wait(Event event, bool order_only);
  // The last mark up to `sequence` that is not passed yet, as far as is known;
  // null: none. Its entry, whose number is stored, has one waiter more.
  Mark hold_mark(uint64_t sequence, uint64_t* held);
  void let_go(uint64_t held);
  // Waits until `sequence` is passed.
  void await(uint64_t sequence);
  // Ends entries that are passed and drops their work, the lock not held.
  void retire();
  // Ends the first entry; false: it is not passed yet.
  bool end_first(Lock& lock, Work* drop);
  FailureRef failure_from(const errors::Error& error, const Work& work);
  bool has_passed(Entry& e);
  FailureRef reported(const Entry& e, uint64_t sequence);
  // What the entry at `sequence` failed with, once it is passed.
  FailureRef failure_at(uint64_t sequence);
  std::byte* fault_slot(uint64_t sequence) const;

  Card& card_;
  const std::unique_ptr<Queue> queue_;
  std::recursive_mutex mutex_;  // all below
  std::vector<Entry> ring_;     // a power of two long
  uint64_t pushed_ = 0;
  uint64_t ended_ = 0;
  int depth_ = 0;             // of work that is being called
  FaultTexts faults_;         // of that work
  std::vector<Work> nested_;  // launched by it
  FailureLog failures_;
  FailureRef lost_;  // the card is
  bool timed_ = false;
  double last_end_us_ = 0;
  std::unique_ptr<MemorySource> fault_memory_, mirror_memory_;
  std::byte* fault_data_ = nullptr;
  int64_t* mirror_ = nullptr;  // what was read from there
};

}  // namespace berth::gpu

#endif  // BERTH_BACKENDS_GPU_QUEUE_STREAM_H_
