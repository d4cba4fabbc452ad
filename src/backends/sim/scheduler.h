// Scheduler and SimStream: asynchronous streams without threads.
//
// launch, wait and record only append to a stream's queue. Work runs when a
// thread waits (synchronize, done, a full queue), on that thread. It picks one
// stream after another whose next work is ready, until its own wait is over.
// Seed 0 picks in launch order. Any other seed gives the streams changing
// random priorities, a pure function of (seed, number of the pick, stream), so
// that everything not ordered by events is reordered, reproducibly as long as
// one thread waits.
//
// All streams of a scheduler share one mutex. Work and its drop run outside it,
// so they may launch, wait, allocate and free. A wait that can never end fails
// with errors::Internal instead of hanging. Thread-safe.

#ifndef BERTH_BACKENDS_SIM_SCHEDULER_H_
#define BERTH_BACKENDS_SIM_SCHEDULER_H_

#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "backends/sim/sim_memory.h"
#include "berth/errors.h"
#include "device/failure_log.h"
#include "device/stream.h"

namespace berth::sim {

class SimStream;

// Returns the nesting of work on the calling thread.
int executing_here();

// Faults of a device on request; guarded by the scheduler.
struct FaultPlan {
  uint64_t launches = 0;  // so far
  uint64_t fail_at = 0;   // this launch fails; 0: none
  uint64_t lose_at = 0;   // from this launch the device is lost; 0: never
  bool lost = false;
  uint64_t hang_at = 0;  // work hangs from this launch on; 0: never
  bool let_go = false;   // a wait for hanging work has failed it
};

// The capabilities of a device; constant.
struct Speed {
  double flops_per_second = 1e12;
  double bytes_per_second = 1e11;
  double link_bytes_per_second = 1e10;
  bool real_clock = false;
};

class Scheduler {
 public:
  Scheduler(std::shared_ptr<SimMemory> memory, uint64_t seed)
      : memory_(std::move(memory)), seed_(seed) {}
  Scheduler(const Scheduler&) = delete;
  Scheduler& operator=(const Scheduler&) = delete;

  // Restarts the picks with `seed`.
  void set_seed(uint64_t seed);

 private:
  friend class SimStream;
  using Lock = std::unique_lock<std::mutex>;

  // A thread that sleeps until another one makes progress.
  struct Waiter {
    const SimStream* stream;
    uint64_t sequence;
    int executing;  // this thread's nesting of work
    Waiter* next;
  };

  // Runs work until `stream` has completed `sequence` entries.
  void run_until(Lock& lock, SimStream& stream, uint64_t sequence);
  // Passes waits that are over until there are none.
  void pass_waits();
  SimStream* pick();
  // Fails the wait in which `target` hangs, as nothing can end it. Returns
  // false when it hangs in no wait. Faults on request fail waiting, not
  // polling.
  bool break_wait(SimStream& target, bool polls);
  // True when all running work is itself waiting.
  bool nobody_works() const;

  const std::shared_ptr<SimMemory> memory_;
  std::mutex mutex_;  // guards all below
  std::condition_variable progress_;
  std::vector<SimStream*> streams_;
  Waiter* waiters_ = nullptr;
  int executing_ = 0;  // running work
  uint64_t seed_;
  uint64_t picks_ = 0;
  uint64_t launched_ = 0;
  double host_us_ = 0;  // time of the host's clock
};

class SimStream final : public Stream {
 public:
  // `label` names the stream in messages ("GPU:0 copy"). A device's streams
  // share `faults`.
  SimStream(Device* device, std::shared_ptr<Scheduler> scheduler,
            std::string label, const Speed& speed, bool link,
            FaultPlan* faults);
  ~SimStream() override;

  void launch(const Work& work) override;
  Event record() override;
  void wait(Event event) override { enqueue_wait(event, false); }
  void wait_for_reuse(Event event) override { enqueue_wait(event, true); }
  bool done(Event event) override;
  void synchronize(Event event) override;

  // Waits for queued work, then accepts work again after a failure. What failed
  // or was skipped stays failed: its events keep throwing.
  void reset_error();

  // Virtual end of the last finished work, in microseconds.
  double clock_us();

  // "GPU:0 copy"
  const std::string& label() const { return label_; }

  // Calls `fn` with the device's fault plan under the lock.
  template <class Fn>
  void with_faults(Fn&& fn) {
    std::lock_guard lock(scheduler_->mutex_);
    fn(*faults_);
  }

 private:
  friend class Scheduler;
  enum class Kind : uint8_t { kWork, kWait, kWaitOrder, kPoison };
  enum class Fault : uint8_t { kNone, kFail, kLose, kHang };
  struct Entry {
    Kind kind = Kind::kWork;
    Fault fault = Fault::kNone;
    Work work;
    Event event;
    uint64_t order = 0;    // among the launches of all streams
    double issued_us = 0;  // when the host launched it
    double finished_us = 0;
  };
  void enqueue_wait(Event event, bool order_only);
  void enqueue(std::unique_lock<std::mutex>& lock, Entry entry);
  Entry& entry(uint64_t index) { return ring_[index & (ring_.size() - 1)]; }
  Entry& head() { return entry(completed_); }
  bool has_head() const { return completed_ < pushed_; }
  void grow();
  // Runs the head, which must be work, without the lock.
  void execute(std::unique_lock<std::mutex>& lock);
  // Returns the reason why the head cannot run, if any.
  FailureRef fault_of_head();
  // True when the head is work that does not begin.
  bool head_hangs() {
    return head().fault == Fault::kHang && faults_->hang_at &&
           !faults_->let_go && !failures_.poisoned();
  }
  // Ends the head entry; a failure poisons the stream.
  void complete(double finished_us, FailureRef failure);
  double finished_us(uint64_t sequence);
  double duration_us(const Work& work) const;

  const std::shared_ptr<Scheduler> scheduler_;
  const std::string label_;
  const Speed speed_;
  const bool link_;
  FaultPlan* const faults_;
  // The scheduler guards everything below.
  size_t index_ = 0;
  std::vector<Entry> ring_;  // its size is a power of two
  uint64_t pushed_ = 0;      // entries so far
  uint64_t completed_ = 0;
  bool busy_ = false;  // a thread is inside the head's work
  double clock_us_ = 0;
  FailureLog failures_;
};

}  // namespace berth::sim

#endif  // BERTH_BACKENDS_SIM_SCHEDULER_H_
