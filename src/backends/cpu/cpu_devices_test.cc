// Several CPU devices in one process. Devices are configured once per process,
// so each test runs in one of its own.

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <iostream>
#include <string>

#include "base/core_set.h"
#include "berth/config.h"
#include "berth/device.h"
#include "berth/errors.h"
#include "berth/function.h"
#include "berth/gradient_tape.h"
#include "berth/ops/array.h"
#include "berth/ops/math.h"
#include "berth/variable.h"
#include "device/device_manager.h"

namespace berth {
namespace {

void check(bool ok, const char* what) {
  if (ok) return;
  std::cerr << "not so: " << what << std::endl;
  std::_Exit(1);
}

// Runs `body` in a fresh process; it ends with 0 unless a check fails.
#define IN_A_FRESH_PROCESS(body)                  \
  GTEST_FLAG_SET(death_test_style, "threadsafe"); \
  EXPECT_EXIT(                                    \
      {                                           \
        body();                                   \
        std::_Exit(0);                            \
      },                                          \
      testing::ExitedWithCode(0), "")

const config::PhysicalDevice kCpu{"/physical_device:CPU:0", "CPU"};

void two_shared_devices() {
  config::set_logical_device_configuration(
      kCpu, {{.workers = 2, .shared = true}, {.workers = 2, .shared = true}});
}

void trains_across_two() {
  two_shared_devices();
  check(config::list_logical_devices("CPU").size() == 2, "two CPU devices");
  Variable w = with_device("/CPU:1", [] { return Variable(constant(2.0f)); });
  auto step = function([&](const Tensor& x) {
    GradientTape tape;
    Tensor y, loss;
    {
      const auto on = device("/CPU:1");
      y = math::multiply(w.value(), x);
    }
    {
      const auto on = device("/CPU:0");
      loss = math::reduce_sum(math::square(y));
    }
    const Tensor g = tape.gradient(loss, w);
    w.assign_sub(math::multiply(g, constant(0.01f)));
    return loss;
  });
  const std::vector<float> data = {1, 2, 3};
  const Tensor x = constant(std::span<const float>(data), {3});
  // loss = w^2 * 14; w <- w (1 - 0.28)
  double expected = 2;
  for (int i = 0; i < 20; ++i) {
    const float loss = step(x).item<float>();
    check(std::abs(loss - expected * expected * 14) <
              1e-4 * expected * expected * 14,
          "the loss of the closed form");
    expected *= 1 - 0.28;
  }
  check(w.value().backing_device().find("CPU:1") != std::string::npos,
        "the variable stays on CPU:1");
}

TEST(CpuDevices, AStepOverTwoOfThemTrains) {
  IN_A_FRESH_PROCESS(trains_across_two);
}

void failure_is_kept() {
  two_shared_devices();
  const auto on = device("/CPU:1");
  const std::vector<float> data = {1, 2, 3};
  const Tensor x = constant(std::span<const float>(data), {3});
  const std::vector<int32_t> bad = {7};
  try {
    gather(x, constant(std::span<const int32_t>(bad), {1})).to_vector<float>();
    check(false, "an index out of range throws");
  } catch (const errors::Error& e) {
    check(std::string(e.what()).find("CPU:1") != std::string::npos,
          "the error names the device");
  }
  DeviceManager::get().lookup(DeviceName::parse("/CPU:1")).reset_error();
  check(math::add(x, x).to_vector<float>()[2] == 6, "it works again");
}

TEST(CpuDevices, AFailureNamesTheDeviceAndCanBeCleared) {
  IN_A_FRESH_PROCESS(failure_is_kept);
}

// The cores that the thread of a device may use, as the system tells.
void threads_are_bound() {
  const CoreSet allowed = CoreSet::allowed();
  if (allowed.size() < 2) return;
  const std::vector<CoreSet> halves = allowed.split(2);
  config::set_logical_device_configuration(
      kCpu, {{.cores = halves[0].str()}, {.cores = halves[1].str()}});
  struct Probe {
    CoreSet seen;
  } probe;
  Work work;
  work.context = &probe;
  work.run = [](void* c, const AddressMap&) {
    static_cast<Probe*>(c)->seen = current_thread_cores();
  };
  Device& d = DeviceManager::get().lookup(DeviceName::parse("/CPU:1"));
  d.compute_stream().launch(work);
  d.compute_stream().synchronize(d.compute_stream().record());
  check(halves[1].contains(probe.seen), "the thread is on its device's cores");
  check(!d.runs_inline(), "CPU:1 has a thread");
}

TEST(CpuDevices, TheThreadOfADeviceIsBoundToItsCores) {
  IN_A_FRESH_PROCESS(threads_are_bound);
}

// A GPU's memory is its own: the thread of a CPU device must not touch it.
void fetches_from_a_gpu() {
  config::set_device_list("CPUx2,GPUx1");
  const Tensor x = with_device("/GPU:0", [] { return ones({3, 5}); });
  const auto on = device("/CPU:1");
  const Tensor sum = math::reduce_sum(x);
  check(sum.item<float>() == 15, "the sum of 15 ones");
  check(sum.device().ends_with("CPU:1"), "on CPU:1");
  const Tensor back = with_device("/GPU:0", [&] { return sum + 1.f; });
  check(back.item<float>() == 16, "and back");
}

TEST(CpuDevices, ACpuWithAThreadFetchesFromAGpu) {
  IN_A_FRESH_PROCESS(fetches_from_a_gpu);
}

}  // namespace
}  // namespace berth
