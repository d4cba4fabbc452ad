#include "backends/gpu/queue_stream.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/clock.h"
#include "device/device.h"
#include "device/memory_space.h"

namespace berth::gpu {

namespace {

constexpr size_t kFirstRing = 256;
constexpr uint64_t kMostQueued = 2048;
constexpr uint64_t kPollEvery = 64;
// Each entry that is queued may report a fault of its own.
constexpr size_t kFaultBytes = 32;  // (code, three numbers)
constexpr uint64_t kFaultSlots = 2 * kMostQueued;
constexpr size_t kFaultMemory = kFaultSlots * kFaultBytes;

}  // namespace

QueueStream::QueueStream(Device* device, Card& card)
    : Stream(device),
      card_(card),
      queue_(card.make_queue()),
      ring_(kFirstRing),
      fault_memory_(card.memory_source()),
      mirror_memory_(card.pinned_source()) {
  if (!mirror_memory_) mirror_memory_ = host_memory_source();
  fault_data_ = fault_memory_->reserve(kFaultMemory);
  mirror_ = reinterpret_cast<int64_t*>(mirror_memory_->reserve(kFaultMemory));
  if (fault_data_ == nullptr || mirror_ == nullptr) {
    throw errors::ResourceExhausted(fmt::format(
        "{} has no memory left for a stream", card.features().name));
  }
  queue_->fill(fault_data_, 0, kFaultMemory);
}

QueueStream::~QueueStream() {
  finish({this, pushed_});
  retire();
  fault_memory_->release(fault_data_, kFaultMemory);
  mirror_memory_->release(reinterpret_cast<std::byte*>(mirror_), kFaultMemory);
}

std::byte* QueueStream::fault_slot(uint64_t sequence) const {
  return fault_data_ + sequence % kFaultSlots * kFaultBytes;
}

void* QueueStream::watch_fault(const FaultTexts& texts) {
  faults_ = texts;
  return fault_slot(pushed_ + 1);
}

void QueueStream::push(Entry e) {
  if (pushed_ - ended_ == ring_.size()) {
    std::vector<Entry> larger(ring_.size() * 2);
    for (uint64_t i = ended_ + 1; i <= pushed_; ++i) {
      larger[i & (larger.size() - 1)] = std::move(entry(i));
    }
    ring_ = std::move(larger);
  }
  if (e.failure) failures_.add(pushed_ + 1, e.failure);
  ++pushed_;
  entry(pushed_) = std::move(e);
}

void QueueStream::end_of(Entry& e) {
  try {
    if (e.faults) {
      int64_t* mirror = mirror_ + (pushed_ + 1) % kFaultSlots * 4;
      queue_->copy({mirror, &pinned_memory(), fault_slot(pushed_ + 1),
                    &device().memory(), kFaultBytes});
    }
    e.mark = queue_->mark();
  } catch (const errors::Error& error) {
    e.faults = nullptr;
    if (!e.failure) e.failure = failure_from(error, e.work);
  }
}

Work QueueStream::call(const Work& work) {
  Entry e;
  e.work = work;
  e.launched_us = work.time ? host_clock_us() : 0;
  timed_ |= work.time != nullptr;
  if (lost_) {
    e.failure = lost_;
  } else if (!failures_.poisoned()) {
    ++depth_;
    e.failure = run_work(work, *this);
    --depth_;
    e.faults = std::exchange(faults_, nullptr);
    end_of(e);
  }
  push(std::move(e));
  if (nested_.empty()) return {};
  const Work next = nested_.front();
  nested_.erase(nested_.begin());
  return next;
}

void QueueStream::launch(const Work& work) {
  {
    Lock lock(mutex_);
    if (inside()) return nested_.push_back(work);
    for (Work next = work; next.run != nullptr;) next = call(next);
  }
  make_room();
}

void QueueStream::make_room() {
  uint64_t queued = 0, last = 0;
  {
    Lock lock(mutex_);
    if (inside()) return;
    last = pushed_;
    queued = pushed_ - ended_;
  }
  if (queued >= kMostQueued) await(last - kMostQueued / 2);
  if (queued == 1 || queued % kPollEvery == 0) retire();
}

Event QueueStream::record() {
  Lock lock(mutex_);
  // Work that is being called asks for the point behind itself.
  return {this, pushed_ + (inside() ? 1 : 0)};
}

void QueueStream::append_wait(Event event, bool order_only) {
  if (event.stream == nullptr) return;
  if (event.stream == this) {
    Lock lock(mutex_);
    // In order anyway; but what failed before a reset stays failed.
    if (order_only || failures_.poisoned()) return;
    FailureRef failure = failures_.at(event.sequence);
    if (!failure) return;
    Entry e;
    e.failure = std::move(failure);
    return push(std::move(e));
  }
  auto* from = dynamic_cast<QueueStream*>(event.stream);
  if (from == nullptr || !card_.reaches(from->card_)) {
    return order_only ? finish(event) : berth::synchronize(event);
  }
  uint64_t held = 0;
  Mark mark = nullptr;
  {
    Lock lock(from->mutex_);
    mark = from->hold_mark(event.sequence, &held);
    if (mark != nullptr) from->queue_->flush();
  }
  // What has ended well needs no wait.
  if (mark == nullptr && order_only) return;
  {
    Lock lock(mutex_);
    Entry e;
    e.work.what = "a wait for another stream";
    try {
      if (mark != nullptr) queue_->follow(mark);
      if (!order_only) e.waits_for = event, e.mark = queue_->mark();
    } catch (const errors::Error& error) {
      // What comes after it must not start.
      e.failure = failure_from(error, e.work);
    }
    if (!order_only || e.failure) push(std::move(e));
  }
  make_room();
  if (mark != nullptr) {
    Lock lock(from->mutex_);
    from->let_go(held);
  }
  if (mark == nullptr) retire();
}

Mark QueueStream::hold_mark(uint64_t sequence, uint64_t* held) {
  for (uint64_t i = std::min(sequence, pushed_); i > ended_; --i) {
    Entry& e = entry(i);
    if (e.mark == nullptr) continue;
    ++e.waiters;
    *held = i;
    return e.mark;
  }
  return nullptr;
}

void QueueStream::let_go(uint64_t held) { --entry(held).waiters; }

void QueueStream::await(uint64_t sequence) {
  uint64_t held = 0;
  Mark mark = nullptr;
  {
    Lock lock(mutex_);
    mark = hold_mark(sequence, &held);
  }
  if (mark == nullptr) return;
  try {
    queue_->await(mark);
  } catch (const errors::Error&) {
    // Whoever ends the entry says so.
  }
  Lock lock(mutex_);
  let_go(held);
}

FailureRef QueueStream::reported(const Entry& e, uint64_t sequence) {
  const int64_t* numbers = mirror_ + sequence % kFaultSlots * 4;
  const auto code = static_cast<int32_t>(numbers[0]);
  if (code == 0) return nullptr;
  const size_t text = std::min(static_cast<size_t>(code), e.faults->size()) - 1;
  return make_failure(errors::Code::kInvalidArgument, device(), e.work,
                      fmt::format(fmt::runtime((*e.faults)[text]), numbers[1],
                                  numbers[2], numbers[3]));
}

FailureRef QueueStream::failure_from(const errors::Error& error,
                                     const Work& work) {
  FailureRef failure = make_failure(error.code(), device(), work, error.what());
  if (error.code() == errors::Code::kUnavailable) lost_ = failure;
  return failure;
}

bool QueueStream::has_passed(Entry& e) {
  if (e.mark == nullptr || e.failed) return true;
  try {
    return queue_->passed(e.mark);
  } catch (const errors::Error& error) {
    e.failed = failure_from(error, e.work);
    return true;
  }
}

bool QueueStream::end_first(Lock& lock, Work* drop) {
  if (ended_ == pushed_ || inside()) return false;
  const uint64_t first = ended_ + 1;
  if (!has_passed(entry(first)) || entry(first).waiters > 0) return false;
  FailureRef failure;
  if (auto* from = dynamic_cast<QueueStream*>(entry(first).waits_for.stream)) {
    const Event event = entry(first).waits_for;
    lock.unlock();
    failure = from->failure_at(event.sequence);
    lock.lock();
    if (ended_ + 1 != first || entry(first).waiters > 0) return true;  // again
  }
  Entry& e = entry(first);
  if (!failure) failure = e.failed;
  if (!failure && e.faults) failure = reported(e, first);
  failures_.add(first, std::move(failure));
  if (timed_ && e.mark != nullptr) {
    const double end = queue_->passed_us(e.mark);
    if (e.work.time != nullptr) {
      *e.work.time = {std::min(end, std::max(e.launched_us, last_end_us_)),
                      end};
    }
    last_end_us_ = end;
  } else if (e.work.time != nullptr && !e.failure) {
    *e.work.time = {e.launched_us, e.launched_us};
  }
  if (e.mark != nullptr) queue_->release(e.mark);
  *drop = e.work;
  e = {};
  ++ended_;
  return true;
}

void QueueStream::retire() {
  for (;;) {
    Work drop;
    {
      Lock lock(mutex_);
      if (!end_first(lock, &drop)) return;
    }
    if (drop.drop) drop.drop(drop.context);
  }
}

FailureRef QueueStream::failure_at(uint64_t sequence) {
  retire();
  Lock lock(mutex_);
  return failures_.at(sequence);
}

bool QueueStream::done(Event event) {
  retire();
  Lock lock(mutex_);
  if (event.sequence <= ended_) return true;
  // Another thread may be about to end it.
  uint64_t held = 0;
  const Mark mark = hold_mark(event.sequence, &held);
  if (mark == nullptr) return !inside();
  let_go(held);
  queue_->flush();
  return false;
}

void QueueStream::synchronize(Event event) {
  await(event.sequence);
  retire();
  // Another thread may hold an entry before it for a moment.
  FailureRef failure;
  for (;;) {
    {
      Lock lock(mutex_);
      failure = failures_.at(event.sequence);
      if (failure || ended_ >= event.sequence || inside()) break;
    }
    retire();
  }
  if (failure) errors::raise(failure->code, failure->message);
}

void QueueStream::reset_error() {
  await(pushed_);
  retire();
  Lock lock(mutex_);
  if (!failures_.poisoned() || lost_) return;
  queue_->fill(fault_data_, 0, kFaultMemory);
  failures_.reset(pushed_);
  // An event that is recorded from now on must not be that of what failed.
  push({});
}

}  // namespace berth::gpu
