// Several CPU devices in one process. Devices are configured once per process,
// so each test runs in its own process.

#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <string>
#include <thread>

#include "backends/cpu/cpu_testing.h"
#include "base/core_set.h"
#include "base/fresh_process_testing.h"
#include "berth/config.h"
#include "berth/device.h"
#include "berth/errors.h"
#include "berth/function.h"
#include "berth/gradient_tape.h"
#include "berth/ops/array.h"
#include "berth/ops/control_flow.h"
#include "berth/ops/math.h"
#include "berth/placement.h"
#include "berth/variable.h"
#include "device/device_manager.h"

namespace berth {
namespace {

using fresh_process::check;
using fresh_process::need_cores;
using fresh_process::refuses;

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
  IN_A_FRESH_PROCESS(trains_across_two());
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
  IN_A_FRESH_PROCESS(failure_is_kept());
}

// The other CPU device reads a value where it is, without a copy.
void eager_hands_over() {
  two_shared_devices();
  const size_t bytes = size_t{4} << 20;
  const Tensor x = with_device("/CPU:0", [&] { return ones({1 << 20}); });
  config::reset_memory_stats("/CPU:1");
  const auto peak = [](const char* d) {
    return config::get_memory_info(d).peak_bytes;
  };
  const size_t before = peak("/CPU:1");
  const Tensor y = with_device("/CPU:1", [&] { return x + x; });
  check(y.to_vector<float>()[7] == 2, "computed on CPU:1");
  check(y.backing_device().find("CPU:1") != std::string::npos, "and there");
  check(peak("/CPU:1") - before < bytes * 3 / 2, "CPU:1 has the result alone");
  config::reset_memory_stats("/CPU:0");
  const size_t host = peak("/CPU:0");
  const Tensor z = with_device("/CPU:0", [&] { return y * x; });
  check(z.to_vector<float>()[7] == 2, "read from CPU:1");
  check(peak("/CPU:0") - host < bytes * 3 / 2, "CPU:0 has the result alone");
  const Tensor moved = with_device("/CPU:1", [&] { return identity(z); });
  check(moved.backing_device().find("CPU:1") != std::string::npos,
        "identity moves");
}

TEST(CpuDevices, EagerOpsReadWhatAnotherCpuHasWhereItIs) {
  IN_A_FRESH_PROCESS(eager_hands_over());
}

// Inputs are dropped at once, so that their memory is reused while the other
// device may still be reading it.
void eager_keeps_what_is_read() {
  two_shared_devices();
  Tensor x = with_device("/CPU:0", [] { return zeros({4096}); });
  for (int i = 0; i < 300; ++i) {
    const auto on = device(i % 2 == 0 ? "/CPU:1" : "/CPU:0");
    x = x + 1.0f;
    if (i % 3 == 0) ones({4096}) * 7.0f;  // writes the memory just freed
  }
  for (float v : x.to_vector<float>()) check(v == 300, "every step counted");
  Variable w = with_device("/CPU:0", [] { return Variable(ones({4096})); });
  for (int i = 0; i < 100; ++i) {
    const Tensor snapshot = w.value();
    const Tensor y = with_device("/CPU:1", [&] { return snapshot * 2.0f; });
    w.assign_add(ones({4096}));
    check(y.to_vector<float>()[4095] == 2.0f * static_cast<float>(i + 1),
          "the value before the write");
  }
}

TEST(CpuDevices, WhatAnotherCpuReadsIsNotOverwritten) {
  IN_A_FRESH_PROCESS(eager_keeps_what_is_read());
}

// Runs a plan with many crossings back to back; a plan of one device runs in
// between and shares its arenas.
void plans_hand_over() {
  two_shared_devices();
  auto crossing = function([](const Tensor& x) {
    Tensor a = x, b = x;
    for (int i = 0; i < 6; ++i) {
      const Tensor c = with_device("/CPU:1", [&] { return a * 0.5f + b; });
      b = with_device("/CPU:0", [&] { return math::reduce_max(c) + c; });
      a = c;
    }
    return Tensors{a, b, with_device("/CPU:1", [&] { return identity(b); })};
  });
  auto local = function([](const Tensor& x) { return x * 3.0f + 1.0f; });
  const auto expected = [](float x) {
    double a = x, b = x;
    for (int i = 0; i < 6; ++i) {
      const double c = a * 0.5 + b;
      b = c + c;  // all elements are equal
      a = c;
    }
    return std::pair(a, b);
  };
  std::vector<Tensors> results;
  for (int i = 0; i < 40; ++i) {
    results.push_back(crossing(ones({2048}) * static_cast<float>(i)));
    local(ones({2048}));
  }
  for (int i = 0; i < 40; ++i) {
    const auto [a, b] = expected(static_cast<float>(i));
    check(results[i][0].to_vector<float>()[2047] == a, "a");
    check(results[i][1].to_vector<float>()[0] == b, "b");
    check(results[i][2].to_vector<float>()[1] == b, "b on CPU:1");
    check(results[i][2].backing_device().find("CPU:1") != std::string::npos,
          "a result is on the device that was asked for");
  }
  check(crossing.plan_info().copied_bytes == 2048 * 4,
        "nothing but that result is copied");
}

TEST(CpuDevices, PlansHandValuesOver) { IN_A_FRESH_PROCESS(plans_hand_over()); }

// A kernel fails on either device of a plan.
void plans_fail_with_the_op() {
  two_shared_devices();
  const std::vector<int32_t> bad = {7};
  for (const char* where : {"/CPU:0", "/CPU:1"}) {
    auto f = function([&](const Tensor& x, const Tensor& i) {
      const Tensor y = with_device("/CPU:1", [&] { return x + 1.0f; });
      const Tensor z = with_device("/CPU:0", [&] { return y + x; });
      const Tensor g = with_device(where, [&] { return gather(z, i); });
      return with_device("/CPU:0", [&] { return g + 1.0f; });
    });
    const Tensor x = ones({3});
    const std::vector<int32_t> fine = {1};
    const Tensor good = constant(std::span<const int32_t>(fine), {1});
    check(f(x, good).to_vector<float>()[0] == 4, "it works");
    try {
      f(x, constant(std::span<const int32_t>(bad), {1})).to_vector<float>();
      check(false, "an index out of range throws");
    } catch (const errors::Error& e) {
      check(std::string(e.what()).find("Gather") != std::string::npos,
            e.what());
    }
    config::reset_device_error(where);
  }
}

TEST(CpuDevices, AFailureInAPlanOverTwoIsThrownAndNamesTheOp) {
  IN_A_FRESH_PROCESS(plans_fail_with_the_op());
}

// The body of a branch on CPU:1 uses CPU:0, and the step around it does not.
// The body's memory on CPU:0 must be free for others when the call returns.
void bodies_leave_the_host() {
  two_shared_devices();
  auto step = function([](const Tensor& x) {
    const auto on = device("/CPU:1");
    return cond(
        math::greater(math::reduce_sum(x), constant(-1.0f)),
        [&] {
          const Tensor t = with_device("/CPU:0", [&] {
            Tensor y = x;
            for (int i = 0; i < 8; ++i) y = math::reduce_max(y) + y * 0.5f;
            return y;
          });
          return t + 1.0f;
        },
        [&] { return x * 2.0f; });
  });
  auto local = function([](const Tensor& x) {
    return with_device("/CPU:0", [&] {
      return math::reduce_sum(math::exp(x) * 3.0f) + math::tanh(x);
    });
  });
  const Tensor x = with_device("/CPU:1", [] { return ones({1 << 16}); });
  const Tensor z = zeros({1 << 16});
  double expected = 1;
  for (int i = 0; i < 8; ++i) expected *= 1.5;
  std::vector<Tensor> results;
  for (int i = 0; i < 20; ++i) {
    results.push_back(step(x));
    local(z);
  }
  for (const Tensor& r : results) {
    check(r.to_vector<float>()[77] == static_cast<float>(expected + 1),
          "the branch");
  }
}

TEST(CpuDevices, BodiesLeaveTheHostsMemoryWhenTheCallReturns) {
  IN_A_FRESH_PROCESS(bodies_leave_the_host());
}

// A branch waits for a predicate that failed; the host must work again at once.
void host_recovers() {
  two_shared_devices();
  auto step = function([](const Tensor& x, const Tensor& i) {
    const Tensor y = with_device("/CPU:1", [&] { return x + 1.0f; });
    const auto on = device("/CPU:0");
    const Tensor g = gather(y, i);
    return cond(
        math::greater(math::reduce_sum(g), constant(0.0f)),
        [&] { return g * 2.0f; }, [&] { return g; });
  });
  const Tensor x = ones({3});
  const std::vector<int32_t> good = {1}, bad = {7};
  for (int k = 0; k < 3; ++k) {
    refuses<errors::InvalidArgument>(
        [&] { step(x, constant(std::span<const int32_t>(bad), {1})); },
        "Gather");
    const Tensor r = step(x, constant(std::span<const int32_t>(good), {1}));
    check(r.to_vector<float>()[0] == 4, "it works after a failure");
  }
}

TEST(CpuDevices, TheHostWorksAfterAFailureThatABranchMet) {
  IN_A_FRESH_PROCESS(host_recovers());
}

// Several threads call plans that share devices and arenas, each with its own
// expected results, while reports are requested.
void callers_at_once() {
  two_shared_devices();
  auto crossing = function([](const Tensor& x) {
    const Tensor y = with_device("/CPU:1", [&] { return x * 2.0f; });
    const Tensor z = with_device(
        "/CPU:0", [&] { return math::reduce_max(y) + math::tanh(y) * 0.0f; });
    return with_device("/CPU:1", [&] { return z + y; });
  });
  auto local = function([](const Tensor& x) {
    return with_device("/CPU:0", [&] { return math::reduce_max(x) + x; });
  });
  crossing(ones({2048}));
  const auto caller = [&](int id) {
    const auto on = device(id % 2 == 0 ? "/CPU:0" : "/CPU:1");
    for (int i = 0; i < 30; ++i) {
      const auto v = static_cast<float>(id * 100 + i);
      const Tensor x = ones({2048}) * v;
      check(crossing(x).to_vector<float>()[5] == 4 * v, "crossing");
      const auto keep = placement::contract({.stays_on = "/CPU:0"});
      check(local(x).to_vector<float>()[6] == 2 * v, "local");
    }
  };
  const auto runs = [&] {  // one plan per device scope
    int64_t n = 0;
    for (const auto& r : crossing.placements()) n += r.steps;
    return n;
  };
  std::vector<std::jthread> threads;
  for (int t = 0; t < 4; ++t) threads.emplace_back(caller, t);
  int64_t steps = 0;
  for (int i = 0; i < 10; ++i) {
    const int64_t now = runs();
    check(now >= steps, "runs are counted");
    steps = now;
    check(crossing.explain("Tanh").device.ends_with("CPU:0"), "explained");
  }
  for (std::jthread& t : threads) t.join();
  check(runs() == 121, "no run is lost");
}

TEST(CpuDevices, SeveralThreadsMayCallPlansOverThem) {
  IN_A_FRESH_PROCESS(callers_at_once());
}

// Two callers share /CPU:0's thread; every run of one of them fails there.
void failures_stay_apart() {
  two_shared_devices();
  auto failing = function([](const Tensor& x, const Tensor& i) {
    const Tensor y = with_device("/CPU:1", [&] { return x + 1.0f; });
    return with_device("/CPU:0", [&] { return gather(y, i) * 2.0f; });
  });
  auto crossing = function([](const Tensor& x) {
    const Tensor y = with_device("/CPU:1", [&] { return x * 2.0f; });
    Tensor z = y;
    for (int i = 0; i < 4; ++i) {
      z = with_device("/CPU:0", [&] { return math::reduce_max(z) + z; });
    }
    return z;
  });
  const std::vector<int32_t> bad = {7};
  std::atomic<bool> ends = false;
  std::thread other([&] {
    const Tensor x = ones({3});
    const Tensor i = constant(std::span<const int32_t>(bad), {1});
    while (!ends) {
      refuses<errors::InvalidArgument>([&] { failing(x, i); }, "out of range");
    }
  });
  for (int i = 0; i < 200; ++i) {
    const auto v = static_cast<float>(i);
    const Tensor r = crossing(ones({256}) * v);
    check(r.to_vector<float>()[9] == 32 * v, "the other caller's numbers");
  }
  ends = true;
  other.join();
}

TEST(CpuDevices, AFailureOnTheHostIsThatOfItsOwnCallerAlone) {
  IN_A_FRESH_PROCESS(failures_stay_apart());
}

// Returns the cores that a device's thread may use, as the system reports them.
void threads_are_bound() {
  const std::vector<CoreSet> halves = CoreSet::allowed().split(2);
  config::set_logical_device_configuration(
      kCpu, {{.cores = halves[0].str()}, {.cores = halves[1].str()}});
  struct Probe {
    CoreSet seen;
  } probe;
  Work work;
  work.context = &probe;
  work.run = [](void* c, Stream&) {
    static_cast<Probe*>(c)->seen = current_thread_cores();
  };
  Device& d = DeviceManager::get().lookup(DeviceName::parse("/CPU:1"));
  d.compute_stream().launch(work);
  d.compute_stream().synchronize(d.compute_stream().record());
  check(halves[1].contains(probe.seen), "the thread is on its device's cores");
  check(!d.runs_inline(), "CPU:1 has a thread");
}

TEST(CpuDevices, TheThreadOfADeviceIsBoundToItsCores) {
  if (pretended_cores()) GTEST_SKIP() << "no thread is bound to such cores";
  if (CoreSet::allowed().size() < 2) {
    GTEST_SKIP() << "two disjoint sets need two cores";
  }
  IN_A_FRESH_PROCESS(threads_are_bound());
}

// GPU memory is not addressable here: a CPU device's thread must not touch it.
void fetches_from_a_gpu() {
  need_cores(2);
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
  IN_A_FRESH_PROCESS(fetches_from_a_gpu());
}

}  // namespace
}  // namespace berth
