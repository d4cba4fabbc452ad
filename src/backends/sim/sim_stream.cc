// The queue of one stream, and running its work.

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "backends/sim/scheduler.h"
#include "device/device.h"
#include "op/device_scope.h"

namespace berth::sim {

namespace {

constexpr double kLaunchUs = 5;

// Returns the real time in the unit of virtual clocks.
double real_us() {
  return std::chrono::duration<double, std::micro>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

void sleep_until_us(double us) {
  const double left = us - real_us();
  if (left <= 0) return;
  std::this_thread::sleep_for(std::chrono::duration<double, std::micro>(left));
}

constexpr size_t kFirstRing = 64;
constexpr size_t kMostQueued = 4096;

// Nesting of run() on this thread; below, with drop() included. Short, since a
// library that is opened at run time has 512 bytes per thread
// (tools/open_test).
constinit thread_local int16_t t_executing = 0;
constinit thread_local int16_t t_inside = 0;

}  // namespace

int executing_here() { return t_executing; }

SimStream::SimStream(Device* device, std::shared_ptr<Scheduler> scheduler,
                     std::string label, const Speed& speed, bool link,
                     FaultPlan* faults)
    : Stream(device),
      scheduler_(std::move(scheduler)),
      label_(std::move(label)),
      speed_(speed),
      link_(link),
      faults_(faults),
      ring_(kFirstRing) {
  std::lock_guard lock(scheduler_->mutex_);
  index_ = scheduler_->streams_.size();
  scheduler_->streams_.push_back(this);
}

SimStream::~SimStream() {
  {
    std::lock_guard lock(scheduler_->mutex_);
    std::erase(scheduler_->streams_, this);
  }
  for (; has_head(); ++completed_) {
    const Work& work = head().work;
    if (head().kind == Kind::kWork && work.drop) work.drop(work.context);
  }
}

void SimStream::grow() {
  std::vector<Entry> larger(ring_.size() * 2);
  const uint64_t n = std::min<uint64_t>(pushed_, ring_.size());
  for (uint64_t i = pushed_ - n; i < pushed_; ++i) {
    larger[i & (larger.size() - 1)] = entry(i);
  }
  ring_ = std::move(larger);
}

void SimStream::enqueue(Scheduler::Lock& lock, Entry e) {
  // Waiting releases the lock, so another thread may have taken the place.
  while (pushed_ - completed_ == ring_.size()) {
    // Work that launches must not wait for space: it may be in the way itself.
    if (ring_.size() < kMostQueued || t_inside > 0) {
      grow();
    } else {
      scheduler_->run_until(lock, *this, pushed_ - ring_.size() + 1);
    }
  }
  e.order = scheduler_->launched_++;
  e.issued_us = speed_.real_clock ? real_us() : scheduler_->host_us_;
  entry(pushed_++) = e;
}

void SimStream::launch(const Work& work) {
  Scheduler::Lock lock(scheduler_->mutex_);
  Entry e;
  e.work = work;
  const uint64_t n = ++faults_->launches;
  if (n == faults_->fail_at) e.fault = Fault::kFail;
  if (faults_->hang_at && n >= faults_->hang_at) e.fault = Fault::kHang;
  if (faults_->lose_at && n >= faults_->lose_at) e.fault = Fault::kLose;
  enqueue(lock, e);
}

Event SimStream::record() {
  Scheduler::Lock lock(scheduler_->mutex_);
  return {this, pushed_};
}

void SimStream::enqueue_wait(Event event, bool order_only) {
  if (event.stream == nullptr) return;
  auto* from = dynamic_cast<SimStream*>(event.stream);
  if (from == nullptr || from->scheduler_ != scheduler_) {
    return order_only ? finish(event) : berth::synchronize(event);
  }
  Scheduler::Lock lock(scheduler_->mutex_);
  Entry e;
  e.event = event;
  e.kind = order_only ? Kind::kWaitOrder : Kind::kWait;
  if (from == this) {
    // The order is kept anyway, but what failed before a reset stays failed.
    if (order_only || failures_.poisoned() || !failures_.at(event.sequence))
      return;
    e.kind = Kind::kPoison;
  } else if (from->completed_ >= event.sequence &&
             (order_only || !from->failures_.at(event.sequence)) &&
             from->finished_us(event.sequence) <= clock_us_) {
    return;  // over, without news
  }
  enqueue(lock, e);
}

bool SimStream::done(Event event) {
  Scheduler::Lock lock(scheduler_->mutex_);
  scheduler_->pass_waits();
  if (completed_ < event.sequence && t_inside == 0) {
    // Runs one work, so that polling makes progress.
    if (SimStream* s = scheduler_->pick()) {
      s->execute(lock);
      scheduler_->pass_waits();
    } else if (scheduler_->nobody_works()) {
      scheduler_->break_wait(*this, true);
    }
  }
  return completed_ >= event.sequence &&
         (!speed_.real_clock || finished_us(event.sequence) <= real_us());
}

void SimStream::synchronize(Event event) {
  FailureRef failure;
  double end_us = 0;
  {
    Scheduler::Lock lock(scheduler_->mutex_);
    scheduler_->run_until(lock, *this, event.sequence);
    end_us = finished_us(event.sequence);
    scheduler_->host_us_ = std::max(scheduler_->host_us_, end_us);
    failure = failures_.at(event.sequence);
    if (!failure && faults_->lost) {
      failure = std::make_shared<const Failure>(Failure{
          errors::Code::kUnavailable,
          fmt::format("{} is lost (simulated fault): what it held is gone; go "
                      "on without it",
                      device().short_name())});
    }
  }
  if (speed_.real_clock) sleep_until_us(end_us);
  if (failure) errors::raise(failure->code, failure->message);
}

void SimStream::reset_error() {
  Scheduler::Lock lock(scheduler_->mutex_);
  scheduler_->run_until(lock, *this, pushed_);
  if (!failures_.poisoned()) return;
  failures_.reset(pushed_);
  // Events recorded from now on must differ from that of the failed work.
  Entry e;
  e.kind = Kind::kWaitOrder;
  e.event = {this, pushed_};
  enqueue(lock, e);
}

double SimStream::clock_us() {
  std::lock_guard lock(scheduler_->mutex_);
  return clock_us_;
}

double SimStream::finished_us(uint64_t sequence) {
  if (sequence == 0) return 0;
  const uint64_t oldest = pushed_ - std::min<uint64_t>(pushed_, ring_.size());
  return entry(std::max(sequence - 1, oldest)).finished_us;
}

double SimStream::duration_us(const Work& work) const {
  const double bytes_per_second = link_ || work.crosses_link
                                      ? speed_.link_bytes_per_second
                                      : speed_.bytes_per_second;
  return kLaunchUs + 1e6 * std::max(work.flops / speed_.flops_per_second,
                                    work.moved_bytes / bytes_per_second);
}

void SimStream::complete(double finished_us, FailureRef failure) {
  clock_us_ = finished_us;
  head().finished_us = finished_us;
  ++completed_;
  failures_.add(completed_, std::move(failure));
  if (scheduler_->waiters_) scheduler_->progress_.notify_all();
}

FailureRef SimStream::fault_of_head() {
  // Faults that were cleared after the launch do not happen.
  if (head().fault == Fault::kLose && faults_->lose_at) faults_->lost = true;
  if (faults_->lost) {
    return make_failure(
        errors::Code::kUnavailable, device(), head().work,
        "the device is lost (simulated fault); go on without it");
  }
  if (head().fault == Fault::kHang && faults_->let_go &&
      !failures_.poisoned()) {
    return make_failure(errors::Code::kUnavailable, device(), head().work,
                        "the device hangs (simulated fault); go on without it");
  }
  if (head().fault == Fault::kFail && faults_->fail_at &&
      !failures_.poisoned()) {
    return make_failure(errors::Code::kInternal, device(), head().work,
                        "the launch failed (simulated fault)");
  }
  return nullptr;
}

void SimStream::execute(Scheduler::Lock& lock) {
  const Work work = head().work;
  const double start = std::max(clock_us_, head().issued_us);
  const double took = duration_us(work);
  FailureRef failure = fault_of_head();
  const bool run = !failure && !failures_.poisoned();
  ++t_inside;
  if (run) {
    busy_ = true;
    ++scheduler_->executing_;
    ++t_executing;
    lock.unlock();
    failure = run_work(work, *this);
    lock.lock();
    --t_executing;
    --scheduler_->executing_;
    busy_ = false;
  }
  if (work.time && run && !failure) *work.time = {start, start + took};
  // Complete before dropping: freed blocks must find their uses ended.
  complete(run ? start + took : clock_us_, std::move(failure));
  if (work.drop) {
    lock.unlock();
    work.drop(work.context);
    lock.lock();
  }
  --t_inside;
}

}  // namespace berth::sim
