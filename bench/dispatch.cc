// What one eager op costs: adds of 4 floats inside a device scope, alternating
// equal shapes and broadcasting, without and with a tape.

#include "bench_common.h"
#include "berth/berth.h"

using namespace berth;
using namespace berth_bench;

namespace {

constexpr int kOps = 2000;

// Half of the adds broadcast a [1] operand.
void chain(const Tensor& x, const Tensor& one) {
  Tensor y = x;
  for (int i = 0; i < kOps; i += 2) {
    y = math::add(y, x);
    y = math::add(y, one);
  }
}

}  // namespace

int main(int argc, char** argv) {
  const Args args = parse_args(argc, argv);
  const auto on = device("/CPU:0");
  const Tensor x = constant({1.f, 2.f, 3.f, 4.f});
  const Tensor one = constant({1.f});
  auto report = [&](const char* name, auto&& step) {
    const Timing t = measure(step, args.seconds);
    Line(name, 1).timing(t, "ns", 1e9 / kOps).print();
  };
  report("dispatch_untaped", [&] { chain(x, one); });
  report("dispatch_taped", [&] {
    GradientTape tape;
    tape.watch(x);
    chain(x, one);
  });
}
