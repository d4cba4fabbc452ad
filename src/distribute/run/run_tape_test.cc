// run() inside a tape, and losses inside run(), in closed form.

#include <gtest/gtest.h>

#include "base/fresh_process_testing.h"
#include "berth/berth.h"
#include "distribute/strategy/strategy_testing.h"

namespace berth::distribute {
namespace {

using fresh_process::check;
using fresh_process::refuses;
using Floats = std::vector<float>;

TEST(RunAndTape, ATapeAroundItSeesTheReplicas) {
  on_two([](const MirroredStrategy& strategy) {
    const auto f = berth::function([](const Tensor& x) {
      const Tensor s = get_replica_context()->all_reduce(ReduceOp::kSum, x);
      return s * s;
    });
    const Tensor a = constant(1.f), b = constant(4.f);
    GradientTape tape;
    tape.watch(a);
    tape.watch(b);
    // (a + b)^2 in each replica.
    const Tensor loss =
        strategy.reduce(ReduceOp::kSum, strategy.run(f, pair_of(a, b)));
    check(values(loss) == Floats{50}, "2 * 25");
    const Tensors grads = tape.gradient(loss, std::vector<Source>{a, b});
    check(values(grads[0]) == Floats{20} && values(grads[1]) == Floats{20},
          "2 * 2 (a + b)");
  });
}

// d/dw of the sum over replicas of w^2 * x_r with w = 1 is 2 * (1 + 2),
// whichever memory a replica reads w from.
TEST(RunAndTape, TapesAroundItSeeTheVariablesOfAllReplicas) {
  on_two([](const MirroredStrategy& strategy) {
    const Variable w = [&] {
      const auto scope = strategy.scope();
      return Variable(constant(1.f), {.name = "w"});
    }();
    const auto part = [&](const Tensor& x) { return w.value() * w * x; };
    const auto kept = berth::function(part);
    const auto gradient = [&](const auto& of, const PerReplica& x) {
      GradientTape tape;
      const PerReplica y = strategy.run(of, x);
      return tape.gradient(strategy.reduce(ReduceOp::kSum, y), w);
    };
    const PerReplica x = pair_of(constant(1.f), constant(2.f));
    for (int i = 0; i < 2; ++i) {
      check(values(gradient(part, x)) == Floats{6}, "a lambda");
      check(values(gradient(kept, x)) == Floats{6}, "a function");
    }
    const auto around = berth::function([&](const Tensor& a, const Tensor& b) {
      return gradient(part, pair_of(a, b));
    });
    check(values(around(x[0], x[1])) == Floats{6}, "in a trace");
    check(values(around(x[0], x[1])) == Floats{6}, "in a trace, again");
    // Only one replica depends on it.
    GradientTape tape;
    const PerReplica y = strategy.run(part, x);
    const Tensor dw = tape.gradient(y[1], w);
    check(values(dw) == Floats{4}, "replica 1 alone");
    keras::SGD(0.25).apply_gradients({dw}, {w});
    check(values(w.value()) == Floats{0}, "applied");
  });
}

TEST(RunAndTape, TapesAroundItGiveSecondDerivatives) {
  on_two([](const MirroredStrategy& strategy) {
    const Variable w = [&] {
      const auto scope = strategy.scope();
      return Variable(constant(2.f), {.name = "w"});
    }();
    GradientTape outer;
    Tensor dw;
    {
      GradientTape inner;
      const PerReplica y =
          strategy.run([&](const Tensor& x) { return w.value() * w * w * x; },
                       pair_of(constant(1.f), constant(2.f)));
      dw = inner.gradient(strategy.reduce(ReduceOp::kSum, y), w);
    }
    check(values(dw) == Floats{36}, "3 * 2^2 * (1 + 2)");
    check(values(outer.gradient(dw, w)) == Floats{36}, "6 * 2 * (1 + 2)");
  });
}

// x is split 5 + 3, z before it 2 + 2: shares of z are not those of the loss.
TEST(RunAndTape, LossesOfOtherValuesThanTheBatchAreRefused) {
  on_two([](const MirroredStrategy& strategy) {
    const keras::Loss mse("mse");
    const PerReplica x = pair_of(ones({5, 1}), ones({3, 1}) * 3.f);
    const auto loss = [&](const Tensor& t) { return mse(t * 0.f, t); };
    const auto whole = strategy.run(loss, x);
    check(values(strategy.reduce(ReduceOp::kSum, whole)) == Floats{4},
          "(5 * 1 + 3 * 9) / 8");
    refuses<errors::InvalidArgument>(
        [&] {
          strategy.run([&](const Tensor&, const Tensor& t) { return loss(t); },
                       pair_of(ones({2}), ones({2})), x);
        },
        "expected the batch as the first");
    refuses<errors::InvalidArgument>(
        [&] {
          strategy.run(
              [&](const Tensor& t) {
                return loss(slice(t, {0, 0}, {2, 1}));
              },
              x);
        },
        "expected the batch as the first");
  });
}

}  // namespace
}  // namespace berth::distribute
