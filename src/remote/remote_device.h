// RemoteDevice: a device of another task, behind the seam of devices.
//
// Memory is addresses that nobody here may touch, under which the task has the
// bytes; streams post commands to the task's one line (RemoteTask), so work of
// all its devices runs in the order in which it was launched here. Kernels are
// those that the task says it has. Made by connect(). Thread-safe.

#ifndef BERTH_REMOTE_REMOTE_DEVICE_H_
#define BERTH_REMOTE_REMOTE_DEVICE_H_

#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "device/device.h"
#include "op/kernel.h"
#include "remote/remote_task.h"

namespace berth::remote {

// What a task says of one of its devices.
struct DeviceReport {
  std::string type;
  int id = 0;
  std::string description;
  uint64_t limit_bytes = 0;
  bool simulated = false;
  // The ops that it has kernels of, with their dtypes.
  std::vector<std::pair<std::string, DTypeSet>> kernels;
  // How fast it is, as that task knows.
  double flops_per_us = 0, bytes_per_us = 0, cached_bytes_per_us = 0,
         cache_bytes = 0, launch_us = 0;
  bool measured = false;
};

class RemoteStream final : public Stream {
 public:
  RemoteStream(Device* device, RemoteTask& task)
      : Stream(device), task_(task) {}
  RemoteTask& task() const { return task_; }
  // Work that has been handed on may fail later.
  void* native() override { return &task_; }
  void launch(const Work& work) override { task_.launch(work, *this); }
  Event record() override { return {this, task_.posted()}; }
  // What is on another task has its place in that one's line.
  void wait(Event event) override;
  void wait_for_reuse(Event event) override;
  bool done(Event event) override { return task_.done(event.sequence); }
  void synchronize(Event event) override { task_.wait(event.sequence); }

 private:
  RemoteTask& task_;
};

class RemoteDevice final : public Device {
 public:
  RemoteDevice(RemoteTask& task, size_t index, const DeviceReport& report);

  RemoteTask& task() const { return task_; }
  // Its number among those that the task said.
  size_t index() const { return index_; }
  const DeviceReport& report() const { return report_; }
  // After a connection was made anew: its memory is there again, empty.
  void map_again();

  bool simulated() const override { return report_.simulated; }
  Allocator& allocator() override { return *allocator_; }
  Stream& compute_stream() override { return compute_; }
  Stream& copy_stream() override { return copy_; }
  void fill_async(Stream& stream, void* target, int value,
                  size_t bytes) override;
  void copy_to_host(void* target, const void* source, size_t bytes) override;
  void copy_from_host(void* target, const void* source, size_t bytes) override;
  void reset_error() override { task_.reset(); }

 protected:
  void transfer_async(Stream& stream, const Copy& copy) override;

 private:
  class Memory;
  static const KernelTable* make_kernels(RemoteDevice** owner,
                                         const DeviceReport& report);
  RemoteDevice(RemoteTask& task, size_t index, const DeviceReport& report,
               RemoteDevice** owner);
  std::unique_ptr<Prepared> bind(const PrepareArgs& args);
  void write(void* target, const void* source, size_t bytes);

  RemoteTask& task_;
  const size_t index_;
  const DeviceReport report_;
  std::mutex segments_mutex_;
  std::map<std::byte*, size_t> segments_;
  std::unique_ptr<Allocator> allocator_;
  RemoteStream compute_, copy_;
};

// Held while commands of one matter are posted to several tasks: all of them
// then have the matters in one order, and none waits for another in a ring.
std::mutex& posting();

// "TASK/NUMBER/": what this process drives, told from what others drive and
// from what another process of the same task drove before.
std::string owner_name(const cluster::Member& member);

}  // namespace berth::remote

#endif  // BERTH_REMOTE_REMOTE_DEVICE_H_
