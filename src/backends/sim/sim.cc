#include "backends/sim/sim.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "backends/cpu/kernels.h"
#include "backends/reference/reference.h"
#include "backends/sim/faults.h"
#include "backends/sim/sim_device.h"
#include "backends/sim/translate.h"
#include "base/bytes_text.h"
#include "berth/errors.h"
#include "device/backend_registry.h"
#include "device/sim_speeds.h"

namespace berth {

namespace sim {

double clock_us(Device& device) {
  SimDevice& d = sim_device(device);
  return std::max(d.compute().clock_us(), d.copy().clock_us());
}

void set_seed(Device& device, uint64_t seed) {
  sim_device(device).scheduler().set_seed(seed);
}

void set_poison(Device& device, bool on) {
  sim_device(device).memory().set_poison(on);
}

uint64_t bytes_from_pinned(Device& device) {
  return sim_device(device).bytes_from_pinned();
}

namespace {

void apply_faults(const std::string& text,
                  const std::vector<std::unique_ptr<Device>>& devices) {
  for (const FaultRequest& r : parse_faults(text)) {
    if (static_cast<size_t>(r.device) >= devices.size()) {
      throw errors::InvalidArgument(fmt::format(
          "BERTH_SIM_FAULTS '{}' speaks of GPU:{}; expected one of the {} "
          "simulated devices",
          text, r.device, devices.size()));
    }
    Device& device = *devices[r.device];
    switch (r.kind) {
      case FaultRequest::Kind::kLaunch:
        fail_launch(device, r.at);
        break;
      case FaultRequest::Kind::kOutOfMemory:
        out_of_memory_at(device, r.at);
        break;
      case FaultRequest::Kind::kPinned:
        limit_pinned(device, r.at);
        break;
      case FaultRequest::Kind::kLost:
        lose_device(device, r.at);
        break;
      case FaultRequest::Kind::kHang:
        hang_device(device, r.at);
        break;
    }
  }
}

// A simulated GPU must have the memory that its parts need together.
void check_limits(const RuntimeConfig& config,
                  const std::vector<GpuPart>& gpus) {
  std::map<int, size_t> sums;
  for (const GpuPart& p : gpus) sums[p.physical] += p.memory_limit_bytes;
  for (const auto& [physical, sum] : sums) {
    if (sum <= config.sim_memory_bytes) continue;
    throw errors::InvalidArgument(fmt::format(
        "the logical devices of simulated GPU {} want {} together; it "
        "has {}: lower their memory limits",
        physical, bytes_text(static_cast<int64_t>(sum)),
        bytes_text(static_cast<int64_t>(config.sim_memory_bytes))));
  }
}

class SimBackend final : public Backend {
 public:
  const char* name() const override { return "sim"; }

  std::vector<FoundDevice> find_devices(const RuntimeConfig& config) override {
    const auto count = static_cast<size_t>(config.simulated_gpus);
    return std::vector<FoundDevice>(count, {"GPU", true});
  }

  std::vector<std::unique_ptr<Device>> create_devices(
      const RuntimeConfig& config, const std::vector<GpuPart>& gpus) override {
    std::vector<std::unique_ptr<Device>> devices;
    if (config.simulated_gpus == 0) return devices;
    for (const double speed :
         {config.sim_flops_per_second, config.sim_bytes_per_second,
          config.sim_link_bytes_per_second}) {
      if (speed >= 1 && speed <= 1e30) continue;
      throw errors::InvalidArgument(
          fmt::format("simulated devices of speed {} per second asked for; "
                      "expected 1 to 1e30",
                      speed));
    }
    if (gpus.empty()) return devices;
    check_limits(config, gpus);
    const auto memory = std::make_shared<SimMemory>(
        static_cast<int>(gpus.size()), config.sim_memory_bytes);
    fill_table(config, memory);
    const auto scheduler = std::make_shared<Scheduler>(memory, config.sim_seed);
    for (size_t i = 0; i < gpus.size(); ++i) {
      const double times = sim_speed(static_cast<int>(i));
      const size_t limit = gpus[i].memory_limit_bytes;
      const Speed speed{times * config.sim_flops_per_second,
                        times * config.sim_bytes_per_second,
                        config.sim_link_bytes_per_second,
                        config.sim_real_clock};
      devices.push_back(std::make_unique<SimDevice>(
          static_cast<int>(i), gpus[i].id, &table_, memory, scheduler,
          limit > 0 ? limit : config.sim_memory_bytes, speed));
      if (!gpus[i].takes_all_memory) continue;
      Device& d = *devices.back();
      const size_t all = sim_device(d).memory_bytes() / 4096 * 4096;
      BlockRef::adopt(d.allocator().allocate(all));  // kept when freed
    }
    apply_faults(config.sim_faults, devices);
    return devices;
  }

 private:
  // The kernels work on host memory; give them the accessible view.
  void fill_table(const RuntimeConfig& config,
                  const std::shared_ptr<SimMemory>& memory) {
    KernelTable all, host_only;
    if (!config.sim_reference_only) all.append(cpu::kernels());
    all.append(reference::kernels());
    reference::add_host_only(host_only);
    for (const OpDef* op : OpRegistry::get().all()) {
      // Drop ops that only the CPU has; their parts are one launch each here.
      if (reference::kernels().candidates(*op).empty() ||
          !host_only.candidates(*op).empty()) {
        all.remove(op->name());
      }
    }
    KernelTable wanted;
    config.add_user_kernels("GPU", wanted);
    wanted.append(all);
    for (const std::string& op : config.sim_missing_kernels) {
      try {
        wanted.remove(op);
      } catch (const errors::Error& e) {
        throw errors::InvalidArgument(fmt::format(
            "missing kernels of the simulated devices (BERTH_SIM_MISSING): {}; "
            "expected a comma list of op names such as 'MatMul,Conv2D'",
            e.what()));
      }
    }
    table_.append(wanted,
                  [memory](const KernelCall& call, const BoundKernel& kernel) {
                    run_translated(memory->map(), call, kernel);
                  });
  }

  KernelTable table_;
};

}  // namespace

}  // namespace sim

void register_sim(BackendRegistry& registry) {
  registry.add(std::make_unique<sim::SimBackend>());
}

}  // namespace berth
