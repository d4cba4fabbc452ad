#include "berth/ops/ctc.h"

#include <cmath>
#include <map>

#include "berth/gradient_tape.h"
#include "berth/ops/math.h"
#include "ops/testing.h"

namespace berth::test {
namespace {

constexpr int kTime = 4, kClasses = 3;

Doubles logit_values() {
  Doubles v;
  for (int i = 0; i < kTime * kClasses; ++i) {
    v.push_back(std::sin(static_cast<double>(1 + 5 * i * i)));
  }
  return v;
}

// The probability of each list of labels, by adding up every path.
std::map<std::vector<int>, double> all_paths(const Doubles& logits, int blank) {
  std::map<std::vector<int>, double> p;
  for (int code = 0; code < std::pow(kClasses, kTime); ++code) {
    double product = 1;
    std::vector<int> labels;
    for (int t = 0, rest = code, last = -1; t < kTime; ++t, rest /= kClasses) {
      const int k = rest % kClasses;
      double sum = 0;
      for (int c = 0; c < kClasses; ++c) {
        sum += std::exp(logits[static_cast<size_t>(t * kClasses + c)]);
      }
      product *= std::exp(logits[static_cast<size_t>(t * kClasses + k)]) / sum;
      if (k != blank && k != last) labels.push_back(k);
      last = k;
    }
    p[labels] += product;
  }
  return p;
}

Tensor one(int64_t n) { return constant(std::vector<int64_t>{n}); }

TEST(CtcLoss, IsTheSumOverPaths) {
  const auto p = all_paths(logit_values(), 0);
  const Tensor logits = constant(logit_values(), {kTime, 1, kClasses});
  for (const std::vector<int>& labels :
       {std::vector<int>{1, 2}, {2, 2}, {1}, {}}) {
    std::vector<int> padded = labels;
    padded.resize(2, 1);
    const Tensor loss =
        nn::ctc_loss(constant(padded, {1, 2}), logits,
                     one(static_cast<int64_t>(labels.size())), one(kTime));
    EXPECT_NEAR(loss.item<double>(), -std::log(p.at(labels)), 1e-10);
  }
  // Batch first, and with the blank counted from the end.
  const auto last = all_paths(logit_values(), kClasses - 1);
  const Tensor loss = nn::ctc_loss(
      constant(std::vector<int>{0, 1}, {1, 2}), transpose(logits, {1, 0, 2}),
      one(2), one(kTime), {.logits_time_major = false, .blank_index = -1});
  EXPECT_NEAR(loss.item<double>(), -std::log(last.at({0, 1})), 1e-10);
}

TEST(CtcLoss, IsInfiniteWithoutAPath) {
  const Tensor logits = zeros({2, 1, 3}, float64);
  const Tensor labels = constant(std::vector<int>{1, 1}, {1, 2});
  EXPECT_EQ(nn::ctc_loss(labels, logits, one(2), one(2)).item<double>(),
            INFINITY);
  expect_invalid(
      [&] { nn::ctc_loss(labels, logits, one(3), one(2)).to_vector<double>(); },
      "length 0 of the batch is 3; expected 0 to 2");
  expect_invalid(
      [&] {
        nn::ctc_loss(labels + 2, logits, one(2), one(2)).to_vector<double>();
      },
      "label 0 of row 0 is 3; expected a class of 3");
}

// The loss and its gradient are TensorFlow's.
TEST(CtcLoss, TakesTheBlankAsALabelLikeAnyOther) {
  const Tensor logits = constant(logit_values(), {kTime, 1, kClasses});
  GradientTape tape;
  tape.watch(logits);
  const Tensor loss = nn::ctc_loss(constant(std::vector<int>{1, 0, 2}, {1, 3}),
                                   logits, one(3), one(kTime));
  EXPECT_NEAR(loss.item<double>(), 3.1570659, 1e-6);
  EXPECT_NEAR(tape.gradient(loss, {logits})[0].to_vector<double>()[1],
              -0.79199785, 1e-6);
}

TEST(CtcGreedy, MergesRepeats) {
  // Classes 1, 1, blank (2), 1, 0.
  const Tensor ids = constant(std::vector<int>{1, 1, 2, 1, 0}, {5, 1});
  const Tensor inputs = one_hot(ids, 3) * 2.0;
  const nn::CtcGreedy r = nn::ctc_greedy_labels(inputs, one(5));
  EXPECT_EQ(r.decoded.to_vector<int64_t>(),
            (std::vector<int64_t>{1, 1, 0, -1, -1}));
  EXPECT_EQ(r.neg_sum_logits.item<float>(), -10);
  const nn::CtcGreedy kept =
      nn::ctc_greedy_labels(inputs, one(4), {.merge_repeated = false});
  EXPECT_EQ(kept.decoded.to_vector<int64_t>(),
            (std::vector<int64_t>{1, 1, 1, -1, -1}));
}

TEST(CtcBeam, FindsTheMostProbableLabels) {
  const auto p = all_paths(logit_values(), kClasses - 1);
  const nn::CtcBeam r =
      nn::ctc_beam_search_labels(constant(logit_values(), {kTime, 1, kClasses}),
                                 one(kTime), {.top_paths = 2});
  const Doubles scores = r.log_probability.to_vector<double>();
  const auto decoded = r.decoded.to_vector<int64_t>();
  EXPECT_GT(scores[0], scores[1]);
  double best = 0;
  for (const auto& [labels, q] : p) best = std::max(best, q);
  EXPECT_NEAR(scores[0], std::log(best), 1e-10);
  for (size_t path = 0; path < 2; ++path) {
    std::vector<int> labels;
    for (size_t t = 0; t < kTime && decoded[path * kTime + t] >= 0; ++t) {
      labels.push_back(static_cast<int>(decoded[path * kTime + t]));
    }
    EXPECT_NEAR(scores[path], std::log(p.at(labels)), 1e-10);
  }
}

}  // namespace
}  // namespace berth::test
