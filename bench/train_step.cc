// One training step as a warm plan: --model NAME --cores K.

#include <sys/resource.h>

#include "bench_common.h"
#include "count_allocations.h"
#include "step_models.h"

using namespace berth;
using namespace berth_bench;

namespace {

long page_faults() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_minflt + usage.ru_majflt;
}

}  // namespace

int main(int argc, char** argv) {
  const Args args = parse_args(argc, argv);
  const std::string model = args.model.empty() ? "mlp" : args.model;
  if (!use_cores(args.cores)) {
    return skip("train_step", args.cores, "fewer cores than asked for");
  }
  const std::unique_ptr<StepModel> net = make_step_model(model);
  const bool big = model == "resnet18" || model == "gpt";
  auto step =
      function([&](const Tensor& x, const Tensor& y) { return (*net)(x, y); },
               {.name = model + "_step"});
  float loss = 0;
  const int warm_up = big ? 5 : 50, counted = big ? 5 : 100;
  for (int i = 0; i < warm_up; ++i) {
    loss = step(net->images(i), net->labels(i)).item<float>();
  }
  int i = 0;
  const Timing t = measure(
      [&] {
        step(net->images(i), net->labels(i));
        ++i;
      },
      args.seconds);
  const long before = allocations(), faults_before = page_faults();
  for (int k = 0; k < counted; ++k) step(net->images(k), net->labels(k));
  const long warm = allocations() - before;
  const long faults = page_faults() - faults_before;
  const FunctionPlanInfo info = step.plan_info();
  Line("train_step", args.cores)
      .add("model", model)
      .timing(t, "us", 1e6)
      .add("parameters", net->parameters())
      .add(big ? "loss5" : "loss50", loss)
      .add("warm_allocations", warm)
      .add("warm_page_faults", faults)
      .add("ops_traced", info.ops_traced)
      .add("ops", info.ops)
      .add("regions", info.regions)
      .print();
}
