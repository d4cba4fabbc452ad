// RemoteDevice: a device of another task, with the device interface.
//
// Its memory is addresses that must not be touched here; the task has the
// bytes. Streams post commands to the task's one command line (RemoteTask), so
// work of all its devices runs in the order in which it was launched here. Its
// kernels are those that the task reports. Made by connect(). Thread-safe.

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

// A task's report on one of its devices.
struct DeviceReport {
  std::string type;
  int id = 0;
  std::string description;
  uint64_t limit_bytes = 0;
  bool simulated = false;
  // The ops that it has kernels for, with their dtypes.
  std::vector<std::pair<std::string, DTypeSet>> kernels;
  // Its speed, as known to that task.
  double flops_per_us = 0, bytes_per_us = 0, cached_bytes_per_us = 0,
         cache_bytes = 0, launch_us = 0;
  bool measured = false;
};

class RemoteStream final : public Stream {
 public:
  RemoteStream(Device* device, RemoteTask& task)
      : Stream(device), task_(task) {}
  RemoteTask& task() const { return task_; }
  // Non-null: launched work may fail later.
  void* native() override { return &task_; }
  void launch(const Work& work) override { task_.launch(work, *this); }
  Event record() override { return {this, task_.posted()}; }
  // Waits for another task go into that task's line.
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
  // Its number in the task's report.
  size_t index() const { return index_; }
  const DeviceReport& report() const { return report_; }
  // Called after reconnecting: maps its memory again, empty.
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

// Held while related commands are posted to several tasks: all of them then get
// them in the same order, so no cyclic wait arises.
std::mutex& posting();

// "TASK/NUMBER/": identifies the runs that this process drives, as opposed to
// those of other tasks or of an earlier process of the same task.
std::string owner_name(const cluster::Member& member);

}  // namespace berth::remote

#endif  // BERTH_REMOTE_REMOTE_DEVICE_H_
