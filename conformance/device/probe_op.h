// Probe: an op that copies its input and notes where its kernel ran.

#ifndef BERTH_CONFORMANCE_DEVICE_PROBE_OP_H_
#define BERTH_CONFORMANCE_DEVICE_PROBE_OP_H_

#include <atomic>

#include "device/stream.h"

namespace berth::conformance {

// Registers the op and its kernel for every type of device. Before devices
// exist.
void register_probe();

// The stream that the last call was work of.
extern std::atomic<Stream*> g_probed;

}  // namespace berth::conformance

#endif  // BERTH_CONFORMANCE_DEVICE_PROBE_OP_H_
