// Public wrappers of ops in one line: unary<"Sin">(x, site).
//
// The op is looked up once per name. Thread-safe.

#ifndef BERTH_OPS_NAMED_CALL_H_
#define BERTH_OPS_NAMED_CALL_H_

#include <algorithm>
#include <cstddef>

#include "ops/op_call.h"

namespace berth {

// A literal as template argument.
template <size_t N>
struct OpName {
  consteval OpName(const char (&name)[N]) {  // NOLINT: unary<"Sin">
    std::copy_n(name, N, text);
  }
  char text[N];
};

template <OpName kName>
const OpDef& op_of() {
  static const OpDef& op = op_named(kName.text);
  return op;
}

template <OpName kName>
Tensor unary(const Tensor& x, Site site = {}, const Attrs* attrs = nullptr) {
  set_site(site);
  return call1(op_of<kName>(), x, attrs);
}

template <OpName kName>
Tensor binary(const Tensor& a, const Tensor& b, Site site = {},
              const Attrs* attrs = nullptr) {
  set_site(site);
  return call1(op_of<kName>(), a, b, attrs);
}

}  // namespace berth

#endif  // BERTH_OPS_NAMED_CALL_H_
