// MemorySpace: where bytes are, and who reaches them.
//
// Every device computes in one memory space; the CPU devices of a task share
// the host's. Code asks the space where bytes are, never the type of a device.
// Immutable once its device exists; lives as long as the process.

#ifndef BERTH_DEVICE_MEMORY_SPACE_H_
#define BERTH_DEVICE_MEMORY_SPACE_H_

#include <cstddef>
#include <string>

#include "device/device_id.h"

namespace berth {

class Device;

struct MemorySpace {
  int id = 0;                    // unique in the process
  std::string name;              // see memory_of
  DeviceName task;               // job, replica and task
  bool host_addressable = true;  // threads of the process may touch it
  bool pinned = false;           // the host's, and never paged out
  int peers = 0;  // spaces of one number but 0 copy to each other directly
  Device* device = nullptr;  // who copies to and from it; null: any thread

  // True when the device that computes here can copy from and to `other`.
  bool reaches(const MemorySpace& other) const {
    return this == &other || other.host_addressable ||
           (peers != 0 && peers == other.peers);
  }
};

// What a device says of its memory.
struct MemoryOptions {
  bool of_host = true;  // false: it has a memory of its own
  int peers = 0;
};

// Makes the space of a device: the host's of its task, or one of its own.
const MemorySpace* make_memory_space(const DeviceName& name,
                                     const MemoryOptions& options,
                                     Device* device);

// The space of pinned host memory of this process.
const MemorySpace& pinned_memory();

// True when each can compute on what the other has.
bool same_memory(const Device& a, const Device& b);

// Returns a name that two devices share when they have one memory: CPU devices
// of one task do, every other has its own.
std::string memory_of(DeviceName name);
inline std::string memory_of(DeviceId device) {
  return memory_of(device.name());
}

// One copy of `bytes`: each end is an address and the space it lies in.
struct Copy {
  void* target = nullptr;
  const MemorySpace* to = nullptr;
  const void* source = nullptr;
  const MemorySpace* from = nullptr;
  size_t bytes = 0;
};

}  // namespace berth

#endif  // BERTH_DEVICE_MEMORY_SPACE_H_
