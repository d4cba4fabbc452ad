// What equal bits cost: one training step on 4 replicas of one core, with
// {.slices = n} against default slicing, in turns: --model mlp or cnn.

#include <memory>
#include <string>

#include "bench_common.h"
#include "berth/config.h"
#include "distribute/data_parallel/split_batch.h"
#include "function/graph_rewrite.h"
#include "step_models.h"

using namespace berth;
using namespace berth_bench;

namespace {

constexpr int kReplicas = 4;
constexpr int64_t kBatch = 256;
constexpr int kRounds = 6;

using Step = Function<Tensor(const Tensor&, const Tensor&)>;

class Split final : public GraphRewrite {
 public:
  explicit Split(int slices) {
    for (int r = 0; r < kReplicas; ++r) {
      plan_.replicas.push_back(
          {"/job:localhost/replica:0/task:0/device:CPU:" + std::to_string(r)});
    }
    plan_.slices = slices;
  }
  void apply(Graph& graph) const override {
    distribute::split_batch(graph, plan_);
  }
  int slices() const override { return plan_.slices; }

 private:
  distribute::SplitPlan plan_;
};

Step step_of(const StepModel& net, int slices) {
  return function(
      [&net](const Tensor& x, const Tensor& y) { return net(x, y); },
      {.name = "step", .rewrite = std::make_shared<const Split>(slices)});
}

}  // namespace

int main(int argc, char** argv) {
  const Args args = parse_args(argc, argv);
  const std::string model = args.model.empty() ? "mlp" : args.model;
  if (!use_cores(kReplicas)) {
    return skip("replicas_bits", kReplicas, "fewer than 4 cores");
  }
  config::set_device_list("CPUx4");
  debugging::set_diagnostic_handler([](const auto&) {});
  const SmallModel net(model == "cnn", kBatch);
  constexpr int kWays[] = {0, 4, 8, 32};  // slices; 0: the default
  constexpr int kCount = std::size(kWays);
  std::vector<Step> steps;
  for (const int slices : kWays) steps.push_back(step_of(net, slices));
  Timing best[kCount];
  for (int round = 0; round < kRounds; ++round) {
    for (int w = 0; w < kCount; ++w) {
      int i = 0;
      const Timing t =
          measure([&] { steps[w](net.images(i), net.labels(i)), ++i; },
                  args.seconds / kRounds / kCount);
      if (round == 0 || t.best < best[w].best) best[w] = t;
    }
  }
  if (std::getenv("SHOW_PLAN")) {
    for (auto& step : steps)
      std::fprintf(stderr, "%s\n", step.text("plan").c_str());
  }
  Line("replicas_bits", kReplicas)
      .add("model", model)
      .timing(best[1], "us", 1e6)
      .add("default_us", best[0].best * 1e6)
      .add("over_default", best[1].best / best[0].best)
      .add("over_default_8_slices", best[2].best / best[0].best)
      .add("over_default_32_slices", best[3].best / best[0].best)
      .print();
}
