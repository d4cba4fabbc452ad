// Splitting a step over replicas gives what one device gives.

#include "distribute/data_parallel/split_batch.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "base/fresh_process_testing.h"
#include "berth/device.h"
#include "berth/errors.h"
#include "berth/function.h"
#include "berth/gradient_tape.h"
#include "berth/ops/array.h"
#include "berth/ops/control_flow.h"
#include "berth/ops/conv.h"
#include "berth/ops/math.h"
#include "berth/ops/nn.h"
#include "berth/ops/random.h"
#include "device/device_manager.h"
#include "device/gpu_testing.h"
#include "function/graph_rewrite.h"

namespace berth::distribute {
namespace {

using Names = std::vector<std::string>;
using Counts = std::vector<int64_t>;

bool has(const Names& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

class Split final : public GraphRewrite {
 public:
  explicit Split(SplitPlan plan) : plan_(std::move(plan)) {}
  void apply(Graph& graph) const override {
    report = split_batch(graph, plan_);
    for (const Node& n : graph.nodes) {
      ops += n.op->kind() == OpKind::kCompute && n.replica > 0;
      gathers += n.op->name() == "ConcatV2";
    }
  }
  int slices() const override { return plan_.slices; }
  mutable SplitReport report;
  mutable int ops = 0;      // made for replicas other than the first
  mutable int gathers = 0;  // values joined from parts

 private:
  const SplitPlan plan_;
};

std::string cpu(int i) {
  return "/job:localhost/replica:0/task:0/device:CPU:" + std::to_string(i);
}

// All replicas on one device: splitting does not depend on the devices.
SplitPlan replicas(int n, std::vector<int> shares = {}) {
  SplitPlan plan;
  plan.replicas.assign(static_cast<size_t>(n), {cpu(0)});
  plan.shares = std::move(shares);
  return plan;
}

Tensor numbers(const Shape& shape, uint64_t seed) {
  std::vector<float> v(static_cast<size_t>(shape.num_elements()));
  uint64_t s = seed * 2654435761u + 1;
  for (float& x : v) {
    s = s * 6364136223846793005u + 1442695040888963407u;
    x = static_cast<float>(static_cast<double>(s >> 40) / (1 << 24) - 0.5);
  }
  return constant(v, shape);
}

void expect_near(const Tensors& a, const Tensors& b, double relative) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) {
    const auto x = a[i].to_vector<double>(), y = b[i].to_vector<double>();
    ASSERT_EQ(x.size(), y.size());
    double most = 0;
    for (const double v : x) most = std::max(most, std::abs(v));
    for (size_t k = 0; k < x.size(); ++k) {
      ASSERT_NEAR(x[k], y[k], relative * std::max(most, 1e-3))
          << "result " << i << ", element " << k;
    }
  }
}

using Fn = std::function<Tensors(const Tensor& x, const Tensor& y)>;

// Runs `fn` as it is and split; compares all results.
std::shared_ptr<const Split> check(const Fn& fn, const Tensor& x,
                                   const Tensor& y, const SplitPlan& plan) {
  const auto split = std::make_shared<const Split>(plan);
  const auto whole = function(fn);
  const auto parts = function(fn, {.rewrite = split});
  random::set_seed(3);
  const Tensors want = whole(x, y);
  random::set_seed(3);
  expect_near(want, parts(x, y), 1e-5);
  return split;
}

// DenseLayers layers, a mean loss, gradients of all variables.
struct DenseLayers {
  Variable w1{numbers({6, 8}, 1)}, b1{numbers({8}, 2)}, w2{numbers({8, 3}, 3)};

