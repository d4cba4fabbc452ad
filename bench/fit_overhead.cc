// What fit adds to a step beyond its compiled plan, with 3 metrics and 3
// callbacks: --cores K --seconds T.
//
// The model is so small that the plan takes few microseconds; steps of fit and
// calls of the same step are timed by turns, and the best of each compared.

#include <algorithm>
#include <limits>
#include <vector>

#include "bench_common.h"
#include "berth/berth.h"
#include "count_allocations.h"

using namespace berth;
using namespace berth_bench;

namespace {

constexpr int64_t kSteps = 2000;

// Overrides what costs at each batch.
class Counter : public keras::CallbackBase {
 public:
  void on_train_batch_begin(keras::Model&, int64_t) override { ++begun; }
  void on_train_batch_end(keras::Model&, int64_t) override { ++ended; }
  int64_t begun = 0, ended = 0;
};

keras::Sequential model_with(const keras::Optimizer& optimizer) {
  auto model = keras::Sequential({keras::InputLayer({4}), keras::Dense(2)});
  model.compile(
      {.optimizer = optimizer,
       .loss = keras::losses::CategoricalCrossentropy({.from_logits = true}),
       .metrics = {"categorical_accuracy", "mse", "binary_accuracy"}});
  return model;
}

}  // namespace

int main(int argc, char** argv) {
  const Args args = parse_args(argc, argv);
  if (!use_cores(args.cores)) {
    return skip("fit_overhead", args.cores, "fewer cores than asked for");
  }
  auto model = model_with(keras::SGD(0.01));
  const Tensor x = ones({8, 4}), y = ones({8, 2});
  const Tensors xs = {x}, ys = {y};
  // Elements that cost nothing: the same tensors again.
  const auto batches = data::Dataset::from_generator(
      [&] {
        return [&, left = kSteps]() mutable -> std::optional<Tensors> {
          if (left-- == 0) return std::nullopt;
          return Tensors{x, y};
        };
      },
      {x.spec(), y.spec()});
  const auto counter = std::make_shared<Counter>();
  int64_t seen = 0;
  const std::vector<keras::Callback> callbacks = {
      {.object = counter},
      {.on_train_batch_end = [&](keras::Model&, int64_t) { ++seen; }},
      keras::make_callback<Counter>()};
  double fit_s = std::numeric_limits<double>::infinity();
  double step_s = fit_s, data_s = fit_s;
  const double until = now_seconds() + args.seconds;
  do {
    double start = now_seconds();
    model.fit(batches, {.verbose = 0, .callbacks = callbacks});
    fit_s = std::min(fit_s, now_seconds() - start);
    start = now_seconds();
    for (int64_t i = 0; i < kSteps; ++i) model.train_on_batch(xs, ys);
    step_s = std::min(step_s, now_seconds() - start);
    start = now_seconds();
    for (const Tensors& element : batches) seen += element.size() == 0;
    data_s = std::min(data_s, now_seconds() - start);
  } while (now_seconds() < until);
  const auto per_step = [](double s) {
    return s * 1e6 / static_cast<double>(kSteps);
  };
  // Per step, over two fits of different length: what an epoch allocates
  // cancels out.
  const auto allocations_of = [&](int64_t steps) {
    const long before = allocations();
    model.fit(batches.take(steps), {.verbose = 0, .callbacks = callbacks});
    return allocations() - before;
  };
  allocations_of(10);
  const long few = allocations_of(500), many = allocations_of(1500);
  const auto fetch = [&](int64_t steps) {
    const long before = allocations();
    for (const Tensors& e : batches.take(steps)) seen += e.size() == 0;
    return allocations() - before;
  };
  const long fetched_few = fetch(500), fetched_many = fetch(1500);
  Line("fit_overhead", args.cores)
      .add("fit_us", per_step(fit_s))
      .add("step_us", per_step(step_s))
      .add("data_us", per_step(data_s))
      .add("overhead_us", per_step(fit_s - step_s - data_s))
      .add("allocations_per_step",
           static_cast<double>((many - few) - (fetched_many - fetched_few)) /
               1000)
      .print();
}
