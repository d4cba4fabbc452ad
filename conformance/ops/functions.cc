// Elementwise functions beyond arithmetic: one row each.

#include <cmath>
#include <string>

#include "conformance/ops/families.h"

namespace berth::conformance {

namespace {

constexpr DTypeSet kFunctionTypes = kFloatingTypes;

struct Function {
  const char* op;
  Domain domain = {};
  DTypeSet types = kFunctionTypes;
};

const Function kFunctions[] = {
    {"Ceil"},
    {"Round", {}, kNumberTypes},
    {"Rint"},
    {"Reciprocal", {-2, 2, true}},
    {"Expm1"},
    {"Sin", {-7, 7}},
    {"Cos", {-7, 7}},
    {"Tan", {-1.2, 1.2}},
    {"Asin", {-0.9, 0.9}},
    {"Acos", {-0.9, 0.9}},
    {"Atan", {-4, 4}},
    {"Sinh"},
    {"Cosh"},
    {"Asinh", {-4, 4}},
    {"Acosh", {1.2, 5}},
    {"Atanh", {-0.9, 0.9}},
    {"Erf"},
    {"Erfc"},
    {"Erfinv", {-0.9, 0.9}},
    {"Ndtri", {0.1, 0.9}},
    {"Lgamma", {0.3, 6}},
    {"Digamma", {0.3, 6}},
    {"BesselI0e", {-9, 25}},
    {"BesselI1e", {-9, 25}},
    {"Softplus", {-8, 8}},
    {"Softsign", {-4, 4, true}},
    {"Elu", {-3, 3, true}},
    {"Selu", {-3, 3, true}},
    {"LeakyRelu", {-3, 3, true}},
    {"Relu6", {0.2, 5.8}},
    {"IsNan"},
    {"IsInf"},
    {"IsFinite"},
    {"Invert", {-9, 9}, kIntegerTypes},
};

void add_function(Cases& cases, const Function& f) {
  const auto add = [&](const char* label, Shape x) -> Case& {
    return cases.add(f.op, label, {in_domain(x, f.domain)}).types(f.types);
  };
  add("matrix", {5, 7});
  add("scalar", {});
  add("empty", {2, 0, 3});
  add("odd_length", {131});
  if (f.types & kFunctionTypes) {
    cases.add(f.op, "special", {Input({26}).special()}).types(kFunctionTypes);
    add("1m", {1024, 1024}).types(dtype_bit(float32)).perf_only();
  }
}

struct Function2 {
  const char* op;
  Domain a = {}, b = {};
  DTypeSet types = kFunctionTypes;
  // False where float32 and float64 differ by more than rounding.
  bool special = true;
};

const Function2 kFunctions2[] = {
    {"Atan2", {-2, 2, true}, {-2, 2, true}},
    {"FloorDiv", {-5, 5}, {-2, 2, true}, kFunctionTypes, false},
    {"FloorMod", {-5, 5}, {-2, 2, true}, kFunctionTypes, false},
    {"TruncateMod", {-5, 5}, {-2, 2, true}, kFunctionTypes, false},
    {"DivNoNan", {}, {-2, 2, true}},
    {"MulNoNan", {}, {-2, 2, true}},
    {"Xlogy", {-2, 2, true}, {0.2, 3}},
    {"Xlog1py", {-2, 2, true}, {-0.8, 3}},
    {"Xdivy", {-2, 2, true}, {-2, 2, true}},
    {"NextAfter", {}, {}, kFunctionTypes, false},
    {"BitwiseAnd", {0, 100}, {0, 100}, kIntegerTypes},
    {"BitwiseOr", {0, 100}, {0, 100}, kIntegerTypes},
    {"BitwiseXor", {0, 100}, {0, 100}, kIntegerTypes},
    {"LeftShift", {0, 100}, {0, 7}, kIntegerTypes},
    {"RightShift", {0, 100}, {0, 7}, kIntegerTypes},
};

void add_function2(Cases& cases, const Function2& f) {
  const auto add = [&](const char* label, Shape x, Shape y) -> Case& {
    return cases.add(f.op, label, {in_domain(x, f.a), in_domain(y, f.b)})
        .types(f.types);
  };
  add("same", {3, 5}, {3, 5});
  add("row", {4, 5}, {5});
  add("column", {4, 1}, {1, 3});
  add("scalar", {}, {2, 3});
  add("scalars", {}, {});
  add("outer_3d", {2, 1, 3}, {4, 1});
  add("empty", {0, 3}, {1, 3});
  if (!(f.types & kFunctionTypes)) return;
  add("1m", {1024, 1024}, {1024, 1024}).types(dtype_bit(float32)).perf_only();
  if (!f.special) return;
  cases
      .add(f.op, "special",
           {Input({13, 13}).special(), Input({13, 13}).special()})
      .types(kFunctionTypes);
}

// Signs and the ends of the whole numbers; broken numbers of both signs.
void add_divisions(Cases& cases) {
  for (const char* op :
       {"FloorDiv", "FloorMod", "TruncateDiv", "TruncateMod"}) {
    const bool whole_only = std::string(op) == "TruncateDiv";
    cases.add(op, "whole", {Input({6, 8}).whole(0, 20), Input({8}).whole(1, 7)})
        .types(kIntegerTypes);
    cases
        .add(op, "signs",
             {Input({9}).of({7, -7, 7, -7, 6, -6, 0, -2147483648.0, 1}),
              Input({9}).of({2, 2, -2, -2, 3, -3, -4, -1, -2147483648.0})})
        .types(dtype_bit(int32) | dtype_bit(int64));
    cases.add(op, "empty_whole", {Input({0, 3}), Input({3}).whole(1, 2)})
        .types(kIntegerTypes);
    if (whole_only) continue;
    const double inf = HUGE_VAL;
    cases
        .add(op, "float_signs",
             {Input({12}).of({7, -7, 7, -7, 5.5, -5.5, 0, 1, -1, inf, 3, -3}),
              Input({12}).of({2, 2, -2, -2, 2, 2, -3, inf, inf, 2, 0, -0.0})})
        .skip_gradients("jumps there");
  }
}

void add_edges(Cases& cases) {
  const char* at_kinks = "not differentiable there";
  for (const char* op : {"Round", "Rint"}) {
    cases
        .add(op, "halves",
             {Input({8}).of({-2.5, -1.5, -0.5, 0.5, 1.5, 2.5, 3.5, 8388609.5})})
        .skip_gradients(at_kinks);
  }
  for (const char* op : {"Elu", "Selu", "LeakyRelu", "Relu6", "Softsign"}) {
    cases.add(op, "both_sides", {Input({4, 6}).uniform(-9, 9)})
        .skip_gradients("may come near a kink");
  }
  cases.add("Relu6", "kinks", {Input({4}).of({0, 6, -0.0, 6.5})})
      .skip_gradients(at_kinks);
  cases.add("LeakyRelu", "alpha", {Input({3, 4}).not_zero()})
      .attr("alpha", 0.01);
  cases.add("LeakyRelu", "mirror", {Input({3, 4}).not_zero()})
      .attr("alpha", -1.0);
  // Between the poles, and at them.
  const std::vector<double> between = {-0.5, -1.3, -2.7, -4.5, -9.2};
  cases.add("Lgamma", "negative", {Input({5}).of(between)});
  cases.add("Digamma", "negative", {Input({5}).of(between)});
  for (const char* op : {"Lgamma", "Digamma"}) {
    cases.add(op, "poles", {Input({6}).of({0, -1, -2, -100, -1e10, 1e-30})})
        .skip_gradients("no slope at a pole");
  }
  for (const char* op : {"Asin", "Acos", "Atanh", "Acosh", "Erfinv", "Ndtri"}) {
    cases
        .add(op, "ends",
             {Input({9}).of(
                 {0, -1, 1, 1.5, -1.5, 0.999999, -0.999999, 1e-8, 1e-30})})
        .skip_gradients("no slope at the ends");
  }
  cases.add("Sin", "large", {Input({5}).of({100, -1000, 12345, 1e5, 1e6})})
      .skip_gradients("steps are too coarse");
  cases.add("Cos", "large", {Input({5}).of({100, -1000, 12345, 1e5, 1e6})})
      .skip_gradients("steps are too coarse");
  for (const char* op : {"LeftShift", "RightShift"}) {
    cases
        .add(op, "any_number_of_bits",
             {Input({10}).of({5, 5, 5, -5, -5, -1, 1, -8, 127, -128}),
              Input({10}).of({-1, 31, 100, 1, 100, 63, 31, 0, 8, 64})})
        .types(dtype_bit(int32) | dtype_bit(int64));
  }
  cases
      .add("NextAfter", "edges",
           {Input({6}).of({0, 1, 1, -1, 2, NAN}),
            Input({6}).of({1, 2, 0, -2, 2, 1})})
      .close_to(1e-6, 1e-30)
      .skip_gradients("one step of the number line");
}

void add_no_nan(Cases& cases) {
  const std::vector<double> any = {1, -1, 0, HUGE_VAL, NAN, -2};
  for (const char* op : {"DivNoNan", "MulNoNan"}) {
    cases
        .add(op, "by_zero",
             {Input({6}).of(any), Input({6}).of({0, -0.0, 0, 0, 0, 0})})
        .skip_gradients("no slope there");
  }
  for (const char* op : {"Xlogy", "Xlog1py", "Xdivy"}) {
    cases
        .add(op, "of_zero",
             {Input({6}).of({0, 0, 0, 0, -0.0, 0}), Input({6}).of(any)})
        .skip_gradients("no slope there");
  }
}

void add_gamma_families(Cases& cases) {
  const char* order = "is an order, not a variable";
  const auto add = [&](const char* op, const char* label, Input a, Input x) {
    return &cases.add(op, label, {a.without_gradient(order), x});
  };
  add("Polygamma", "orders", Input({5, 1}).of({0, 1, 2, 3, 5}),
      Input({4}).of({0.5, 1, 2.25, 7}))
      ->close_to(1e-5, 1e-6);
  add("Polygamma", "negative", Input({3}).of({1, 2, 3}),
      Input({3}).of({-0.5, -1.3, -6.6}));
  add("Polygamma", "edges", Input({6}).of({0.5, -1, 1, 1, 2, 0}),
      Input({6}).of({1, 1, 0, -3, -2000.25, 1e-3}))
      ->skip_gradients("poles and broken orders");
  add("Polygamma", "empty", Input({0}), Input({0}));
  add("Polygamma", "special", Input({13, 13}).whole(0, 3),
      Input({13, 13}).special());
  add("Zeta", "plane", Input({4, 1}).of({1.5, 2, 3, 7.25}),
      Input({4}).of({0.5, 1, 2.25, 9}));
  add("Zeta", "negative", Input({3}).of({2, 3, 4}),
      Input({3}).of({-0.5, -1.3, -6.6}));
  add("Zeta", "edges", Input({7}).of({1, 0.5, 2, 2.5, 2, 3, 60}),
      Input({7}).of({1, 1, -2, -0.5, 0, -1e9 - 0.5, 3}))
      ->skip_gradients("poles");
  add("Zeta", "scalars", Input({}).of({2}), Input({}).of({1}));
  add("Zeta", "empty", Input({0}), Input({1}));
  cases.add("Zeta", "special",
            {Input({13, 13}).special().without_gradient(order),
             Input({13, 13}).special()});
}

void add_add_n(Cases& cases) {
  cases.add("AddN", "three", {Input({3, 4}), Input({3, 4}), Input({3, 4})})
      .types(kNumberTypes);
  cases.add("AddN", "one", {Input({5})}).types(kNumberTypes);
  cases.add("AddN", "scalars", {Input(Shape{}), Input(Shape{})});
  cases.add("AddN", "empty", {Input({0, 2}), Input({0, 2})});
  cases.add("AddN", "special",
            {Input({13, 13}).special(), Input({13, 13}).special()});
}

}  // namespace

void add_function_cases(Cases& cases) {
  for (const Function& f : kFunctions) add_function(cases, f);
  for (const Function2& f : kFunctions2) add_function2(cases, f);
  add_divisions(cases);
  add_edges(cases);
  add_no_nan(cases);
  add_gamma_families(cases);
  add_add_n(cases);
}

}  // namespace berth::conformance
