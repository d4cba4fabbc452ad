// tf.config's rules for devices. Each test runs in a process of its own, since
// devices are configured once.

#include <gtest/gtest.h>

#include "base/fresh_process_testing.h"
#include "berth/config.h"
#include "berth/errors.h"
#include "device/device_manager.h"

namespace berth {
namespace {

using config::PhysicalDevice;

using fresh_process::check;
using fresh_process::refuses;

config::DeviceList<PhysicalDevice> three_gpus() {
  config::set_simulated_devices("GPUx3");
  return config::list_physical_devices("GPU");
}

void lists_without_creating() {
  const auto gpus = three_gpus();
  check(gpus.size() == 3, "three GPUs");
  check(gpus[2].name == "/physical_device:GPU:2" && gpus[2].simulated,
        "GPU:2 is simulated");
  check(config::list_physical_devices().size() == 4, "and the CPU");
  check(!DeviceManager::initialised(), "no device was created");
}
TEST(Config, PhysicalDevicesAreListedWithoutCreatingAny) {
  IN_A_FRESH_PROCESS(lists_without_creating());
}

void indices_are_checked() {
  const auto gpus = three_gpus();
  refuses<errors::OutOfRange>([&] { (void)gpus[3]; }, "an index below 3");
  config::set_visible_devices({}, "GPU");
  refuses<errors::OutOfRange>(
      [&] { (void)config::get_visible_devices("GPU")[0]; },
      "there is no such device");
  refuses<errors::OutOfRange>(
      [&] { config::list_logical_devices("GPU").at(0); },
      "there is no such device");
}
TEST(Config, AnIndexOfADeviceThatIsNotThereIsANamedError) {
  IN_A_FRESH_PROCESS(indices_are_checked());
}

void visibility() {
  const auto gpus = three_gpus();
  config::set_visible_devices({gpus[2], gpus[0]}, "GPU");
  check(config::get_visible_devices("GPU") ==
            std::vector<PhysicalDevice>{gpus[2], gpus[0]},
        "what was set");
  check(config::list_logical_devices("GPU").size() == 2, "two devices");
  config::set_visible_devices({gpus[2], gpus[0]}, "GPU");  // nothing new
  refuses<errors::FailedPrecondition>(
      [&] { config::set_visible_devices({gpus[1]}, "GPU"); },
      "config_devices_test.cc");
}
TEST(Config, VisibleDevicesAreFixedOnceDevicesExistUnlessNothingChanges) {
  IN_A_FRESH_PROCESS(visibility());
}

void visibility_refusals() {
  const auto gpus = three_gpus();
  refuses<errors::InvalidArgument>(
      [&] {
        config::set_visible_devices({gpus[0], gpus[0]}, "GPU");
      },
      "listed twice");
  refuses<errors::InvalidArgument>(
      [] {
        config::set_visible_devices({{"/physical_device:GPU:7", "GPU"}}, "GPU");
      },
      "unrecognized device '/physical_device:GPU:7'");
  refuses<errors::InvalidArgument>(
      [&] { config::set_visible_devices({gpus[0]}); }, "hides the CPU");
  refuses<errors::InvalidArgument>([] { config::list_physical_devices("TPU"); },
                                   "'TPU'");
  check(config::get_visible_devices("TPU").empty(), "no TPU is visible");
}
TEST(Config, VisibleDevicesMustExistAndKeepTheCpu) {
  IN_A_FRESH_PROCESS(visibility_refusals());
}

void memory_growth() {
  const auto gpus = three_gpus();
  const auto cpu = config::list_physical_devices("CPU")[0];
  check(config::get_memory_growth(gpus[0]), "memory grows by default");
  refuses<errors::InvalidArgument>(
      [&] { config::set_memory_growth(cpu, true); }, "is not a GPU");
  config::set_memory_growth(gpus[0], false);
  check(!config::get_memory_growth(gpus[0]), "what was set");
  refuses<errors::InvalidArgument>([] { config::list_logical_devices(); },
                                   "the same for all");
  config::set_memory_growth(gpus[1], false);
  config::set_memory_growth(gpus[2], false);
  const auto info = config::get_memory_info("/GPU:1");
  check(info.reserved_bytes >= info.limit_bytes / 4096 * 4096,
        "all is taken at the start");
  check(info.current_bytes == 0, "but not in use");
}
TEST(Config, MemoryGrowthIsEqualOnAllGpus) {
  IN_A_FRESH_PROCESS(memory_growth());
}

void growth_then_parts() {
  config::set_simulated_devices("GPU");
  const auto gpu = config::list_physical_devices("GPU")[0];
  config::set_memory_growth(gpu, false);
  config::set_logical_device_configuration(
      gpu, {{.memory_limit_mb = 64}, {.memory_limit_mb = 64}});
  check(config::get_memory_growth(gpu), "the parts have limits instead");
  check(config::list_logical_devices("GPU").size() == 2, "two parts");
  check(config::get_memory_info("/GPU:0").reserved_bytes == 0,
        "nothing is taken at the start");
}
TEST(Config, LogicalDevicesWinOverAnEarlierMemoryGrowth) {
  IN_A_FRESH_PROCESS(growth_then_parts());
}

void logical_gpus() {
  const auto gpus = three_gpus();
  refuses<errors::InvalidArgument>(
      [&] {
        config::set_logical_device_configuration(gpus[0], {{}, {}});
      },
      "no memory limit");
  refuses<errors::InvalidArgument>(
      [&] { config::set_logical_device_configuration(gpus[0], {}); },
      "0 logical devices");
  config::experimental::set_virtual_device_configuration(
      gpus[0], {{.memory_limit_mb = 64}, {.memory_limit_mb = 128}});
  refuses<errors::InvalidArgument>(
      [&] { config::set_memory_growth(gpus[0], true); }, "logical devices");
  check(config::get_logical_device_configuration(gpus[0])[1].memory_limit_mb ==
            128,
        "what was set");
  check(config::list_logical_devices("GPU").size() == 4, "2 + 1 + 1 GPUs");
  check(config::get_memory_info("/GPU:1").limit_bytes == size_t{128} << 20,
        "the limit holds for GPU:1");
  refuses<errors::FailedPrecondition>(
      [&] {
        config::set_logical_device_configuration(gpus[1],
                                                 {{.memory_limit_mb = 64}});
      },
      "config::set_logical_device_configuration");
}
TEST(Config, AGpuIsCutIntoLogicalOnesByMemoryLimits) {
  IN_A_FRESH_PROCESS(logical_gpus());
}

void device_list() {
  refuses<errors::InvalidArgument>([] { config::set_device_list("TPUx2"); },
                                   "TPU");
  refuses<errors::InvalidArgument>([] { config::set_device_list("GPU[0]"); },
                                   "with cores");
  refuses<errors::InvalidArgument>([] { config::set_device_list("CPU[9999]"); },
                                   "9999");
  config::set_device_list("CPU,GPUx2");
  check(config::list_logical_devices("GPU").size() == 2, "two GPUs");
  check(config::list_logical_devices("CPU").size() == 1, "one CPU");
}
TEST(Config, ADeviceListConfiguresEverything) {
  IN_A_FRESH_PROCESS(device_list());
}

}  // namespace
}  // namespace berth
