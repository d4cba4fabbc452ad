#include "backends/gpu/queue_stream.h"

#include <fmt/format.h>

#include <algorithm>
#include <thread>
#include <utility>

#include "backends/gpu/stream_recording.h"
#include "base/clock.h"
#include "device/device.h"
#include "device/memory_space.h"

namespace berth::gpu {

namespace {

constexpr uint64_t kMostQueued = 2048;
constexpr uint64_t kPollEvery = 64;
// Each queued entry may report its own fault.
constexpr uint64_t kFaultSlots = 2 * kMostQueued;
constexpr size_t kFaultMemory = kFaultSlots * kFaultBytes;

}  // namespace

std::unique_ptr<MemorySource> pinned_or_host(Card& card) {
  auto source = card.pinned_source();
  return source ? std::move(source) : host_memory_source();
}

QueueStream::QueueStream(Device* device, Card& card)
    : Stream(device), card_(card) {}

void QueueStream::open() {
  if (is_open_.load(std::memory_order_acquire)) return;
  Lock lock(mutex_);
  if (is_open_) return;
  auto queue = card_.make_queue();
  auto faults =
      std::make_unique<HeldMemory>(card_.memory_source(), kFaultMemory);
  auto mirror =
      std::make_unique<HeldMemory>(pinned_or_host(card_), kFaultMemory);
  if (faults->data() == nullptr || mirror->data() == nullptr) {
    throw errors::ResourceExhausted(fmt::format(
        "{} has no memory left for a stream", card_.features().name));
  }
  queue->fill(faults->data(), 0, kFaultMemory);
  // Wait now, so that a new stream has nothing to wait for.
  const Mark mark = queue->mark();
  queue->await(mark);
  queue->release(mark);
  passed_ = marked_ = ended_ = queue->appended();
  trace_ = queue->traces() ? nullptr : WorkTrace::asked();
  queue_ = std::move(queue);
  fault_memory_ = std::move(faults);
  mirror_memory_ = std::move(mirror);
  is_open_ = true;
}

QueueStream::~QueueStream() {
  finish(record());
  retire(true);
}

std::byte* QueueStream::fault_slot(uint64_t sequence) const {
  return fault_memory_->data() + sequence % kFaultSlots * kFaultBytes;
}

int64_t* QueueStream::mirror_slot(uint64_t sequence) const {
  return reinterpret_cast<int64_t*>(mirror_memory_->data() +
                                    sequence % kFaultSlots * kFaultBytes);
}

void* QueueStream::watch_fault(const FaultTexts& texts) {
  if (recording_ != nullptr) return recording_->watch_fault(texts);
  faults_ = texts;
  return fault_slot(entries_.last() + 1);
}

void QueueStream::push(Entry e) {
  e.position = queue_ ? queue_->appended() : 0;
  if (e.failure) failures_.add(entries_.last() + 1, e.failure);
  entries_.push(std::move(e));
}

void QueueStream::make_point() {
  const uint64_t position = queue_->appended();
  if (position <= marked_) return;
  marked_ = position;
  try {
    points_.push({queue_->mark(), position});
  } catch (const errors::Error&) {
    passed_ = position;
    throw;
  }
}

void QueueStream::end_of(Entry& e) {
  const uint64_t sequence = entries_.last() + 1;
  try {
    if (e.faults) {
      queue_->copy({mirror_slot(sequence), &pinned_memory(),
                    fault_slot(sequence), &device().memory(), kFaultBytes});
    }
    if (e.work.time != nullptr || trace_ != nullptr) make_point();
  } catch (const errors::Error& error) {
    e.faults = nullptr;
    if (!e.failure) e.failure = failure_from(error, e.work);
  }
}

Work QueueStream::call(const Work& work) {
  Entry e;
  e.work = work;
  try {
    if (!lost_ && !failures_.poisoned()) open();
  } catch (const errors::Error& error) {
    e.failure = failure_from(error, work);
  }
  const bool timed = work.time != nullptr || trace_ != nullptr;
  e.launched_us = timed ? host_clock_us() : 0;
  timed_ |= timed;
  if (lost_) {
    e.failure = lost_;
    ++skipped_;
  } else if (e.failure || failures_.poisoned()) {
    ++skipped_;
  } else {
    ++depth_;
    if (queue_->listened()) queue_->enter(work, *this);
    e.failure = run_work(work, *this);
    if (queue_->listened()) queue_->leave();
    --depth_;
    e.faults = std::exchange(faults_, nullptr);
    e.replayed = std::exchange(replayed_, nullptr);
    if (e.faults || timed) end_of(e);
  }
  push(std::move(e));
  if (nested_.empty()) return {};
  const Work next = nested_.front();
  nested_.erase(nested_.begin());
  return next;
}

void QueueStream::launch(const Work& work) {
  const CardCalls calls(card_);
  {
    Lock lock(mutex_);
    if (inside()) return nested_.push_back(work);
    Work next = call(work);
    while (next.run != nullptr) next = call(next);
  }
  make_room();
}

void QueueStream::make_room() {
  uint64_t queued = 0, last = 0;
  bool ended = false;
  {
    Lock lock(mutex_);
    if (inside() || entries_.empty()) return;
    last = entries_.last();
    queued = entries_.size();
    ended = entries_.front().position <= passed_;
  }
  if (queued >= kMostQueued) await(last - kMostQueued / 2);
  if (ended || queued % kPollEvery == 0) retire(!ended);
}

Event QueueStream::record() {
  Lock lock(mutex_);
  // Inside running work the event is the point after that work.
  return {this, entries_.last() + (inside() ? 1 : 0)};
}

void QueueStream::append_wait(Event event, bool order_only) {
  if (event.stream == nullptr) return;
  if (event.stream == this) {
    Lock lock(mutex_);
    // The order is kept anyway, but what failed before a reset stays failed.
    if (order_only || failures_.poisoned()) return;
    FailureRef failure = failures_.at(event.sequence);
    if (!failure) return;
    Entry e;
    e.failure = std::move(failure);
    return push(std::move(e));
  }
  const CardCalls calls(card_);
  auto* from = dynamic_cast<QueueStream*>(event.stream);
  if (from == nullptr || !card_.reaches(from->card_)) {
    return order_only ? finish(event) : berth::synchronize(event);
  }
  uint64_t point = 0;
  Mark mark = nullptr;
  {
    Lock lock(from->mutex_);
    point = from->hold_point(event.sequence);
    if (point != 0) {
      mark = from->points_[point].mark;
      from->queue_->flush();
    }
  }
  // Ended work needs no wait.
  if (mark == nullptr && order_only) return;
  {
    Lock lock(mutex_);
    Entry e;
    e.work.what = "a wait for another stream";
    e.waits_for = order_only ? Event{} : event;
    try {
      if (mark != nullptr) queue().follow(mark);
    } catch (const errors::Error& error) {
      // Later work must not start.
      e.failure = failure_from(error, e.work);
    }
    if (!order_only || e.failure) push(std::move(e));
  }
  if (point != 0) {
    Lock lock(from->mutex_);
    from->let_go(point);
  }
  make_room();
}

uint64_t QueueStream::hold_point(uint64_t sequence) {
  if (entries_.empty() || sequence < entries_.first()) return 0;
  const uint64_t position =
      entries_[std::min(sequence, entries_.last())].position;
  if (position <= passed_) return 0;
  if (position > marked_) {
    try {
      make_point();
    } catch (const errors::Error& error) {
      failed_ = failure_from(error, entries_.front().work);
      return 0;
    }
  }
  for (uint64_t i = points_.first(); i <= points_.last(); ++i) {
    if (points_[i].position < position) continue;
    ++points_[i].waiters;
    return i;
  }
  return 0;
}

void QueueStream::let_go(uint64_t point) { --points_[point].waiters; }

void QueueStream::await(uint64_t sequence) {
  uint64_t point = 0;
  Mark mark = nullptr;
  {
    Lock lock(mutex_);
    point = hold_point(sequence);
    if (point == 0) return;
    mark = points_[point].mark;
  }
  try {
    queue_->await(mark);
  } catch (const errors::Error&) {
    // The thread that ends the entry reports it.
  }
  Lock lock(mutex_);
  let_go(point);
}

FailureRef QueueStream::reported(const Entry& e, uint64_t sequence) {
  if (e.faults) return reported(mirror_slot(sequence), e.faults, e.work);
  FailureRef first;
  for (size_t i = 0; !first && i < e.replayed->ops.size(); ++i) {
    const RecordedFaults::Op& op = e.replayed->ops[i];
    first = reported(e.replayed->mirror_slot(i), op.texts, op.work);
  }
  return first;
}

FailureRef QueueStream::reported(const int64_t* numbers,
                                 const FaultTexts& texts, const Work& work) {
  const auto code = static_cast<int32_t>(numbers[0]);
  if (code == 0) return nullptr;
  const size_t text = std::min(static_cast<size_t>(code), texts->size()) - 1;
  return make_failure(errors::Code::kInvalidArgument, device(), work,
                      fmt::format(fmt::runtime((*texts)[text]), numbers[1],
                                  numbers[2], numbers[3]));
}

FailureRef QueueStream::failure_from(const errors::Error& error,
                                     const Work& work) {
  FailureRef failure = make_failure(error.code(), device(), work, error.what());
  if (error.code() == errors::Code::kUnavailable) lost_ = failure;
  return failure;
}

void QueueStream::pass_point(Point& point) {
  point.passed = true;
  passed_ = point.position;
  if (!timed_) return;
  end_before_us_ = end_us_;
  end_us_ = queue_->passed_us(point.mark);
}

bool QueueStream::first_passed(bool ask) {
  const Entry& first = entries_.front();
  while (first.position > passed_) {
    // The entries before it have ended; the mark is not needed any more.
    if (!points_.empty() && points_.front().passed) {
      if (points_.front().waiters > 0) return false;
      queue_->release(points_.front().mark);
      points_.pop();
      continue;
    }
    try {
      if (points_.empty()) {
        if (!ask) return false;
        make_point();
        queue_->flush();
        continue;
      }
      if (!queue_->passed(points_.front().mark)) return false;
      pass_point(points_.front());
    } catch (const errors::Error& error) {
      // The error is the first entry's, or one's launched soon after it.
      if (!failed_) failed_ = failure_from(error, first.work);
      if (points_.empty()) continue;
      points_.front().passed = true;
      passed_ = points_.front().position;
    }
  }
  return true;
}

void QueueStream::note_time(const Entry& e) {
  const double end = std::max(end_us_, e.launched_us);
  // Work that gave the queue nothing has no mark and took no time.
  const bool ran = e.position > ended_;
  const double begin = ran ? std::max(e.launched_us, end_before_us_) : end;
  const WorkTime time = {std::min(begin, end), end};
  if (e.work.time != nullptr) *e.work.time = time;
  if (trace_ == nullptr || !ran || e.work.run == nullptr) return;
  trace_->add(device().short_name(), role_of(*this), queue_->timing(),
              {.what = e.work.what,
               .site = e.work.site,
               .begin_us = time.begin_us,
               .end_us = time.end_us,
               .bytes = e.work.moved_bytes,
               .crosses_link = e.work.crosses_link});
}

bool QueueStream::end_first(Lock& lock, bool ask, Work* drop) {
  if (entries_.empty() || inside()) return false;
  const uint64_t first = entries_.first();
  if (!first_passed(ask)) return false;
  FailureRef failure;
  if (auto* from =
          dynamic_cast<QueueStream*>(entries_.front().waits_for.stream)) {
    const Event event = entries_.front().waits_for;
    lock.unlock();
    failure = from->failure_at(event.sequence);
    lock.lock();
    if (entries_.first() != first) return true;  // another thread ended it
  }
  Entry& e = entries_.front();
  if (FailureRef failed = std::exchange(failed_, nullptr)) {
    if (!failure) failure = std::move(failed);
  }
  if (!failure && (e.faults || e.replayed)) failure = reported(e, first);
  failures_.add(first, std::move(failure));
  if (e.work.time != nullptr || trace_ != nullptr) note_time(e);
  ended_ = e.position;
  *drop = e.work;
  entries_.pop();
  return true;
}

void QueueStream::retire(bool ask, uint64_t last) {
  const CardCalls calls(card_);
  for (;;) {
    Work drop;
    {
      Lock lock(mutex_);
      if (entries_.first() > last || !end_first(lock, ask, &drop)) return;
    }
    if (drop.drop) drop.drop(drop.context);
  }
}

FailureRef QueueStream::failure_at(uint64_t sequence) {
  // Stop here: later entries may wait for the stream that asks.
  retire(true, sequence);
  Lock lock(mutex_);
  return failures_.at(sequence);
}

bool QueueStream::done(Event event) {
  const auto ended = [&] {
    Lock lock(mutex_);
    return event.sequence < entries_.first();
  };
  // Dropping work may call this again; returning early ends the nesting.
  if (ended()) return true;
  retire(true);
  return ended();
}

void QueueStream::synchronize(Event event) {
  if (!done(event)) {
    await(event.sequence);
    retire(true);
  }
  // Another thread may still be checking an earlier mark.
  FailureRef failure;
  for (;;) {
    {
      Lock lock(mutex_);
      failure = failures_.at(event.sequence);
      if (failure || event.sequence < entries_.first() || inside()) break;
    }
    std::this_thread::yield();
    retire(true);
  }
  if (is_open_ && trace_ != nullptr) trace_->flush();
  if (is_open_) queue_->waited();
  if (failure) errors::raise(failure->code, failure->message);
}

void QueueStream::reset_error() {
  const Event last = record();
  await(last.sequence);
  finish(last);
  Lock lock(mutex_);
  if (!failures_.poisoned() || lost_) return;
  if (queue_) queue_->fill(fault_memory_->data(), 0, kFaultMemory);
  failures_.reset(entries_.last());
  // Events recorded from now on must differ from that of failed work.
  push({});
}

}  // namespace berth::gpu
