// Peak memory of a warm step: the allocator's high-water mark above what was
// held before, with arena, scratch and outputs; and the plan for the bound.

#include <fstream>

#include "bench_common.h"
#include "step_models.h"

using namespace berth;
using namespace berth_bench;

int main(int argc, char** argv) {
  const Args args = parse_args(argc, argv);
  const std::unique_ptr<StepModel> net =
      make_step_model(args.model.empty() ? "cnn" : args.model);
  auto step =
      function([&](const Tensor& x, const Tensor& y) { return (*net)(x, y); });
  const size_t held = config::get_memory_info("CPU:0").current_bytes;
  config::reset_memory_stats("CPU:0");
  for (int i = 0; i < 3; ++i) step(net->images(i), net->labels(i));
  const size_t peak = config::get_memory_info("CPU:0").peak_bytes - held;
  const std::string dump = "plan_dump.txt";
  std::ofstream(dump) << step.text("plan");
  Line("memory", 1)
      .add("peak_bytes", peak)
      .add("arena_bytes", step.plan_info().peak_bytes)
      .add("plan_dump", dump)
      .print();
}
