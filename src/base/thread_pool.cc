#include "base/thread_pool.h"

#include <fmt/format.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <bit>
#include <climits>
#include <system_error>
#include <utility>

#include "base/pretended_cores.h"
#include "base/spin.h"
#include "berth/errors.h"

namespace berth {
namespace {

constexpr uint32_t kCallerSleeps = 1u << 31;

thread_local int t_chunk_depth = 0;

class ChunkScope {
 public:
  ChunkScope() { ++t_chunk_depth; }
  ~ChunkScope() { --t_chunk_depth; }
};

void futex_wait(std::atomic<uint32_t>& word, uint32_t seen) {
  syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, seen, nullptr, nullptr, 0);
}

void futex_wake(std::atomic<uint32_t>& word, int count) {
  syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, count, nullptr, nullptr, 0);
}

}  // namespace

ThreadPool::ThreadPool(ThreadPoolOptions options)
    : options_(std::move(options)) {
  if (options_.size < 0 || options_.size > kMaxSize) {
    throw errors::InvalidArgument(
        fmt::format("thread pool: size {} is out of range; expected 0 (one "
                    "per core) to {}",
                    options_.size, kMaxSize));
  }
  int size = options_.size > 0 ? options_.size : options_.cores.size();
  size = std::min(std::max(size, 1), kMaxSize);
  const bool fits = options_.cores.empty() || size <= options_.cores.size();
  if (options_.shared || !fits || pretended_cores()) options_.spin_us = 0;
  for (int i = 0; i < size; ++i) {
    uint32_t bits = 0;
    for (int chunk = i; chunk < kMaxChunks; chunk += size) bits |= 1u << chunk;
    preferred_.push_back(bits);
  }
  workers_.reserve(size - 1);
  try {
    for (int i = 1; i < size; ++i) {
      workers_.emplace_back(&ThreadPool::worker_main, this, i);
    }
  } catch (const std::system_error& error) {
    const size_t started = workers_.size();
    stop_ = true;
    wake_workers();
    for (std::thread& worker : workers_) worker.join();
    throw errors::ResourceExhausted(fmt::format(
        "thread pool: could start {} of {} worker threads ({}); use a smaller "
        "pool or raise the limit on threads",
        started, size - 1, error.what()));
  }
}

ThreadPool::~ThreadPool() {
  stop_ = true;
  wake_workers();
  for (std::thread& worker : workers_) worker.join();
}

bool ThreadPool::in_chunk() { return t_chunk_depth > 0; }

void ThreadPool::wake_workers() {
  wake_.value.fetch_add(1);
  futex_wake(wake_.value, INT_MAX);
}

void ThreadPool::run_inline(int chunks, ChunkFn fn, void* arg) {
  ChunkScope scope;
  std::exception_ptr first;
  for (int chunk = 0; chunk < chunks; ++chunk) {
    try {
      fn(arg, chunk);
    } catch (...) {
      if (first == nullptr) first = std::current_exception();
    }
  }
  if (first != nullptr) std::rethrow_exception(first);
}

void ThreadPool::run(int chunks, ChunkFn fn, void* arg, double estimate_us) {
  if (chunks < 0 || chunks > kMaxChunks) {
    throw errors::InvalidArgument(
        fmt::format("thread pool: {} chunks asked for; expected 0 to {}",
                    chunks, kMaxChunks));
  }
  if (chunks == 0) return;
  if (chunks == 1 || workers_.empty() || in_chunk() ||
      busy_.exchange(true, std::memory_order_acquire)) {
    run_inline(chunks, fn, arg);
    return;
  }
  fn_ = fn;
  arg_ = arg;
  pending_.value.store(chunks, std::memory_order_relaxed);
  const uint32_t bits = chunks == 32 ? ~0u : (1u << chunks) - 1;
  const uint64_t epoch =
      (claim_.value.load(std::memory_order_relaxed) | 0xffffffffu) + 1;
  // Sequentially consistent against the sleeper count: either this thread
  // sees a worker about to sleep, or that worker sees the new chunks.
  claim_.value.store(epoch | bits, std::memory_order_seq_cst);
  if (estimate_us >= kWakeWorthUs &&
      sleepers_.value.load(std::memory_order_seq_cst) > 0) {
    wake_.value.fetch_add(1, std::memory_order_seq_cst);
    futex_wake(wake_.value, chunks - 1);
  }
  while (take_one(0)) {
  }
  join();
  std::exception_ptr error = std::exchange(error_, nullptr);
  busy_.store(false, std::memory_order_release);
  if (error != nullptr) std::rethrow_exception(error);
}

