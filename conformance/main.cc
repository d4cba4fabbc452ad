// conformance: every op case in all modes on one device.
//
//   conformance [--device=/GPU:0] [gtest flags]   test, grad, grad2, split,
//   slices conformance --mode=perf [--op=MatMul]         JSON lines conformance
//   --mode=support [--markdown]       what supports what
//
// Without --device the device is /GPU:0 when BERTH_SIM or BERTH_OPENCL=all is
// set, else /CPU:0; a device that does not exist is an error.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <exception>
#include <string>
#include <string_view>

#include "conformance/device_run.h"
#include "conformance/modes.h"

namespace {

struct Flags {
  std::string device, mode, op;
  bool markdown = false;
  std::string unknown;
};

bool take(std::string_view arg, std::string_view name, std::string* value) {
  if (!arg.starts_with(name)) return false;
  *value = arg.substr(name.size());
  return true;
}

Flags parse(int argc, char** argv) {
  Flags f;
  for (int i = 1; i < argc; ++i) {
    const std::string_view arg = argv[i];
    if (arg == "--markdown") {
      f.markdown = true;
    } else if (!take(arg, "--device=", &f.device) &&
               !take(arg, "--mode=", &f.mode) && !take(arg, "--op=", &f.op)) {
      f.unknown = arg;
    }
  }
  return f;
}

int run(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);  // takes its own flags away
  const Flags flags = parse(argc, argv);
  const bool known_mode =
      flags.mode.empty() || flags.mode == "perf" || flags.mode == "support";
  if (!flags.unknown.empty() || !known_mode) {
    fmt::print(stderr,
               "conformance: '{}' is not understood; expected --device=NAME, "
               "--mode=perf [--op=NAME], --mode=support [--markdown] or gtest "
               "flags\n",
               known_mode ? flags.unknown : "--mode=" + flags.mode);
    return 2;
  }
  berth::conformance::choose_device(flags.device);
  if (flags.mode == "perf") return berth::conformance::run_perf(flags.op);
  if (flags.mode == "support") {
    return berth::conformance::run_support(flags.markdown);
  }
  berth::conformance::register_modes();
  const int failed = RUN_ALL_TESTS();
  if (testing::UnitTest::GetInstance()->test_to_run_count() > 0 ||
      GTEST_FLAG_GET(list_tests)) {
    return failed;
  }
  fmt::print(stderr, "conformance: no test matches the filter\n");
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const std::exception& e) {
    fmt::print(stderr, "conformance: {}\n", e.what());
    return 1;
  }
}
