#include "device/thread_stream.h"

#include <algorithm>

#include "base/clock.h"
#include "base/interrupt.h"
#include "base/spin.h"

namespace berth {

namespace {
constexpr size_t kFirstRing = 256;
}

ThreadStream::ThreadStream(Device* device, ThreadStreamOptions options)
    : Stream(device), options_(std::move(options)), ring_(kFirstRing) {
  thread_ = std::thread([this] { thread_main(); });
}

ThreadStream::~ThreadStream() {
  {
    std::lock_guard lock(mutex_);
    stop_ = true;
  }
  queued_.notify_one();
  thread_.join();
}

void ThreadStream::enqueue(Lock& lock, const Entry& entry) {
  const uint64_t pushed = pushed_.load(std::memory_order_relaxed);
  const uint64_t first = completed_.load(std::memory_order_relaxed);
  if (pushed - first == ring_.size()) {
    std::vector<Entry> larger(ring_.size() * 2);
    for (uint64_t i = first; i < pushed; ++i) {
      larger[i & (larger.size() - 1)] = ring_[i & (ring_.size() - 1)];
    }
    ring_ = std::move(larger);
  }
  ring_[pushed & (ring_.size() - 1)] = entry;
  pushed_.store(pushed + 1, std::memory_order_release);
  const bool wake = thread_sleeps_;
  lock.unlock();
  if (wake) queued_.notify_one();
}

void ThreadStream::launch(const Work& work) {
  Lock lock(mutex_);
  enqueue(lock, {Kind::kWork, work, {}});
}

Event ThreadStream::record() {
  return {this, pushed_.load(std::memory_order_acquire)};
}

void ThreadStream::enqueue_wait(Event event, bool order_only) {
  if (event.stream == nullptr) return;
  Lock lock(mutex_);
  // In order anyway; but what failed before a reset stays failed.
  if (event.stream == this && (order_only || failures_.poisoned())) return;
  if (event.stream == this && !failures_.at(event.sequence)) return;
  enqueue(lock, {order_only ? Kind::kWaitOrder : Kind::kWait, {}, event});
}

bool ThreadStream::done(Event event) {
  return completed_.load(std::memory_order_acquire) >= event.sequence;
}

void ThreadStream::wait_until(uint64_t sequence) {
  auto reached = [&] {
    return completed_.load(std::memory_order_acquire) >= sequence;
  };
  if (spin_until(options_.wait_spin_us, reached)) return;
  Lock lock(mutex_);
  ++sleepers_;
  wait_asking(progress_, lock, reached);
  --sleepers_;
}

void ThreadStream::synchronize(Event event) {
  wait_until(event.sequence);
  FailureRef failure;
  {
    std::lock_guard lock(mutex_);
    failure = failures_.at(event.sequence);
  }
  if (failure) errors::raise(failure->code, failure->message);
}

void ThreadStream::reset_error() {
  const uint64_t last = record().sequence;
  wait_until(last);
  Lock lock(mutex_);
  if (!failures_.poisoned()) return;
  failures_.reset(pushed_.load(std::memory_order_relaxed));
  // An event that is recorded from now on must not be that of what failed.
  enqueue(lock, {});
}

bool ThreadStream::next(Entry* entry) {
  const uint64_t at = completed_.load(std::memory_order_relaxed);
  auto ready = [&] {
    return pushed_.load(std::memory_order_acquire) > at ||
           stop_.load(std::memory_order_relaxed);
  };
  spin_until(options_.spin_us, ready);
  Lock lock(mutex_);
  thread_sleeps_ = true;
  queued_.wait(lock, ready);
  thread_sleeps_ = false;
  if (pushed_.load(std::memory_order_relaxed) == at) return false;
  *entry = ring_[at & (ring_.size() - 1)];
  return true;
}

FailureRef ThreadStream::execute(const Entry& entry) {
  if (entry.kind == Kind::kWork) {
    {
      std::lock_guard lock(mutex_);
      if (failures_.poisoned()) return nullptr;
    }
    WorkTime* time = entry.work.time;
    const double begin = time ? host_clock_us() : 0;
    FailureRef failure = run_work(entry.work, *this);
    if (time && !failure) *time = {begin, host_clock_us()};
    return failure;
  }
  if (entry.event.stream == this) {
    std::lock_guard lock(mutex_);
    return failures_.at(entry.event.sequence);
  }
  if (entry.kind == Kind::kWaitOrder) {
    finish(entry.event);
    return nullptr;
  }
  try {
    berth::synchronize(entry.event);
    return nullptr;
  } catch (const errors::Error& e) {
    return std::make_shared<const Failure>(Failure{e.code(), e.what()});
  } catch (const std::exception& e) {
    return std::make_shared<const Failure>(
        Failure{errors::Code::kInternal, e.what()});
  }
}

void ThreadStream::complete(FailureRef failure) {
  Lock lock(mutex_);
  const uint64_t sequence = completed_.load(std::memory_order_relaxed) + 1;
  failures_.add(sequence, std::move(failure));
  completed_.store(sequence, std::memory_order_release);
  const bool wake = sleepers_ > 0;
  lock.unlock();
  if (wake) progress_.notify_all();
}

void ThreadStream::thread_main() {
  if (options_.on_start) options_.on_start();
  Entry entry;
  while (next(&entry)) {
    // First complete, then drop: a freed block finds its uses ended.
    complete(execute(entry));
    if (entry.kind == Kind::kWork && entry.work.drop) {
      entry.work.drop(entry.work.context);
    }
  }
}

}  // namespace berth
