#include "device/memory_space.h"

#include <atomic>
#include <map>
#include <memory>
#include <mutex>

#include "base/immortal.h"
#include "device/device.h"

namespace berth {

namespace {

struct Spaces {
  std::mutex mutex;
  std::map<std::string, std::unique_ptr<MemorySpace>> of_hosts;
  std::vector<std::unique_ptr<MemorySpace>> own;
  std::atomic<int> next_id{0};
};

Spaces& spaces() {
  static auto& s = immortal<Spaces>();
  return s;
}

std::unique_ptr<MemorySpace> make_space(const DeviceName& name) {
  auto space = std::make_unique<MemorySpace>();
  space->id = spaces().next_id++;
  space->name = memory_of(name);
  space->task = name;
  space->task.type.reset();
  space->task.id.reset();
  return space;
}

}  // namespace

const MemorySpace* make_memory_space(const DeviceName& name,
                                     const MemoryOptions& options,
                                     Device* device) {
  Spaces& all = spaces();
  std::lock_guard lock(all.mutex);
  if (options.of_host) {
    DeviceName host = name;
    host.type = "CPU";
    auto& space = all.of_hosts[memory_of(host)];
    if (!space) space = make_space(host);
    return space.get();
  }
  auto space = make_space(name);
  space->host_addressable = false;
  space->peers = options.peers;
  space->device = device;
  return all.own.emplace_back(std::move(space)).get();
}

const MemorySpace& pinned_memory() {
  static const MemorySpace& pinned = [&]() -> const MemorySpace& {
    auto space = make_space({"localhost", 0, 0, "CPU", 0});
    space->name += "/pinned";
    space->pinned = true;
    return *space.release();
  }();
  return pinned;
}

bool same_memory(const Device& a, const Device& b) {
  return &a.memory() == &b.memory();
}

std::string memory_of(DeviceName name) {
  if (name.type == "CPU") name.id.reset();
  return name.str();
}

}  // namespace berth
