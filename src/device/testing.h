// What the tests of this module share: a host device whose streams are played
// by the test.

#ifndef BERTH_DEVICE_TESTING_H_
#define BERTH_DEVICE_TESTING_H_

#include <algorithm>
#include <memory>

#include "device/device.h"
#include "device/inline_stream.h"

namespace berth::test {

// Reaches what the test says it has reached, or what somebody waits for.
class PlayedStream final : public Stream {
 public:
  using Stream::Stream;

  void launch(const Work&) override { ++launched; }
  Event record() override { return {this, launched}; }
  void wait(Event event) override { berth::synchronize(event); }
  bool done(Event event) override { return event.sequence <= reached; }
  void synchronize(Event event) override {
    ++waited_for;
    reached = std::max(reached, event.sequence);
  }

  uint64_t launched = 0, reached = 0;
  int waited_for = 0;
};

// CPU:7, unknown to the manager: its allocator has no caches per thread.
class TestDevice final : public Device {
 public:
  explicit TestDevice(size_t limit_bytes = 0)
      : Device({"localhost", 0, 0, "CPU", 7}, "a test", nullptr),
        stream_(this),
        allocator_(this, host_memory_source(), limit_bytes) {}

  Allocator& allocator() override { return allocator_; }
  Stream& compute_stream() override { return stream_; }
  Stream& copy_stream() override { return stream_; }

 private:
  InlineStream stream_;
  Allocator allocator_;
};

}  // namespace berth::test

#endif  // BERTH_DEVICE_TESTING_H_
