// Configuration that comes too late, thread counts, names and memory limits.
// Each test runs in a process of its own, since devices are configured once.

#include <gtest/gtest.h>

#include <thread>

#include "base/fresh_process_testing.h"
#include "berth/berth.h"

namespace berth {
namespace {

using config::PhysicalDevice;
using fresh_process::check;
using fresh_process::refuses;

// Every call that must come before the devices are made is refused, with the
// call that made them.
void all_refused(const std::string& creator) {
  const PhysicalDevice cpu = config::list_physical_devices("CPU")[0];
  const std::pair<const char*, std::function<void()>> kCalls[] = {
      {"config::set_simulated_devices",
       [] { config::set_simulated_devices("GPUx3"); }},
      {"config::set_visible_devices",
       [] { config::set_visible_devices({}, "GPU"); }},
      {"config::set_memory_growth",
       [] {
         config::set_memory_growth(config::list_physical_devices("GPU")[0],
                                   true);
       }},
      {"config::set_logical_device_configuration",
       [&] {
         config::set_logical_device_configuration(
             cpu,
             {{.workers = 1, .shared = true}, {.workers = 1, .shared = true}});
       }},
      {"config::set_device_list", [] { config::set_device_list("CPU"); }},
      {"config::set_host_cores", [] { config::set_host_cores(""); }},
      {"config::set_intra_op_parallelism_threads",
       [] { config::set_intra_op_parallelism_threads(1); }},
      {"config::set_inter_op_parallelism_threads",
       [] { config::threading::set_inter_op_parallelism_threads(1); }},
  };
  for (const auto& [name, call] : kCalls) {
    const std::string start = std::string(name) + " at config_late_test.cc:";
    refuses<errors::FailedPrecondition>(call, start);
    refuses<errors::FailedPrecondition>(
        call, "came too late: the devices were created by " + creator);
  }
}

// "<what> at config_late_test.cc:<line>".
std::string here(const char* what, int line) {
  return std::string(what) + " at config_late_test.cc:" + std::to_string(line);
}

void after_a_constant() {
  config::set_simulated_devices("GPUx2");
  const int line = __LINE__ + 1;
  const Tensor x = constant({1.f});
  all_refused(here("constant()", line));
}
TEST(LateConfig, NamesTheConstantThatCreatedTheDevices) {
  IN_A_FRESH_PROCESS(after_a_constant());
}

// Cores that no machine has: what is wrong is the time, which comes first.
void impossible_and_late() {
  const PhysicalDevice cpu = config::list_physical_devices("CPU")[0];
  constant({1.f});
  const std::pair<const char*, std::function<void()>> kCalls[] = {
      {"set_logical_device_configuration",
       [&] {
         config::set_logical_device_configuration(cpu, {{.cores = "9000"}});
       }},
      {"set_device_list", [] { config::set_device_list("CPU[9000]"); }},
      {"set_host_cores", [] { config::set_host_cores("9000"); }},
  };
  for (const auto& [name, call] : kCalls) {
    refuses<errors::FailedPrecondition>(call, std::string(name));
    refuses<errors::FailedPrecondition>(call, "came too late");
  }
}
TEST(LateConfig, IsSaidBeforeCoresThatAreNotThere) {
  IN_A_FRESH_PROCESS(impossible_and_late());
}

void after_an_op() {
  config::set_simulated_devices("GPUx2");
  const int line = __LINE__ + 1;
  const Tensor x = random::normal({2});
  all_refused(here("RandomStandardNormal", line));
}
TEST(LateConfig, NamesTheOp) { IN_A_FRESH_PROCESS(after_an_op()); }

void after_a_scope() {
  config::set_simulated_devices("GPUx2");
  const int line = __LINE__ + 1;
  const auto on = device("/CPU:0");
  all_refused(here("device()", line));
}
TEST(LateConfig, NamesTheScope) { IN_A_FRESH_PROCESS(after_a_scope()); }

void after_a_query() {
  config::set_simulated_devices("GPUx2");
  const int line = __LINE__ + 1;
  config::list_logical_devices();
  all_refused(here("config::list_logical_devices()", line));
}
TEST(LateConfig, NamesTheQuery) { IN_A_FRESH_PROCESS(after_a_query()); }

void after_memory_info() {
  config::set_simulated_devices("GPUx2");
  const int line = __LINE__ + 1;
  config::get_memory_info("/GPU:0");
  all_refused(here("config::get_memory_info()", line));
}
TEST(LateConfig, NamesTheMemoryQuery) {
  IN_A_FRESH_PROCESS(after_memory_info());
}

void nothing_new() {
  config::set_simulated_devices("GPU");
  const auto gpu = config::list_physical_devices("GPU")[0];
  const auto cpu = config::list_physical_devices("CPU")[0];
  const auto set = [&](int threads) {
    config::set_memory_growth(gpu, true);
    config::set_logical_device_configuration(cpu,
                                             {{.workers = 1, .shared = true}});
    config::set_visible_devices({gpu}, "GPU");
    config::set_intra_op_parallelism_threads(threads);
    config::set_inter_op_parallelism_threads(threads);
  };
  set(2);
  constant({1.f});
  set(2);
  refuses<errors::FailedPrecondition>([&] { set(1); }, "intra_op");
  refuses<errors::FailedPrecondition>(
      [&] { config::set_memory_growth(gpu, false); }, "set_memory_growth");
}
TEST(LateConfig, SettingWhatIsSetAlreadyIsAllowed) {
  IN_A_FRESH_PROCESS(nothing_new());
}

void policies_stay_free() {
  constant({1.f});
  config::set_soft_device_placement(false);
  check(!config::get_soft_device_placement(), "soft placement may change");
  config::set_device_policy("explicit");
  debugging::set_log_device_placement(false);
}
TEST(LateConfig, PoliciesMayChangeAtAnyTime) {
  IN_A_FRESH_PROCESS(policies_stay_free());
}

void threads() {
  check(config::get_intra_op_parallelism_threads() == 0, "default: all");
  check(config::get_inter_op_parallelism_threads() == 0, "default");
  config::threading::set_intra_op_parallelism_threads(2);
  config::threading::set_inter_op_parallelism_threads(3);
  check(config::threading::get_intra_op_parallelism_threads() == 2, "intra");
  check(config::threading::get_inter_op_parallelism_threads() == 3, "inter");
  refuses<errors::InvalidArgument>(
      [] { config::set_inter_op_parallelism_threads(-1); },
      "config::set_inter_op_parallelism_threads: -1 threads");
  constant({1.f});
  check(config::get_inter_op_parallelism_threads() == 3, "kept");
}
TEST(Threads, CountsAreGivenBack) { IN_A_FRESH_PROCESS(threads()); }

// The articles' spellings, with one GPU.
void articles() {
  config::set_simulated_devices("GPUx2");
  const auto gpus = config::experimental::list_physical_devices("GPU");
  check(gpus.size() == 2 && gpus[0].device_type == "GPU", "two GPUs");
  for (const auto& gpu : gpus) {
    config::experimental::set_memory_growth(gpu, true);
  }
  config::experimental::set_visible_devices({gpus[1]}, "GPU");
  check(config::experimental::get_visible_devices("GPU")[0].name ==
            "/physical_device:GPU:1",
        "what was set");
  // What the third article writes: tf.device(gpu.name).
  refuses<errors::InvalidArgument>([&] { (void)device(gpus[0].name); },
                                   "write '/GPU:0', or the name of a logical "
                                   "device: "
                                   "config::list_logical_devices(\"GPU\")[0]");
  const auto logical = config::experimental::list_logical_devices("GPU");
  check(logical.size() == 1, "one is visible");
  const auto on = device(logical[0].name);
  check(constant({1.f}).device() == logical[0].name, "names are devices");
}
TEST(ArticleSpellings, Work) { IN_A_FRESH_PROCESS(articles()); }

void virtual_devices() {
  config::set_simulated_devices("GPU");
  const auto gpu = config::list_physical_devices("GPU")[0];
  config::experimental::set_virtual_device_configuration(
      gpu, {{.memory_limit_mb = 1}, {.memory_limit_mb = 2}});
  check(config::experimental::get_virtual_device_configuration(gpu).size() == 2,
        "two");
  refuses<errors::ResourceExhausted>(
      [] {
        const auto on = device("/GPU:0");
        zeros({1 << 20}).to_vector<float>();  // 4 MiB
      },
      "GPU:0 is out of memory: 4 MiB asked");
  refuses<errors::ResourceExhausted>(
      [] {
        const auto on = device("/GPU:1");
        zeros({1 << 20});
      },
      "limit 2 MiB");
  const auto on = device("/GPU:1");
  check(zeros({1 << 10}).num_elements() == 1024, "within the limit");
}
TEST(MemoryLimits, OfLogicalGpusHold) { IN_A_FRESH_PROCESS(virtual_devices()); }

void limited_cpus() {
  const auto cpu = config::list_physical_devices("CPU")[0];
  config::set_logical_device_configuration(
      cpu, {{.workers = 1, .shared = true},
            {.workers = 1, .shared = true, .memory_limit_mb = 2}});
  check(config::get_memory_info("/CPU:0").limit_bytes > size_t{2} << 20,
        "the default");
  check(config::get_memory_info("/CPU:1").limit_bytes == size_t{2} << 20,
        "2 MiB");
  refuses<errors::ResourceExhausted>(
      [] {
        const auto on = device("/CPU:1");
        zeros({1 << 20});
      },
      "CPU:1 is out of memory: 4 MiB asked");
  const Tensor big = with_device("/CPU:0", [] { return zeros({1 << 20}); });
  check(config::get_memory_info("/CPU:0").current_bytes >= size_t{4} << 20,
        "CPUs count too");
  check(config::get_memory_info("/CPU:0").peak_bytes >=
            config::get_memory_info("/CPU:0").current_bytes,
        "the peak");
}
TEST(MemoryLimits, OfLogicalCpusHold) { IN_A_FRESH_PROCESS(limited_cpus()); }

void another_thread() {
  std::thread([] { constant({1.f}); }).join();
  refuses<errors::FailedPrecondition>(
      [] { config::set_simulated_devices("GPU"); },
      "created by constant() at config_late_test.cc:");
}
TEST(LateConfig, TheCallMayBeOfAnotherThread) {
  IN_A_FRESH_PROCESS(another_thread());
}

}  // namespace
}  // namespace berth
