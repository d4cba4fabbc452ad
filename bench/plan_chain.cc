// What one op costs inside a Plan: a chain of 10,000 dependent, alternating
// add and mul on inputs, 4 floats, passes off, one worker.

#include "bench_common.h"
#include "berth/berth.h"
#include "count_allocations.h"

using namespace berth;
using namespace berth_bench;

int main(int argc, char** argv) {
  const Args args = parse_args(argc, argv);
  constexpr int kOps = 10000;
  auto chain = function(
      [](const Tensor& x, const Tensor& a, const Tensor& m) {
        Tensor y = x;
        for (int i = 0; i < kOps; i += 2) y = (y + a) * m;
        return y;
      },
      {.name = "chain", .slices = 1, .optimize = false});
  const Tensor x = constant({1.f, 2.f, 3.f, 4.f});
  const Tensor a = constant({.5f, .5f, .5f, .5f});
  const Tensor m = constant({.9f, .9f, .9f, .9f});
  const Timing t = measure([&] { chain(x, a, m); }, args.seconds);
  const long before = allocations();
  for (int i = 0; i < 100; ++i) chain(x, a, m);
  const long warm_allocations = allocations() - before;
  Line("plan_chain", 1)
      .add("warm_allocations", warm_allocations)
      .timing(t, "ns", 1e9 / kOps)
      .add("regions", chain.plan_info().regions)
      .print();
}
