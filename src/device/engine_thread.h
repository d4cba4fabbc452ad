// Threads of the engine: each belongs to one device or to the host.
//
// A new thread calls one of these first, so that it carries its owner's name
// (seen in /proc/self/task/*/comm) and may run on its owner's cores alone.
// Threads of the user's program are never renamed or bound. Thread-safe.

#ifndef BERTH_DEVICE_ENGINE_THREAD_H_
#define BERTH_DEVICE_ENGINE_THREAD_H_

#include <string>

#include "base/core_set.h"

namespace berth {

// Names the calling thread "berth/<device>" and binds it to `cores`.
void enter_device_thread(const std::string& device, const CoreSet& cores);

// Names the calling thread "berth/host" and binds it to the host's cores: the
// input pipeline and whatever else works for no device. Creates the devices.
void enter_host_thread();

// The cores of the host's threads: those of config::set_host_cores, else those
// of /CPU:0. Creates the devices.
CoreSet host_cores();

// Says what host_cores() are; by the backend that creates /CPU:0.
void set_host_thread_cores(const CoreSet& cores);

}  // namespace berth

#endif  // BERTH_DEVICE_ENGINE_THREAD_H_
