#include "device/machine_memory.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "base/fresh_process_testing.h"
#include "berth/config.h"
#include "berth/device.h"
#include "berth/errors.h"
#include "berth/ops/array.h"

namespace berth {
namespace {

using fresh_process::check;
using fresh_process::refuses;

constexpr size_t kGiB = size_t{1} << 30;

// A system of files in a folder of its own.
class FakeSystem : public ::testing::Test {
 protected:
  FakeSystem()
      : root_(::testing::TempDir() + "machine_memory_" +
              ::testing::UnitTest::GetInstance()->current_test_info()->name()) {
    std::filesystem::remove_all(root_);
    // 8 GiB.
    write("proc/meminfo", "MemTotal: 16777216 kB\nMemAvailable: 8388608 kB\n");
  }
  ~FakeSystem() override { std::filesystem::remove_all(root_); }

  void write(const std::string& file, const std::string& text) {
    const std::filesystem::path path = root_ + "/" + file;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << text;
  }
  void write(const std::string& file, size_t n) {
    write(file, std::to_string(n) + "\n");
  }

  const std::string root_;
};

TEST_F(FakeSystem, WithoutGroupsTheMachineDecides) {
  EXPECT_EQ(memory_left_bytes(root_), 8 * kGiB);
  EXPECT_EQ(memory_left_bytes(root_ + "/nowhere"), 0u);
}

TEST_F(FakeSystem, TheTightestGroupAboveTheProcessDecides) {
  write("proc/self/cgroup", "0::/pod/box\n");
  write("sys/fs/cgroup/pod/memory.max", 3 * kGiB);
  write("sys/fs/cgroup/pod/memory.current", 2 * kGiB);
  write("sys/fs/cgroup/pod/memory.stat", "anon 5\ninactive_file 1073741824\n");
  write("sys/fs/cgroup/pod/box/memory.max", "max\n");
  write("sys/fs/cgroup/pod/box/memory.current", 2 * kGiB);
  EXPECT_EQ(memory_left_bytes(root_), 2 * kGiB);  // 3 - (2 - 1 of cache)
  write("sys/fs/cgroup/pod/box/memory.max", kGiB);
  EXPECT_EQ(memory_left_bytes(root_), 0u) << "what is over has nothing left";
}

TEST_F(FakeSystem, GroupsOfTheFirstVersionCountToo) {
  write("proc/self/cgroup", "9:name=systemd:/\n4:cpu,memory:/job\n");
  write("sys/fs/cgroup/memory/job/memory.limit_in_bytes", 5 * kGiB);
  write("sys/fs/cgroup/memory/job/memory.usage_in_bytes", kGiB);
  EXPECT_EQ(memory_left_bytes(root_), 4 * kGiB);
}

TEST(MachineMemory, TheDefaultLeavesAMargin) {
  EXPECT_EQ(default_cpu_limit_bytes(0), 0u);
  EXPECT_EQ(default_cpu_limit_bytes(16 * kGiB), 15 * kGiB);
  EXPECT_EQ(default_cpu_limit_bytes(kGiB), kGiB - (128u << 20));
  EXPECT_EQ(default_cpu_limit_bytes(100 << 20), 50u << 20);
}

TEST(MachineMemory, LimitsAreReadWithTheirUnit) {
  EXPECT_EQ(parse_memory_limit("x", "12GiB"), 12 * kGiB);
  EXPECT_EQ(parse_memory_limit("x", "4096"), 4096u);
  EXPECT_EQ(parse_memory_limit("x", "none"), kNoMemoryLimit);
  EXPECT_EQ(parse_memory_limit("x", ""), 0u);
  for (const char* bad : {"12GB", "-1", "0", "GiB", "99999999TiB", "1 GiB"}) {
    EXPECT_THROW(parse_memory_limit("x", bad), errors::InvalidArgument) << bad;
  }
}

// More than any machine has.
void default_limit() {
  const size_t limit = config::get_memory_info("/CPU:0").limit_bytes;
  check(limit > 0, "there is one");
  check(limit < memory_left_bytes() + kGiB, "about what is left");
  const auto before = config::get_memory_info("/CPU:0");
  refuses<errors::ResourceExhausted>(
      [] {
        berth::ones({int64_t{1} << 20, int64_t{1} << 20});
      },
      "CPU:0 is out of memory: 4 TiB asked");
  refuses<errors::ResourceExhausted>(
      [] {
        berth::ones({int64_t{1} << 20, int64_t{1} << 20});
      },
      "BERTH_CPU_MEMORY");
  const auto after = config::get_memory_info("/CPU:0");
  check(after.reserved_bytes == before.reserved_bytes, "nothing was mapped");
  check(berth::ones({4}).num_elements() == 4, "and work goes on");
}
TEST(DefaultLimit, OfTheCpuRefusesWhatTheMachineHasNot) {
  IN_A_FRESH_PROCESS(default_limit());
}

void limit_of_environment() {
  setenv("BERTH_CPU_MEMORY", "64MiB", 1);
  check(config::get_memory_info("/CPU:0").limit_bytes == 64u << 20, "64 MiB");
  refuses<errors::ResourceExhausted>([] { berth::ones({32 << 20}); },
                                     "limit 64 MiB");
}
TEST(DefaultLimit, CanBeSetByTheEnvironment) {
  IN_A_FRESH_PROCESS(limit_of_environment());
}

void no_limit() {
  const auto cpu = config::list_physical_devices("CPU")[0];
  config::set_logical_device_configuration(cpu, {{.memory_limit_mb = -1}});
  check(config::get_logical_device_configuration(cpu)[0].memory_limit_mb == -1,
        "what was set");
  check(config::get_memory_info("/CPU:0").limit_bytes == 0, "none");
}
TEST(DefaultLimit, CanBeTakenAway) { IN_A_FRESH_PROCESS(no_limit()); }

void wrong_variable() {
  setenv("BERTH_CPU_MEMORY", "lots", 1);
  refuses<errors::InvalidArgument>([] { berth::ones({4}); },
                                   "environment variable BERTH_CPU_MEMORY is "
                                   "'lots'");
}
TEST(DefaultLimit, AWrongVariableIsANamedError) {
  IN_A_FRESH_PROCESS(wrong_variable());
}

}  // namespace
}  // namespace berth
