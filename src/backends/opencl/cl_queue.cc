#include "backends/opencl/cl_queue.h"

#include <unistd.h>

#include <chrono>
#include <mutex>
#include <set>
#include <thread>

#include "base/clock.h"
#include "base/environment.h"
#include "base/immortal.h"

namespace berth::opencl {

namespace {

cl_event event_of(gpu::Mark mark) { return static_cast<cl_event>(mark); }

// OpenCL fills with patterns of at least this many bytes.
constexpr size_t kPattern = 1;

// A driver that compiles or computes on threads of the process must be done
// before the process ends, or dies of what its libraries have taken down. Work
// that nobody waits for gets this long.
constexpr auto kLongestEnd = std::chrono::seconds(10);

struct LiveQueues {
  const pid_t process = getpid();  // a fork has no threads of the driver
  std::mutex mutex;
  std::set<cl_command_queue> all;
};
LiveQueues& live_queues() {
  static LiveQueues& live = immortal<LiveQueues>();
  return live;
}

// A member of the main thread: its thread-local objects end before what exit()
// runs, while the driver's libraries, which make statics as they go, are whole.
struct AwaitAtExit {
  ~AwaitAtExit() {
    LiveQueues& live = live_queues();
    if (gettid() != getpid() || live.process != getpid()) return;
    const std::lock_guard lock(live.mutex);
    const auto deadline = std::chrono::steady_clock::now() + kLongestEnd;
    for (const cl_command_queue queue : live.all) await(queue, deadline);
  }

  static void await(cl_command_queue queue,
                    std::chrono::steady_clock::time_point deadline) {
    cl_event event = nullptr;
    if (clEnqueueMarkerWithWaitList(queue, 0, nullptr, &event) != CL_SUCCESS) {
      return;
    }
    clFlush(queue);
    cl_int status = CL_QUEUED;
    while (clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS,
                          sizeof(status), &status, nullptr) == CL_SUCCESS &&
           status > CL_COMPLETE &&
           std::chrono::steady_clock::now() < deadline) {
      std::this_thread::sleep_for(std::chrono::microseconds(200));
    }
  }
};

void await_at_exit(cl_command_queue queue) {
  thread_local AwaitAtExit at_exit;
  static_cast<void>(at_exit);
  LiveQueues& live = live_queues();
  const std::lock_guard lock(live.mutex);
  live.all.insert(queue);
}

}  // namespace

ClQueue::ClQueue(const ClCard& card) : card_(card) {
  cl_int error = CL_SUCCESS;
  queue_ = clCreateCommandQueue(card.context(), card.device(),
                                CL_QUEUE_PROFILING_ENABLE, &error);
  check(error, "clCreateCommandQueue");
  await_at_exit(queue_);
}

ClQueue::~ClQueue() {
  {
    LiveQueues& live = live_queues();
    const std::lock_guard lock(live.mutex);
    live.all.erase(queue_);
  }
  clFinish(queue_);
  clReleaseCommandQueue(queue_);
}

void ClQueue::launch(cl_kernel kernel, const gpu::Grid& grid,
                     KernelOrder* order) {
  const size_t local[3] = {grid.items, 1, 1};
  const size_t global[3] = {size_t{grid.groups[0]} * grid.items, grid.groups[1],
                            grid.groups[2]};
  const cl_uint axes = grid.groups[2] > 1 ? 3 : grid.groups[1] > 1 ? 2 : 1;
  ++appended_;
  const auto append = [&](cl_uint waits, const cl_event* for_events,
                          cl_event* event) {
    check(clEnqueueNDRangeKernel(queue_, kernel, axes, nullptr, global, local,
                                 waits, for_events, event),
          "clEnqueueNDRangeKernel");
  };
  if (order == nullptr) return append(0, nullptr, nullptr);
  const std::lock_guard lock(order->mutex);
  const bool waits = order->last != nullptr && order->queue != this;
  cl_event event = nullptr;
  append(waits ? 1 : 0, waits ? &order->last : nullptr, &event);
  if (order->last != nullptr) clReleaseEvent(order->last);
  order->last = event;
  order->queue = this;
}

