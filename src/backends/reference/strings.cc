// Text: comparison is the only operation on it.

#include "backends/reference/loops.h"
#include "backends/reference/reference.h"
#include "tensor/string_tensor.h"

namespace berth::reference {

namespace {

template <bool kEqual>
void compare(const KernelCall& c) {
  const View &a = c.in[0], &b = c.in[1];
  bool* out = c.out[0].as<bool>();
  for_each_broadcast(*c.out[0].shape, *a.shape, *b.shape,
                     [&](int64_t i, int64_t x, int64_t y) {
                       const bool same = string_at(a.data, a.size(), x) ==
                                         string_at(b.data, b.size(), y);
                       out[i] = same == kEqual;
                     });
}

void add(KernelTable& t, const char* op, DirectKernel kernel) {
  // Must not be split: a part of such an array has no address.
  t.add(op, {.label = "reference",
             .dtypes = kStringType,
             .direct = kernel,
             .parallel = true});
}

}  // namespace

void add_strings(KernelTable& t) {
  add(t, "Equal", &compare<true>);
  add(t, "NotEqual", &compare<false>);
}

}  // namespace berth::reference