  Tensors operator()(const Tensor& x, const Tensor& y) const {
    GradientTape tape;
    const Tensor h = nn::relu(matmul(x, w1.value()) + b1.value());
    const Tensor out = matmul(h, w2.value());
    const Tensor loss = math::reduce_mean(math::square(out - y));
    Tensors r = tape.gradient(loss, std::vector{w1, b1, w2});
    r.push_back(loss);
    r.push_back(out);
    return r;
  }
};

TEST(SplitBatch, DenseGradientsAreThoseOfOneDevice) {
  const DenseLayers model;
  const Tensor x = numbers({12, 6}, 4), y = numbers({12, 3}, 5);
  for (int n = 1; n <= 4; ++n) {
    const auto split = check(model, x, y, replicas(n));
    EXPECT_EQ(split->report.whole, Names{});
    EXPECT_EQ(split->report.batch, n == 0 ? 0 : 12);
    if (n > 1) {
      EXPECT_GT(split->ops, 5) << "nothing was split";
    }
  }
}

TEST(SplitBatch, UnevenAndEmptySharesChangeNothing) {
  const DenseLayers model;
  for (const int64_t batch : {1, 2, 3, 5, 7, 13}) {
    const Tensor x = numbers({batch, 6}, 4), y = numbers({batch, 3}, 5);
    check(model, x, y, replicas(4));
    check(model, x, y, replicas(2, {1, 3}));
    check(model, x, y, replicas(3, {0, 1, 5}));
  }
}

TEST(SplitBatch, SharesAreCountsOfSlicesAndCoverTheBatch) {
  EXPECT_EQ(examples_of(replicas(2, {1, 3}), 32), (Counts{8, 24}));
  EXPECT_EQ(examples_of(replicas(3), 10), (Counts{3, 3, 4}));
  EXPECT_EQ(examples_of(replicas(4), 2), (Counts{0, 0, 1, 1}));
  EXPECT_THROW(examples_of(replicas(2, {1}), 8), errors::InvalidArgument);
  EXPECT_THROW(examples_of(replicas(2, {0, 0}), 8), errors::InvalidArgument);
  EXPECT_THROW(examples_of(replicas(2, {-1, 2}), 8), errors::InvalidArgument);
}

TEST(SplitBatch, ConvolutionAndBatchNormUseTheStatisticsOfAllExamples) {
  const Variable w(numbers({3, 3, 2, 4}, 6)), scale(numbers({4}, 7)),
      offset(numbers({4}, 8));
  const Fn fn = [&](const Tensor& x, const Tensor& y) {
    GradientTape tape;
    const Tensor c = nn::conv2d(x, w.value(), {.padding = "SAME"});
    const auto n = nn::fused_batch_norm(c, scale.value(), offset.value(), {});
    const Tensor p = nn::max_pool2d(nn::relu(n.y));
    const Tensor flat = reshape(p, {x.shape()[0], -1});
    const Tensor loss = math::reduce_mean(math::square(flat - y));
    Tensors r = tape.gradient(loss, std::vector{w, scale, offset});
    r.insert(r.end(), {loss, n.batch_mean, n.batch_variance});
    return r;
  };
  for (const int64_t batch : {8, 5}) {
    const Tensor x = numbers({batch, 6, 6, 2}, 9), y = numbers({batch, 36}, 10);
    const auto split = check(fn, x, y, replicas(3));
    EXPECT_EQ(split->report.whole, Names{});
    check(fn, x, y, replicas(2, {3, 5}));
  }
}

// Groups of the batch that lie within one replica only need the means of their
// moments from others.
TEST(SplitBatch, GroupsWithStatisticsOfTheirOwnStayWithTheirReplica) {
  const Variable scale(numbers({4}, 7)), offset(numbers({4}, 8));
  const Fn fn = [&](const Tensor& x, const Tensor& y) {
    GradientTape tape;
    tape.watch(x);
    const auto n = nn::fused_batch_norm(x, scale.value(), offset.value(),
                                        {.statistics_groups = 4});
    const Tensor loss = math::reduce_mean(n.y * y);
    Tensors r = tape.gradient(loss, {x, scale, offset});
    r.insert(r.end(), {loss, n.batch_mean, n.batch_variance});
    return r;
  };
  const Tensor x = numbers({16, 3, 3, 4}, 9), y = numbers({16, 3, 3, 4}, 10);
  for (const std::vector<int>& shares :
       {std::vector<int>{1, 1}, {1, 3}, {1, 1, 1, 1}}) {
    const int n = static_cast<int>(shares.size());
    const auto split = check(fn, x, y, replicas(n, shares));
    EXPECT_EQ(split->report.whole, Names{});
    // Gathers the gradient of x, which is a result.
    EXPECT_EQ(split->gathers, 1);
  }
  // Groups that straddle two replicas run whole.
  EXPECT_NE(check(fn, x, y, replicas(3))->report.whole, Names{});
}

// Slices are rows: sums along another axis of the batch are computed whole.
TEST(SplitBatch, SlicesOfOtherAxesRunWhole) {
  const Fn fn = [](const Tensor& x, const Tensor& y) {
    const Tensor last = transpose(x, {1, 2, 0}) * 2.f;  // moves, multiplies
    return Tensors{math::reduce_sum(last, {.axis = std::vector<int64_t>{2}}),
                   math::reduce_sum(y, {.axis = std::vector<int64_t>{0}})};
  };
  const Tensor x = numbers({12, 3, 5}, 1), y = numbers({12, 2}, 2);
  EXPECT_EQ(check(fn, x, y, replicas(3))->report.whole, Names{});
  SplitPlan exact = replicas(3);
  exact.slices = 6;
  EXPECT_EQ(check(fn, x, y, exact)->report.whole, Names{"Sum (Sum)"});
}

TEST(SplitBatch, GroupsHaveTheSameBitsOnAnyNumberOfReplicas) {
  const Variable scale(numbers({4}, 7)), offset(numbers({4}, 8));
  const Fn fn = [&](const Tensor& x, const Tensor& y) {
    GradientTape tape;
    const auto n = nn::fused_batch_norm(x, scale.value(), offset.value(),
                                        {.statistics_groups = 4});
    const Tensor loss = math::reduce_mean(n.y * y);
    Tensors r = tape.gradient(loss, std::vector{scale, offset});
    r.insert(r.end(), {loss, n.batch_mean, n.batch_variance});
    return r;
  };
  const Tensor x = numbers({16, 5, 4}, 9), y = numbers({16, 5, 4}, 10);
  for (const int slices : {4, 8}) {
    std::vector<std::vector<float>> first;
    for (int n = 1; n <= 4; ++n) {
      SplitPlan plan = replicas(n);
      plan.slices = slices;
      const auto step =
          function(fn, {.rewrite = std::make_shared<const Split>(plan)});
      std::vector<std::vector<float>> got;
      for (const Tensor& t : step(x, y)) got.push_back(t.to_vector<float>());
      if (first.empty()) first = got;
      EXPECT_EQ(got, first) << n << " replicas, " << slices << " slices";
    }
  }
}

TEST(SplitBatch, RandomNumbersAreThoseOfTheWholeBatch) {
  const Fn fn = [](const Tensor& x, const Tensor&) {
    return Tensors{nn::dropout(x, 0.5, {.seed = 7}),
                   x + random::normal({10, 4}, {.seed = 3})};
  };
  const auto split = check(fn, numbers({10, 4}, 1), numbers({10, 1}, 2),
                           replicas(3, {1, 2, 3}));
  EXPECT_EQ(split->report.whole, Names{});
}

TEST(SplitBatch, OpsWithoutARuleRunWholeAndAreNamed) {
  const Fn fn = [](const Tensor& x, const Tensor&) {
    return Tensors{math::cumsum(x),
                   math::reduce_max(x, {.axis = std::vector<int64_t>{0}})};
  };
  const auto split =
      check(fn, numbers({9, 4}, 1), numbers({9, 1}, 2), replicas(2));
  EXPECT_TRUE(has(split->report.whole, "Cumsum (Cumsum)"));
  EXPECT_TRUE(has(split->report.whole, "Max (Max)"));
}

TEST(SplitBatch, ContrastOfEachWithAllGathersOneSide) {
  const Fn fn = [](const Tensor& x, const Tensor& y) {
    return Tensors{matmul(x, y, {.transpose_b = true})};
  };
  check(fn, numbers({6, 4}, 1), numbers({6, 4}, 2), replicas(3));
}

TEST(SplitBatch, FlattenedTimeStepsStayWithTheirExamples) {
  const Variable w(numbers({4, 5}, 1));
  const Fn fn = [&](const Tensor& x, const Tensor& y) {
    GradientTape tape;
    const int64_t b = x.shape()[0];
    const Tensor rows = reshape(x, {b * 3, 4});
    const Tensor h = reshape(matmul(rows, w.value()), {b, 3, 5});
    const Tensor a = nn::softmax(matmul(h, h, {.transpose_b = true}));
    const Tensor loss = math::reduce_sum(a * a) + math::reduce_mean(y);
    Tensors r = tape.gradient(loss, std::vector<Variable>{w});
    r.push_back(loss);
    return r;
  };
  const auto split =
      check(fn, numbers({7, 3, 4}, 2), numbers({7, 2}, 3), replicas(3));
  EXPECT_EQ(split->report.whole, Names{});
}

TEST(SplitBatch, VariablesAreUpdatedOnce) {
  const Variable w(numbers({4, 2}, 1)), steps(constant(0.f));
  const Tensor before = identity(w.value());
  const auto step = function(
      [&](const Tensor& x, const Tensor& y) {
        GradientTape tape;
        const Tensor loss =
            math::reduce_sum(math::square(matmul(x, w.value()) - y));
        const Tensor g = tape.gradient(loss, w);
        w.assign_sub(g * 0.1f);
        steps.assign_add(constant(1.f));
        return loss;
      },
      {.rewrite = std::make_shared<const Split>(replicas(3))});
  const Tensor x = numbers({8, 4}, 2), y = numbers({8, 2}, 3);
  step(x, y);
  EXPECT_EQ(steps.value().item<float>(), 1);
  const Tensor error = matmul(x, before) - y;
  const Tensor want = before - matmul(x, error, {.transpose_a = true}) * 0.2f;
  expect_near({w.value()}, {want}, 1e-5);
}

// Each memory's copy of a cond writes the variables of this memory.
void conditional_writes() {
  test::use_gpus(2);
  SplitPlan plan;
  for (const char* gpu : {"GPU:0", "GPU:1"}) {
    plan.replicas.push_back(
        {std::string("/job:localhost/replica:0/task:0/device:") + gpu});
  }
  const auto make = [](const char* on) {
    return with_device(on, [] { return Variable(constant(1.f)); });
  };
  // The host has one copy for both.
  for (const char* on : {"/GPU:0", "/CPU:0"}) {
    const Variable w = make("/GPU:0"), v = make(on);
    const auto step = function(
        [&](const Tensor& x) {
          const Tensor sum = math::reduce_sum(x * w.value());
          cond(
              math::greater(sum, constant(0.f)),
              [&] {
                w.assign_add(sum);
                v.assign_sub(sum * v.value());
              },
              [&] { w.assign(constant(1.f)); });
          return w.value() + v.value();
        },
        {.rewrite = std::make_shared<const Split>(plan)});
    const Tensor x = ones({4});
    fresh_process::check(step(x).item<float>() == 5 - 3, "the first step");
    fresh_process::check(step(x).item<float>() == 25 + 57, "the second");
    fresh_process::check(step(-x).item<float>() == 1 + 57, "the other branch");
    fresh_process::check(step(x).item<float>() == 5 - 171, "and again");
  }
}
TEST(SplitBatch, ConditionalWritesAreMadeOncePerMemory) {
  IN_A_FRESH_PROCESS(conditional_writes());
}

TEST(SplitBatch, SlicesGiveTheSameBitsOnAnyNumberOfReplicas) {
  const DenseLayers model;
  for (const int64_t batch : {16, 13, 3}) {
    const Tensor x = numbers({batch, 6}, 4), y = numbers({batch, 3}, 5);
    std::vector<std::vector<float>> first;
    for (int n = 1; n <= 4; ++n) {
      for (const bool equal : {true, false}) {
        SplitPlan plan = replicas(n);
        plan.slices = 8;
        if (!equal) plan.shares = std::vector<int>{3, 1, 2, 5};
        plan.shares.resize(equal ? 0 : static_cast<size_t>(n));
        const auto step = function(
            Fn(model), {.rewrite = std::make_shared<const Split>(plan)});
        std::vector<std::vector<float>> got;
        for (const Tensor& t : step(x, y)) got.push_back(t.to_vector<float>());
        if (first.empty()) first = got;
        EXPECT_EQ(got, first) << n << " replicas, " << batch << " examples";
      }
    }
  }
}

TEST(SplitBatch, ArgumentsOfDifferentLengthsAreRefused) {
  const auto fn = function(
      [](const Tensor& x, const Tensor& y) {
        return math::reduce_sum(x) + math::reduce_sum(y);
      },
      {.rewrite = std::make_shared<const Split>(replicas(2))});
  EXPECT_THROW(fn(numbers({4}, 1), numbers({5}, 2)), errors::InvalidArgument);
}

}  // namespace
}  // namespace berth::distribute
