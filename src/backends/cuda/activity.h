// Activity: when kernels and copies ran, by CUPTI, for BERTH_GPU_TRACE.
//
// The card itself records the times, so they are exact inside CUDA graphs and
// works of several kernels. libcupti.so.13 is opened only when a trace is
// requested. It is looked for where NVRTC is, and in extras/CUPTI/lib64 of the
// toolkit. Thread-safe.

#ifndef BERTH_BACKENDS_CUDA_ACTIVITY_H_
#define BERTH_BACKENDS_CUDA_ACTIVITY_H_

#include "device/stream.h"

namespace berth::cuda {

class Activity {
 public:
  // Returns the activity of this process. Null when no trace was requested or
  // there is no CUPTI; then `*why` says what the times measure instead.
  static Activity* asked(const char** why);

  virtual ~Activity() = default;
  // Until leave(), everything the calling thread submits belongs to `work`.
  virtual void enter(const Work& work, const Stream& of) = 0;
  virtual void leave() noexcept = 0;
  // Writes what the card has recorded to the trace.
  virtual void flush() noexcept = 0;
};

}  // namespace berth::cuda

#endif  // BERTH_BACKENDS_CUDA_ACTIVITY_H_
