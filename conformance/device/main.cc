// device_suite: what every device must keep to.
//
//   device_suite [--device=/GPU:0] [gtest flags]
//
// /CPU:1 is a second set of workers, which this program makes.

#include <gtest/gtest.h>

#include <cstdio>
#include <exception>
#include <string>

#include "berth/config.h"
#include "conformance/device/probe_op.h"
#include "conformance/device_run.h"

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  std::string device;
  const std::string flag = "--device=";
  for (int i = 1; i < argc; ++i) {
    const std::string arg = argv[i];
    if (arg.rfind(flag, 0) != 0) {
      std::fprintf(stderr, "device_suite: '%s'; expected --device=NAME\n",
                   argv[i]);
      return 2;
    }
    device = arg.substr(flag.size());
  }
  try {
    if (device == "/CPU:1") {
      berth::config::set_logical_device_configuration(
          {"/physical_device:CPU:0", "CPU"},
          {{.workers = 1, .shared = true}, {.workers = 2, .shared = true}});
    }
    berth::conformance::register_probe();
    berth::conformance::choose_device(device);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "device_suite: %s\n", e.what());
    return 2;
  }
  return RUN_ALL_TESTS();
}
