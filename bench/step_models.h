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

}  // namespace berth_bench

#endif  // BERTH_BENCH_STEP_MODELS_H_
