// Norms over channels and pixels of one example.

#include "conformance/ops/families.h"

namespace berth::conformance {

namespace {

Case& group_norm(Cases& cases, std::string label, Shape x, int64_t groups) {
  const Shape per{x[x.rank() - 1]};
  return cases.add("GroupNorm", label, {Input(x), Input(per), Input(per)})
      .attr("num_groups", groups)
      .attr("epsilon", 1e-3)
      .close_to(1e-4, 1e-5);
}

}  // namespace

void add_channel_norm_cases(Cases& cases) {
  group_norm(cases, "image", {2, 2, 3, 4}, 2);
  group_norm(cases, "one_group", {2, 3, 4}, 1);
  group_norm(cases, "instance", {3, 2, 2, 3}, 3);
  group_norm(cases, "matrix", {3, 6}, 2);
  group_norm(cases, "no_images", {0, 2, 4}, 2);
  cases
      .add("GroupNorm", "special",
           {Input({2, 3, 4}).special(), Input({4}), Input({4})})
      .attr("num_groups", int64_t{2})
      .types(dtype_bit(float64));
  const auto rms = [&](const char* label, Shape x) -> Case& {
    return cases.add("RMSNorm", label, {Input(x), Input({x[x.rank() - 1]})})
        .close_to(1e-4, 1e-5);
  };
  rms("matrix", {3, 5});
  rms("vector", {7});
  rms("3d", {2, 3, 4});
  rms("one_channel", {3, 1});
  rms("empty", {0, 4});
  cases.add("RMSNorm", "special", {Input({5, 3}).special(), Input({3})})
      .types(dtype_bit(float64));
  const auto lrn = [&](const char* label, Shape x, int64_t radius) -> Case& {
    return cases.add("LRN", label, {Input(x)})
        .attr("depth_radius", radius)
        .attr("alpha", 0.5)
        .attr("beta", 0.75)
        .close_to(1e-4, 1e-5);
  };
  lrn("image", {2, 2, 2, 5}, 1);
  lrn("all_channels", {3, 4}, 5);
  lrn("own_channel", {3, 4}, 0);
  lrn("empty", {0, 2, 2, 3}, 2);
}

}  // namespace berth::conformance
