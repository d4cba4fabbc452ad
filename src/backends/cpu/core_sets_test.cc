// Checks which cores the engine's threads may use, as the system reports.
// Devices are configured once per process, so each test has its own.

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "backends/cpu/cpu_testing.h"
#include "base/core_set.h"
#include "base/fresh_process_testing.h"
#include "berth/berth.h"
#include "berth/custom_op.h"
#include "device/device_manager.h"

namespace berth {
namespace {

using fresh_process::check;

class CoreSets : public testing::Test {
 protected:
  void SetUp() override {
    if (pretended_cores()) GTEST_SKIP() << "no thread is bound to such cores";
  }
};

#ifdef __SANITIZE_THREAD__
constexpr bool kThreadSanitizer = true;
#else
constexpr bool kThreadSanitizer = false;
#endif

struct SeenThread {
  std::string name;
  CoreSet cores;
};

// Lists the threads of this process that the engine started (all but the main
// one), from /proc/self/task.
std::vector<SeenThread> engine_threads() {
  std::vector<SeenThread> list;
  const std::string self = std::to_string(getpid());
  for (const auto& task :
       std::filesystem::directory_iterator("/proc/self/task")) {
    if (task.path().filename() == self) continue;
    std::ifstream file(task.path() / "status");
    SeenThread seen;
    for (std::string line; std::getline(file, line);) {
      const size_t tab = line.find('\t');
      if (tab == std::string::npos) continue;
      if (line.starts_with("Name:")) seen.name = line.substr(tab + 1);
      if (line.starts_with("Cpus_allowed_list:")) {
        seen.cores = CoreSet::parse(line.substr(tab + 1));
      }
    }
    if (!seen.name.empty()) list.push_back(seen);  // else it just ended
  }
  return list;
}

// Does the same once no thread has its parent's name any more; the kernel gives
// it that name until it first runs.
std::vector<SeenThread> started_threads() {
  std::string own;
  std::ifstream comm("/proc/self/comm");
  std::getline(comm, own);
  for (int i = 0;; ++i) {
    std::vector<SeenThread> seen = engine_threads();
    // ThreadSanitizer's runtime has a thread of its own.
    if (kThreadSanitizer) {
      std::erase_if(seen, [&](const SeenThread& t) { return t.name == own; });
    }
    const bool all =
        std::none_of(seen.begin(), seen.end(),
                     [&](const SeenThread& t) { return t.name == own; });
    if (all || i == 1000) return seen;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
}

// Returns the union of the cores that the threads of each name may use, taken
// while every CPU device runs a training step and a pipeline feeds it.
std::map<std::string, CoreSet> threads_under_load(bool two_devices) {
  const char* second = two_devices ? "/CPU:1" : "/CPU:0";
  const auto weights = [](const char* where) {
    return with_device(where, [] { return Variable(ones({64, 64}) * 0.01f); });
  };
  Variable a = weights("/CPU:0"), b = weights(second);
  auto step = function([&](const Tensor& x) {
    GradientTape tape;
    Tensor h, loss;
    {
      const auto on = device("/CPU:0");
      h = math::tanh(matmul(x, a));
    }
    {
      const auto on = device(second);
      loss = math::reduce_mean(math::square(matmul(h, b)));
    }
    const Tensors g = tape.gradient(loss, std::vector<Variable>{a, b});
    a.assign_sub(g[0] * 0.1f);
    b.assign_sub(g[1] * 0.1f);
    return loss;
  });
  std::vector<float> rows(64 * 64, 0.5f);
  auto pipeline =
      data::Dataset::from_tensor_slices(
          {constant(std::span<const float>(rows), {64, 64})})
          .repeat()
          .map([](const Tensors& t) { return Tensors{t[0] * 2.0f}; },
               {.num_parallel_calls = 2})
          .batch(64)
          .prefetch(2);
  std::map<std::string, CoreSet> seen;
  int steps = 0;
  for (const Tensors& batch : pipeline) {
    step(batch[0]);
    if (++steps % 10 == 0) {
      for (const SeenThread& t : started_threads()) {
        std::vector<int> all = seen[t.name].cores();
        all.insert(all.end(), t.cores.cores().begin(), t.cores.cores().end());
        seen[t.name] = CoreSet(all);
      }
    }
    if (steps == 50) break;
  }
  return seen;
}

void check_only(const std::map<std::string, CoreSet>& seen,
                const std::map<std::string, CoreSet>& expected) {
  for (const auto& [name, cores] : seen) {
    const auto it = expected.find(name);
    check(it != expected.end(),
          "thread \"" + name + "\" (cores " + cores.str() + ") has an owner");
    check(it->second == cores, "threads of " + name + " have cores \"" +
                                   it->second.str() + "\", not \"" +
                                   cores.str() + "\"");
  }
}

void two_devices_and_a_host() {
  const std::vector<CoreSet> sets = CoreSet::allowed().split(3);
  config::set_logical_device_configuration(
      kCpu, {{.cores = sets[0].str()}, {.cores = sets[1].str()}});
  config::set_host_cores(sets[2].str());
  const auto seen = threads_under_load(true);
  check(seen.contains("berth/CPU:0"), "CPU:0 has a thread");
  check(seen.contains("berth/CPU:1"), "CPU:1 has a thread");
  check(seen.contains("berth/host"), "the pipeline has threads");
  check_only(seen, {{"berth/CPU:0", sets[0]},
                    {"berth/CPU:1", sets[1]},
                    {"berth/host", sets[2]}});
}

TEST_F(CoreSets, DevicesAndHostShareNoCoreUnderLoad) {
  if (CoreSet::allowed().size() < 3) {
    GTEST_SKIP() << "three disjoint sets need three cores";
  }
  IN_A_FRESH_PROCESS(two_devices_and_a_host());
}

void two_devices() {
  config::set_device_list("CPUx2");
  const std::vector<CoreSet> sets = CoreSet::allowed().split(2);
  const auto seen = threads_under_load(true);
  check(seen.size() == 3, "both devices and the host have threads");
  check_only(seen, {{"berth/CPU:0", sets[0]},
                    {"berth/CPU:1", sets[1]},
                    {"berth/host", sets[0]}});
}

TEST_F(CoreSets, WithoutCoresOfItsOwnTheHostSharesThoseOfTheFirstDevice) {
  if (CoreSet::allowed().size() < 2) {
    GTEST_SKIP() << "two disjoint sets need two cores";
  }
  IN_A_FRESH_PROCESS(two_devices());
}

// The host's cores are taken from the only device. Its plans then leave the
// calling thread, which may run anywhere.
void one_device_and_a_host() {
  const std::vector<CoreSet> sets = CoreSet::allowed().split(2);
  config::set_host_cores(sets[1].str());
  const auto seen = threads_under_load(false);
  check(seen.size() == 2, "the device and the host have threads");
  check_only(seen, {{"berth/CPU:0", sets[0]}, {"berth/host", sets[1]}});
}

TEST_F(CoreSets, HostCoresAreTakenFromTheDevice) {
  if (CoreSet::allowed().size() < 2) {
    GTEST_SKIP() << "two disjoint sets need two cores";
  }
  IN_A_FRESH_PROCESS(one_device_and_a_host());
}

// Works on any machine, even with one core.
void shared_devices() {
  config::set_logical_device_configuration(
      kCpu, {{.workers = 2, .shared = true}, {.workers = 2, .shared = true}});
  const CoreSet all = CoreSet::allowed();
  const auto seen = threads_under_load(true);
  check(seen.size() == 3, "both devices and the host have threads");
  check_only(seen,
             {{"berth/CPU:0", all}, {"berth/CPU:1", all}, {"berth/host", all}});
}

TEST_F(CoreSets, SharedDevicesUseAllCores) {
  IN_A_FRESH_PROCESS(shared_devices());
}

CoreSet probed;  // where the last Probe ran

void register_probe() {
  register_op("Probe")
      .input("x", kFloatingTypes)
      .output("y")
      .infer(&infer_same_as_0)
      .not_differentiable();
  register_kernels("CPU", [](KernelTable& table) {
    table.direct(
        "Probe", dtype_bit(float32),
        [](const KernelCall& call) {
          probed = current_thread_cores();
          call.out[0].as<float>()[0] = call.in[0].as<float>()[0];
        },
        "test");
  });
}

// A plan of /CPU:0 alone computes on that device's cores, wherever its caller
// may run; eager ops stay on the calling thread.
void plans_leave_foreign_callers() {
  register_probe();
  const std::vector<CoreSet> sets = CoreSet::allowed().split(2);
  config::set_host_cores(sets[1].str());
  auto probe = function(
      [](const Tensor& x) { return call_op("Probe", {math::tanh(x)})[0]; });
  config::list_logical_devices();  // still has the cores of the process
  check(bind_current_thread(sets[1]), "the test can bind itself");
  probe(constant(1.0f));
  check(sets[0].contains(probed), "a plan runs on the device's cores");
  call_op("Probe", {constant(1.0f)});
  check(probed == sets[1], "an eager op runs on the caller's");
  check(bind_current_thread(sets[0]), "the test can bind itself again");
  probe(constant(1.0f));
  check(probed == sets[0], "a caller on the device's cores runs it itself");
}

TEST_F(CoreSets, APlanComputesOnItsDevicesCoresWhoeverCallsIt) {
  if (CoreSet::allowed().size() < 2) {
    GTEST_SKIP() << "a caller on other cores needs two";
  }
  IN_A_FRESH_PROCESS(plans_leave_foreign_callers());
}

}  // namespace
}  // namespace berth
