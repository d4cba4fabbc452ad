// One training step as a warm plan: --model mlp|cnn --cores K.

#include "bench_common.h"
#include "count_allocations.h"
#include "step_models.h"

using namespace berth;
using namespace berth_bench;

int main(int argc, char** argv) {
  const Args args = parse_args(argc, argv);
  const std::string model = args.model.empty() ? "mlp" : args.model;
  if (!use_cores(args.cores)) {
    return skip("train_step", args.cores, "fewer cores than asked for");
  }
  const StepModel net(model);
  auto step =
      function([&](const Tensor& x, const Tensor& y) { return net(x, y); },
               {.name = model + "_step"});
  float loss = 0;
  for (int i = 0; i < 50; ++i) {
    loss = step(net.images(i), net.labels(i)).item<float>();
  }
  int i = 0;
  const Timing t = measure(
      [&] {
        step(net.images(i), net.labels(i));
        ++i;
      },
      args.seconds);
  const long before = allocations();
  for (int k = 0; k < 100; ++k) step(net.images(k), net.labels(k));
  const long warm = allocations() - before;
  const FunctionPlanInfo info = step.plan_info();
  Line("train_step", args.cores)
      .add("model", model)
      .timing(t, "us", 1e6)
      .add("loss50", loss)
      .add("warm_allocations", warm)
      .add("ops_traced", info.ops_traced)
      .add("ops", info.ops)
      .add("regions", info.regions)
      .print();
}
