// ThreadPool: the fork-join workers of one CPU device.
//
// A pool of size k is k - 1 threads plus the caller of run(). A run hands out
// numbered chunks through one 64-bit claim word (epoch | unclaimed bits);
// thread i takes the bits i, i + k, ... first, because their data is in its
// cache, then steals what is left. Nobody waits for a thread that has not
// started. Idle workers spin for a clock-bounded time, then sleep.
//
// Thread rule: run() may be called from any thread; a caller that finds the
// pool busy, or is itself inside a chunk of any pool, executes all chunks
// inline. A warm run allocates nothing. Destroy only when no run is active.

#ifndef BERTH_BASE_THREAD_POOL_H_
#define BERTH_BASE_THREAD_POOL_H_

#include <atomic>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <type_traits>
#include <vector>

#include "base/core_set.h"

namespace berth {

struct ThreadPoolOptions {
  // Cores of the device. Worker i is bound to core i alone, or, when the pool
  // is shared or larger than the set, to the whole set; empty binds nothing.
  CoreSet cores;
  // Threads including the caller; 0 means one per core (at least one).
  int size = 0;
  // The cores are used by others too: no spinning, no single-core binding.
  bool shared = false;
  // How long an idle worker, and a caller at the join, spins before it sleeps.
  int spin_us = 500;
  // Called on each worker thread before its first chunk, with its number >= 1.
  std::function<void(int worker)> on_start;
};

class ThreadPool {
 public:
  static constexpr int kMaxChunks = 32;
  static constexpr int kMaxSize = 256;
  // Runs expected to be shorter are not worth waking sleeping workers for.
  static constexpr int kWakeWorthUs = 50;
  using ChunkFn = void (*)(void* arg, int chunk);

  // Throws InvalidArgument for a size outside [0, kMaxSize] and
  // ResourceExhausted when a thread cannot be started.
  explicit ThreadPool(ThreadPoolOptions options);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  // Threads including the caller.
  int size() const { return static_cast<int>(workers_.size()) + 1; }
  const CoreSet& cores() const { return options_.cores; }

  // Calls fn(arg, 0) ... fn(arg, chunks - 1), each exactly once, on the caller
  // and the workers, and returns when all have returned. When chunks throw,
  // the exception of the lowest such chunk is rethrown after all are done.
  // `estimate_us` is the expected serial time; below kWakeWorthUs sleeping
  // workers are left asleep. Throws InvalidArgument unless
  // 0 <= chunks <= kMaxChunks.
  void run(int chunks, ChunkFn fn, void* arg, double estimate_us = 1e9);

  // run() over a callable `body(int chunk)`.
  template <class Body>
  void parallel_for(int chunks, Body&& body, double estimate_us = 1e9) {
    using Plain = std::remove_reference_t<Body>;
    auto* target = const_cast<std::remove_const_t<Plain>*>(&body);
    run(
        chunks,
        [](void* arg, int chunk) { (*static_cast<Plain*>(arg))(chunk); },
        target, estimate_us);
  }

  // How long a thread that waits for work may spin; 0: not at all.
  int spin_us() const { return options_.spin_us; }

  // True while the calling thread is inside a chunk of any pool.
  static bool in_chunk();

 private:
  // One per cache line: these words are written by different threads.
  template <class T>
  struct alignas(64) Line {
    std::atomic<T> value{0};
  };

  void worker_main(int worker);
  bool take_one(int participant);
  void execute(int chunk);
  void run_inline(int chunks, ChunkFn fn, void* arg);
  void wait_for_work();
  void join();
  void wake_workers();

  ThreadPoolOptions options_;
  std::vector<uint32_t> preferred_;  // per participant, its own bits

  Line<uint64_t> claim_;     // epoch in the high half, unclaimed bits low
  Line<uint32_t> wake_;      // futex: bumped to wake sleeping workers
  Line<uint32_t> sleepers_;  // workers asleep or about to be
  Line<uint32_t> pending_;   // futex: unfinished chunks | kCallerSleeps
  std::atomic<bool> stop_{false};
  std::atomic<bool> busy_{false};

  // The current run. Written by the caller before it publishes the claim
  // word; others may read it only after a successful claim, which proves that
  // this very run is unfinished.
  alignas(64) ChunkFn fn_ = nullptr;
  void* arg_ = nullptr;

  std::mutex error_mutex_;
  std::exception_ptr error_;
  int error_chunk_ = 0;

  std::vector<std::thread> workers_;
};

}  // namespace berth

#endif  // BERTH_BASE_THREAD_POOL_H_
