// /CPU:0, /CPU:1, ...: sets of the cores this process may use.

#include <fmt/format.h>

#include <cstring>

#include "backends/cpu/dnnl_math.h"
#include "backends/cpu/kernels.h"
#include "backends/cpu/loops.h"
#include "backends/reference/reference.h"
#include "base/core_set.h"
#include "base/environment.h"
#include "base/pretended_cores.h"
#include "base/thread_pool.h"
#include "device/backend_registry.h"
#include "device/cpu_layout.h"
#include "device/engine_thread.h"
#include "device/inline_stream.h"
#include "device/machine_memory.h"
#include "device/thread_stream.h"

namespace berth {

namespace {

// Which thread computes the work of a device.
enum class Runs : uint8_t {
  kOnCaller,  // the calling thread
  kBoth,      // the calling thread; plans may use the device's own thread
  kOnThread,  // the device's own thread
};

class CpuDevice final : public Device {
 public:
  CpuDevice(int index, const KernelTable* kernels, const CpuLayout::Part& part,
            Runs runs)
      : Device({"localhost", 0, 0, "CPU", index}, describe(part), kernels),
        allocator_(this, host_memory_source(), limit_of(part)),
        inline_(this),
        on_caller_(runs != Runs::kOnThread),
        pool_(pool_options(short_name(), part)) {
    if (part.memory_limit_bytes == 0) note_default_limit(allocator_);
    if (runs == Runs::kOnCaller) return;
    thread_ = std::make_unique<ThreadStream>(
        this, stream_options(short_name(), part));
  }

  Allocator& allocator() override { return allocator_; }
  Stream& compute_stream() override {
    return on_caller_ ? inline_ : static_cast<Stream&>(*thread_);
  }
  Stream& copy_stream() override { return compute_stream(); }
  Stream& plan_stream() override {
    return thread_ ? static_cast<Stream&>(*thread_) : inline_;
  }
  ThreadPool* pool() override { return &pool_; }
  void copy_to_host(void* target, const void* source, size_t bytes) override {
    std::memcpy(target, source, bytes);
  }
  void copy_from_host(void* target, const void* source, size_t bytes) override {
    // Work of the memory's previous owner may still be queued.
    if (!on_caller_) finish(thread_->record());
    std::memcpy(target, source, bytes);
  }
  void reset_error() override {
    if (thread_) thread_->reset_error();
  }

 private:
  static size_t limit_of(const CpuLayout::Part& part) {
    if (part.memory_limit_bytes == kNoMemoryLimit) return 0;
    if (part.memory_limit_bytes > 0) return part.memory_limit_bytes;
    return default_cpu_limit_bytes(memory_left_bytes());
  }
  static std::string describe(const CpuLayout::Part& part) {
    return fmt::format("{} core{}: {}{}", part.cores.size(),
                       part.cores.size() == 1 ? "" : "s", part.cores.str(),
                       part.shared ? ", shared" : "");
  }
  static ThreadPoolOptions pool_options(const std::string& name,
                                        const CpuLayout::Part& part) {
    ThreadPoolOptions options;
    options.cores = part.cores;
    options.size = part.workers;
    options.shared = part.shared;
    const bool alone = binds_alone(part);
    options.on_start = [name, cores = part.cores, alone](int worker) {
      enter_device_thread(name, alone ? CoreSet({cores[worker]}) : cores);
      cpu::use_one_openmp_thread();
    };
    return options;
  }
  static bool binds_alone(const CpuLayout::Part& part) {
    return !part.shared && part.workers <= part.cores.size() &&
           !pretended_cores();
  }
  // The stream's thread is worker 0 of the pool.
  static ThreadStreamOptions stream_options(const std::string& name,
                                            const CpuLayout::Part& part) {
    const bool alone = binds_alone(part);
    const CoreSet mine = alone ? CoreSet({part.cores[0]}) : part.cores;
    ThreadStreamOptions options;
    options.on_start = [name, mine] {
      enter_device_thread(name, mine);
      cpu::use_one_openmp_thread();
    };
    options.spin_us = alone ? 500 : 0;
    options.wait_spin_us = alone ? 50 : 0;
    return options;
  }

  Allocator allocator_;
  InlineStream inline_;
  const bool on_caller_;
  ThreadPool pool_;
  std::unique_ptr<ThreadStream> thread_;  // ends before the pool
};

class CpuBackend final : public Backend {
 public:
  const char* name() const override { return "cpu"; }

  std::vector<FoundDevice> find_devices(const RuntimeConfig&) override {
    return {{"CPU"}};
  }

  std::vector<std::unique_ptr<Device>> create_devices(
      const RuntimeConfig& config, const std::vector<GpuPart>&) override {
    config.add_user_kernels("CPU", table_);
    if (!config.cpu_reference_only) table_.append(cpu::kernels());
    table_.append(reference::kernels());
    reference::add_strings(table_);
    const CoreSet allowed = CoreSet::allowed();
    const CpuLayout layout = lay_out_cpus(config, allowed);
    set_host_thread_cores(layout.host.empty() ? layout.devices[0].cores
                                              : layout.host);
    // A single device that owns all cores needs no thread but the caller's.
    const bool divided =
        layout.devices.size() > 1 || !(layout.devices[0].cores == allowed);
    std::vector<std::unique_ptr<Device>> devices;
    for (const CpuLayout::Part& part : layout.devices) {
      const int index = static_cast<int>(devices.size());
      devices.push_back(std::make_unique<CpuDevice>(
          index, &table_, part,
          index > 0 ? Runs::kOnThread
                    : (divided ? Runs::kBoth : Runs::kOnCaller)));
    }
    return devices;
  }

 private:
  KernelTable table_;
};

}  // namespace

void register_cpu(BackendRegistry& registry) {
  // Nonsensical values throw here, not in the first kernel.
  cpu::loops();  // reads BERTH_ISA
  environment_switch("BERTH_WINOGRAD", true);
  registry.offer_kernels("cpu", &cpu::kernels());
  registry.add(std::make_unique<CpuBackend>());
}

}  // namespace berth
