// Maximum and mean over windows, and their gradients.

#include "backends/reference/reference.h"
#include "conformance/host_run.h"
#include "conformance/ops/families.h"

namespace berth::conformance {

namespace {

using Ints = std::vector<int64_t>;

struct Pool {
  const char* label;
  Shape image, result;
  int64_t size = 2;
  int64_t stride = 2;
  std::string padding = "VALID";
};

std::vector<Attrs::Pair> attrs_of(const Pool& p) {
  return {{"ksize", Ints{1, p.size, p.size, 1}},
          {"strides", Ints{1, p.stride, p.stride, 1}},
          {"padding", p.padding}};
}

Case& add_one(Cases& cases, const char* op, const Pool& p,
              std::vector<Input> inputs, const char* suffix = "") {
  Case& c = cases.add(op, p.label + std::string(suffix), std::move(inputs));
  c.attrs = attrs_of(p);
  return c;
}

// What MaxPool makes of input 0.
Input pooled(const Pool& p) {
  return Input(p.result).derived([p](const Arrays& before) {
    const AttrsRef attrs(attrs_of(p));
    Arrays in = {before[0]};
    return run_on_host(reference::kernels(),
                       {.op = &op_named("MaxPool"), .attrs = attrs.get()},
                       &in)[0];
  });
}

void add_pool(Cases& cases, const Pool& p, DTypeSet types = kFloatingTypes) {
  const auto add = [types](Cases& all, const char* op, const Pool& pool,
                           std::vector<Input> in,
                           const char* suffix = "") -> Case& {
    return add_one(all, op, pool, std::move(in), suffix).types(types);
  };
  const Input distinct = Input(p.image).distinct();
  add(cases, "MaxPool", p, {distinct});
  add(cases, "MaxPoolWithArgmax", p, {distinct}).gradient_through(1);
  add(cases, "MaxPoolGrad", p, {distinct, pooled(p), Input(p.result)});
  add(cases, "MaxPoolGradGrad", p, {distinct, pooled(p), Input(p.image)});
  add(cases, "AvgPool", p, {Input(p.image)});
  const Shape& x = p.image;
  add(cases, "AvgPoolGrad", p, {Input(p.result)})
      .attr("orig_input_shape", Ints{-1, x[1], x[2], -1});
  add(cases, "AvgPoolGrad", p, {Input(p.result)}, "_sizes")
      .attr("orig_input_shape", Ints(x.begin(), x.end()));
  add(cases, "AvgPoolGrad", p,
      {Input(p.result), Input(x).without_gradient("only its shape is read")},
      "_like");
}

// Ties go to the first pixel; that is not a derivative.
void add_ties(Cases& cases) {
  const Pool p{"ties", {2, 4, 4, 2}, {2, 2, 2, 2}};
  const std::string why = "not differentiable at ties";
  const Input x = Input(p.image).whole(0, 1);
  add_one(cases, "MaxPool", p, {x}).skip_gradients(why);
  add_one(cases, "MaxPoolWithArgmax", p, {x}).skip_gradients(why);
  add_one(cases, "MaxPoolGrad", p, {x, pooled(p), Input(p.result)})
      .skip_gradients(why);
  add_one(cases, "MaxPoolGradGrad", p, {x, pooled(p), Input(p.image)})
      .skip_gradients(why);
}

}  // namespace

void add_pool_cases(Cases& cases) {
  add_pool(cases, {"valid_2x2", {2, 4, 6, 3}, {2, 2, 3, 3}});
  add_pool(cases, {"odd_2x2", {2, 5, 5, 2}, {2, 2, 2, 2}});
  add_pool(cases, {"same_2x2", {2, 5, 5, 2}, {2, 3, 3, 2}, 2, 2, "SAME"});
  add_pool(cases, {"overlapping", {2, 5, 5, 2}, {2, 3, 3, 2}, 3, 1});
  add_pool(cases, {"same_3x3", {2, 4, 4, 2}, {2, 4, 4, 2}, 3, 1, "SAME"});
  add_pool(cases, {"gaps", {2, 5, 5, 1}, {2, 2, 2, 1}, 1, 3});
  add_pool(cases, {"no_images", {0, 4, 4, 2}, {0, 2, 2, 2}});
  add_ties(cases);
  add_pool(cases, {"halves", {2, 5, 5, 3}, {2, 3, 3, 3}, 2, 2, "SAME"},
           kHalfTypes);
  add_pool(cases, {"halves_overlapping", {1, 5, 5, 18}, {1, 3, 3, 18}, 3, 1},
           kHalfTypes);
  const Pool special{"special", {1, 4, 4, 2}, {1, 2, 2, 2}};
  add_one(cases, "MaxPool", special, {Input(special.image).special()});
  add_one(cases, "AvgPool", special, {Input(special.image).special()})
      .types(dtype_bit(float64));
  const Pool big{"26x26x32", {64, 26, 26, 32}, {64, 13, 13, 32}};
  for (const char* op : {"MaxPool", "AvgPool"}) {
    add_one(cases, op, big, {Input(big.image)})
        .types(dtype_bit(float32))
        .perf_only();
  }
  add_one(cases, "MaxPoolGrad", big,
          {Input(big.image).distinct(), pooled(big), Input(big.result)})
      .types(dtype_bit(float32))
      .perf_only();
}

}  // namespace berth::conformance