void ClQueue::copy(const Copy& copy) {
  if (copy.bytes == 0) return;
  if (list_) return list_->add_copy(copy);
  ++appended_;
  if (copy.from->host_addressable) {
    const Place to = card_.place_of(copy.target);
    check(clEnqueueWriteBuffer(queue_, to.buffer, !copy.from->pinned, to.offset,
                               copy.bytes, copy.source, 0, nullptr, nullptr),
          "clEnqueueWriteBuffer");
    return;
  }
  const Place from = card_.place_of(copy.source);
  if (copy.to->host_addressable) {
    check(
        clEnqueueReadBuffer(queue_, from.buffer, !copy.to->pinned, from.offset,
                            copy.bytes, copy.target, 0, nullptr, nullptr),
        "clEnqueueReadBuffer");
    return;
  }
  const Place to = card_.place_of(copy.target);
  check(clEnqueueCopyBuffer(queue_, from.buffer, to.buffer, from.offset,
                            to.offset, copy.bytes, 0, nullptr, nullptr),
        "clEnqueueCopyBuffer");
}

void ClQueue::fill(void* target, int value, size_t bytes) {
  if (list_) return list_->add_fill(target, value, bytes);
  const Place to = card_.place_of(target);
  const auto byte = static_cast<unsigned char>(value);
  ++appended_;
  check(clEnqueueFillBuffer(queue_, to.buffer, &byte, kPattern, to.offset,
                            bytes, 0, nullptr, nullptr),
        "clEnqueueFillBuffer");
}

gpu::Mark ClQueue::mark() {
  cl_event event = nullptr;
  const cl_int error = clEnqueueMarkerWithWaitList(queue_, 0, nullptr, &event);
  if (error == CL_SUCCESS) return event;
  clFinish(queue_);
  raise_error(error, "clEnqueueMarkerWithWaitList");
}

void ClQueue::release(gpu::Mark mark) noexcept {
  clReleaseEvent(event_of(mark));
}

bool ClQueue::passed(gpu::Mark mark) {
  cl_int status = CL_QUEUED;
  check(clGetEventInfo(event_of(mark), CL_EVENT_COMMAND_EXECUTION_STATUS,
                       sizeof(status), &status, nullptr),
        "clGetEventInfo");
  if (status < 0) raise_error(status, "the work");
  return status == CL_COMPLETE;
}

void ClQueue::await(gpu::Mark mark) {
  const cl_event event = event_of(mark);
  const cl_int error = clWaitForEvents(1, &event);
  if (error == CL_SUCCESS) return;
  passed(mark);  // throws the event's own error
  raise_error(error, "clWaitForEvents");
}

void ClQueue::follow(gpu::Mark mark) {
  const cl_event event = event_of(mark);
  ++appended_;
  check(clEnqueueBarrierWithWaitList(queue_, 1, &event, nullptr),
        "clEnqueueBarrierWithWaitList");
}

void ClQueue::measure_clock() {
  cl_event event = nullptr;
  check(clEnqueueMarkerWithWaitList(queue_, 0, nullptr, &event),
        "clEnqueueMarkerWithWaitList");
  clWaitForEvents(1, &event);
  const double now = host_clock_us();
  cl_ulong ns = 0;
  clGetEventProfilingInfo(event, CL_PROFILING_COMMAND_END, sizeof(ns), &ns,
                          nullptr);
  clReleaseEvent(event);
  clock_offset_us_ = now - static_cast<double>(ns) * 1e-3;
  clock_known_ = true;
}

double ClQueue::passed_us(gpu::Mark mark) {
  if (!clock_known_) measure_clock();
  cl_ulong ns = 0;
  const cl_int error = clGetEventProfilingInfo(
      event_of(mark), CL_PROFILING_COMMAND_END, sizeof(ns), &ns, nullptr);
  // An unknown time does not mean that the work failed.
  if (error != CL_SUCCESS) return host_clock_us();
  return static_cast<double>(ns) * 1e-3 + clock_offset_us_;
}

void ClQueue::flush() { clFlush(queue_); }

bool ClQueue::can_record() const {
  return environment_switch("BERTH_OPENCL_RECORD", false);
}

void ClQueue::begin_recording() { list_ = std::make_unique<gpu::CallList>(); }

std::unique_ptr<gpu::Recording> ClQueue::end_recording(
    std::unique_ptr<gpu::Recording> /*old*/) {
  return std::move(list_);
}

}  // namespace berth::opencl
