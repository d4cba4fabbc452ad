// Which devices have one memory. Pure functions.

#ifndef BERTH_DEVICE_MEMORY_SPACE_H_
#define BERTH_DEVICE_MEMORY_SPACE_H_

#include <string>

#include "device/device.h"

namespace berth {

// True when each can compute on what the other has: CPU devices of one
// process, or the same device.
bool same_memory(const Device& a, const Device& b);

// Returns a name that two devices share when they have one memory: CPU devices
// of one task do, every other has its own.
std::string memory_of(const std::string& full_name);

}  // namespace berth

#endif  // BERTH_DEVICE_MEMORY_SPACE_H_
