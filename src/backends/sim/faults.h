// What may go wrong on a simulated device on request, for tests.
//
// The environment variable BERTH_SIM_FAULTS sets the same up from outside: a
// comma list of "launch=GPU:0@17" (its 17th launch fails), "oom=GPU:0@1000000"
// (a million bytes are all it has), "pin=GPU:0@1000000" (so many bytes of the
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

// Lets the n-th launch from now on (1: the next) fail with errors::Internal.
void fail_launch(Device& device, uint64_t n);

// Lets the device be lost from the n-th launch from now on: that and all later
// work fails with errors::Unavailable, and so does waiting for it.
void lose_device(Device& device, uint64_t n = 1);

// Lets the device hang from the n-th launch from now on: that and all later
// work does not begin. Who polls never sees the end; who waits without a
// deadline gets errors::Unavailable.
void hang_device(Device& device, uint64_t n = 1);

// Gives unused memory back and limits what the device reserves to `bytes`.
void out_of_memory_at(Device& device, size_t bytes);

// Lets no more than `bytes` of the host's memory be pinned, for all simulated
// devices together. What is pinned already remains.
void limit_pinned(Device& device, size_t bytes);

// Ends all faults. A lost device is there again, what hangs goes on; errors
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

// Returns the entries of `text`. Throws errors::InvalidArgument naming the
// entry that is not understood and what was expected.
std::vector<FaultRequest> parse_faults(std::string_view text);

}  // namespace berth::sim

#endif  // BERTH_BACKENDS_SIM_FAULTS_H_
