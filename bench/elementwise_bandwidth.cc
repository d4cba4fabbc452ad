// Elementwise kernels on 64M floats as warm plans: their share of the
// bandwidth of a copy past the caches by as many threads, measured in turns.

#include <functional>
#include <memory>
#include <thread>

#include "bench/hand/hand.h"
#include "bench_common.h"
#include "berth/berth.h"
#include "step_models.h"

using namespace berth;
using namespace berth_bench;

namespace {

constexpr int64_t kRows = 8192, kCols = 8192, kSize = kRows * kCols;

struct Kernel {
  const char* name;
  double arrays;  // of 64M floats, read or written
  std::function<Tensor(const Tensor& x, const Tensor& y)> fn;
};

const Kernel kKernels[] = {
    {"neg", 2, [](const Tensor& x, const Tensor&) { return -x; }},
    {"relu", 2, [](const Tensor& x, const Tensor&) { return nn::relu(x); }},
    {"exp", 2, [](const Tensor& x, const Tensor&) { return math::exp(x); }},
    {"scale", 2, [](const Tensor& x, const Tensor&) { return x * 3.0; }},
    {"cast", 2,
     [](const Tensor& x, const Tensor&) { return math::cast(x, int32); }},
    {"greater", 2.25, [](const Tensor& x, const Tensor& y) { return x > y; }},
    {"add", 3, [](const Tensor& x, const Tensor& y) { return x + y; }},
    {"chain", 3,
     [](const Tensor& x, const Tensor& y) { return nn::relu(x * y + 1.0); }},
};

// Best of a few copies by `threads` threads, in seconds.
double copy_seconds(const float* x, float* y, int threads, int times) {
  double best = 1e9;
  for (int t = 0; t < times; ++t) {
    const double start = now_seconds();
    std::vector<std::jthread> team;
    for (int i = 1; i < threads; ++i) {
      team.emplace_back([=] {
        const int64_t from = kSize * i / threads,
                      to = kSize * (i + 1) / threads;
        hand_loops().copy(x + from, y + from, to - from);
      });
    }
    hand_loops().copy(x, y, kSize / threads);
    team.clear();
    best = std::min(best, now_seconds() - start);
  }
  return best;
}

}  // namespace

int main(int argc, char** argv) {
  const Args args = parse_args(argc, argv);
  if (!use_cores(args.cores)) {
    return skip("elementwise_bandwidth", args.cores,
                "fewer cores than asked for");
  }
  const Shape shape{kRows, kCols};
  const Tensor x = random::uniform(shape, {.minval = -2.0, .maxval = 2.0});
  const Tensor y = random::uniform(shape, {.minval = -2.0, .maxval = 2.0});
  const auto free = [](void* p) { std::free(p); };
  const std::unique_ptr<float, decltype(free)> from(
      static_cast<float*>(std::aligned_alloc(4096, kSize * 4)), free),
      to(static_cast<float*>(std::aligned_alloc(4096, kSize * 4)), free);
  std::fill_n(from.get(), kSize, 1.0f);
  std::fill_n(to.get(), kSize, 0.0f);
  for (const Kernel& k : kKernels) {
    if (!args.model.empty() && args.model != k.name) continue;
    auto run = function(k.fn);
    for (int i = 0; i < 3; ++i) run(x, y);
    double ours = 1e9, copy = 1e9;
    const double begin = now_seconds();
    do {
      copy = std::min(copy, copy_seconds(from.get(), to.get(), args.cores, 2));
      for (int i = 0; i < 3; ++i) {
        const double start = now_seconds();
        run(x, y);
        ours = std::min(ours, now_seconds() - start);
      }
    } while (now_seconds() - begin < args.seconds);
    const double bytes = k.arrays * kSize * 4;
    const double gb = bytes / ours / 1e9, copy_gb = kSize * 8 / copy / 1e9;
    Line("elementwise_bandwidth", args.cores)
        .add("model", k.name)
        .add("gb_per_second", std::round(gb * 100) / 100)
        .add("copy_gb_per_second", std::round(copy_gb * 100) / 100)
        .add("share", std::round(gb / copy_gb * 1000) / 1000)
        .print();
  }
}
