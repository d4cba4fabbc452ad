// A training step of LSTM 2 x 512, sequence 100, batch 32, and the ops that it
// is made of, each alone: --model step (default), forward, backward, product.
// Peers: peers/python/{torch,tensorflow}_step.py --model lstm.
#include <functional>

#include "bench_common.h"
#include "berth/berth.h"
#include "step_models.h"

namespace {

using namespace berth;

constexpr int64_t kUnits = 512, kSteps = 100, kBatch = 32;
// Multiplications and additions of one layer's products, forwards.
constexpr double kFlops = 2.0 * 2 * kBatch * kSteps * kUnits * 4 * kUnits;

void report(const std::string& name, const berth_bench::Args& args,
            double flops, const std::function<void()>& step) {
  const auto timing = berth_bench::measure(step, args.seconds);
  berth_bench::Line("lstm_" + name, args.cores)
      .timing(timing, "ms", 1e3)
      .add("gflops", flops / timing.best / 1e9)
      .print();
}

void train_step(const berth_bench::Args& args) {
  keras::Sequential model({keras::InputLayer({kSteps, kUnits}),
                           keras::LSTM(kUnits, {.return_sequences = true}),
                           keras::LSTM(kUnits), keras::Dense(10)});
  model.compile({.optimizer = keras::optimizers::Adam(1e-3),
                 .loss = keras::losses::SparseCategoricalCrossentropy(
                     {.from_logits = true})});
  const Tensor x = random::normal({kBatch, kSteps, kUnits});
  const Tensor y = zeros({kBatch}, int64);
  report("step", args, 3 * 2 * kFlops,
         [&] { (void)model.train_on_batch(x, y).item<float>(); });
}

// The recurrent half of a layer: half of its products, backwards as many
// again, without those of the kernel's gradient.
void passes(const berth_bench::Args& args, bool backward) {
  const Tensor parts = random::normal({kBatch, kSteps, 4 * kUnits});
  const Tensor kernel = random::normal({kUnits, 4 * kUnits}) * 0.04;
  const Tensor h = zeros({kBatch, kUnits});
  auto run = function([&](const Tensor& parts) {
    if (!backward) return nn::lstm(parts, kernel, h, h).last_cell;
    GradientTape tape;
    tape.watch(parts);
    const Tensor y = nn::lstm(parts, kernel, h, h).outputs;
    return math::reduce_sum(tape.gradient(y, parts));
  });
  report(backward ? "backward" : "forward", args,
         kFlops / 2 * (backward ? 2 : 1),
         [&] { (void)run(parts).to_vector<float>(); });
}

// The inputs' product of a layer.
void product(const berth_bench::Args& args) {
  const Tensor x = random::normal({kBatch * kSteps, kUnits});
  const Tensor kernel = random::normal({kUnits, 4 * kUnits});
  auto run = function([&](const Tensor& x) { return matmul(x, kernel); });
  report("product", args, kFlops / 2, [&] { (void)run(x); });
}

}  // namespace

int main(int argc, char** argv) {
  const auto args = berth_bench::parse_args(argc, argv);
  if (!berth_bench::use_cores(args.cores)) {
    return berth_bench::skip("lstm", args.cores, "fewer cores than asked for");
  }
  if (args.model.empty() || args.model == "step") train_step(args);
  if (args.model == "forward") passes(args, false);
  if (args.model == "backward") passes(args, true);
  if (args.model == "product") product(args);
  return 0;
}
