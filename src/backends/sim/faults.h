// Faults of a simulated device on request, for tests.
//
// The environment variable BERTH_SIM_FAULTS requests the same from outside: a
// comma list of "launch=GPU:0@17" (its 17th launch fails), "oom=GPU:0@1000000"
// (it has a million bytes in all), "pin=GPU:0@1000000" (so many bytes of the
// host's memory can be pinned, for all devices together), "lost=GPU:1@20" (lost
// from its 20th launch on) and "hang=GPU:1@20". Launches of the compute and the
// copy stream count together. Thread-safe.

#ifndef BERTH_BACKENDS_SIM_FAULTS_H_
#define BERTH_BACKENDS_SIM_FAULTS_H_

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "device/device.h"

namespace berth::sim {

// Makes the n-th launch from now on (1: the next) fail with errors::Internal.
void fail_launch(Device& device, uint64_t n);

// Loses the device at the n-th launch from now on: that and all later work
// fails with errors::Unavailable, and so does waiting for it.
void lose_device(Device& device, uint64_t n = 1);

// Hangs the device from the n-th launch from now on: that and all later work
// does not begin. Polling never sees the end; waiting without a deadline throws
// errors::Unavailable.
void hang_device(Device& device, uint64_t n = 1);

// Frees unused memory and limits what the device reserves to `bytes`.
void out_of_memory_at(Device& device, size_t bytes);

// Limits pinned host memory to `bytes`, for all simulated devices together.
// Memory that is already pinned stays pinned.
void limit_pinned(Device& device, size_t bytes);

// Ends all faults. A lost device is back and a hanging one goes on; errors
// remain until Device::reset_error.
void clear_faults(Device& device);

// One entry of BERTH_SIM_FAULTS.
struct FaultRequest {
  enum class Kind {
    kLaunch,
    kOutOfMemory,
    kPinned,
    kLost,
    kHang
  } kind = Kind::kLaunch;
  int device = 0;
  uint64_t at = 0;
};

// Returns the entries of `text`. Throws errors::InvalidArgument naming an entry
// that cannot be parsed and what was expected.
std::vector<FaultRequest> parse_faults(std::string_view text);

}  // namespace berth::sim

#endif  // BERTH_BACKENDS_SIM_FAULTS_H_
