// InlineStream: the stream of a device whose kernels run on the calling thread.
//
// launch() runs the work before it returns, so every event is done. wait() on
// an event of another device blocks the caller. Thread-safe: it has no state.

#ifndef BERTH_DEVICE_INLINE_STREAM_H_
#define BERTH_DEVICE_INLINE_STREAM_H_

#include "base/clock.h"
#include "device/stream.h"

namespace berth {

class InlineStream final : public Stream {
 public:
  using Stream::Stream;

  bool runs_inline() const override { return true; }
  void launch(const Work& work) override {
    struct Drop {
      const Work& work;
      ~Drop() {
        if (work.drop) work.drop(work.context);
      }
    } drop{work};
    const double begin = work.time ? host_clock_us() : 0;
    work.run(work.context, *this);
    if (work.time) *work.time = {begin, host_clock_us()};
  }
  Event record() override { return {}; }
  void wait(Event event) override { berth::synchronize(event); }
  void wait_for_reuse(Event event) override { finish(event); }
  bool done(Event) override { return true; }
  void synchronize(Event) override {}
};

}  // namespace berth

#endif  // BERTH_DEVICE_INLINE_STREAM_H_
