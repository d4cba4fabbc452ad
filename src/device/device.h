// Device: a set of CPU cores, a GPU or a simulated accelerator.
//
// Owns its memory and its streams; knows its kernels. Devices live from the
// first device query to the end of the process. Thread-safe.

#ifndef BERTH_DEVICE_DEVICE_H_
#define BERTH_DEVICE_DEVICE_H_

#include <memory>
#include <string>

#include "device/allocator.h"
#include "device/device_name.h"
#include "device/stream.h"

namespace berth {

class KernelTable;  // op/kernel.h
class ThreadPool;   // base/thread_pool.h

// At most this many devices per process; slots index per-thread caches.
inline constexpr int kMaxDevices = 64;

class Device {
 public:
  // `name` must be complete. `description` is for people ("2 cores: 0-1").
  Device(DeviceName name, std::string description, const KernelTable* kernels)
      : name_(std::move(name)),
        full_name_(name_.str()),
        description_(std::move(description)),
        kernels_(kernels) {}
  virtual ~Device() = default;
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  const DeviceName& name() const { return name_; }
  // "/job:localhost/replica:0/task:0/device:CPU:0"
  const std::string& str() const { return full_name_; }
  // "CPU:0"
  std::string short_name() const {
    return *name_.type + ":" + std::to_string(*name_.id);
  }
  const std::string& type() const { return *name_.type; }
  const std::string& description() const { return description_; }
  int slot() const { return slot_; }
  const KernelTable& kernels() const { return *kernels_; }

  // True when kernels run on the calling thread and the host may touch the
  // device's memory.
  virtual bool runs_inline() const = 0;
  // True when the device only stands in for hardware.
  virtual bool simulated() const { return false; }
  // The time, in microseconds, at which its last finished work ended, on a
  // clock of its own; negative: it lives on the process's clock.
  virtual double clock_us() { return -1; }

  virtual Allocator& allocator() = 0;
  virtual Stream& compute_stream() = 0;
  virtual Stream& copy_stream() = 0;
  // Where a plan runs its work when this device shall compute beside others,
  // or off the caller's cores: the compute stream, or, of a device whose
  // kernels else run on the calling thread, the one of a thread on its cores.
  virtual Stream& plan_stream() { return compute_stream(); }
  // The cores that kernels may use; null when the device has none of its own.
  virtual ThreadPool* pool() { return nullptr; }

  // Copies bytes; blocks until done. `source` and `target` are ready.
  virtual void copy_to_host(void* target, const void* source, size_t bytes) = 0;
  virtual void copy_from_host(void* target, const void* source,
                              size_t bytes) = 0;

  // Clears the error of the device's streams so that they accept work again.
  virtual void reset_error() {}

 private:
  friend class DeviceManager;
  DeviceName name_;
  std::string full_name_;
  std::string description_;
  const KernelTable* kernels_;
  int slot_ = -1;
};

}  // namespace berth

#endif  // BERTH_DEVICE_DEVICE_H_
