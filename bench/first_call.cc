// What the first call of a step costs: trace, optimise, place and plan.

#include "bench_common.h"
#include "step_models.h"

using namespace berth;
using namespace berth_bench;

int main(int argc, char** argv) {
  const Args args = parse_args(argc, argv);
  const std::unique_ptr<StepModel> net =
      make_step_model(args.model.empty() ? "cnn" : args.model);
  std::vector<double> seconds;
  for (int i = 0; i < 15; ++i) {
    auto step = function(
        [&](const Tensor& x, const Tensor& y) { return (*net)(x, y); });
    step(net->images(0), net->labels(0));
    const FunctionPlanInfo info = step.plan_info();
    seconds.push_back(info.trace_seconds + info.compile_seconds);
  }
  Line("first_call", 1).timing(summarize(seconds), "ms", 1e3).print();
}
