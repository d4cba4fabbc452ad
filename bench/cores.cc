// Two CPU devices of half the cores each: what it costs to hand a value from
// one to the other, and how well independent branches overlap.

#include "bench_common.h"
#include "berth/berth.h"

namespace {

using berth::Tensor;
using berth_bench::Timing;

constexpr const char* kDevices[2] = {"/CPU:0", "/CPU:1"};
constexpr int kHops = 64;
constexpr int kLayers = 16;

// A chain of `kHops` ops on `x`, all on one device, or each on the other than
// the one before.
Timing chain(const Tensor& x, bool hops, double seconds) {
  auto step = berth::function([&](const Tensor& in) {
    Tensor y = in;
    for (int i = 0; i < kHops; ++i) {
      const auto on = berth::device(kDevices[hops ? i % 2 : 1]);
      // Not elementwise, so that no pass makes one op of the chain.
      y = berth::reverse(y, {0});
    }
    const auto on = berth::device("/CPU:0");
    return berth::math::reduce_sum(y);
  });
  return berth_bench::measure([&] { step(x).item<float>(); }, seconds);
}

void hand_over(const char* name, int64_t elements, double seconds) {
  const Tensor x = berth::ones({elements});
  const Timing there = chain(x, false, seconds);
  const Timing hops = chain(x, true, seconds);
  const double us = (hops.best - there.best) / (kHops - 1) * 1e6;
  berth_bench::Line(name, 2)
      .add("bytes", elements * 4)
      .timing(hops, "us", 1e6)
      .add("one_device_us", there.best * 1e6)
      .add("hop_us", us)
      .print();
}

// Two stacks of matrix products that meet at the end.
Timing branches(const char* first, const char* second, double seconds) {
  const Tensor w = berth::ones({512, 512}) * (1.0f / 512);
  auto step = berth::function([&](const Tensor& in) {
    Tensor ends[2];
    for (int b = 0; b < 2; ++b) {
      const auto on = berth::device(b == 0 ? first : second);
      Tensor y = in + static_cast<float>(b);
      for (int i = 0; i < kLayers; ++i) y = berth::matmul(y, w);
      ends[b] = berth::math::reduce_sum(y);
    }
    const auto on = berth::device("/CPU:0");
    return ends[0] + ends[1];
  });
  const Tensor x = berth::ones({256, 512});
  return berth_bench::measure([&] { step(x).item<float>(); }, seconds, 2e-2);
}

}  // namespace

int main(int argc, char** argv) {
  const berth_bench::Args args = berth_bench::parse_args(argc, argv);
  const int cores = static_cast<int>(berth_bench::allowed_cores().size());
  if (cores < 2) {
    return berth_bench::skip("core_sets", cores, "needs 2 cores");
  }
  berth::config::set_device_list("CPUx2");
  // Crossing at every op is what is measured here.
  berth::debugging::set_diagnostic_handler([](const auto&) {});
  hand_over("hand_over_small", 16, args.seconds / 4);
  hand_over("hand_over_large", int64_t{1} << 16, args.seconds / 4);
  const Timing one = branches("/CPU:0", "/CPU:0", args.seconds / 2);
  const Timing two = branches("/CPU:0", "/CPU:1", args.seconds / 2);
  berth_bench::Line("core_sets", cores)
      .timing(two, "us", 1e6)
      .add("one_device_us", one.best * 1e6)
      .add("over_one_device", two.best / one.best)
      .print();
  return 0;
}
