#include "backends/cpu/kernels.h"

#include <cmath>
#include <set>

#include "backends/cpu/kernel_check_testing.h"
#include "berth/errors.h"
#include "op/op_registry.h"

namespace berth::cpu {
namespace {

using Cases = std::vector<Case>;
using Ints = std::vector<int64_t>;

CheckedOperand positive(Shape shape) {
  return {shape, float32, noise(shape.num_elements(), 9, 0.1f, 3)};
}
CheckedOperand variable(Shape shape, bool positive = false) {
  return {shape, float32,
          noise(shape.num_elements(), 8, positive ? 0.f : -1.f, 1), true};
}
CheckedOperand scalar(float value) { return {{}, float32, {value}}; }

const std::vector<Shape> kShapes = {
    {}, {1}, {4}, {31}, {33}, {7, 5}, {64, 128}, {0}, {3, 0}, {2, 3, 4, 5}};

Cases elementwise_cases() {
  Cases cases;
  for (const char* op : {"AddV2", "Sub", "Mul", "RealDiv", "Maximum", "Minimum",
                         "SquaredDifference", "ReluGrad", "GeluGrad"}) {
    for (const Shape& s : kShapes) {
      cases.push_back({op, {{s}, {s}}});
      cases.push_back({op, {{s}, {{1}}}});
      cases.push_back({op, {{{}}, {s}}});
    }
    const std::vector<std::pair<Shape, Shape>> spreads = {
        {{7, 5}, {5}},
        {{5}, {7, 5}},
        {{1, 5}, {5}},
        {{7, 5}, {7, 1}},
        {{7, 1}, {7, 5}},
        {{3, 4, 5}, {3, 1, 5}},
        {{3, 1, 5}, {3, 4, 5}},
        {{3, 4, 5}, {4, 1}},
        {{3, 1}, {1, 4}},
        {{40, 70}, {70}},
        {{2, 3, 4, 5}, {2, 3, 1, 1}}};
    for (const auto& [a, b] : spreads) cases.push_back({op, {{a}, {b}}});
  }
  for (const char* op : {"Relu", "Sigmoid", "Tanh", "Exp", "Neg", "Abs",
                         "Square", "Gelu", "Log", "Sqrt", "Rsqrt"}) {
    for (const Shape& s : kShapes) cases.push_back({op, {positive(s)}});
  }
  for (const char* op : {"Relu", "Tanh", "Gelu", "Log", "Sqrt"}) {
    cases.push_back(
        {op, {{{6}, float32, {-1, 0, NAN, INFINITY, -INFINITY, -0.f}}}});
  }
  for (const Shape& s : kShapes) {
    cases.push_back({"LeakyRelu", {{s}}});
    cases.push_back({"LeakyRelu", {{s}}, {{"alpha", 0.3}}});
  }
  for (const Shape& s : {Shape{33}, Shape{7, 5}}) {
    cases.push_back({"Gelu", {{s}}, {{"approximate", true}}});
    cases.push_back({"GeluGrad", {{s}, {s}}, {{"approximate", true}}});
  }
  cases.push_back({"BiasAdd", {{{64, 10}}, {{10}}}});
  cases.push_back({"BiasAdd", {{{2, 5, 5, 17}}, {{17}}}});
  cases.push_back({"BiasAdd", {{{17}}, {{17}}}});
  cases.push_back({"BiasAdd", {{{0, 3}}, {{3}}}});
  return cases;
}

Cases softmax_cases() {
  Cases cases;
  for (const char* op : {"Softmax", "LogSoftmax"}) {
    for (const Shape& s : {Shape{4}, Shape{7, 10}, Shape{2, 3, 33}, Shape{0, 5},
                           Shape{5, 0}, Shape{6, 1}}) {
      cases.push_back({op, {{s}}});
    }
  }
  const auto masked = [&](Shape x, std::vector<Shape> mask, bool causal) {
    Case c{"MaskedSoftmax", {{x}}, {{"scale", 0.5}, {"is_causal", causal}}};
    for (const Shape& m : mask) c.in.push_back({m});
    cases.push_back(c);
  };
  for (const bool causal : {false, true}) {
    masked({2, 3, 7, 7}, {}, causal);
    masked({2, 3, 5, 33}, {{5, 33}}, causal);
    masked({2, 3, 9, 4}, {{2, 1, 1, 4}}, causal);
    masked({3, 4, 17}, {{4, 1}}, causal);
    masked({0, 4, 3}, {}, causal);
    masked({3, 1}, {}, causal);
  }
  for (const int64_t rows : {0, 1, 9}) {
    for (const int64_t classes : {1, 10, 37}) {
      cases.push_back({"SoftmaxCrossEntropyWithLogits",
                       {{{rows, classes}}, positive({rows, classes})}});
      std::vector<float> labels;
      for (int64_t i = 0; i < rows; ++i) {
        labels.push_back(static_cast<float>(i * 7 % classes));
      }
      for (const DType d : {int32, int64}) {
        cases.push_back({"SparseSoftmaxCrossEntropyWithLogits",
                         {{{rows, classes}}, {{rows}, d, labels}}});
      }
    }
  }
  return cases;
}

Cases matmul_cases() {
  Cases cases;
  auto add = [&](Shape a, Shape b, bool own = true) {
    for (int t = 0; t < 4; ++t) {
      Shape x = a, y = b;
      const bool ta = t & 1, tb = t & 2;
      if (ta) std::swap(x[x.rank() - 2], x[x.rank() - 1]);
      if (tb) std::swap(y[y.rank() - 2], y[y.rank() - 1]);
      cases.push_back({"MatMul",
                       {{x}, {y}},
                       {{"transpose_a", ta}, {"transpose_b", tb}},
                       1e-4,
                       own && (b.rank() == a.rank() || !ta)});
    }
  };
  for (const int64_t m : {0, 1, 5, 64}) {
    for (const int64_t k : {0, 1, 17, 784}) {
      for (const int64_t n : {0, 1, 10, 33, 128}) add({m, k}, {k, n});
    }
  }
  add({130, 300}, {300, 520});  // exceeds the cache: oneDNN
  add({3, 5, 7}, {3, 7, 4});
  add({32, 16, 24}, {32, 24, 40});
  add({2, 3, 5, 7}, {2, 3, 7, 4});
  add({0, 5, 7}, {0, 7, 4});
  add({3, 5, 7}, {7, 4});
  add({3, 5, 7}, {1, 7, 4}, false);  // broadcast batch: reference
  return cases;
}

Cases conv_cases() {
  struct Geometry {
    Shape x, filter;
    Ints strides = {1, 1, 1, 1}, dilations = {1, 1, 1, 1};
    int64_t groups = 1;
  };
  const std::vector<Geometry> all = {
      {{5, 8, 9, 1}, {3, 3, 1, 32}},
      {{2, 7, 7, 3}, {3, 2, 3, 5}, {1, 2, 2, 1}},
      {{3, 6, 6, 16}, {3, 3, 16, 8}},
      {{3, 6, 7, 8}, {3, 3, 8, 16}, {1, 2, 1, 1}},
      {{3, 9, 9, 8}, {3, 3, 8, 8}, {1, 1, 1, 1}, {1, 2, 2, 1}},
      {{2, 5, 5, 4}, {1, 1, 4, 9}, {1, 3, 3, 1}},
      {{3, 6, 7, 32}, {3, 3, 8, 16}, {1, 2, 2, 1}, {1, 1, 1, 1}, 4},
      {{3, 8, 8, 16}, {3, 3, 1, 16}, {1, 1, 1, 1}, {1, 1, 1, 1}, 16},
      {{0, 5, 5, 4}, {1, 1, 4, 9}}};
  Cases cases;
  for (const Geometry& g : all) {
    for (const char* padding : {"SAME", "VALID"}) {
      const bool own = g.x[0] > 0;
      const std::vector<Attrs::Pair> attrs = {
          {"strides", g.strides},
          {"dilations", g.dilations},
          {"groups", g.groups},
          {"padding", std::string(padding)}};
      const Case forward{"Conv2D", {{g.x}, {g.filter}}, attrs, 1e-4, own};
      const Shape y = Call(forward).outs()[0].shape;
      auto with = [&](const char* name, const Shape& s) {
        auto more = attrs;
        more.push_back({name, Ints(s.begin(), s.end())});
        return more;
      };
      cases.push_back(forward);
      cases.push_back({"Conv2DBackpropInput",
                       {{g.filter}, {y}},
                       with("input_sizes", g.x),
                       1e-4,
                       own});
      cases.push_back({"Conv2DBackpropFilter",
                       {{g.x}, {y}},
                       with("filter_sizes", g.filter),
                       1e-4,
                       own});
    }
  }
  return cases;
}

std::vector<float> floats_of(const Bytes& bytes) {
  std::vector<float> v(bytes.size() / 4);
  if (!v.empty()) std::memcpy(v.data(), bytes.data(), bytes.size());
  return v;
}

Cases pool_cases() {
  struct Geometry {
    Shape x;
    Ints ksize, strides;
  };
  const std::vector<Geometry> all = {
      {{64, 28, 28, 4}, {1, 2, 2, 1}, {1, 2, 2, 1}},
      {{5, 7, 9, 3}, {1, 3, 2, 1}, {1, 2, 1, 1}},
      {{3, 4, 4, 17}, {1, 2, 2, 1}, {1, 3, 3, 1}},
      {{0, 4, 4, 2}, {1, 2, 2, 1}, {1, 2, 2, 1}}};
  Cases cases;
  for (const Geometry& g : all) {
    for (const char* padding : {"SAME", "VALID"}) {
      const std::vector<Attrs::Pair> attrs = {
          {"ksize", g.ksize},
          {"strides", g.strides},
          {"padding", std::string(padding)}};
      const bool own = g.x[0] > 0;
      const Case forward{"MaxPool", {{g.x}}, attrs, 0, own};
      const Call call(forward);
      const Shape y = call.outs()[0].shape;
      const Bytes top =
          call.run(call.bind(reference::kernels(), 1), nullptr, 1).data[0];
      cases.push_back(forward);
      cases.push_back({"MaxPoolGrad",
                       {{g.x, float32, noise(g.x.num_elements(), 1, -2, 2)},
                        {y, float32, floats_of(top)},
                        {y}},
                       attrs,
                       1e-5,
                       own});
      cases.push_back({"AvgPool", {{g.x}}, attrs, 1e-5, own});
      auto grad = attrs;
      grad.push_back({"orig_input_shape", Ints(g.x.begin(), g.x.end())});
      cases.push_back({"AvgPoolGrad", {{y}}, grad, 1e-5, own});
    }
  }
  return cases;
}

Cases reduce_cases() {
  Cases cases;
  const std::vector<std::pair<Shape, Ints>> reductions = {
      {{100}, {0}},        {{70000}, {0}},        {{64, 10}, {0}},
      {{64, 10}, {1}},     {{700, 130}, {0}},     {{700, 130}, {1}},
      {{9, 12000}, {0}},   {{9, 12000}, {1}},     {{4, 50, 60, 7}, {0, 1, 2}},
      {{8, 90, 70}, {1}},  {{3, 4, 5}, {0, 2}},   {{3, 4}, {}},
      {{1, 5, 1}, {0, 2}}, {{2, 3, 4, 5}, {2, 3}}};
  for (const auto& [shape, axis] : reductions) {
    const bool scattered = shape == Shape{3, 4, 5};
    for (const bool keep : {false, true}) {
      const std::vector<Attrs::Pair> attrs = {{"axis", axis},
                                              {"keep_dims", keep}};
      for (const char* op : {"Sum", "Mean"}) {
        cases.push_back({op, {{shape}}, attrs, 1e-4, !scattered});
      }
    }
  }
  for (const auto& [shape, axis] : reductions) {
    const bool scattered = shape == Shape{3, 4, 5};
    cases.push_back({"Max", {{shape}}, {{"axis", axis}}, 0, !scattered});
  }
  cases.push_back({"Max", {{{3}, float32, {1, NAN, 2}}}, {{"axis", Ints{0}}}});
  for (const char* op : {"Sum", "Mean", "Max"}) {
    for (const Shape& empty : {Shape{0, 3}, Shape{3, 0}}) {
      cases.push_back({op, {{empty}}, {{"axis", Ints{0}}}, 0, false});
    }
  }
  for (const Shape& s : {Shape{64, 10}, Shape{3000, 33}, Shape{5},
                         Shape{2, 9, 9, 130}, Shape{6, 1}}) {
    cases.push_back({"BiasAddGrad", {{s}}, {}, 1e-4});
  }
  cases.push_back({"BiasAddGrad", {{{0, 3}}}, {}, 0, false});
  cases.push_back({"SumLike", {{{64, 10}}, {{10}}}});
  cases.push_back({"SumLike", {{{64, 10}}, {{64, 1}}}});
  cases.push_back({"SumLike", {{{64, 10}}, {{}}}, {}, 1e-4});
  return cases;
}

// fold_kernels_test.cc has more of these.
Cases fold_cases() {
  Cases cases;
  for (const char* op : {"Min", "Prod"}) {
    cases.push_back({op, {{{64, 10}}}, {{"axis", Ints{1}}}, 1e-5});
  }
  for (const char* op : {"All", "Any"}) {
    cases.push_back({op, {{{64, 10}, bool_}}, {{"axis", Ints{1}}}});
  }
  for (const char* op : {"ArgMax", "ArgMin"}) {
    cases.push_back({op,
                     {{{64, 10}}},
                     {{"axis", int64_t{1}}, {"output_type", DType(int64)}}});
  }
  cases.push_back({"TopKV2", {{{64, 10}}}, {{"k", int64_t{3}}}});
  cases.push_back({"ArgSort", {{{64, 10}}}});
  cases.push_back({"Sort", {{{64, 10}}}});
  cases.push_back({"Sort", {{{6, 300}}}, {{"descending", true}}});
  for (const char* op : {"Sin", "Cos"}) {
    cases.push_back({op, {{{64, 10}}}, {}, 1e-6});
  }
  return cases;
}

Cases norm_cases() {
  Cases cases;
  for (const Shape& x : {Shape{16, 7}, Shape{8, 28, 28, 32}, Shape{1, 5},
                         Shape{3000, 17}, Shape{0, 4}}) {
    const Shape c = {x[x.rank() - 1]};
    const bool own = x[0] > 0;
    for (const bool training : {true, false}) {
      const std::vector<Attrs::Pair> attrs = {{"epsilon", 0.001},
                                              {"is_training", training}};
      std::vector<CheckedOperand> in = {{x}, {c}, {c}};
      if (!training) {
        in.push_back({c});
        in.push_back(positive(c));
      }
      cases.push_back({"FusedBatchNormV3", in, attrs, 1e-4, own});
      cases.push_back({"FusedBatchNormGradV3",
                       {{x}, {x}, {c}, {c}, positive(c)},
                       attrs,
                       2e-4,
                       own});
    }
  }
  return cases;
}

Cases layer_norm_cases() {
  Cases cases;
  for (const Shape& s : {Shape{7}, Shape{5, 1}, Shape{33, 20}, Shape{2, 3, 128},
                         Shape{700, 5}, Shape{9, 3000}, Shape{0, 4}}) {
    const int64_t d = s[s.rank() - 1], rows = s.num_elements() / d;
    Shape outer;
    for (int i = 0; i + 1 < s.rank(); ++i) outer.push_back(s[i]);
    cases.push_back({"LayerNorm", {{s}, {{d}}, {{d}}}, {}, 1e-4});
    cases.push_back({"LayerNormGrad",
                     {{s},
                      {s},
                      {{d}},
                      {outer, float32, noise(rows, 1, -0.1f, 0.1f)},
                      {outer, float32, noise(rows, 2, 0.5f, 1.5f)}},
                     {},
                     1e-4});
  }
  return cases;
}

CheckedOperand scaled(const Shape& s, float low, float high) {
  return {s, float32, noise(s.num_elements(), 9, low, high), true};
}

Cases training_cases() {
  Cases cases;
  for (const Shape& s : {Shape{}, Shape{5}, Shape{784, 13}, Shape{0}}) {
    cases.push_back(
        {"ResourceApplyGradientDescent", {variable(s), scalar(0.1f), {s}}});
    cases.push_back({"AssignVariableOp", {variable(s), {s}}});
    cases.push_back({"AssignAddVariableOp", {variable(s), {s}}});
    cases.push_back({"AssignSubVariableOp", {variable(s), {s}}});
    for (const bool nesterov : {false, true}) {
      const std::vector<Attrs::Pair> attrs = {{"use_nesterov", nesterov}};
      for (const char* op :
           {"ResourceApplyMomentum", "ResourceApplyKerasMomentum"}) {
        cases.push_back(
            {op,
             {variable(s), variable(s), scalar(0.1f), {s}, scalar(0.9f)},
             attrs});
      }
      cases.push_back({"ResourceApplyAdam",
                       {variable(s),
                        variable(s),
                        variable(s, true),
                        scalar(0.81f),
                        scalar(0.998f),
                        scalar(0.01f),
                        scalar(0.9f),
                        scalar(0.999f),
                        scalar(1e-7f),
                        {s}},
                       attrs});
      cases.push_back({"ResourceApplyAdamWithWeightDecay",
                       {variable(s),
                        variable(s),
                        variable(s, true),
                        scalar(0.81f),
                        scalar(0.998f),
                        scalar(0.01f),
                        scalar(0.9f),
                        scalar(0.999f),
                        scalar(1e-7f),
                        scalar(0.1f),
                        {s}},
                       attrs});
    }
    cases.push_back({"ResourceApplyRMSProp",
                     {variable(s),
                      variable(s, true),
                      variable(s),
                      scalar(0.01f),
                      scalar(0.9f),
                      scalar(0.5f),
                      scalar(1e-3f),
                      {s}}});
    cases.push_back({"ResourceApplyCenteredRMSProp",
                     {variable(s),
                      scaled(s, -0.5f, 0.5f),
                      scaled(s, 1, 2),
                      variable(s),
                      scalar(0.01f),
                      scalar(0.9f),
                      scalar(0.5f),
                      scalar(1e-3f),
                      {s}}});
    cases.push_back(
        {"ResourceApplyAdagradV2",
         {variable(s), variable(s, true), scalar(0.01f), scalar(1e-7f), {s}}});
  }
  return cases;
}

Cases layout_cases() {
  Cases cases;
  cases.push_back({"Tile", {{{5, 1, 7}}}, {{"multiples", Ints{2, 3, 1}}}});
  cases.push_back({"Tile", {{{4, 3}, bool_}}, {{"multiples", Ints{1, 2}}}});
  for (const Ints& axis : {Ints{0}, Ints{2}, Ints{-1, 0}, Ints{}}) {
    cases.push_back({"ReverseV2", {{{5, 3, 7}}}, {{"axis", axis}}, 0});
    cases.push_back({"ReverseV2", {{{4, 1, 2}, int64}}, {{"axis", axis}}, 0});
  }
  const std::vector<std::pair<Shape, Ints>> transposes = {
      {{7, 5}, {1, 0}},
      {{64, 130}, {1, 0}},
      {{2, 3, 4}, {0, 2, 1}},
      {{2, 3, 4}, {2, 0, 1}},
      {{2, 3, 4}, {1, 2, 0}},
      {{2, 3, 4}, {2, 1, 0}},
      {{2, 3, 4, 5}, {0, 2, 1, 3}},
      {{2, 3, 4, 5}, {3, 1, 2, 0}},
      {{2, 1, 4, 1}, {3, 2, 1, 0}},
      {{1, 1}, {1, 0}},
      {{3, 1, 4}, {1, 0, 2}},
      {{2, 3, 1, 4}, {2, 0, 3, 1}},
      {{0, 4}, {1, 0}},
      {{2, 3, 4, 5}, {2, 3, 0, 1}},
      {{5}, {0}},
      {{}, {}}};
  for (const auto& [shape, perm] : transposes) {
    cases.push_back({"Transpose", {{shape}}, {{"perm", perm}}, 0});
    cases.push_back({"Transpose", {{shape, int32}}, {{"perm", perm}}, 0});
    cases.push_back({"Transpose", {{shape, int64}}, {{"perm", perm}}, 0});
  }
  const std::vector<std::pair<Shape, Shape>> broadcasts = {
      {{}, {5, 7}},     {{7}, {5, 7}},          {{5, 1}, {5, 7}},
      {{5, 7}, {5, 7}}, {{3, 1, 7}, {3, 5, 7}}, {{5, 1}, {3, 5, 7}},
      {{1}, {0}},       {{7}, {0, 7}}};
  for (const auto& [from, to] : broadcasts) {
    cases.push_back({"BroadcastTo", {{from}}, {{"shape", to}}, 0});
    cases.push_back({"BroadcastLike", {{from}, {to}}, {}, 0});
  }
  return cases;
}

// half_loops_test.cc and conformance test widths of 16 bits.
Cases cast_cases() {
  Cases cases;
  for (const DType to : {bfloat16, float16}) {
    for (const int64_t n : {0, 1, 37, 3000}) {
      cases.push_back({"Cast", {{Shape{n}}}, {{"DstT", to}}, 0});
    }
  }
  return cases;
}

Cases random_cases() {
  Cases cases;
  for (const Shape& s : {Shape{}, Shape{5}, Shape{700, 3}, Shape{0}}) {
    cases.push_back({"RandomUniform",
                     {},
                     {{"shape", s},
                      {"seed", int64_t{7}},
                      {"minval", -1.5},
                      {"maxval", 2.0}},
                     0});
    cases.push_back(
        {"RandomStandardNormal",
         {},
         {{"shape", s}, {"seed", int64_t{7}}, {"mean", 0.5}, {"stddev", 3.0}},
         1e-6});
    cases.push_back(
        {"Dropout", {{s}}, {{"rate", 0.3}, {"op_id", int64_t{4}}}, 1e-6});
    cases.push_back({"DropoutGrad", {{s}, {s, uint8}}, {{"rate", 0.3}}, 1e-6});
  }
  cases.push_back(
      {"DropoutGrad", {{{4, 3}}, {{3}, uint8}}, {{"rate", 0.3}}, 1e-6});
  return cases;
}

Cases gather_cases() {
  const CheckedOperand one_axis{{6}, int32, {2, 0, 2, 3, 2, 0}};
  const CheckedOperand batch{{2, 3}, int64, {1, 1, 0, 4, 1, 4}};
  const CheckedOperand like{{4, 7}, uint8};
  return {{"GatherGrad", {{{6, 7}}, one_axis}, {{"shape", Shape{4, 7}}}},
          {"GatherGrad",
           {{{3, 6}}, one_axis},
           {{"shape", Shape{3, 4}}, {"axis", int64_t{1}}}},
          {"GatherGrad",
           {{{2, 3, 5}}, batch},
           {{"shape", Shape{2, 5, 5}},
            {"axis", int64_t{1}},
            {"batch_dims", int64_t{1}}}},
          {"GatherGradLike", {{{6, 7}}, one_axis, like}}};
}

Cases linalg_cases() {
  // Two [3, 3] matrices, symmetric and positive definite.
  const std::vector<float> values = {4, 1, 0,  1, 3, -1, 0,  -1, 2,
                                     5, 2, .5, 2, 6, 1,  .5, 1,  3};
  const CheckedOperand a{{2, 3, 3}, float32, values};
  Cases cases = {{"Cholesky", {a}}, {"MatrixDeterminant", {a}}};
  for (const bool adjoint : {false, true}) {
    const Attrs::Pair form = {"adjoint", adjoint};
    cases.push_back({"MatrixInverse", {a}, {form}});
    cases.push_back({"MatrixSolve", {a, {{2, 3, 4}}}, {form}});
    cases.push_back({"MatrixTriangularSolve", {a, {{2, 3, 4}}}, {form}});
  }
  return cases;
}

// Returns numbers around `middle`, like those from activations.
CheckedOperand wave(const Shape& shape, float middle, float height) {
  std::vector<float> values(static_cast<size_t>(shape.num_elements()));
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = middle + height * std::sin(static_cast<float>(i));
  }
  return {shape, float32, values};
}

Cases recurrent_cases() {
  const CheckedOperand mask{
      {3, 4}, float32, {1, 1, 0, 1, 1, 0, 0, 0, 1, 1, 1, 1}};
  Cases cases;
  for (const int64_t u : {5, 24}) {
    const CheckedOperand parts{{3, 4, 4 * u}}, state{{3, u}}, steps{{3, 4, u}},
        kernel = wave({u, 4 * u}, 0, 0.2f),
        gates = wave({3, 4, 4 * u}, 0.5f, 0.4f),
        cells = wave({3, 4, u}, 0, 0.9f);
    for (const bool masked : {false, true}) {
      std::vector<CheckedOperand> forward = {parts, kernel, state, state};
      std::vector<CheckedOperand> back = {steps, state, kernel,
                                          state, gates, cells};
      if (masked) forward.push_back(mask);
      if (masked) back.push_back(mask);
      cases.push_back({"LSTM", forward, {}, 1e-5});
      cases.push_back({"LSTMGrad", back, {}, 1e-5});
    }
  }
  return cases;
}

using Family = Cases (*)();
const std::vector<std::pair<const char*, Family>> kFamilies = {
    {"Elementwise", &elementwise_cases},
    {"Softmax", &softmax_cases},
    {"MatMul", &matmul_cases},
    {"Conv", &conv_cases},
    {"Pool", &pool_cases},
    {"Reduce", &reduce_cases},
    {"Fold", &fold_cases},
    {"Norm", &norm_cases},
    {"LayerNorm", &layer_norm_cases},
    {"Training", &training_cases},
    {"Layout", &layout_cases},
    {"Cast", &cast_cases},
    {"Random", &random_cases},
    {"Gather", &gather_cases},
    {"Linalg", &linalg_cases},
    {"Recurrent", &recurrent_cases}};

class KernelFamily
    : public ::testing::TestWithParam<std::pair<const char*, Family>> {};

TEST_P(KernelFamily, FollowsTheReferenceWithBitsThatDependOnSlicesAlone) {
  for (const Case& c : GetParam().second()) check(c);
}

INSTANTIATE_TEST_SUITE_P(Cpu, KernelFamily, ::testing::ValuesIn(kFamilies),
                         [](const auto& f) { return f.param.first; });

TEST(Kernels, EachHasACase) {
  std::set<std::string> seen;
  for (const auto& [name, family] : kFamilies) {
    for (const Case& c : family()) seen.insert(c.op);
  }
  for (const OpDef* op : OpRegistry::get().all()) {
    if (op->name().starts_with('_')) continue;  // only passes create it
    const auto ours = kernels().candidates(*op);
    // expr_kernels_test checks those labelled "blocks", and halves go through
    // them; factorisations and Fourier transforms have no reference loops:
    // conformance/oracle judges them.
    const bool judged = reference::kernels().candidates(*op).empty();
    if (std::all_of(ours.begin(), ours.end(), [&](const KernelDef& k) {
          return k.label == "blocks" || k.label == "loops in float32" ||
                 (judged && (k.label == "lapack" || k.label == "kissfft"));
        })) {
      continue;
    }
    EXPECT_EQ(seen.count(op->name()), 1u) << op->name();
    EXPECT_FALSE(reference::kernels().candidates(*op).empty()) << op->name();
  }
}

// A part split along a kept axis, even of one column, sums like the whole.
TEST(Kernels, ColumnSumsDoNotDependOnTheOtherColumns) {
  const int64_t rows = 1000, cols = 37;
  const std::vector<float> x = noise(rows * cols, 5);
  const Case whole{"BiasAddGrad", {{{rows, cols}, float32, x}}};
  for (const int slices : {1, 3}) {
    const Call call(whole);
    const std::vector<float> sums = floats_of(
        call.run(call.bind(all_kernels(), slices), nullptr, slices).data[0]);
    for (int64_t c = 0; c < cols; ++c) {
      std::vector<float> column;
      for (int64_t r = 0; r < rows; ++r) column.push_back(x[r * cols + c]);
      const Case one{"BiasAddGrad", {{{rows, 1}, float32, column}}};
      const Call part(one);
      const BoundKernel kernel = part.bind(all_kernels(), slices);
      EXPECT_EQ(floats_of(part.run(kernel, nullptr, slices).data[0])[0],
                sums[static_cast<size_t>(c)]);
    }
  }
}

// Does what the executor does: gives direct kernels runs of the first axis.
TEST(Kernels, PartsOfTheFirstAxisHaveTheBitsOfTheWhole) {
  for (const Family family : {&elementwise_cases, &softmax_cases}) {
    for (const Case& c : family()) {
      if (c.in.size() != 1 || c.in[0].shape.rank() < 2) continue;
      const Call call(c);
      const BoundKernel kernel = call.bind(all_kernels(), 1);
      const Results whole = call.run(kernel, nullptr, 1);
      const Bytes x = bytes_of(c.in[0], 1);
      const Shape& shape = c.in[0].shape;
      if (x.empty()) continue;
      const size_t row = x.size() / static_cast<size_t>(shape[0]);
      for (int64_t begin = 0; begin < shape[0]; begin += 3) {
        Case part = c;
        part.in[0].shape[0] = std::min<int64_t>(3, shape[0] - begin);
        const auto at = x.begin() + begin * static_cast<int64_t>(row);
        const Bytes bytes(at,
                          at + part.in[0].shape[0] * static_cast<int64_t>(row));
        part.in[0].values = floats_of(bytes);
        const Bytes got = Call(part).run(kernel, nullptr, 1).data[0];
        EXPECT_EQ(
            std::memcmp(got.data(),
                        whole.data[0].data() + static_cast<size_t>(begin) * row,
                        got.size()),
            0)
            << describe(c) << " from " << begin;
      }
    }
  }
}

TEST(SparseCrossEntropy, NamesALabelOutOfRange) {
  for (const float label : {-1.f, 3.f}) {
    const Case c{"SparseSoftmaxCrossEntropyWithLogits",
                 {{{2, 3}}, {{2}, int32, {0, label}}}};
    const Call call(c);
    try {
      call.run(call.bind(all_kernels(), 1), nullptr, 1);
      FAIL() << "did not throw";
    } catch (const errors::InvalidArgument& e) {
      const std::string want =
          "label " + std::to_string(static_cast<int>(label)) + " in row 1";
      EXPECT_NE(std::string(e.what()).find(want), std::string::npos)
          << e.what();
    }
  }
}

}  // namespace
}  // namespace berth::cpu
