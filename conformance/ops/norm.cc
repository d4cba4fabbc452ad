// Batch normalisation.

#include <cmath>

#include "conformance/ops/families.h"

namespace berth::conformance {

namespace {

constexpr double kEpsilon = 1e-3;
constexpr const char* kGiven = "statistics that are given have no gradient";

// Mean or biased variance per channel, and group, of input 1.
Input moment(int64_t groups, int64_t channels, bool variance) {
  const Shape shape = groups > 1 ? Shape{groups, channels} : Shape{channels};
  return Input(shape).derived([=](const Arrays& before) {
    const Array& x = before[1];
    Array result(x.dtype(), shape);
    const int64_t size = x.size() / groups;
    const double n = static_cast<double>(size / channels);
    for (int64_t r = 0; r < groups * channels; ++r) {
      const int64_t begin = r / channels * size, c = begin + r % channels;
      double mean = 0, squares = 0;
      for (int64_t i = c; i < begin + size; i += channels) mean += x.at(i) / n;
      for (int64_t i = c; i < begin + size; i += channels) {
        squares += (x.at(i) - mean) * (x.at(i) - mean) / n;
      }
      result.set(r, variance ? squares : mean);
    }
    return result;
  });
}

Case& forward(Cases& cases, std::string label, Shape x, bool training,
              int64_t groups = 1) {
  const int64_t channels = x[x.rank() - 1];
  const Shape per{channels};
  Case& c = cases
                .add("FusedBatchNormV3", label + (training ? "" : "_inference"),
                     {Input(x), Input(per), Input(per)})
                .attr("epsilon", kEpsilon)
                .attr("is_training", training)
                .close_to(1e-4, 1e-5)
                .gradient_through(1);
  if (groups > 1) c.attr("statistics_groups", groups);
  if (!training) {
    c.input(Input(per).without_gradient(kGiven));
    c.input(Input(per).uniform(0.5, 2).without_gradient(kGiven));
  }
  return c;
}

Case& backward(Cases& cases, std::string label, Shape x, bool training,
               int64_t groups = 1) {
  const int64_t channels = x[x.rank() - 1];
  const Shape per{channels};
  Case& c =
      cases
          .add("FusedBatchNormGradV3", label + (training ? "" : "_inference"),
               {Input(x), Input(x), Input(per)})
          .attr("epsilon", kEpsilon)
          .attr("is_training", training)
          .close_to(1e-4, 1e-4);
  if (groups > 1) c.attr("statistics_groups", groups);
  if (training) {
    c.input(moment(groups, channels, false));
    c.input(moment(groups, channels, true));
    c.skip(Mode::kGrad2,
           "third derivatives of a batch norm: its saved statistics pass no "
           "gradient on");
  } else {
    c.input(Input(per).without_gradient(kGiven));
    c.input(Input(per).uniform(0.5, 2).without_gradient(kGiven));
  }
  return c;
}

}  // namespace

void add_norm_cases(Cases& cases) {
  for (const bool training : {true, false}) {
    forward(cases, "image", {2, 2, 3, 3}, training);
    forward(cases, "matrix", {6, 4}, training);
    forward(cases, "one_channel", {5, 1}, training);
    backward(cases, "image", {2, 2, 3, 3}, training);
    backward(cases, "matrix", {6, 4}, training);
    backward(cases, "one_channel", {5, 1}, training);
    forward(cases, "26x26x32", {64, 26, 26, 32}, training)
        .types(dtype_bit(float32))
        .perf_only();
    backward(cases, "26x26x32", {64, 26, 26, 32}, training)
        .types(dtype_bit(float32))
        .perf_only();
  }
  forward(cases, "groups", {6, 2, 3}, true, 3);
  forward(cases, "groups_of_one_row", {4, 3}, true, 4);
  backward(cases, "groups", {6, 2, 3}, true, 3);
  backward(cases, "groups_of_one_row", {4, 3}, true, 4);
  forward(cases, "no_rows", {0, 3}, false);
}

}  // namespace berth::conformance
