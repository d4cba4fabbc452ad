#include "backends/sim/sim.h"

#include <fmt/format.h>

#include <algorithm>

#include "backends/reference/reference.h"
#include "backends/sim/faults.h"
#include "backends/sim/sim_device.h"
#include "berth/errors.h"
#include "device/backend_registry.h"

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
      case FaultRequest::Kind::kLost:
        lose_device(device, r.at);
        break;
    }
  }
}

class SimBackend final : public Backend {
 public:
  const char* name() const override { return "sim"; }

  std::vector<std::unique_ptr<Device>> create_devices(
      const RuntimeConfig& config) override {
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
    fill_table(config);
    const auto memory = std::make_shared<SimMemory>(config.simulated_gpus,
                                                    config.sim_memory_bytes);
    const auto scheduler = std::make_shared<Scheduler>(memory, config.sim_seed);
    const Speed speed{config.sim_flops_per_second, config.sim_bytes_per_second,
                      config.sim_link_bytes_per_second, config.sim_real_clock};
    for (int i = 0; i < config.simulated_gpus; ++i) {
      devices.push_back(std::make_unique<SimDevice>(
          i, &table_, memory, scheduler, config.sim_memory_bytes, speed));
    }
    apply_faults(config.sim_faults, devices);
    return devices;
  }

 private:
  void fill_table(const RuntimeConfig& config) {
    config.add_user_kernels("GPU", table_);
    table_.append(reference::kernels());
    for (const std::string& op : config.sim_missing_kernels) {
      try {
        table_.remove(op);
      } catch (const errors::Error& e) {
        throw errors::InvalidArgument(fmt::format(
            "missing kernels of the simulated devices (BERTH_SIM_MISSING): {}; "
            "expected a comma list of op names such as 'MatMul,Conv2D'",
            e.what()));
      }
    }
  }

  KernelTable table_;
};

}  // namespace

}  // namespace sim

void register_sim(BackendRegistry& registry) {
  registry.add(std::make_unique<sim::SimBackend>());
}

}  // namespace berth
