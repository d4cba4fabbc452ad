// The narrow and the complex dtypes, through the ops that take them.
//
// Their kernels come from those of wider types, so few shapes are enough here:
// the families check the rest in the dtypes that are computed as they are.

#include <string>
#include <tuple>
#include <vector>

#include "conformance/modes.h"
#include "conformance/ops/families.h"

namespace berth::conformance {

namespace {

using Ints = std::vector<int64_t>;

constexpr DTypeSet kNewWhole = kMoreIntegers;
constexpr DTypeSet kFractions = kHalfTypes | kComplexTypes;
constexpr DTypeSet kNew = kFractions | kNewWhole;
constexpr DTypeSet kOrdered = kHalfTypes | kNewWhole;
const char* const kNarrow = "differences vanish in the rounding to 16 bits";

Case& add(Cases& cases, const char* op, DTypeSet types, std::vector<Input> in,
          std::vector<Attrs::Pair> attrs = {}) {
  Case& c = cases.add(op, "dtypes", std::move(in)).types(types);
  c.attrs = std::move(attrs);
  return c.close_to(1e-5, 1e-5);
}

void add_arithmetic(Cases& cases) {
  for (const char* op : {"AddV2", "Sub", "Mul", "SquaredDifference"}) {
    add(cases, op, kNew, {Input({4, 1}), Input({1, 5})});
  }
  for (const char* op : {"Maximum", "Minimum"}) {
    add(cases, op, kOrdered, {Input({4, 5}).distinct(), Input({5})});
  }
  add(cases, "RealDiv", kFractions, {Input({4, 5}), Input({5}).not_zero()});
  add(cases, "Pow", kFractions,
      {Input({3, 4}).uniform(0.5, 2), Input({4}).uniform(-1, 2)});
  cases
      .add("Mul", "wraps",
           {Input({4}).of({127, -128, 100, -1}),
            Input({4}).of({2, -1, 100, -128})})
      .types(kNewWhole);
  for (const char* op : {"Neg", "Square"}) {
    add(cases, op, kNew, {Input({3, 7})});
  }
  for (const char* op : {"Abs", "Sign"}) {
    add(cases, op, kOrdered, {Input({3, 7}).not_zero()});
  }
  for (const char* op : {"Sqrt", "Rsqrt", "Log", "Log1p"}) {
    add(cases, op, kFractions, {Input({3, 7}).uniform(0.3, 4)});
  }
  for (const char* op : {"Exp", "Sigmoid", "Tanh"}) {
    add(cases, op, kFractions, {Input({3, 7}).uniform(-1, 1)});
  }
  for (const char* op :
       {"Acos", "Acosh", "Asin", "Asinh", "Atan", "Atanh", "Cos", "Cosh",
        "Expm1", "Reciprocal", "Sin", "Sinh", "Tan"}) {
    add(cases, op, kComplexTypes, {Input({3, 7}).uniform(0.3, 0.9)}).host_only =
        true;
  }
  add(cases, "AddN", kComplexTypes, {Input({3, 7}), Input({3, 7})}).host_only =
      true;
  add(cases, "Cumsum", kComplexTypes, {Input({3, 7})}, {{"axis", int64_t{1}}})
      .host_only = true;
  add(cases, "Floor", kHalfTypes, {Input({3, 7})});
  // More than a block of the fast kernels; a number beside an array.
  for (const char* op : {"AddV2", "Mul"}) {
    cases.add(op, "halves_long", {Input({2500}), Input({2500})})
        .types(kHalfTypes)
        .skip_gradients("the same rule as the small cases, only longer");
    cases.add(op, "halves_scalar", {Input({}), Input({2, 1100})})
        .types(kHalfTypes)
        .skip_gradients("the same rule as the small cases, only longer");
  }
  cases.add("Sigmoid", "halves_long", {Input({2500})})
      .types(kHalfTypes)
      .skip_gradients("the same rule as the small cases, only longer");
}

// Past the ends of the whole numbers.
void add_wraps(Cases& cases) {
  const double low32 = -2147483648.0, low64 = -9223372036854775808.0;
  for (const auto& [name, types, ends] :
       {std::tuple{"wraps_32", dtype_bit(int32),
                   std::vector<double>{2147483647, low32, -2147483647, 65537}},
        std::tuple{
            "wraps_64", dtype_bit(int64),
            std::vector<double>{low64, -low64 / 2, low64 / 2, 4294967299}},
        std::tuple{"wraps_16", dtype_bit(int16) | dtype_bit(uint16),
                   std::vector<double>{32767, -32768, 65535, 257}},
        std::tuple{"wraps_unsigned", dtype_bit(uint32) | dtype_bit(uint64),
                   std::vector<double>{4294967295, 65537, -low64, 3}}}) {
    const Input some = Input({4, 1}).of(ends), others = Input({4}).of(ends);
    for (const char* op : {"AddV2", "Sub", "Mul", "SquaredDifference"}) {
      cases.add(op, name, {some, others}).types(types);
    }
    for (const char* op : {"Neg", "Abs", "Square"}) {
      cases.add(op, name, {some}).types(types);
    }
    cases.add("AddN", name, {others, others, others}).types(types);
    for (const char* op : {"Sum", "Prod"}) {
      cases.add(op, name, {Input({4, 8}).of(ends)})
          .attr("axis", Ints{1})
          .types(types)
          .skip(Mode::kSplit, "the sum of parts is taken without wrapping");
    }
    for (const char* op : {"Cumsum", "Cumprod"}) {
      cases.add(op, name, {Input({12}).of(ends)})
          .attr("axis", int64_t{0})
          .types(types);
    }
    cases.add("MatMul", name, {some, Input({1, 4}).of(ends)}).types(types);
  }
}

void add_comparisons(Cases& cases) {
  for (const char* op : {"Equal", "NotEqual"}) {
    add(cases, op, kNew, {Input({4, 5}).whole(0, 2), Input({5}).whole(0, 2)});
  }
  for (const char* op : {"Less", "LessEqual", "Greater", "GreaterEqual"}) {
    add(cases, op, kOrdered,
        {Input({4, 5}).whole(0, 2), Input({5}).whole(0, 2)});
  }
}

void add_casts(Cases& cases) {
  for (const DType to : kRunTypes) {
    const std::string name = name_of(to);
    const bool old = (kNumberTypes | kBoolType) & dtype_bit(to);
    Case& c = cases.add("Cast", "any_to_" + name, {Input({3, 5}).uniform(0, 9)})
                  .attr("DstT", to)
                  .types(old ? kNew : kEveryType);
    const bool wide = to == float64 || to == complex128;
    if (!wide) c.skip_gradients(kNarrow);
    cases.add("Cast", "special_to_" + name, {Input({26}).special()})
        .attr("DstT", to)
        .types(kInexactTypes);
  }
}

void add_moves(Cases& cases) {
  const Input x({3, 4});
  add(cases, "Identity", kNew, {x});
  add(cases, "DeepCopy", kNew, {x});
  add(cases, "ZerosLike", kNew, {x});
  add(cases, "OnesLike", kNew, {x});
  add(cases, "Reshape", kNew, {x}, {{"shape", Shape{2, 6}}});
  add(cases, "BroadcastTo", kNew, {x}, {{"shape", Shape{2, 3, 4}}});
  add(cases, "Transpose", kNew, {x}, {{"perm", Ints{1, 0}}});
  add(cases, "ExpandDims", kNew, {x}, {{"axis", int64_t{1}}});
  add(cases, "Squeeze", kNew, {Input({3, 1, 4})}, {{"axis", Ints{1}}});
  add(cases, "Pad", kNew, {x}, {{"paddings", Ints{1, 0, 0, 2}}});
  add(cases, "Tile", kNew, {x}, {{"multiples", Ints{2, 1}}});
  add(cases, "ConcatV2", kNew, {x, Input({2, 4})}, {{"axis", int64_t{0}}});
  add(cases, "Pack", kNew, {x, x}, {{"axis", int64_t{1}}});
  add(cases, "Unpack", kNew, {x}, {{"axis", int64_t{0}}, {"num", int64_t{3}}});
  add(cases, "Slice", kNew, {x}, {{"begin", Ints{1, 0}}, {"size", Ints{2, 3}}});
  add(cases, "StridedSlice", kNew, {x},
      {{"begin", Ints{0, 3}}, {"end", Ints{3, 0}}, {"strides", Ints{2, -1}}});
  add(cases, "GatherV2", kNew, {x, Input({5}).whole(0, 2, int32)},
      {{"axis", int64_t{0}}});
  add(cases, "SelectV2", kNew, {Input({3, 1}).boolean(), x, Input({4})});
  for (const DType d : {bfloat16, float16, int8, complex64, complex128, int16,
                        uint16, uint32, uint64}) {
    cases.add("Fill", std::string("dtypes_") + name_of(d), {})
        .attr("shape", Shape{2, 3})
        .attr("value", 3.0)
        .attr("dtype", d)
        .types(dtype_bit(float32));
    cases
        .add("OneHot", std::string("dtypes_") + name_of(d),
             {Input({4}).whole(0, 3)})
        .attr("depth", int64_t{3})
        .attr("on_value", 2.0)
        .attr("dtype", d)
        .types(kIntegerTypes);
  }
  for (const DType d : {bfloat16, float16, int8, int16}) {
    cases.add("Range", std::string("dtypes_") + name_of(d), {})
        .attr("start", int64_t{-3})
        .attr("limit", int64_t{90})
        .attr("delta", int64_t{7})
        .attr("dtype", d)
        .types(dtype_bit(float32));
  }
}

void add_sums(Cases& cases) {
  const std::vector<Attrs::Pair> rows = {{"axis", Ints{1}}};
  add(cases, "Sum", kNew, {Input({3, 5})}, rows);
  add(cases, "Prod", kNew, {Input({3, 4}).not_zero()}, rows);
  add(cases, "Mean", kFractions, {Input({3, 5})}, rows);
  for (const char* op : {"Max", "Min"}) {
    add(cases, op, kOrdered, {Input({3, 5}).distinct()}, rows);
    cases.add(op, "nothing_of_int8", {Input({2, 0})})
        .attr("axis", Ints{1})
        .types(kNewWhole);
  }
  add(cases, "ArgMax", kOrdered, {Input({3, 5}).distinct()},
      {{"axis", int64_t{1}}});
  cases.add("Sum", "int8_wraps", {Input({3, 40}).of({100, 27, -5})})
      .attr("axis", Ints{1})
      .types(kNewWhole)
      .skip(Mode::kSplit, "the sum of parts is taken without wrapping");
  for (const bool ta : {false, true}) {
    for (const bool tb : {false, true}) {
      cases
          .add("MatMul",
               std::string("dtypes_") + (ta ? "t" : "n") + (tb ? "t" : "n"),
               {Input(ta ? Shape{4, 3} : Shape{3, 4}),
                Input(tb ? Shape{5, 4} : Shape{4, 5})})
          .attr("transpose_a", ta)
          .attr("transpose_b", tb)
          .types(kNew)
          .close_to(1e-5, 1e-5);
    }
  }
  add(cases, "MatMul", kNew, {Input({2, 3, 4}), Input({4, 5})});
}

void add_integers(Cases& cases) {
  const auto whole = [&](const char* op, std::vector<Input> in,
                         std::vector<Attrs::Pair> attrs = {}) -> Case& {
    return add(cases, op, kNewWhole, std::move(in), std::move(attrs));
  };
  const Input x = Input({4, 5}).whole(0, 100), y = Input({5}).whole(1, 7);
  for (const char* op :
       {"BitwiseAnd", "BitwiseOr", "BitwiseXor", "LeftShift", "RightShift",
        "FloorDiv", "FloorMod", "TruncateDiv", "TruncateMod", "BiasAdd"}) {
    whole(op, {x, y});
  }
  cases
      .add("LeftShift", "past_the_width",
           {Input({4}).of({1, 3, 1, 1}), Input({4}).of({0, 100, 7, 31})})
      .types(kEveryInteger);
  cases
      .add("RightShift", "past_the_width",
           {Input({4}).of({-1, 1e30, -128, 1}), Input({4}).whole(100, 100)})
      .types(kEveryInteger);
  for (const char* op : {"Invert", "Relu", "Round", "AddN"}) whole(op, {x});
  const std::vector<Attrs::Pair> last = {{"axis", int64_t{1}}};
  whole("Cumsum", {x}, last);
  whole("Cumprod", {x}, last);
  whole("Sort", {x});
  whole("ArgSort", {x});
  whole("TopKV2", {x}, {{"k", int64_t{2}}});
  whole("Where", {Input({4, 5}).whole(0, 1)});
  whole("Unique", {Input({9}).whole(0, 3)});
  whole("LowerBound",
        {Input({1, 3}).of({2, 50, 90}), Input({1, 4}).whole(0, 99)});
  const Input at = Input({3, 1}).of({2, 0, 2}).as(int32),
              row = Input({3}).of({2, 0, 2}).as(int64);
  const Input rows = Input({3, 5}).whole(0, 8);
  const char* const depth = "the indices' last dimension says what they name";
  whole("GatherNd", {x, at}).known_dimensions_only(depth);
  whole("ScatterNd", {at, rows}, {{"shape", Shape{4, 5}}})
      .known_dimensions_only(depth);
  for (const char* op :
       {"TensorScatterAdd", "TensorScatterSub", "TensorScatterMin",
        "TensorScatterMax", "TensorScatterUpdate"}) {
    whole(op, {x, at, rows}).known_dimensions_only(depth);
  }
  for (const char* op :
       {"ResourceScatterAdd", "ResourceScatterSub", "ResourceScatterMul",
        "ResourceScatterMin", "ResourceScatterMax", "ResourceScatterUpdate"}) {
    whole(op, {Input({4, 5}).whole(0, 100).as_variable(), row, rows});
  }
  for (const char* op : {"UnsortedSegmentSum", "UnsortedSegmentProd",
                         "UnsortedSegmentMin", "UnsortedSegmentMax"}) {
    whole(op, {rows, row}, {{"num_segments", int64_t{4}}});
  }
}

void add_dtypes_perf(Cases& cases) {
  const auto add = [&](const char* op, std::vector<Input> in) -> Case& {
    return cases.add(op, "halves_perf", std::move(in))
        .types(kHalfTypes)
        .perf_only();
  };
  add("AddV2", {Input({1024, 1024}), Input({1024, 1024})});
  add("Cast", {Input({1024, 1024})}).attr("DstT", float32);
  add("MatMul", {Input({256, 256}), Input({256, 256})});
}

void add_assigned(Cases& cases) {
  for (const char* op :
       {"AssignVariableOp", "AssignAddVariableOp", "AssignSubVariableOp"}) {
    add(cases, op, kNew, {Input({3, 5}).as_variable(), Input({3, 5})});
  }
}

}  // namespace

void add_dtype_cases(Cases& cases) {
  add_arithmetic(cases);
  add_wraps(cases);
  add_comparisons(cases);
  add_casts(cases);
  add_moves(cases);
  add_sums(cases);
  add_integers(cases);
  add_assigned(cases);
  add_dtypes_perf(cases);
}

}  // namespace berth::conformance
