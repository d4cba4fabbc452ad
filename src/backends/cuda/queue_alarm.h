// QueueAlarm: what work of a queue depends on that is not the queue's own.
//
// A CudaQueue that was told of it asks when it is asked itself whether it has
// passed a mark behind it. Thread-safe.

#ifndef BERTH_BACKENDS_CUDA_QUEUE_ALARM_H_
#define BERTH_BACKENDS_CUDA_QUEUE_ALARM_H_

namespace berth::cuda {

class QueueAlarm {
 public:
  virtual ~QueueAlarm() = default;
  // Throws errors::* when it failed, and the queue has passed it or, given
  // up, never will.
  virtual void check(bool passed) const = 0;
  // True when nobody should wait for the queue any more.
  virtual bool given_up() const = 0;
};

}  // namespace berth::cuda

#endif  // BERTH_BACKENDS_CUDA_QUEUE_ALARM_H_
