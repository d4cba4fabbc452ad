// What programs see of a GPU: limits and their errors, ops that it lacks,
// batches that wait on it.

#include <fmt/format.h>

#include <thread>

#include "backends/opencl/opencl_testing.h"
#include "base/fresh_process_testing.h"
#include "berth/berth.h"

namespace berth::opencl {
namespace {

using fresh_process::check;

using Users = OpenClTest;

bool says(const std::string& text, const std::string& part) {
  return text.find(part) != text.npos;
}

std::string out_of_memory(const char* where, int64_t floats) {
  try {
    const auto on = device(where);
    zeros({floats}).to_vector<float>();
  } catch (const errors::ResourceExhausted& e) {
    return e.what();
  }
  return "it was given";
}

void limits() {
  config::set_logical_device_configuration(
      config::list_physical_devices("GPU")[0],
      {{.memory_limit_mb = 32}, {.memory_limit_mb = 16}});
  check(config::get_memory_info("/GPU:1").limit_bytes == size_t{16} << 20,
        "the limit of the second part");
  const auto made = [](const char* name, int64_t mb) {
    const auto on = device("/GPU:0");
    return Variable(zeros({mb << 18}), {.name = name});
  };
  const Variable large = made("large", 12), small = made("small", 4);
  const std::string m = out_of_memory("/GPU:0", 8 << 20);
  check(says(m, "GPU:0 is out of memory: 32 MiB asked"), m);
  check(says(m, "limit 32 MiB"), m);
  const size_t first = m.find("12 MiB held by variable 'large'"),
               second = m.find("4 MiB held by variable 'small'");
  check(first < second && second != m.npos, m);
  // The device and the other part go on.
  check(says(out_of_memory("/GPU:1", 8 << 20), "GPU:1 is out of memory"),
        "the other limit");
  check(out_of_memory("/GPU:0", 1 << 20) == "it was given", "4 MiB");
  check(out_of_memory("/GPU:1", 1 << 20) == "it was given", "4 MiB there");
}

TEST_F(Users, AreToldWhoHoldsTheMemoryOfAPartThatIsFull) {
  IN_A_FRESH_PROCESS(limits());
}

// Each part of the device has a queue: all run one kernel, whose grid grows.
void growing_grids() {
  config::set_logical_device_configuration(
      config::list_physical_devices("GPU")[0],
      std::vector<config::LogicalDeviceConfiguration>(
          4, {.memory_limit_mb = 256}));
  std::vector<std::thread> parts;
  for (int part = 0; part < 4; ++part) {
    parts.emplace_back([part] {
      const auto on = device(fmt::format("/GPU:{}", part));
      for (int64_t i = 1; i <= 300; ++i) {
        const int64_t n = 256 * (i + part);
        const Tensor y = math::sin(zeros({n})) + 1.0f;
        if (i % 8 == 0) check(y.to_vector<float>().back() == 1, "its last");
      }
    });
  }
  for (std::thread& t : parts) t.join();
}

TEST_F(Users, RunOneKernelFromManyQueues) {
  IN_A_FRESH_PROCESS(growing_grids());
}

void an_op_that_gpus_lack() {
  std::string said;
  debugging::set_diagnostic_handler([&](const debugging::Diagnostic& d) {
    if (d.id == "fallback") said += d.text;
  });
  auto f = function([](const Tensor& x) {
    const auto on = device("/GPU:0");
    return linalg::cholesky(x * 1.0f) + 0.0f;
  });
  const Tensor x = with_device("/GPU:0", [] {
    return constant({{4.f, 2.f}, {2.f, 5.f}});
  });
  // [2 0; 1 2] times its transpose.
  check(f(x).to_vector<float>() == std::vector<float>{2, 0, 1, 2}, "the root");
  check(says(said, "Cholesky") && says(said, "CPU:0"), said);
  const placement::Report r = f.placement();
  check(r.fallbacks.size() == 1 && r.fallbacks[0].op == "Cholesky", r.str());
  check(says(r.fallbacks[0].requested, "GPU:0"), r.fallbacks[0].requested);
  debugging::set_diagnostic_handler({});
}

TEST_F(Users, AreToldOfAnOpThatFallsBackToTheCpu) {
  IN_A_FRESH_PROCESS(an_op_that_gpus_lack());
}

TEST_F(Users, GetBatchesThatAreOnTheGpu) {
  const auto batches =
      data::Dataset::range(64).batch(8).prefetch_to_device("/GPU:0", 2);
  int64_t first = 0;
  for (const Tensors& e : batches) {
    EXPECT_NE(e[0].device().find("GPU:0"), std::string::npos);
    const auto on = device("/GPU:0");
    // first + (first + 1) + ... + (first + 7)
    EXPECT_EQ(math::reduce_sum(e[0]).item<int64_t>(), 8 * first + 28);
    first += 8;
  }
  EXPECT_EQ(first, 64);
}

}  // namespace
}  // namespace berth::opencl
