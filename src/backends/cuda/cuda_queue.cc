#include "backends/cuda/cuda_queue.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <thread>
#include <utility>

#include "backends/cuda/cuda_graph.h"
#include "backends/cuda/ranges.h"
#include "backends/gpu/gpu_device.h"
#include "base/clock.h"
#include "base/environment.h"
#include "berth/errors.h"

namespace berth::cuda {

namespace {

CUdeviceptr address(const void* p) { return reinterpret_cast<CUdeviceptr>(p); }

// Elapsed times are floats: exact to a tenth of a microsecond below this.
constexpr float kLongestMs = 1000;

// With so few words it is not worth waiting for the stream, as a copy would.
constexpr size_t kMostWords = 2;

// Returns the card whose memory a space is.
CudaCard& card_of(const MemorySpace& space, CudaCard& otherwise) {
  if (space.device == nullptr) return otherwise;
  return static_cast<CudaCard&>(
      static_cast<gpu::GpuDevice*>(space.device)->card());
}

}  // namespace

CudaQueue::CudaQueue(CudaCard& card)
    : card_(card),
      driver_(card.driver()),
      ranges_(ranges_asked()),
      activity_(Activity::asked(&timing_)) {
  traces_ = activity_ != nullptr;
  listened_ = ranges_ || traces_;
  try {
    card.call(driver_.cuStreamCreate, &stream_,
              unsigned{CU_STREAM_NON_BLOCKING});
    base_ = take();
    card.call(driver_.cuEventRecord, base_->event, stream_);
    card.call(driver_.cuEventSynchronize, base_->event);
    base_us_ = host_clock_us();
  } catch (...) {
    close();
    throw;
  }
}

CudaQueue::~CudaQueue() { close(); }

void CudaQueue::close() noexcept {
  if (stream_ == nullptr) return;
  const bool ends =
      std::none_of(alarms_.begin(), alarms_.end(),
                   [](const auto& a) { return a.second->given_up(); });
  if (!ends) return;  // it never ends: leave all to the driver
  card_.attempt(driver_.cuStreamSynchronize, stream_);
  for (const Point& p : points_) {
    card_.attempt(driver_.cuEventDestroy, p.event);
  }
  card_.attempt(driver_.cuStreamDestroy, stream_);
  if (capture_) card_.attempt(driver_.cuStreamDestroy, capture_);
}

CudaQueue::Point* CudaQueue::take() {
  if (spare_.empty()) {
    CUevent event = nullptr;
    card_.call(driver_.cuEventCreate, &event, unsigned{CU_EVENT_DEFAULT});
    points_.push_back({event});
    spare_.reserve(points_.size());
    return &points_.back();
  }
  Point* p = spare_.back();
  spare_.pop_back();
  return p;
}

void CudaQueue::copy(const Copy& copy) {
  if (copy.bytes == 0) return;
  if (!copy.from->host_addressable && !copy.to->host_addressable) {
    return copy_between(copy);
  }
  const bool comes_in = copy.from->host_addressable;
  const bool pinned = (comes_in ? copy.from : copy.to)->pinned;
  if (is_recording_ && !pinned) {
    throw errors::Unimplemented(
        "a copy from or to host memory that is not pinned cannot be recorded");
  }
  if (comes_in && !pinned && put(copy)) return;
  if (comes_in) {
    card_.call(driver_.cuMemcpyHtoDAsync, address(copy.target), copy.source,
               copy.bytes, appending());
  } else {
    card_.call(driver_.cuMemcpyDtoHAsync, copy.target, address(copy.source),
               copy.bytes, appending());
  }
  // The driver may return before it is done with memory that is not pinned.
  if (!pinned) {
    card_.call(driver_.cuStreamSynchronize, stream_);
  }
}

bool CudaQueue::put(const Copy& copy) {
  uint32_t words[kMostWords];
  const size_t count = copy.bytes / sizeof(uint32_t);
  if (copy.bytes % sizeof(uint32_t) != 0 || count > kMostWords ||
      address(copy.target) % sizeof(uint32_t) != 0) {
    return false;
  }
  std::memcpy(words, copy.source, copy.bytes);
  for (size_t i = 0; i < count; ++i) {
    card_.call(driver_.cuMemsetD32Async,
               address(copy.target) + i * sizeof(uint32_t), words[i], size_t{1},
               appending());
  }
  return true;
}

void CudaQueue::copy_between(const Copy& copy) {
  CudaCard& from = card_of(*copy.from, card_);
  CudaCard& to = card_of(*copy.to, card_);
  if (&from == &to) {
    return card_.call(driver_.cuMemcpyDtoDAsync, address(copy.target),
                      address(copy.source), copy.bytes, appending());
  }
  CudaCard& other = &from == &card_ ? to : from;
  card_.meet(other);
  card_.call(driver_.cuMemcpyPeerAsync, address(copy.target), to.context(),
             address(copy.source), from.context(), copy.bytes, appending());
}

void CudaQueue::fill(void* target, int value, size_t bytes) {
  if (bytes == 0) return;
  card_.call(driver_.cuMemsetD8Async, address(target),
             static_cast<unsigned char>(value), bytes, appending());
}

gpu::Mark CudaQueue::mark() {
  Point* point = nullptr;
  try {
    point = take();
    card_.call(driver_.cuEventRecord, point->event, stream_);
    point->position = appended_;
    return point;
  } catch (...) {
    // Without a mark nothing can tell when this work ends, so wait for it now.
    card_.attempt(driver_.cuStreamSynchronize, stream_);
    if (point != nullptr) release(point);
    throw;
  }
}

void CudaQueue::release(gpu::Mark mark) noexcept {
  if (mark == next_base_) {  // no longer in use
    std::swap(base_->event, next_base_->event);
    base_us_ = next_base_us_;
    next_base_ = nullptr;
  }
  spare_.push_back(static_cast<Point*>(mark));  // has capacity
}

bool CudaQueue::passed(gpu::Mark mark) {
  const Point& point = *static_cast<Point*>(mark);
  const CUresult error = card_.result(driver_.cuEventQuery, point.event);
  const bool passed = error != CUDA_ERROR_NOT_READY;
  // What the error is about may still run: its memory is used again next.
  if (passed && error != CUDA_SUCCESS && !is_lasting(error)) {
    card_.attempt(driver_.cuStreamSynchronize, stream_);
  }
  if (passed) card_.check(error, driver_.cuEventQuery.name);
  check_alarms(point.position, passed);
  return passed;
}

void CudaQueue::await(gpu::Mark mark) {
  const Point& point = *static_cast<Point*>(mark);
  const auto alarms = alarms_before(point.position);
  if (alarms.empty()) {
    return card_.call(driver_.cuEventSynchronize, point.event);
  }
  // The driver would wait forever for work that was given up.
  while (card_.result(driver_.cuEventQuery, point.event) ==
         CUDA_ERROR_NOT_READY) {
    if (std::any_of(alarms.begin(), alarms.end(),
                    [](const auto& a) { return a->given_up(); })) {
      return;
    }
    std::this_thread::sleep_for(std::chrono::microseconds(20));
  }
}

void CudaQueue::watch(std::shared_ptr<const QueueAlarm> alarm) {
  const std::lock_guard lock(alarms_mutex_);
  alarms_.emplace_back(appended_, std::move(alarm));
}

std::vector<std::shared_ptr<const QueueAlarm>> CudaQueue::alarms_before(
    uint64_t position) {
  std::vector<std::shared_ptr<const QueueAlarm>> found;
  const std::lock_guard lock(alarms_mutex_);
  for (const auto& [at, alarm] : alarms_) {
    if (at <= position) found.push_back(alarm);
  }
  return found;
}

void CudaQueue::check_alarms(uint64_t position, bool passed) {
  const std::lock_guard lock(alarms_mutex_);
  for (size_t i = 0; i < alarms_.size();) {
    if (alarms_[i].first > position) {
      ++i;
      continue;
    }
    const auto alarm = alarms_[i].second;
    // One that was given up blocks everything after it.
    if (passed && !alarm->given_up()) {
      alarms_.erase(alarms_.begin() + static_cast<std::ptrdiff_t>(i));
    } else {
      ++i;
    }
    alarm->check(passed);
  }
}

void CudaQueue::follow(gpu::Mark mark) {
  card_.call(driver_.cuStreamWaitEvent, appending(),
             static_cast<Point*>(mark)->event, 0u);
}

bool CudaQueue::can_record() const {
  return environment_choice("BERTH_CUDA_GRAPHS", {"on", "off"}) == "on";
}

void CudaQueue::begin_recording() {
  if (capture_ == nullptr) {
    card_.call(driver_.cuStreamCreate, &capture_,
               unsigned{CU_STREAM_NON_BLOCKING});
  }
  // Calls of other threads neither disturb it nor are disturbed by it.
  card_.call(driver_.cuStreamBeginCapture, capture_,
             CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
  is_recording_ = true;
}

std::unique_ptr<gpu::Recording> CudaQueue::end_recording(
    std::unique_ptr<gpu::Recording> old) {
  is_recording_ = false;
  CUgraph captured = nullptr;
  try {
    card_.call(driver_.cuStreamEndCapture, capture_, &captured);
  } catch (...) {
    // The thread must stop capturing, whatever became of the card.
    drop_recording();
    throw;
  }
  return make_graph(card_, captured, std::move(old));
}

void CudaQueue::drop_recording() noexcept {
  is_recording_ = false;
  CUgraph captured = nullptr;
  card_.attempt(driver_.cuStreamEndCapture, capture_, &captured);
  if (captured) card_.attempt(driver_.cuGraphDestroy, captured);
}

void CudaQueue::enter(const Work& work, const Stream& of) {
  if (ranges_) begin_range(work.what);
  if (activity_ != nullptr) activity_->enter(work, of);
}

void CudaQueue::leave() noexcept {
  if (activity_ != nullptr) activity_->leave();
  if (ranges_) end_range();
}

void CudaQueue::waited() noexcept {
  if (activity_ != nullptr) activity_->flush();
}

double CudaQueue::measure_us(Point& point) {
  float ms = 0;
  card_.call(driver_.cuEventElapsedTime, &ms, base_->event, point.event);
  const double at = base_us_ + double{ms} * 1e3;
  if (ms > kLongestMs) {
    next_base_ = &point;
    next_base_us_ = at;
  }
  return at;
}

double CudaQueue::passed_us(gpu::Mark mark) {
  const double now = host_clock_us();
  try {
    return std::min(now, measure_us(*static_cast<Point*>(mark)));
  } catch (const errors::Error&) {
    return now;  // an unknown time is not a failure
  }
}

}  // namespace berth::cuda
