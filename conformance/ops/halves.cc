// bfloat16 and float16 in the ops of layers: convolutions, pools, norms,
// activations, losses and what their gradients need. dtypes.cc has arithmetic,
// moves and sums.

#include <cmath>
#include <string>
#include <vector>

#include "conformance/ops/families.h"

namespace berth::conformance {

namespace {

using Ints = std::vector<int64_t>;

const char* const kLonger = "the same rule as the small cases, only longer";

Case& add_half(Cases& cases, const char* op, const char* label,
               std::vector<Input> in) {
  return cases.add(op, std::string("halves_") + label, std::move(in))
      .types(kHalfTypes)
      .close_to(1e-4, 1e-5);  // of outputs of float32
}

struct HalfFunction {
  const char* op;
  Domain domain = {};
};
constexpr HalfFunction kHalfFunctions[] = {
    {"Ceil"},
    {"Round"},
    {"Rint"},
    {"Reciprocal", {0.5, 2}},
    {"Expm1", {-1, 1}},
    {"Sin"},
    {"Cos"},
    {"Tan", {-1, 1}},
    {"Asin", {-0.8, 0.8}},
    {"Acos", {-0.8, 0.8}},
    {"Atan"},
    {"Sinh", {-1, 1}},
    {"Cosh", {-1, 1}},
    {"Asinh"},
    {"Acosh", {1.5, 3}},
    {"Atanh", {-0.7, 0.7}},
    {"Erf"},
    {"Erfc", {-1, 1}},
    {"Erfinv", {-0.7, 0.7}},
    {"Ndtri", {0.2, 0.8}},
    {"Lgamma", {0.5, 3}},
    {"Digamma", {0.7, 3}},
    {"Softplus", {-4, 4}},
    {"Softsign", {-4, 4, true}},
    {"Elu", {-3, 3, true}},
    {"Selu", {-3, 3, true}},
    {"LeakyRelu", {-3, 3, true}},
    {"Relu6", {0.2, 5.8}},
    {"Relu", {-4, 4, true}},
    {"Gelu", {-4, 4}},
    {"IsNan"},
    {"IsInf"},
    {"IsFinite"},
};

void add_half_functions(Cases& cases) {
  // The two types in turns: each is a program of a GPU, and what differs
  // between them is the same for all functions.
  int i = 0;
  for (const HalfFunction& f : kHalfFunctions) {
    add_half(cases, f.op, "matrix", {in_domain({5, 7}, f.domain)})
        .types(dtype_bit(++i % 2 ? bfloat16 : float16));
  }
  for (const char* op : {"Relu", "Gelu", "IsFinite"}) {
    add_half(cases, op, "special", {Input({26}).special()})
        .skip_gradients("no differences at NaN and infinity");
    add_half(cases, op, "long", {Input({9001})}).skip_gradients(kLonger);
  }
  add_half(cases, "Gelu", "tanh", {Input({5, 7}).uniform(-4, 4)})
      .attr("approximate", true);
  const Input x = Input({4, 5}).uniform(-3, 3).not_zero();
  add_half(cases, "ReluGrad", "matrix", {Input({4, 5}), x});
  for (const bool tanh : {false, true}) {
    add_half(cases, "GeluGrad", tanh ? "tanh" : "erf", {Input({4, 5}), x})
        .attr("approximate", tanh);
  }
  const Input y = Input({4, 1}).uniform(0.6, 1.8);
  for (const char* op : {"Atan2", "DivNoNan", "MulNoNan", "Xdivy", "FloorDiv",
                         "Xlogy", "Xlog1py"}) {
    add_half(cases, op, "matrix", {x, y});
  }
  // No quotient is near a whole number.
  const Input large = Input({4, 5}).uniform(2.3, 2.7);
  for (const char* op : {"FloorMod", "TruncateMod"}) {
    add_half(cases, op, "matrix", {large, Input({4, 1}).uniform(1.5, 1.9)});
  }
  add_half(cases, "Zeta", "matrix", {large.without_gradient("no formula"), y});
  add_half(cases, "Polygamma", "matrix", {Input({1}).of({1}), y})
      .skip_gradients("only whole orders are defined");
}

// Broadcasts as layers have them, and others; blocks and what is left of them.
void add_half_broadcasts(Cases& cases) {
  const auto add = [&](const char* label, Shape a, Shape b) {
    add_half(cases, "AddV2", label, {Input(a), Input(b)})
        .skip_gradients(kLonger);
  };
  add("rows", {3, 1500}, {1500});
  add("columns", {300, 40}, {300, 1});
  add("middle", {40, 1, 60}, {5, 1});
  add("both", {1, 90}, {70, 1});
  add("outer", {2, 3, 5}, {2, 1, 5});
  add("ones", {1, 1, 7}, {1, 1, 1});
  add("empty", {0, 3}, {3});
  add_half(cases, "BiasAdd", "matrix", {Input({3, 5}), Input({5})});
  add_half(cases, "BiasAdd", "image", {Input({2, 30, 31, 3}), Input({3})})
      .skip_gradients(kLonger);
  add_half(cases, "BiasAddGrad", "matrix", {Input({3, 5})});
  add_half(cases, "BiasAddGrad", "image", {Input({2, 9, 11, 3})});
  const Input x({3, 5});
  add_half(cases, "AddN", "three", {x, x, x});
  add_half(cases, "AddN", "nine", {x, x, x, x, x, x, x, x, x});
  add_half(cases, "Sum", "long", {Input({40, 300})})
      .attr("axis", Ints{0})
      .skip_gradients(kLonger);
  add_half(cases, "Mean", "image", {Input({2, 9, 8, 3})})
      .attr("axis", Ints{1, 2});
  add_half(cases, "Max", "rows", {Input({7, 130}).distinct()})
      .attr("axis", Ints{1})
      .skip_gradients(kLonger);
}

void add_half_dropout(Cases& cases) {
  const auto add = [&](const char* label, Shape shape) -> Case& {
    // What is kept is doubled, which is exact.
    return add_half(cases, "Dropout", label, {Input(shape).not_zero()})
        .attr("rate", 0.5)
        .attr("seed", int64_t{11})
        .attr("op_id", int64_t{5});
  };
  add("matrix", {5, 7});
  add("long", {9001}).skip_gradients(kLonger);
  add_half(cases, "DropoutGrad", "matrix",
           {Input({5, 7}), Input({5, 7}).whole(0, 1, uint8)})
      .attr("rate", 0.1);
  add_half(cases, "DropoutGrad", "rows",
           {Input({5, 7}), Input({7}).whole(0, 1, uint8)})
      .attr("rate", 0.5);
}

void add_half_softmax(Cases& cases) {
  const auto logits = [](Shape s) { return Input(s).uniform(-4, 4); };
  for (const char* op : {"Softmax", "LogSoftmax"}) {
    add_half(cases, op, "matrix", {logits({3, 5})});
    add_half(cases, op, "rows", {logits({130, 67})}).skip_gradients(kLonger);
    add_half(cases, op, "long", {logits({2, 5001})}).skip_gradients(kLonger);
    add_half(cases, op, "special", {Input({13, 3}).special()});
    add_half(cases, op, "empty", {logits({0, 5})});
  }
  const auto dense = [&](const char* label, Shape s) -> Case& {
    return add_half(cases, "SoftmaxCrossEntropyWithLogits", label,
                    {logits(s), Input(s).shares()});
  };
  dense("matrix", {3, 5});
  dense("rows", {130, 67}).skip_gradients(kLonger);
  dense("empty", {0, 5});
  const auto sparse = [&](const char* label, Shape s, DType d) -> Case& {
    const double last = static_cast<double>(s[1] - 1);
    return add_half(cases, "SparseSoftmaxCrossEntropyWithLogits", label,
                    {logits(s), Input({s[0]}).whole(0, last, d)});
  };
  sparse("int32", {3, 5}, int32);
  sparse("int64", {3, 5}, int64);
  sparse("rows", {130, 67}, int32).skip_gradients(kLonger);
  const auto masked = [&](const char* label, std::vector<Input> in,
                          bool causal) -> Case& {
    return add_half(cases, "MaskedSoftmax", label, std::move(in))
        .attr("scale", 0.5)
        .attr("is_causal", causal);
  };
  const Input scores = logits({2, 3, 4, 5});
  masked("plain", {logits({3, 5})}, false);
  masked("causal", {logits({2, 4, 4})}, true);
  masked("mask", {scores, Input({2, 3, 4, 5}).uniform(-3, 3)}, false);
  masked("mask_of_keys", {scores, Input({2, 1, 1, 5}).uniform(-3, 3)}, true);
  masked("mask_scalar", {scores, Input(Shape{})}, false);
  masked("special", {Input({2, 13, 3}).special()}, true);
  masked("long", {logits({3, 2, 131}), Input({131})}, false)
      .skip_gradients(kLonger);
  masked("empty", {logits({2, 0, 3})}, true);
  const Input predictions = Input({6, 5}).distinct();
  add_half(cases, "InTopKV2", "matrix",
           {predictions, Input({6}).whole(0, 4, int32)})
      .attr("k", int64_t{2});
  add_half(cases, "TopKV2", "matrix", {predictions}).attr("k", int64_t{3});
  add_half(cases, "ArgSort", "matrix", {predictions});
}

// Parameters of batches: float32, or float64 beside an input of that.
Input like_parameters(Shape shape) { return Input(shape).as(float32); }

// What is kept of input 1 for the gradient: `of` makes it of mean and variance
// over `groups` of rows, or over the columns of each row.
using Statistic = double (*)(double mean, double variance);

Input kept(Shape shape, int64_t sets, bool by_rows, Statistic of) {
  return Input(shape).as(float32).derived([=](const Arrays& before) {
    const Array& x = before[1];
    Array result(x.dtype() == float64 ? float64 : float32, shape);
    if (result.size() == 0) return result;
    const int64_t count = x.size() / result.size();
    const int64_t columns = result.size() / sets;  // unless by_rows
    for (int64_t r = 0; r < result.size(); ++r) {
      const int64_t first =
          by_rows ? r * count : r / columns * columns * count + r % columns;
      const int64_t step = by_rows ? 1 : columns;
      const auto n = static_cast<double>(count);
      double mean = 0, variance = 0;
      for (int64_t i = 0; i < count; ++i) mean += x.at(first + i * step) / n;
      for (int64_t i = 0; i < count; ++i) {
        variance += std::pow(x.at(first + i * step) - mean, 2) / n;
      }
      result.set(r, of(mean, variance));
    }
    return result;
  });
}

constexpr double kHalfEpsilon = 1e-3;
double mean_of(double mean, double) { return mean; }
double variance_of(double, double variance) { return variance; }
double inverse_of(double, double variance) {
  return 1 / std::sqrt(variance + kHalfEpsilon);
}

void add_half_batch_norm(Cases& cases, const char* label, Shape x,
                         int64_t groups) {
  const int64_t channels = x[x.rank() - 1];
  const Input per = like_parameters({channels});
  const Input scale = Input({channels}).uniform(0.5, 2).as(float32);
  const char* const given = "statistics that are given have no gradient";
  for (const bool training : {true, false}) {
    if (!training && groups > 1) continue;
    const std::string name =
        std::string(label) + (training ? "" : "_inference");
    Case& f = add_half(cases, "FusedBatchNormV3", name.c_str(),
                       {Input(x), scale, per})
                  .gradient_through(1);
    Case& b = add_half(cases, "FusedBatchNormGradV3", name.c_str(),
                       {Input(x), Input(x), scale});
    for (Case* c : {&f, &b}) {
      c->attr("epsilon", kHalfEpsilon).attr("is_training", training);
      if (groups > 1) c->attr("statistics_groups", groups);
    }
    const Shape moments =
        groups > 1 ? Shape{groups, channels} : Shape{channels};
    if (training) {
      b.input(kept(moments, groups, false, &mean_of))
          .input(kept(moments, groups, false, &variance_of))
          .skip(Mode::kGrad2,
                "third derivatives of a batch norm: its saved statistics pass "
                "no gradient on");
      continue;
    }
    for (Case* c : {&f, &b}) {
      c->input(Input(per).without_gradient(given))
          .input(Input(scale).without_gradient(given));
    }
  }
}

void add_half_norms(Cases& cases) {
  add_half_batch_norm(cases, "image", {2, 3, 3, 3}, 1);
  add_half_batch_norm(cases, "matrix", {40, 17}, 1);
  add_half_batch_norm(cases, "groups", {6, 2, 3}, 3);
  for (const auto& [label, x] :
       {std::pair<const char*, Shape>{"matrix", {6, 5}},
        {"batch", {2, 3, 4}},
        {"long_rows", {3, 67}},
        {"many_rows", {900, 7}},
        {"no_rows", {0, 3}}}) {
    const int64_t d = x[x.rank() - 1];
    Shape rows = x;
    rows.erase(rows.rank() - 1);
    const Input scale = Input({d}).uniform(0.5, 2).as(float32);
    Case& f = add_half(cases, "LayerNorm", label,
                       {Input(x), scale, like_parameters({d})})
                  .attr("epsilon", kHalfEpsilon)
                  .gradient_through(1);
    Case& b =
        add_half(cases, "LayerNormGrad", label,
                 {Input(x), Input(x), scale, kept(rows, 1, true, &mean_of),
                  kept(rows, 1, true, &inverse_of)})
            .close_to(1e-4, 1e-3)
            .skip(Mode::kGrad2,
                  "third derivatives of a layer norm: its saved "
                  "statistics pass no gradient on");
    if (x.num_elements() > 1000) {
      f.skip_gradients(kLonger);
      b.skip_gradients(kLonger);
    }
  }
  const Input x({2, 2, 3, 4}), per = like_parameters({4});
  add_half(cases, "GroupNorm", "image", {x, per, per})
      .attr("num_groups", int64_t{2});
  add_half(cases, "RMSNorm", "image", {x, per});
  add_half(cases, "LRN", "image", {x})
      .attr("depth_radius", int64_t{1})
      .attr("alpha", 0.5)
      .attr("beta", 0.75);
}

void add_half_scatters(Cases& cases) {
  const Input rows = Input({5, 3}), ids = Input({5}).whole(0, 3, int32);
  for (const char* op : {"UnsortedSegmentSum", "UnsortedSegmentProd"}) {
    add_half(cases, op, "rows", {Input({5, 3}).not_zero(), ids})
        .attr("num_segments", int64_t{4});
  }
  for (const char* op : {"TensorScatterAdd", "TensorScatterSub",
                         "TensorScatterMin", "TensorScatterMax"}) {
    add_half(cases, op, "rows",
             {Input({4, 3}).distinct(), Input({5, 1}).whole(0, 3, int32),
              Input({5, 3}).distinct().uniform(-1.9, 1.9)})
        .known_dimensions_only(
            "the indices' last dimension says what they name");
  }
  add_half(cases, "TensorScatterUpdate", "rows",
           {Input({4, 3}), Input({2, 1}).of({2, 0}).as(int32), Input({2, 3})})
      .close_to(0, 0)
      .known_dimensions_only("the indices' last dimension says what they name");
  add_half(cases, "GatherGrad", "rows", {rows, ids})
      .attr("axis", int64_t{0})
      .attr("shape", Shape{4, 3});
  add_half(cases, "MirrorPadGrad", "reflect", {Input({4, 5})})
      .attr("paddings", Ints{1, 0, 0, 2})
      .attr("mode", std::string("REFLECT"));
}

// Every bit is as it was.
void add_half_moves(Cases& cases) {
  const auto transpose = [&](const char* label, Shape shape, Ints perm) {
    add_half(cases, "Transpose", label, {Input(shape)})
        .attr("perm", perm)
        .close_to(0, 0)
        .skip_gradients(kLonger);
  };
  transpose("matrix", {70, 45}, {1, 0});
  transpose("batch", {3, 33, 40}, {0, 2, 1});
  transpose("runs", {5, 6, 7}, {1, 0, 2});
  transpose("backwards", {3, 4, 5}, {2, 1, 0});
  transpose("nothing", {0, 4}, {1, 0});
  const auto broadcast = [&](const char* label, Shape from, Shape to) {
    add_half(cases, "BroadcastTo", label, {Input(from)})
        .attr("shape", to)
        .close_to(0, 0)
        .skip_gradients(kLonger);
  };
  broadcast("rows", {5}, {3, 5});
  broadcast("columns", {4, 1}, {4, 9});
  broadcast("scalar", {}, {4, 9});
  broadcast("outer", {2, 1, 3}, {2, 4, 3});
  broadcast("others", {2, 1, 3, 1}, {2, 4, 3, 2});
}

// To be compared with float32 and two casts (Cast halves_perf).
void add_half_perf(Cases& cases) {
  const auto add = [&](const char* op, std::vector<Input> in) -> Case& {
    return add_half(cases, op, "perf", std::move(in))
        .types(kHalfTypes | dtype_bit(float32))
        .perf_only();
  };
  const Input x({4096, 768}), row = like_parameters({768});
  add("Softmax", {x});
  add("LayerNorm", {x, row, row});
  add("BiasAdd", {x, Input({768})});
  add("BiasAddGrad", {x});
  add("Gelu", {x}).attr("approximate", true);
  add("Transpose", {x}).attr("perm", Ints{1, 0});
  const Input image({16, 56, 56, 64});
  add("Conv2D", {image, Input({3, 3, 64, 64})})
      .attr("strides", Ints{1, 1, 1, 1})
      .attr("padding", std::string("SAME"));
  add("MaxPool", {image})
      .attr("ksize", Ints{1, 2, 2, 1})
      .attr("strides", Ints{1, 2, 2, 1})
      .attr("padding", std::string("VALID"));
  const Input channels = like_parameters({64});
  add("FusedBatchNormV3", {image, channels, channels});
}

}  // namespace

void add_half_cases(Cases& cases) {
  add_half_moves(cases);
  add_half_functions(cases);
  add_half_broadcasts(cases);
  add_half_dropout(cases);
  add_half_softmax(cases);
  add_half_norms(cases);
  add_half_scatters(cases);
  add_half_perf(cases);
}

}  // namespace berth::conformance
