// Device: a set of CPU cores, a GPU or a simulated accelerator.
//
// Owns its memory and its streams; knows its kernels. Devices live from the
// first device query to the end of the process. Thread-safe.

#ifndef BERTH_DEVICE_DEVICE_H_
#define BERTH_DEVICE_DEVICE_H_

#include <memory>
#include <string>

#include "device/allocator.h"
#include "device/device_id.h"
#include "device/memory_space.h"
#include "device/stream.h"

namespace berth {

class KernelTable;  // op/kernel.h
class ThreadPool;   // base/thread_pool.h

// At most this many devices per process; slots index per-thread caches.
inline constexpr int kMaxDevices = 64;

class Device {
 public:
  // `name` must be complete. `description` is for people ("2 cores: 0-1").
  Device(DeviceName name, std::string description, const KernelTable* kernels,
         const MemoryOptions& memory = {});
  virtual ~Device() = default;
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  const DeviceName& name() const { return name_; }
  // "/job:localhost/replica:0/task:0/device:CPU:0"
  const std::string& str() const { return id_.text(); }
  DeviceId id() const { return id_; }
  // "CPU:0"
  std::string short_name() const {
    return *name_.type + ":" + std::to_string(*name_.id);
  }
  const std::string& type() const { return *name_.type; }
  const std::string& description() const { return description_; }
  int slot() const { return slot_; }
  const KernelTable& kernels() const { return *kernels_; }

  // Where its tensors are, and who else reaches them.
  const MemorySpace& memory() const { return *memory_; }
  // That of its task's host.
  const MemorySpace& host_memory() const { return *host_memory_; }
  // True when its kernels run on the calling thread.
  bool runs_inline() { return compute_stream().runs_inline(); }
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

  // Where copies to the host queue.
  virtual Stream& out_stream() { return copy_stream(); }

  // Appends a copy, or the filling of `bytes` with `value`, to `stream`, one
  // of this device's. Called by what work of that stream runs, so that order
  // and errors are the work's. One end of a copy is this device's memory, the
  // other may be anybody's; what this device does not reach goes by the host.
  void copy_async(Stream& stream, const Copy& copy);
  virtual void fill_async(Stream& stream, void* target, int value,
                          size_t bytes);

  // Copies bytes between this device's memory and the host's; blocks until
  // done. `source` and `target` are ready.
  virtual void copy_to_host(void* target, const void* source, size_t bytes);
  virtual void copy_from_host(void* target, const void* source, size_t bytes);

  // Where host memory comes from that devices of its kind copy from and to
  // without staging; null: any will do. The first device that has some gives
  // the memory for all of the process (DeviceManager::pinned_pool).
  virtual std::unique_ptr<MemorySource> pinned_memory_source() {
    return nullptr;
  }

  // Clears the error of the device's streams so that they accept work again.
  virtual void reset_error() {}

 protected:
  // What copy_async asks for when this device reaches both ends. A device with
  // a memory of its own says how. Host memory that is not pinned may be used
  // for something else when it returns; what is pinned is left alone until the
  // stream has passed.
  virtual void transfer_async(Stream& stream, const Copy& copy);

 private:
  friend class DeviceManager;
  DeviceName name_;
  DeviceId id_;
  std::string description_;
  const KernelTable* kernels_;
  const MemorySpace* memory_;
  const MemorySpace* host_memory_;
  int slot_ = -1;
};

}  // namespace berth

#endif  // BERTH_DEVICE_DEVICE_H_
