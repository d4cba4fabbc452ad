// Plans on a device whose memory is exact (device/exact_memory.h).

#include <gtest/gtest.h>

#include <cstdlib>

#include "base/fresh_process_testing.h"
#include "berth/berth.h"
#include "exec/measure_testing.h"

namespace berth {
namespace {

using fresh_process::check;

constexpr size_t kMiB = size_t{1} << 20;

// What a step of five transposes, 4 MiB each, has at its peak: results of a
// plan that is done are used again, so an arena has two of them. After the step
// none of it is in use.
size_t bytes_of_five_transposes(const char* allocator) {
  setenv("BERTH_GPU_ALLOCATOR", allocator, 1);
  const auto on = device("/GPU:0");
  const auto step = function([](const Tensor& x) {
    Tensor y = reshape(x, {1 << 10, 1 << 10});
    for (int i = 0; i < 5; ++i) y = matmul(transpose(y), y);
    return math::reduce_sum(y);
  });
  const Tensor x = zeros({1 << 20});
  check(step(x).item<float>() == 0, "a sum of zeros");
  const size_t idle = config::get_memory_info("/GPU:0").current_bytes;
  check(idle < 5 * kMiB, "x alone is alive");
  config::reset_memory_stats("/GPU:0");
  check(step(x).item<float>() == 0, "the second time, too");
  check(config::get_memory_info("/GPU:0").current_bytes == idle, "as before");
  return config::get_memory_info("/GPU:0").peak_bytes - 4 * kMiB;
}

void with_arenas() {
  check(bytes_of_five_transposes("caching") < 14 * kMiB, "they share");
}
void alone() {
  check(bytes_of_five_transposes("exact") >= 36 * kMiB, "each has its own");
}

TEST(ExactPlan, BuffersShareAnArenaUnlessMemoryIsExact) {
  IN_A_FRESH_PROCESS(with_arenas());
  IN_A_FRESH_PROCESS(alone());
}

}  // namespace
}  // namespace berth
