#include "device/runtime_config.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "base/errors_testing.h"
#include "berth/config.h"
#include "berth/errors.h"
#include "device/device_manager.h"

namespace berth {
namespace {

// An environment variable for the length of a block.
class Setting {
 public:
  Setting(const char* name, const char* value) : name_(name) {
    if (const char* old = std::getenv(name)) old_ = old, was_set_ = true;
    setenv(name, value, 1);
  }
  ~Setting() { was_set_ ? setenv(name_, old_.c_str(), 1) : unsetenv(name_); }

 private:
  const char* name_;
  std::string old_;
  bool was_set_ = false;
};

TEST(DeviceList, SaysHowManyDevicesAnEntryMayAskFor) {
  EXPECT_EQ(parse_device_list("GPUx60")[0].count, 60);
  for (const char* text : {"GPUx61", "CPU,GPUx99999999999999999999"}) {
    try {
      parse_device_list(text);
      ADD_FAILURE() << text;
    } catch (const errors::InvalidArgument& e) {
      EXPECT_NE(std::string(e.what()).find("at most 60"), std::string::npos)
          << e.what();
    }
  }
  EXPECT_THROW(parse_device_list("GPUx-1"), errors::InvalidArgument);
}

TEST(DeviceList, ReadsItsFourForms) {
  const auto list = parse_device_list("CPUx2, gpux3 ,CPU[0],CPU[1-3,5],GPU");
  ASSERT_EQ(list.size(), 5u);
  EXPECT_EQ(list[0].type, "CPU");
  EXPECT_EQ(list[0].count, 2);
  EXPECT_EQ(list[1].type, "GPU");
  EXPECT_EQ(list[1].count, 3);
  EXPECT_EQ(list[2].cores, "0");
  EXPECT_EQ(list[2].count, 1);
  EXPECT_EQ(list[3].cores, "1-3,5");
  EXPECT_EQ(list[4].type, "GPU");
  EXPECT_EQ(list[4].count, 1);
  EXPECT_TRUE(parse_device_list("").empty());
}

TEST(DeviceList, RefusesTheRestNamingTheEntry) {
  for (const char* bad :
       {"CPUx",     "CPUx0",    "GPUx0", "CPUx-1", "CPUx1.5", "CPUx99999999999",
        "CPUx61",   "CPU2",     "CPU[",  "CPU[]",  "CPU[0",   "CPU]0[",
        "CPU[0]x2", "CPUx2[0]", "x2",    "[0]",    ",",       "CPU,,GPU",
        "CPU,",     "/GPU:0",   "CPU x2"}) {
    const std::string m =
        message_of<errors::InvalidArgument>([&] { parse_device_list(bad); });
    EXPECT_TRUE(says(m, "is not understood")) << " for " << bad;
    EXPECT_TRUE(says(m, bad));
    EXPECT_TRUE(says(m, "at least 1 and at most 60 devices each"));
  }
}

TEST(RuntimeConfig, ReadsTheEnvironment) {
  const Setting sim("BERTH_SIM", "GPUx2,GPU");
  const Setting seed("BERTH_SIM_SEED", "7");
  const Setting missing("BERTH_SIM_MISSING", "MatMul,,Floor");
  const Setting workers("BERTH_CPU_WORKERS", "3");
  const Setting kernels("BERTH_CPU_KERNELS", "reference");
  const Setting loops("BERTH_SIM_KERNELS", "reference");
  const RuntimeConfig c = runtime_config_from_environment();
  EXPECT_EQ(c.simulated_gpus, 3);
  EXPECT_EQ(c.sim_seed, 7u);
  EXPECT_EQ(c.sim_missing_kernels,
            (std::vector<std::string>{"MatMul", "Floor"}));
  EXPECT_EQ(c.cpu_workers, 3);
  EXPECT_TRUE(c.cpu_reference_only);
  EXPECT_TRUE(c.sim_reference_only);
}

TEST(RuntimeConfig, RefusesABadEnvironmentNamingTheVariable) {
  const std::pair<const char*, const char*> kBad[] = {
      {"BERTH_SIM", "CPUx2"},        {"BERTH_SIM", "two"},
      {"BERTH_SIM", "GPUx0"},        {"BERTH_SIM_SEED", "-1"},
      {"BERTH_SIM_SEED", "1e3"},     {"BERTH_SIM_CLOCK", "fast"},
      {"BERTH_CPU_WORKERS", "33"},   {"BERTH_CPU_WORKERS", "-1"},
      {"BERTH_CPU_WORKERS", "two"},  {"BERTH_CPU_KERNELS", "some"},
      {"BERTH_SIM_KERNELS", "some"},
  };
  for (const auto& [name, value] : kBad) {
    const Setting setting(name, value);
    const std::string m = message_of<errors::InvalidArgument>(
        [] { runtime_config_from_environment(); });
    EXPECT_TRUE(says(m, value)) << " for " << name;
    EXPECT_TRUE(says(m, name));
  }
}

TEST(Config, AfterTheDevicesExistTheErrorNamesTheCallAndItsLine) {
  DeviceManager::get();
  const std::string m = message_of<errors::FailedPrecondition>(
      [] { config::set_simulated_devices("GPUx1"); });
  EXPECT_TRUE(says(m, "config::set_simulated_devices"));
  EXPECT_TRUE(says(m, "runtime_config_test.cc:"));
  EXPECT_TRUE(says(m, "start of main"));
  const std::string n = message_of<errors::FailedPrecondition>(
      [] { config::set_intra_op_parallelism_threads(2); });
  EXPECT_TRUE(says(n, "config::set_intra_op_parallelism_threads"));
}

TEST(Config, RefusesValuesThatMeanNothing) {
  EXPECT_TRUE(says(message_of<errors::InvalidArgument>(
                       [] { config::set_simulated_devices("CPUx2"); }),
                   "only accelerators can be simulated"));
  EXPECT_TRUE(says(message_of<errors::InvalidArgument>(
                       [] { config::set_intra_op_parallelism_threads(33); }),
                   "33 threads"));
  EXPECT_TRUE(says(message_of<errors::InvalidArgument>(
                       [] { config::get_memory_info("/GPU:9"); }),
                   "no device matches '/device:GPU:9'; expected one of CPU:0"));
}

}  // namespace
}  // namespace berth
