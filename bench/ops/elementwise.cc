// Rows of elementwise ops and of reductions.

#include "bench/ops/rows.h"

namespace berth_bench {

using namespace berth;

namespace {

void add_each(Rows& rows, const std::vector<Named>& ops, const Types& types,
              int arity, double low = 0, double high = 0) {
  for (const Named& n : ops) {
    add(rows, n.op, n.name, types, arity, {}, low, high);
  }
}

void add_unary(Rows& rows) {
  add_each(rows, {{"Sin", "sin"},           {"Cos", "cos"},
                  {"Tan", "tan"},           {"Atan", "atan"},
                  {"Sinh", "sinh"},         {"Cosh", "cosh"},
                  {"Asinh", "asinh"},       {"Exp", "exp"},
                  {"Expm1", "expm1"},       {"Log", "log"},
                  {"Log1p", "log1p"},       {"Sqrt", "sqrt"},
                  {"Rsqrt", "rsqrt"},       {"Erf", "erf"},
                  {"Erfc", "erfc"},         {"Lgamma", "lgamma"},
                  {"Digamma", "digamma"},   {"Tanh", "tanh"},
                  {"Sigmoid", "sigmoid"},   {"Floor", "floor"},
                  {"Ceil", "ceil"},         {"Round", "round"},
                  {"Rint", "rint"},         {"Reciprocal", "reciprocal"},
                  {"Relu6", "relu6"},       {"Gelu", "gelu"},
                  {"Elu", "elu"},           {"Selu", "selu"},
                  {"Softplus", "softplus"}, {"Softsign", "softsign"},
                  {"BesselI0e", "i0e"},     {"BesselI1e", "i1e"},
                  {"IsNan", "is_nan"},      {"IsInf", "is_inf"},
                  {"IsFinite", "is_finite"}},
           kFloats, 1);
  add_each(rows,
           {{"Asin", "asin"},
            {"Acos", "acos"},
            {"Atanh", "atanh"},
            {"Erfinv", "erfinv"},
            {"Ndtri", "ndtri"}},
           kFloats, 1, 0.1, 0.9);
  add(rows, "Acosh", "acosh", kFloats, 1, {}, 1.1, 2.5);
  add(rows, "LeakyRelu", "leaky_relu", kFloats, 1, {{"alpha", 0.01}}, -2, 2);
  add(rows, "Gelu", "gelu_tanh", kFloats, 1, {{"approximate", true}});
  add_each(rows, {{"Relu", "relu"}}, kNumbers, 1);
  add_each(rows,
           {{"Neg", "negative"},
            {"Abs", "abs"},
            {"Sign", "sign"},
            {"Square", "square"}},
           kNumbers, 1);
  add(rows, "Invert", "invert", kInts);
  add(rows, "LogicalNot", "logical_not", kBools);
  for (const DType to : {float32, float64, int32, int64, bool_}) {
    Types from;
    for (const DType t : kAll) {
      if (t != to) from.push_back(t);
    }
    add(rows, "Cast", std::string("cast_") + name_of(to), from, 1,
        {{"DstT", to}});
  }
}

void add_binary(Rows& rows) {
  add_each(rows,
           {{"Pow", "pow"},
            {"RealDiv", "divide"},
            {"Atan2", "atan2"},
            {"DivNoNan", "divide_no_nan"},
            {"MulNoNan", "multiply_no_nan"},
            {"Xlogy", "xlogy"},
            {"Xlog1py", "xlog1py"},
            {"Xdivy", "xdivy"},
            {"NextAfter", "nextafter"},
            {"ReluGrad", "relu_grad"},
            {"GeluGrad", "gelu_grad"}},
           kFloats, 2);
  add_each(rows, {{"Zeta", "zeta"}}, kFloats, 2, 1.1, 2.5);
  add(rows, "Polygamma", "polygamma", kFloats, [](DType, int64_t side) {
    return Call{{ones({side, side}), values(float32, {side, side})}};
  });
  add_each(rows,
           {{"AddV2", "add"},
            {"Sub", "subtract"},
            {"Mul", "multiply"},
            {"Maximum", "maximum"},
            {"Minimum", "minimum"},
            {"SquaredDifference", "squared_difference"},
            {"FloorDiv", "floordiv"},
            {"FloorMod", "floormod"},
            {"TruncateMod", "truncatemod"},
            {"Greater", "greater"},
            {"GreaterEqual", "greater_equal"},
            {"Less", "less"},
            {"LessEqual", "less_equal"},
            {"Equal", "equal"},
            {"NotEqual", "not_equal"}},
           kNumbers, 2);
  add_each(rows,
           {{"TruncateDiv", "truncatediv"},
            {"BitwiseAnd", "bitwise_and"},
            {"BitwiseOr", "bitwise_or"},
            {"BitwiseXor", "bitwise_xor"},
            {"LeftShift", "left_shift"},
            {"RightShift", "right_shift"}},
           kInts, 2);
  add_each(rows, {{"LogicalAnd", "logical_and"}, {"LogicalOr", "logical_or"}},
           kBools, 2);
  add(rows, "AddN", "add_n", kNumbers, 3);
  add(rows, "SelectV2", "where", kAll, [](DType d, int64_t side) {
    return Call{{values(bool_, {side, side}), values(d, {side, side}),
                 values(d, {side, side})}};
  });
}

void add_complex(Rows& rows) {
  add(rows, "Complex", "complex", kFloats, 2);
  for (const Named& n : std::vector<Named>{{"ComplexAbs", "complex_abs"},
                                           {"Angle", "angle"},
                                           {"Conj", "conj"},
                                           {"Real", "real"},
                                           {"Imag", "imag"}}) {
    add(rows, n.op, n.name, kFloats, [](DType, int64_t side) {
      return Call{{math::complex(values(float32, {side, side}),
                                 values(float32, {side, side}))}};
    });
  }
}

// Over everything, and over each axis.
void add_reduction(Rows& rows, const char* op, const std::string& name,
                   const Types& types) {
  add(rows, op, name, types, 1, {{"all_axes", true}});
  for (const int64_t axis : {0, 1}) {
    add(rows, op, name + "_" + std::to_string(axis), types, 1,
        {{"axis", Ints{axis}}});
  }
}

void add_reductions(Rows& rows) {
  add_reduction(rows, "Sum", "reduce_sum", kNumbers);
  add_reduction(rows, "Max", "reduce_max", kNumbers);
  add_reduction(rows, "Min", "reduce_min", kNumbers);
  add_reduction(rows, "Prod", "reduce_prod", kNumbers);
  add_reduction(rows, "Mean", "reduce_mean", kFloats);
  add_reduction(rows, "All", "reduce_all", kBools);
  add_reduction(rows, "Any", "reduce_any", kBools);
  for (const int64_t axis : {0, 1}) {
    const std::string at = "_" + std::to_string(axis);
    const Pairs along = {{"axis", axis}};
    add(rows, "ArgMax", "argmax" + at, kNumbers, 1, along);
    add(rows, "ArgMin", "argmin" + at, kNumbers, 1, along);
    add(rows, "Cumsum", "cumsum" + at, kNumbers, 1, along);
    add(rows, "Cumprod", "cumprod" + at, kNumbers, 1, along);
    add(rows, "CumulativeLogsumexp", "cumulative_logsumexp" + at, kFloats, 1,
        along);
    add(rows, "LinearRecurrence", "linear_recurrence" + at, kFloats, 2, along);
    add(rows, "SegmentRecurrence", "segment_recurrence" + at, kFloats,
        [along](DType, int64_t side) {
          return Call{{values(float32, {side, side}, 0, 1),
                       values(float32, {side, side}),
                       sort(places(int32, {side}, side / 4))},
                      along};
        });
  }
}

}  // namespace

void add_elementwise(Rows& rows) {
  add_unary(rows);
  add_binary(rows);
  add_complex(rows);
  add_reductions(rows);
}

}  // namespace berth_bench
