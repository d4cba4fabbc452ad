// Distributed datasets, reduce and gather against closed forms.

#include <gtest/gtest.h>

#include "base/fresh_process_testing.h"
#include "berth/berth.h"
#include "distribute/strategy/strategy_core.h"
#include "distribute/strategy/strategy_testing.h"

namespace berth::distribute {
namespace {

using fresh_process::check;
using fresh_process::refuses;
using Floats = std::vector<float>;

data::Dataset numbers(int64_t n) {
  return data::Dataset::from_tensor_slices({math::cast(range(0, n), float32)});
}

TEST(Reduce, SumsAndAverages) {
  on_two([](const MirroredStrategy& s) {
    const auto x = s.run(
        [](const Tensor& t) { return t * 1.f; },
        pair_of(constant({{1.f, 2.f}}), constant({{3.f, 4.f}, {5.f, 9.f}})));
    const auto y = pair_of(constant(2.f), constant(4.f));
    check(values(s.reduce(ReduceOp::kSum, y)) == Floats{6}, "sum");
    check(values(s.reduce(ReduceOp::kMean, y)) == Floats{3}, "mean");
    // A mean over all examples counts each once.
    check(values(s.reduce(ReduceOp::kSum, x, 0)) == Floats{9, 15}, "axis 0");
    check(values(s.reduce(ReduceOp::kMean, x, 0)) == Floats{3, 5}, "axis 0");
    check(values(s.gather(x, 0)) == Floats{1, 2, 3, 4, 5, 9}, "gather");
    check(s.local_results(y).size() == 2, "local");
    check(s.reduce(ReduceOp::kSum, y).device() == s.devices()[0][0], "there");
    refuses<errors::InvalidArgument>([&] { s.reduce(ReduceOp::kSum, x, 2); },
                                     "expected an axis");
    refuses<errors::InvalidArgument>(
        [&] { s.reduce(ReduceOp::kSum, PerReplica({constant(1.f)})); },
        "expected one per replica");
    refuses<errors::InvalidArgument>([&] { s.gather(y, 0); }, "scalars");
    // A last, smaller batch is not added to every row.
    for (const ReduceOp op : {ReduceOp::kSum, ReduceOp::kMean}) {
      refuses<errors::InvalidArgument>([&] { s.reduce(op, x); },
                                       "expected equal shapes");
    }
  });
}

TEST(Reduce, OneValueIsItsMeanAndHasNoSum) {
  on_two([](const MirroredStrategy& s) {
    check(values(s.reduce(ReduceOp::kMean, constant(2.f))) == Floats{2},
          "mean");
    refuses<errors::InvalidArgument>(
        [&] { s.reduce(ReduceOp::kSum, constant(2.f)); },
        "the sum over 2 replicas of one value");
    const OneDeviceStrategy one("CPU:0");
    check(values(one.reduce(ReduceOp::kSum, constant({1.f, 2.f}), 0)) ==
              Floats{3},
          "one replica");
  });
}

TEST(Reduce, IsRefusedInAReplica) {
  on_two([](const MirroredStrategy& s) {
    const auto x = pair_of(constant({1.f}), constant({2.f}));
    const auto refused = [&](const std::function<Tensor(const Tensor&)>& f,
                             const char* part) {
      refuses<errors::FailedPrecondition>([&] { s.run(f, x); }, part);
    };
    refused([&](const Tensor& t) { return s.reduce(ReduceOp::kMean, t); },
            "get_replica_context()->all_reduce()");
    refused([&](const Tensor&) { return s.reduce(ReduceOp::kSum, x, 0); },
            "get_replica_context()->all_reduce()");
    refused([&](const Tensor&) { return s.gather(x, 0); },
            "get_replica_context()->all_gather()");
  });
}

TEST(Reduce, RefusesUnequalShapesInATraceToo) {
  on_two([](const MirroredStrategy& s) {
    const auto f = berth::function(
        [&](const Tensor& a, const Tensor& b) {
          return s.reduce(ReduceOp::kSum, pair_of(a, b));
        },
        {.input_signature = {{{-1}, float32}, {{-1}, float32}}});
    const Tensor a = constant({1.f, 2.f});
    check(values(f(a, a)) == Floats{2, 4}, "equal");
    refuses<errors::InvalidArgument>([&] { f(a, constant({3.f})); },
                                     "expected equal shapes");
  });
}

TEST(Reduce, WorksInATraceWithUnknownLengths) {
  on_two([](const MirroredStrategy& s) {
    const auto f = berth::function(
        [&](const Tensor& a, const Tensor& b) {
          return s.reduce(ReduceOp::kMean, pair_of(a, b), 0);
        },
        {.input_signature = {{{-1}, float32}, {{-1}, float32}}});
    check(values(f(constant({1.f}), constant({3.f, 8.f}))) == Floats{4}, "3");
    check(values(f(constant({1.f, 2.f}), constant({3.f}))) == Floats{2}, "3");
    check(f.num_traces() == 1, "one trace");
  });
}

TEST(DistributedDataset, CutsGlobalBatches) {
  on_two([](const MirroredStrategy& s) {
    const auto d =
        s.experimental_distribute_dataset(numbers(11).batch(4).prefetch(2));
    check(d.cardinality() == 3, "three batches");
    std::vector<std::pair<Floats, Floats>> seen;
    for (int pass = 0; pass < 2; ++pass) {
      seen.clear();
      for (const std::vector<PerReplica>& batch : d) {
        check(batch.size() == 1, "one component");
        seen.emplace_back(values(batch[0][0]), values(batch[0][1]));
        check(batch[0][1].backing_device() ==
                  (s.devices()[1][0].find("GPU") == std::string::npos
                       ? s.devices()[0][0]
                       : s.devices()[1][0]),
              "where it is used");
      }
    }
    const std::vector<std::pair<Floats, Floats>> wanted = {
        {{0, 1}, {2, 3}}, {{4, 5}, {6, 7}}, {{8}, {9, 10}}};
    check(seen == wanted, "parts");
  });
}

TEST(DistributedDataset, BatchesMayBeTooSmallForAllReplicas) {
  on_two([](const MirroredStrategy& s) {
    const auto sum = berth::function([](const Tensor& x) {
      return get_replica_context()->all_reduce(ReduceOp::kSum,
                                               math::reduce_sum(x));
    });
    Floats sums;
    for (const auto& batch :
         s.experimental_distribute_dataset(numbers(5).batch(4))) {
      sums.push_back(s.run(sum, batch[0])[1].item<float>());
    }
    check(sums == Floats{6, 4}, "0 + 1 + 2 + 3, then 4");
    sums.clear();
    for (const auto& batch :
         s.experimental_distribute_dataset(numbers(3).batch(1))) {
      sums.push_back(s.run(sum, batch[0])[1].item<float>());
    }
    check(sums == Floats{0, 1, 2}, "one example for two replicas");
    refuses<errors::InvalidArgument>(
        [&] {
          s.experimental_distribute_dataset(numbers(5)).make_iterator().next();
        },
        "call batch() before");
  });
}

TEST(DistributedDataset, FollowsTheShares) {
  in_a_fresh_process([] {
    two(false);
    const MirroredStrategy s({.shares = {1.0, 3.0}});
    const auto d = s.experimental_distribute_dataset(numbers(32).batch(16));
    auto it = d.make_iterator();
    check((*it.next())[0][0].shape() == Shape{4}, "1 of 4");
    s.core()->set_shares({16, 16});
    check((*it.next())[0][0].shape() == Shape{8}, "moved");
    check(!it.next(), "end");
  });
}

TEST(DistributedDataset, AFunctionMakesBatchesOfOneReplica) {
  on_two([](const MirroredStrategy& s) {
    const auto d =
        s.distribute_datasets_from_function([](const InputContext& c) {
          return numbers(10).batch(c.get_per_replica_batch_size(8));
        });
    check(d.cardinality() == 2, "3 batches for 2 replicas");
    auto it = d.make_iterator();
    const auto first = *it.next();
    check(values(first[0][0]) == Floats{0, 1, 2, 3}, "replica 0");
    check(values(first[0][1]) == Floats{4, 5, 6, 7}, "replica 1");
    const auto last = *it.next();
    check(values(last[0][0]) == Floats{8, 9}, "what is left");
    check(last[0][1].shape() == Shape{0}, "nothing is left");
    check(!it.next(), "end");
  });
}

// The loop of the guide: a linear model, y = 2 x, squared errors by hand.
TEST(DistributedDataset, TrainsLikeOneDevice) {
  on_two([](const MirroredStrategy& s) {
    Variable w;
    {
      const auto scope = s.scope();
      w = Variable(constant(0.f), {.aggregation = VariableAggregation::kSum});
    }
    const auto step = berth::function([&](const Tensor& x) {
      GradientTape tape;
      const Tensor error = x * w - x * 2.f;
      const Tensor loss = math::reduce_sum(error * error) * (1 / 4.f);
      w.assign_sub(tape.gradient(loss, w) * 0.01f);
      return loss;
    });
    float expected = 0;
    int64_t first = 0;
    for (const auto& batch :
         s.experimental_distribute_dataset(numbers(10).batch(4))) {
      float loss = 0, gradient = 0;
      for (int64_t i = first; i < std::min<int64_t>(first + 4, 10); ++i) {
        const auto x = static_cast<float>(i);
        const float error = x * expected - 2 * x;
        loss += error * error / 4;
        gradient += 2 * error * x / 4;
      }
      first += 4;
      const auto losses = s.run(step, batch[0]);
      const float got = s.reduce(ReduceOp::kSum, losses).item<float>();
      check(std::abs(got - loss) <= 1e-4f * loss, "loss");
      expected -= 0.01f * gradient;
      check(std::abs(w.value().item<float>() - expected) < 1e-5f, "w");
    }
    check(first == 12, "three steps");
  });
}

}  // namespace
}  // namespace berth::distribute
