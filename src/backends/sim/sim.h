// Inspects and controls simulated devices, for tests and planning.
//
// Every function throws errors::InvalidArgument for a device that is not
// simulated. Thread-safe.

#ifndef BERTH_BACKENDS_SIM_SIM_H_
#define BERTH_BACKENDS_SIM_SIM_H_

#include <cstdint>

#include "device/device.h"

namespace berth::sim {

// Returns the virtual time, in microseconds, at which the last finished work of
// the device ended. Work takes 5 us plus the time of its flops and bytes at the
// declared speeds; waits carry the time over.
double clock_us(Device& device);

// Makes the scheduler of all simulated devices pick by `seed` from now on, as
// if it had picked nothing before. 0: in launch order.
void set_seed(Device& device, uint64_t seed);

// Fills memory that the simulated devices take from the system later with NaNs
// instead of zeros.
void set_poison(Device& device, bool on);

// Returns how many bytes copies of the device have read from pinned memory.
uint64_t bytes_from_pinned(Device& device);

}  // namespace berth::sim

#endif  // BERTH_BACKENDS_SIM_SIM_H_
