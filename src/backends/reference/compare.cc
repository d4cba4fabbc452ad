#include <functional>
#include <limits>

#include "backends/reference/loops.h"
#include "backends/reference/reference.h"

namespace berth::reference {

namespace {

template <class F>
void compare(const KernelCall& c) {
  bool* out = c.out[0].as<bool>();
  with_any(c.in[0].dtype, [&](auto type) {
    using T = decltype(type);
    const T *a = c.in[0].as<T>(), *b = c.in[1].as<T>();
    for_each_broadcast(
        *c.out[0].shape, *c.in[0].shape, *c.in[1].shape,
        [&](int64_t i, int64_t x, int64_t y) { out[i] = F()(a[x], b[y]); });
  });
}

void logical_not(const KernelCall& c) {
  const bool* x = c.in[0].as<bool>();
  bool* y = c.out[0].as<bool>();
  for (int64_t i = 0, n = c.out[0].size(); i < n; ++i) y[i] = !x[i];
}

// A float that an integer cannot hold saturates; NaN becomes 0.
template <class To, class From>
To convert(From x) {
  if constexpr (std::is_same_v<To, bool>) {
    return x != From{0};
  } else if constexpr (std::is_floating_point_v<From> &&
                       std::is_integral_v<To>) {
    if (x != x) return 0;
    constexpr double lo = static_cast<double>(std::numeric_limits<To>::min());
    constexpr double hi = static_cast<double>(std::numeric_limits<To>::max());
    const double d = static_cast<double>(x);
    if (d <= lo) return std::numeric_limits<To>::min();
    if (d >= hi) return std::numeric_limits<To>::max();
    return static_cast<To>(x);
  } else {
    return static_cast<To>(x);
  }
}

void cast(const KernelCall& c) {
  const int64_t n = c.out[0].size();
  with_any(c.in[0].dtype, [&](auto from) {
    using From = decltype(from);
    with_any(c.out[0].dtype, [&](auto to) {
      using To = decltype(to);
      const From* x = c.in[0].as<From>();
      To* y = c.out[0].as<To>();
      for (int64_t i = 0; i < n; ++i) y[i] = convert<To>(x[i]);
    });
  });
}

}  // namespace

void add_compare(KernelTable& t) {
  t.direct("Equal", kAllTypes, &compare<std::equal_to<>>, "reference");
  t.direct("NotEqual", kAllTypes, &compare<std::not_equal_to<>>, "reference");
  t.direct("Less", kNumberTypes, &compare<std::less<>>, "reference");
  t.direct("LessEqual", kNumberTypes, &compare<std::less_equal<>>, "reference");
  t.direct("Greater", kNumberTypes, &compare<std::greater<>>, "reference");
  t.direct("GreaterEqual", kNumberTypes, &compare<std::greater_equal<>>,
           "reference");
  t.direct("LogicalAnd", kBoolType, &compare<std::logical_and<>>, "reference");
  t.direct("LogicalOr", kBoolType, &compare<std::logical_or<>>, "reference");
  t.direct("LogicalNot", kBoolType, &logical_not, "reference", true);
  t.direct("Cast", kAllTypes, &cast, "reference");
}

}  // namespace berth::reference
