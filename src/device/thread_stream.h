// ThreadStream: the stream of a CPU device that has a thread of its own.
//
// launch, wait and record append to a queue; one thread, bound to the device's
// cores, runs it in order. Between entries the thread spins for a bounded
// time, then sleeps. A failure poisons what comes later until reset_error().
// Thread-safe.

#ifndef BERTH_DEVICE_THREAD_STREAM_H_
#define BERTH_DEVICE_THREAD_STREAM_H_

#include <atomic>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "device/failure_log.h"
#include "device/stream.h"

namespace berth {

struct ThreadStreamOptions {
  // Called on the thread before anything else (binds it).
  std::function<void()> on_start;
  // How long the thread spins before it sleeps.
  int spin_us = 500;
  // How long others spin that wait for it; they may be on its cores.
  int wait_spin_us = 50;
};

class ThreadStream final : public Stream {
 public:
  ThreadStream(Device* device, ThreadStreamOptions options);
  // Runs what is queued, then ends the thread.
  ~ThreadStream() override;

  void launch(const Work& work) override;
  Event record() override;
  void wait(Event event) override { enqueue_wait(event, false); }
  void wait_for_reuse(Event event) override { enqueue_wait(event, true); }
  bool done(Event event) override;
  void synchronize(Event event) override;

  // Lets what is queued end, then accepts work again after a failure. What
  // failed or was skipped stays failed: its events throw for ever.
  void reset_error();

 private:
  enum class Kind : uint8_t { kWork, kWait, kWaitOrder };
  struct Entry {
    Kind kind = Kind::kWork;
    Work work;
    Event event;
  };
  using Lock = std::unique_lock<std::mutex>;

  void enqueue_wait(Event event, bool order_only);
  void enqueue(Lock& lock, const Entry& entry);
  void thread_main();
  // Returns false when the stream ends.
  bool next(Entry* entry);
  FailureRef execute(const Entry& entry);
  void complete(FailureRef failure);
  void wait_until(uint64_t sequence);

  const ThreadStreamOptions options_;
  std::mutex mutex_;
  std::condition_variable queued_, progress_;
  std::vector<Entry> ring_;  // a power of two long
  std::atomic<uint64_t> pushed_{0};
  std::atomic<uint64_t> completed_{0};
  bool thread_sleeps_ = false;
  int sleepers_ = 0;  // that wait for progress
  std::atomic<bool> stop_{false};
  FailureLog failures_;
  std::thread thread_;
};

}  // namespace berth

#endif  // BERTH_DEVICE_THREAD_STREAM_H_
