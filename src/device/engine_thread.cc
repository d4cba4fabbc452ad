#include "device/engine_thread.h"

#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <mutex>

#include "base/immortal.h"
#include "berth/config.h"
#include "device/device_manager.h"

namespace berth {

namespace {

constexpr size_t kLongestName = 15;  // Linux

std::mutex& host_mutex() {
  static std::mutex m;
  return m;
}
CoreSet& host_set() {
  static auto& cores = immortal<CoreSet>();
  return cores;
}

void name_current_thread(std::string name) {
  if (name.size() > kLongestName) name.resize(kLongestName);
  pthread_setname_np(pthread_self(), name.c_str());
}

}  // namespace

void enter_device_thread(const std::string& device, const CoreSet& cores) {
  name_current_thread("berth/" + device);
  bind_current_thread(cores);
}

void enter_host_thread() {
  name_current_thread("berth/host");
  bind_current_thread(host_cores());
}

CoreSet host_cores() {
  DeviceManager::get();
  std::lock_guard lock(host_mutex());
  return host_set();
}

void set_host_thread_cores(const CoreSet& cores) {
  std::lock_guard lock(host_mutex());
  host_set() = cores;
}

namespace {
std::atomic<size_t> g_host_memory{0};
}

namespace config {

void set_host_memory_budget(size_t bytes) { g_host_memory = bytes; }

size_t get_host_memory_budget() {
  const size_t bytes = g_host_memory;
  if (bytes > 0) return bytes;
  return static_cast<size_t>(sysconf(_SC_PHYS_PAGES)) *
         static_cast<size_t>(sysconf(_SC_PAGESIZE)) / 4;
}

}  // namespace config

}  // namespace berth
