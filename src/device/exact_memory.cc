#include "device/exact_memory.h"

#include "base/environment.h"
#include "device/memory_space.h"

namespace berth {

bool exact_memory_asked() {
  static const bool asked = environment_choice("BERTH_GPU_ALLOCATOR",
                                               {"caching", "exact"}) == "exact";
  return asked;
}

bool has_exact_memory(const Device& device) {
  return !device.memory().host_addressable && exact_memory_asked();
}

}  // namespace berth
