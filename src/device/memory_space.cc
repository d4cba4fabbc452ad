#include "device/memory_space.h"

namespace berth {

bool same_memory(const Device& a, const Device& b) {
  return &a == &b || (a.type() == "CPU" && b.type() == "CPU");
}

std::string memory_of(const std::string& full_name) {
  DeviceName name = DeviceName::parse(full_name);
  if (name.type == "CPU") name.id.reset();
  return name.str();
}

}  // namespace berth
