// CudaQueue: a stream of the driver; its marks are events.

#ifndef BERTH_BACKENDS_CUDA_CUDA_QUEUE_H_
#define BERTH_BACKENDS_CUDA_CUDA_QUEUE_H_

#include <deque>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "backends/cuda/activity.h"
#include "backends/cuda/cuda_card.h"
#include "backends/cuda/queue_alarm.h"
#include "backends/gpu/card.h"

namespace berth::cuda {

class CudaQueue final : public gpu::Queue {
 public:
  explicit CudaQueue(CudaCard& card);
  // Waits for everything appended.
  ~CudaQueue() override;
  CudaQueue(const CudaQueue&) = delete;
  CudaQueue& operator=(const CudaQueue&) = delete;

  void copy(const Copy& copy) override;
  void fill(void* target, int value, size_t bytes) override;
  gpu::Mark mark() override;
  void release(gpu::Mark mark) noexcept override;
  bool passed(gpu::Mark mark) override;
  void await(gpu::Mark mark) override;
  void follow(gpu::Mark mark) override;
  double passed_us(gpu::Mark mark) override;
  void enter(const Work& work, const Stream& of) override;
  void leave() noexcept override;
  void waited() noexcept override;

  // Records as graphs of the driver, unless BERTH_CUDA_GRAPHS=off.
  bool can_record() const override;
  void begin_recording() override;
  std::unique_ptr<gpu::Recording> end_recording(
      std::unique_ptr<gpu::Recording> old) override;
  void drop_recording() noexcept override;

  // Returns the stream to which a command is about to be appended.
  CUstream appending() {
    if (is_recording_) return capture_;
    ++appended_;
    return stream_;
  }
  // Makes what was appended so far depend on `alarm`. Its failure is thrown
  // once, by the first call that asks whether a mark after it is passed.
  void watch(std::shared_ptr<const QueueAlarm> alarm);

 private:
  // The target of a Mark; it is reused after its release.
  struct Point {
    CUevent event = nullptr;
    uint64_t position = 0;  // in the queue
  };

  Point* take();
  void copy_between(const Copy& copy);
  // Writes a few bytes as values inside commands; returns false for more.
  bool put(const Copy& copy);
  double measure_us(Point& point);
  void close() noexcept;
  // Checks alarms before `position`: throws failures, forgets passed ones.
  void check_alarms(uint64_t position, bool passed);
  // Returns the alarms before `position`, for waits that may be given up.
  std::vector<std::shared_ptr<const QueueAlarm>> alarms_before(
      uint64_t position);

  CudaCard& card_;
  const Driver& driver_;
  const bool ranges_;         // of NVTX
  Activity* const activity_;  // null: not traced, or no CUPTI
  CUstream stream_ = nullptr;
  // A separate stream, so that no other thread ever uses a capturing one.
  CUstream capture_ = nullptr;
  bool is_recording_ = false;
  std::deque<Point> points_;
  std::vector<Point*> spare_;
  // The clock: when this point was passed, by the host's clock.
  Point* base_ = nullptr;
  double base_us_ = 0;
  // A later point that replaces it when it is released.
  Point* next_base_ = nullptr;
  double next_base_us_ = 0;
  std::mutex alarms_mutex_;
  std::vector<std::pair<uint64_t, std::shared_ptr<const QueueAlarm>>> alarms_;
};

}  // namespace berth::cuda

#endif  // BERTH_BACKENDS_CUDA_CUDA_QUEUE_H_
