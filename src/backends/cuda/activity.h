// Activity: when kernels and copies ran, by CUPTI, for BERTH_GPU_TRACE.
//
// The card notes the times itself, so that they are exact inside of CUDA graphs
// and of works of several kernels. libcupti.so.13 is opened when a trace is
// asked for, and at no other time; it is looked for where NVRTC is, and in
// extras/CUPTI/lib64 of the toolkit. Thread-safe.

#ifndef BERTH_BACKENDS_CUDA_ACTIVITY_H_
#define BERTH_BACKENDS_CUDA_ACTIVITY_H_

#include "device/stream.h"

namespace berth::cuda {

class Activity {
 public:
  // That of this process; null when nobody asked for a trace, or there is no
  // CUPTI: then `*why` says what times are of instead.
  static Activity* asked(const char** why);

  virtual ~Activity() = default;
  // What the calling thread gives the driver until leave() belongs to `work`.
  virtual void enter(const Work& work, const Stream& of) = 0;
  virtual void leave() noexcept = 0;
  // Puts what the card has noted into the trace.
  virtual void flush() noexcept = 0;
};

}  // namespace berth::cuda

#endif  // BERTH_BACKENDS_CUDA_ACTIVITY_H_
