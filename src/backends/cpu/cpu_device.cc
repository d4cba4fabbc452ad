// /CPU:0, /CPU:1, ...: sets of the cores this process may use.

#include <fmt/format.h>

#include <cstring>

#include "backends/cpu/dnnl_math.h"
#include "backends/cpu/kernels.h"
#include "backends/cpu/loops.h"
#include "backends/reference/reference.h"
#include "base/core_set.h"
#include "base/thread_pool.h"
#include "device/backend_registry.h"
#include "device/cpu_layout.h"
#include "device/inline_stream.h"
#include "device/thread_stream.h"

namespace berth {

namespace {

// A device of its own thread runs what it is given there; /CPU:0 runs it on
// the calling thread.
class CpuDevice final : public Device {
 public:
  CpuDevice(int index, const KernelTable* kernels, const CpuLayout::Part& part,
            bool own_thread)
      : Device({"localhost", 0, 0, "CPU", index}, describe(part), kernels),
        allocator_(this, host_memory_source(), part.memory_limit_bytes),
        inline_(this),
        pool_(pool_options(part)) {
    if (!own_thread) return;
    thread_ = std::make_unique<ThreadStream>(this, stream_options(part));
  }

  bool runs_inline() const override { return thread_ == nullptr; }
  Allocator& allocator() override { return allocator_; }
  Stream& compute_stream() override {
    return thread_ ? static_cast<Stream&>(*thread_) : inline_;
  }
  Stream& copy_stream() override { return compute_stream(); }
  ThreadPool* pool() override { return &pool_; }
  void copy_to_host(void* target, const void* source, size_t bytes) override {
    std::memcpy(target, source, bytes);
  }
  void copy_from_host(void* target, const void* source, size_t bytes) override {
    // The memory may have had another owner, whose work is still queued.
    if (thread_) finish(thread_->record());
    std::memcpy(target, source, bytes);
  }
  void reset_error() override {
    if (thread_) thread_->reset_error();
  }

 private:
  static std::string describe(const CpuLayout::Part& part) {
    return fmt::format("{} core{}: {}{}", part.cores.size(),
                       part.cores.size() == 1 ? "" : "s", part.cores.str(),
                       part.shared ? ", shared" : "");
  }
  static ThreadPoolOptions pool_options(const CpuLayout::Part& part) {
    ThreadPoolOptions options;
    options.cores = part.cores;
    options.size = part.workers;
    options.shared = part.shared;
    options.on_start = [](int) { cpu::use_one_openmp_thread(); };
    return options;
  }
  // The stream's thread is worker 0 of the pool.
  static ThreadStreamOptions stream_options(const CpuLayout::Part& part) {
    const bool alone = !part.shared && part.workers <= part.cores.size();
    const CoreSet mine = alone ? CoreSet({part.cores[0]}) : part.cores;
    ThreadStreamOptions options;
    options.on_start = [mine] {
      bind_current_thread(mine);
      cpu::use_one_openmp_thread();
    };
    options.spin_us = alone ? 500 : 0;
    return options;
  }

  Allocator allocator_;
  InlineStream inline_;
  ThreadPool pool_;
  std::unique_ptr<ThreadStream> thread_;  // ends before the pool
};

class CpuBackend final : public Backend {
 public:
  const char* name() const override { return "cpu"; }

  std::vector<std::unique_ptr<Device>> create_devices(
      const RuntimeConfig& config) override {
    config.add_user_kernels("CPU", table_);
    if (!config.cpu_reference_only) table_.append(cpu::kernels());
    table_.append(reference::kernels());
    reference::add_strings(table_);
    const CpuLayout layout = lay_out_cpus(config, CoreSet::allowed());
    std::vector<std::unique_ptr<Device>> devices;
    for (const CpuLayout::Part& part : layout.devices) {
      const int index = static_cast<int>(devices.size());
      devices.push_back(
          std::make_unique<CpuDevice>(index, &table_, part, index > 0));
    }
    return devices;
  }

 private:
  KernelTable table_;
};

}  // namespace

void register_cpu(BackendRegistry& registry) {
  cpu::loops();  // throws here when BERTH_ISA asks for what there is not
  registry.add(std::make_unique<CpuBackend>());
}

}  // namespace berth
