// What fit adds to a step beyond its compiled plan, with 3 metrics and 3
// callbacks: --cores K --seconds T.
//
// The model is so small that the plan takes few microseconds. A step of fit is
// the difference of a long fit and a short one, so that what a fit costs once
// cancels out; it is compared with calls of the same step by turns, and with
// what its input costs alone, the best of each.

#include <algorithm>
#include <limits>
#include <optional>
#include <vector>

#include "bench_common.h"
#include "berth/berth.h"
#include "count_allocations.h"

using namespace berth;
using namespace berth_bench;

namespace {

constexpr int64_t kShort = 1000, kLong = 6000, kSteps = kLong - kShort;

// Overrides what costs at each batch.
class Counter : public keras::CallbackBase {
 public:
  void on_train_batch_begin(keras::Model&, int64_t) override { ++begun; }
  void on_train_batch_end(keras::Model&, int64_t) override { ++ended; }
  int64_t begun = 0, ended = 0;
};

// Elements that cost next to nothing: the same tensors again.
data::Dataset same_again(const Tensor& x, const Tensor& y, int64_t steps) {
  return data::Dataset::from_generator(
      [=] {
        return [=, left = steps]() mutable -> std::optional<Tensors> {
          if (left-- == 0) return std::nullopt;
          return Tensors{x, y};
        };
      },
      {x.spec(), y.spec()});
}

struct Best {
  double seconds = std::numeric_limits<double>::infinity();
  long allocations = std::numeric_limits<long>::max();

  template <class Fn>
  void measure(const Fn& fn) {
    const long before = berth_bench::allocations();
    const double start = now_seconds();
    fn();
    seconds = std::min(seconds, now_seconds() - start);
    allocations = std::min(allocations, berth_bench::allocations() - before);
  }
};

// The cost of fn(kLong) less that of fn(kShort), per step.
struct Cost {
  Best few, many;

  template <class Fn>
  void measure(const Fn& fn) {
    few.measure([&] { fn(kShort); });
    many.measure([&] { fn(kLong); });
  }
  double us() const { return (many.seconds - few.seconds) * 1e6 / kSteps; }
  double each() const {
    return static_cast<double>(many.allocations - few.allocations) / kSteps;
  }
};

}  // namespace

int main(int argc, char** argv) {
  const Args args = parse_args(argc, argv);
  if (!use_cores(args.cores)) {
    return skip("fit_overhead", args.cores, "fewer cores than asked for");
  }
  auto model = keras::Sequential({keras::InputLayer({4}), keras::Dense(2)});
  model.compile(
      {.optimizer = keras::SGD(0.01),
       .loss = keras::losses::CategoricalCrossentropy({.from_logits = true}),
       .metrics = {"categorical_accuracy", "mse", "binary_accuracy"}});
  const Tensor x = ones({8, 4}), y = ones({8, 2});
  const Tensors xs = {x}, ys = {y};
  int64_t seen = 0;
  const std::vector<keras::Callback> callbacks = {
      keras::make_callback<Counter>(),
      keras::make_callback<Counter>(),
      {.on_train_batch_end = [&](keras::Model&, int64_t) { ++seen; }}};
  Cost fit, step, input;
  const double until = now_seconds() + args.seconds;
  do {
    fit.measure([&](int64_t steps) {
      model.fit(same_again(x, y, steps),
                {.verbose = 0, .callbacks = callbacks});
    });
    step.measure([&](int64_t steps) {
      for (int64_t i = 0; i < steps; ++i) model.train_on_batch(xs, ys);
    });
    input.measure([&](int64_t steps) {
      Tensors element;
      auto it = same_again(x, y, steps).make_iterator();
      while (it.next(element)) ++seen;
    });
  } while (now_seconds() < until);
  Line("fit_overhead", args.cores)
      .add("fit_us", fit.us())
      .add("step_us", step.us())
      .add("input_us", input.us())
      .add("overhead_us", fit.us() - step.us() - input.us())
      .add("allocations", fit.each())
      .add("allocations_of_step", step.each())
      .add("allocations_of_input", input.each())
      .print();
}
