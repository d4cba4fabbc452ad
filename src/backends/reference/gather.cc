// GatherV2 and its gradient, OneHot, SelectV2.

#include <fmt/format.h>

#include <cstring>

#include "backends/reference/indices.h"
#include "backends/reference/reference.h"
#include "backends/reference/scratch.h"

namespace berth::reference {

int64_t checked_index(const KernelCall& c, const View& indices, int64_t i,
                      const Shape& target, int axis) {
  const int64_t at = index_at(indices, i);
  if (at >= 0 && at < target[axis]) return at;
  throw errors::InvalidArgument(fmt::format(
      "{}: index {} at place {} of the indices is out of range for axis {} of "
      "{}; expected one in [0, {})",
      c.op->name(), at, i, axis, target.str(), target[axis]));
}

namespace {

void gather(const KernelCall& c) {
  const size_t size = size_of(c.in[0].dtype);
  const auto* x = c.in[0].as<std::byte>();
  auto* y = c.out[0].as<std::byte>();
  for_each_gathered(c, *c.in[0].shape,
                    [&](int64_t p, int64_t g, int64_t inner) {
                      if (inner == 0) return;
                      if (inner == 1 && size == 4) {
                        std::memcpy(y + g * 4, x + p * 4, 4);
                        return;
                      }
                      if (inner == 1 && size == 8) {
                        std::memcpy(y + g * 8, x + p * 8, 8);
                        return;
                      }
                      std::memcpy(y + static_cast<size_t>(g) * size,
                                  x + static_cast<size_t>(p) * size,
                                  static_cast<size_t>(inner) * size);
                    });
}

void gather_grad(const KernelCall& c) {
  with_ring(c.in[0].dtype, [&]<class T>(T) {
    const T* dy = c.in[0].as<T>();
    Scratch<Wide<T>> sums(static_cast<size_t>(c.out[0].size()));
    for_each_gathered(c, *c.out[0].shape,
                      [&](int64_t p, int64_t g, int64_t inner) {
                        for (int64_t i = 0; i < inner; ++i) {
                          sums[p + i] += static_cast<Wide<T>>(dy[g + i]);
                        }
                      });
    T* dx = c.out[0].as<T>();
    for (size_t i = 0; i < sums.size(); ++i) dx[i] = static_cast<T>(sums[i]);
  });
}

int64_t whole_at(const View& v, int64_t i) {
  return v.dtype == uint8 ? v.as<uint8_t>()[i] : index_at(v, i);
}

void one_hot(const KernelCall& c) {
  const Shape& out = *c.out[0].shape;
  const int axis =
      normalize_axis(c.attr<int64_t>("axis"), out.rank(), "OneHot");
  const int64_t depth = out[axis];
  const int64_t inner = product_of(out, axis + 1, out.rank());
  const double on = c.attr<double>("on_value");
  const double off = c.attr<double>("off_value");
  visit_dtype(c.out[0].dtype, "OneHot", [&]<class T>(T) {
    const T hot = convert_element<T>(on), cold = convert_element<T>(off);
    T* y = c.out[0].as<T>();
    for (int64_t i = 0, n = c.out[0].size(); i < n; ++i) {
      const int64_t outer = i / inner / depth;
      const int64_t index = whole_at(c.in[0], outer * inner + i % inner);
      y[i] = index == i / inner % depth ? hot : cold;
    }
  });
}

void select(const KernelCall& c) {
  const Shape& out = *c.out[0].shape;
  const bool* condition = c.in[0].as<bool>();
  with_storage(c.out[0].dtype, [&]<class T>(T) {
    const T *a = c.in[1].as<T>(), *b = c.in[2].as<T>();
    T* y = c.out[0].as<T>();
    for_each_broadcast(out, *c.in[0].shape, *c.in[1].shape,
                       [&](int64_t i, int64_t k, int64_t from) {
                         if (condition[k]) y[i] = a[from];
                       });
    for_each_broadcast(out, *c.in[0].shape, *c.in[2].shape,
                       [&](int64_t i, int64_t k, int64_t from) {
                         if (!condition[k]) y[i] = b[from];
                       });
  });
}

}  // namespace

void add_gather(KernelTable& t) {
  t.direct("GatherV2", kEveryType, &gather, "reference");
  t.direct("GatherGrad", kRingTypes, &gather_grad, "reference");
  t.direct("GatherGradLike", kRingTypes, &gather_grad, "reference");
  t.direct("OneHot", kIntegerTypes, &one_hot, "reference");
  // The condition's dtype selects the kernel.
  t.direct("SelectV2", kBoolType, &select, "reference");
}

}  // namespace berth::reference
