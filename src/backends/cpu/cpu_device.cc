// /CPU:0: the cores this process may use.

#include <fmt/format.h>

#include <cstring>

#include "backends/cpu/dnnl_math.h"
#include "backends/cpu/kernels.h"
#include "backends/cpu/loops.h"
#include "backends/reference/reference.h"
#include "base/core_set.h"
#include "base/thread_pool.h"
#include "device/backend_registry.h"
#include "device/inline_stream.h"

namespace berth {

namespace {

class CpuDevice final : public Device {
 public:
  CpuDevice(DeviceName name, std::string description,
            const KernelTable* kernels, ThreadPoolOptions pool,
            size_t memory_limit_bytes)
      : Device(std::move(name), std::move(description), kernels),
        allocator_(this, host_memory_source(), memory_limit_bytes),
        stream_(this),
        pool_(std::move(pool)) {}

  bool runs_inline() const override { return true; }
  Allocator& allocator() override { return allocator_; }
  Stream& compute_stream() override { return stream_; }
  Stream& copy_stream() override { return stream_; }
  ThreadPool* pool() override { return &pool_; }
  void copy_to_host(void* target, const void* source, size_t bytes) override {
    std::memcpy(target, source, bytes);
  }
  void copy_from_host(void* target, const void* source, size_t bytes) override {
    std::memcpy(target, source, bytes);
  }

 private:
  Allocator allocator_;
  InlineStream stream_;
  ThreadPool pool_;
};

class CpuBackend final : public Backend {
 public:
  const char* name() const override { return "cpu"; }

  std::vector<std::unique_ptr<Device>> create_devices(
      const RuntimeConfig& config) override {
    config.add_user_kernels("CPU", table_);
    if (!config.cpu_reference_only) table_.append(cpu::kernels());
    table_.append(reference::kernels());
    ThreadPoolOptions options;
    options.cores = CoreSet::allowed();
    options.size = config.cpu_workers;
    options.on_start = [](int) { cpu::use_one_openmp_thread(); };
    DeviceName name{"localhost", 0, 0, "CPU", 0};
    const std::string description =
        fmt::format("{} cores: {}", options.cores.size(), options.cores.str());
    std::vector<std::unique_ptr<Device>> devices;
    devices.push_back(std::make_unique<CpuDevice>(
        std::move(name), description, &table_, std::move(options),
        config.cpu_memory_limit_bytes));
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
