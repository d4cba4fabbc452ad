// The training steps that the benches time, by name: the libtorch peer's
// bench_mlp, bench_cnn, bench_resnet18 and bench_gpt on public ops.

#ifndef BERTH_BENCH_STEP_MODELS_H_
#define BERTH_BENCH_STEP_MODELS_H_

#include <sched.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "bench/models/gpt.h"
#include "bench/models/resnet18.h"
#include "bench/models/small.h"

namespace berth_bench {

// Ends the program with 2 when there is no such model.
inline std::unique_ptr<StepModel> make_step_model(const std::string& name) {
  if (name == "mlp") return std::make_unique<SmallModel>(false);
  if (name == "cnn") return std::make_unique<SmallModel>(true);
  if (name == "resnet18") return std::make_unique<ResNet18>();
  if (name == "gpt") return std::make_unique<Gpt>();
  std::fprintf(stderr, "unknown model \"%s\": mlp, cnn, resnet18 or gpt\n",
               name.c_str());
  std::exit(2);
}

// Pins the process to the first `cores` allowed cores, one worker each. Call
// before the first tensor; false when there are fewer.
inline bool use_cores(int cores) {
  const std::vector<int> allowed = allowed_cores();
  if (static_cast<int>(allowed.size()) < cores) return false;
  cpu_set_t set;
  CPU_ZERO(&set);
  for (int i = 0; i < cores; ++i)
    CPU_SET(allowed[static_cast<size_t>(i)], &set);
  return sched_setaffinity(0, sizeof set, &set) == 0;
}

}  // namespace berth_bench

#endif  // BERTH_BENCH_STEP_MODELS_H_
