// Comparisons, logic and Cast.

#include <functional>

#include "backends/reference/convert.h"
#include "backends/reference/loops.h"
#include "backends/reference/reference.h"

namespace berth::reference {

namespace {

template <class T, class F>
void compare_as(const KernelCall& c) {
  bool* out = c.out[0].as<bool>();
  const T *a = c.in[0].as<T>(), *b = c.in[1].as<T>();
  for_each_broadcast(
      *c.out[0].shape, *c.in[0].shape, *c.in[1].shape,
      [&](int64_t i, int64_t x, int64_t y) { out[i] = F()(a[x], b[y]); });
}

template <class F>
void compare(const KernelCall& c) {
  with_any(c.in[0].dtype, [&](auto type) { compare_as<decltype(type), F>(c); });
}

void logical_not(const KernelCall& c) {
  const bool* x = c.in[0].as<bool>();
  bool* y = c.out[0].as<bool>();
  for (int64_t i = 0, n = c.out[0].size(); i < n; ++i) y[i] = !x[i];
}

template <class F>
void equality(const KernelCall& c) {
  if (c.in[0].dtype != complex128) return compare<F>(c);
  compare_as<std::complex<double>, F>(c);
}

void cast(const KernelCall& c) { convert_elements(c.out[0], c.in[0]); }

}  // namespace

void add_compare(KernelTable& t) {
  constexpr DTypeSet kEquality =
      kOwnNumbers | kBoolType | dtype_bit(complex128);
  t.direct("Equal", kEquality, &equality<std::equal_to<>>, "reference");
  t.direct("NotEqual", kEquality, &equality<std::not_equal_to<>>, "reference");
  t.direct("Less", kOwnNumbers, &compare<std::less<>>, "reference");
  t.direct("LessEqual", kOwnNumbers, &compare<std::less_equal<>>, "reference");
  t.direct("Greater", kOwnNumbers, &compare<std::greater<>>, "reference");
  t.direct("GreaterEqual", kOwnNumbers, &compare<std::greater_equal<>>,
           "reference");
  t.direct("LogicalAnd", kBoolType, &compare<std::logical_and<>>, "reference");
  t.direct("LogicalOr", kBoolType, &compare<std::logical_or<>>, "reference");
  t.direct("LogicalNot", kBoolType, &logical_not, "reference", true);
  t.direct("Cast", kEveryType, &cast, "reference");
}

}  // namespace berth::reference
