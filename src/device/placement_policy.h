// The placement policy of the process, for who caches what depends on it.
// Thread-safe.

#ifndef BERTH_DEVICE_PLACEMENT_POLICY_H_
#define BERTH_DEVICE_PLACEMENT_POLICY_H_

#include <cstdint>

namespace berth {

// Another number after each change of config::placement_policy(). Cheap.
uint64_t placement_policy_generation();

}  // namespace berth

#endif  // BERTH_DEVICE_PLACEMENT_POLICY_H_
