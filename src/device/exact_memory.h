// BERTH_GPU_ALLOCATOR=exact: for tools that find accesses out of bounds.
//
// Every block of a device with a memory of its own is then an allocation of
// its driver, of exactly the bytes that were asked for, and goes back to it
// when the device has done with it; so is every buffer of a plan, which else
// are parts of one arena. Slow, and of no use without such a tool
// (compute-sanitizer, Oclgrind). Any thread.

#ifndef BERTH_DEVICE_EXACT_MEMORY_H_
#define BERTH_DEVICE_EXACT_MEMORY_H_

#include "device/device.h"

namespace berth {

// True when the variable says so; it is read once. Throws
// errors::InvalidArgument when it says neither "caching" nor "exact".
bool exact_memory_asked();

// True for devices that it is true of.
bool has_exact_memory(const Device& device);

}  // namespace berth

#endif  // BERTH_DEVICE_EXACT_MEMORY_H_
