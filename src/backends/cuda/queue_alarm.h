// QueueAlarm: something outside a queue on which its work depends.
//
// A CudaQueue that watches one checks it when it is asked whether a mark after
// it is passed. Thread-safe.

#ifndef BERTH_BACKENDS_CUDA_QUEUE_ALARM_H_
#define BERTH_BACKENDS_CUDA_QUEUE_ALARM_H_

namespace berth::cuda {

class QueueAlarm {
 public:
  virtual ~QueueAlarm() = default;
  // Throws errors::* when it failed and the queue has passed it or, if given
  // up, never will.
  virtual void check(bool passed) const = 0;
  // True when waiting for the queue is pointless.
  virtual bool given_up() const = 0;
};

}  // namespace berth::cuda

#endif  // BERTH_BACKENDS_CUDA_QUEUE_ALARM_H_