bool ThreadPool::take_one(int participant) {
  const uint32_t own = preferred_[participant];
  uint64_t word = claim_.value.load(std::memory_order_acquire);
  for (;;) {
    const uint32_t open = static_cast<uint32_t>(word);
    if (open == 0) return false;
    // Steal from the top: owners start at the bottom of their bits.
    const int chunk = (open & own) != 0 ? std::countr_zero(open & own)
                                        : 31 - std::countl_zero(open);
    const uint64_t next = word & ~(uint64_t{1} << chunk);
    if (claim_.value.compare_exchange_weak(
            word, next, std::memory_order_acq_rel, std::memory_order_acquire)) {
      execute(chunk);
      return true;
    }
  }
}

void ThreadPool::execute(int chunk) {
  try {
    ChunkScope scope;
    fn_(arg_, chunk);
  } catch (...) {
    std::lock_guard<std::mutex> lock(error_mutex_);
    if (error_ == nullptr || chunk < error_chunk_) {
      error_ = std::current_exception();
      error_chunk_ = chunk;
    }
  }
  // After the last decrement the run may be over: touch nothing of it.
  const uint32_t before =
      pending_.value.fetch_sub(1, std::memory_order_acq_rel);
  if (before == (kCallerSleeps | 1)) futex_wake(pending_.value, 1);
}

void ThreadPool::join() {
  std::atomic<uint32_t>& pending = pending_.value;
  auto done = [&] {
    return (pending.load(std::memory_order_acquire) & ~kCallerSleeps) == 0;
  };
  if (done()) return;
  if (options_.spin_us > 0 && spin_until(options_.spin_us, done)) return;
  uint32_t seen = pending.fetch_or(kCallerSleeps, std::memory_order_acq_rel) |
                  kCallerSleeps;
  while (seen != kCallerSleeps) {
    futex_wait(pending, seen);
    seen = pending.load(std::memory_order_acquire);
  }
}

void ThreadPool::worker_main(int worker) {
  if (!options_.cores.empty()) {
    const bool alone =
        !options_.shared && worker < options_.cores.size() &&
        static_cast<int>(preferred_.size()) <= options_.cores.size();
    bind_current_thread(alone
                            ? CoreSet(std::vector<int>{options_.cores[worker]})
                            : options_.cores);
  }
  if (options_.on_start) options_.on_start(worker);
  while (!stop_.load(std::memory_order_acquire)) {
    if (!take_one(worker)) wait_for_work();
  }
}

void ThreadPool::wait_for_work() {
  auto ready = [&] {
    return static_cast<uint32_t>(
               claim_.value.load(std::memory_order_seq_cst)) != 0 ||
           stop_.load(std::memory_order_relaxed);
  };
  if (options_.spin_us > 0 && spin_until(options_.spin_us, ready)) return;
  sleepers_.value.fetch_add(1, std::memory_order_seq_cst);
  const uint32_t seen = wake_.value.load(std::memory_order_seq_cst);
  // A worker never leaves its loop for good while chunks are open, and a
  // caller bumps wake_ after it publishes, so no wake-up is lost.
  if (!ready()) futex_wait(wake_.value, seen);
  sleepers_.value.fetch_sub(1, std::memory_order_seq_cst);
}

}  // namespace berth
