// Softmax of scaled and masked scores.

#include <limits>
#include <optional>

#include "conformance/ops/families.h"

namespace berth::conformance {

void add_attention_cases(Cases& cases) {
  const auto add = [&](std::string label, Shape x, double scale, bool causal,
                       std::optional<Shape> mask = std::nullopt) -> Case& {
    std::vector<Input> in{Input(x).uniform(-4, 4)};
    if (mask) in.push_back(Input(*mask).uniform(-3, 3));
    return cases.add("MaskedSoftmax", label, std::move(in))
        .attr("scale", scale)
        .attr("is_causal", causal);
  };
  add("matrix", {3, 5}, 1, false);
  add("scaled", {2, 3, 4}, 0.25, false);
  add("causal", {2, 4, 4}, 0.5, true);
  add("causal_wide", {2, 3, 5}, 1, true);
  add("causal_tall", {5, 3}, 1, true);
  add("mask", {2, 3, 4, 5}, 0.5, false, Shape{2, 3, 4, 5});
  add("mask_of_rows", {2, 3, 4, 5}, 0.5, false, Shape{4, 5});
  add("mask_of_keys", {2, 3, 4, 5}, 0.5, false, Shape{2, 1, 1, 5});
  add("mask_scalar", {3, 5}, 1, false, Shape{});
  add("mask_and_causal", {3, 2, 4, 4}, 2, true, Shape{3, 1, 1, 4});
  add("one_column", {3, 1}, 1, true);
  add("no_rows", {2, 0, 3}, 1, true);
  add("no_batch", {0, 2, 3}, 1, false);
  add("no_columns", {2, 3, 0}, 1, false);
  add("long_rows", {3, 2, 131}, 0.1, false, Shape{131})
      .skip_gradients("the same rule as the small cases, only larger");
  const std::string why = "no differences at NaN and infinity";
  cases.add("MaskedSoftmax", "special", {Input({2, 13, 3}).special()});
  cases.add("MaskedSoftmax", "special_causal", {Input({2, 13, 3}).special()})
      .attr("is_causal", true);
  const double inf = std::numeric_limits<double>::infinity();
  cases
      .add("MaskedSoftmax", "masked_out",
           {Input({2, 3, 4}),
            Input({3, 4}).of({0, -inf, -inf, 0,  //
                              -inf, -inf, -inf, -inf, -inf, -inf, 1, -inf})})
      .attr("scale", 0.5)
      .skip_gradients(why);
  add("scores_8x4x256", {8, 4, 256, 256}, 0.125, true)
      .types(dtype_bit(float32))
      .perf_only();
}

}  // namespace berth::conformance
