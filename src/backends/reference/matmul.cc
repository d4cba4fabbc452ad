// Products of matrices.

#include <algorithm>

#include "backends/reference/loops.h"
#include "backends/reference/reference.h"
#include "backends/reference/scratch.h"

namespace berth::reference {

namespace {

void matmul(const KernelCall& c) {
  const bool ta = c.attr<bool>("transpose_a"), tb = c.attr<bool>("transpose_b");
  const Shape &a = *c.in[0].shape, &b = *c.in[1].shape, &o = *c.out[0].shape;
  const int64_t m = o[o.rank() - 2], n = o[o.rank() - 1];
  const int64_t k = a[ta ? a.rank() - 2 : a.rank() - 1];
  Shape batch = o, batch_a = a, batch_b = b;
  for (Shape* s : {&batch, &batch_a, &batch_b}) {
    s->erase(s->rank() - 1);
    s->erase(s->rank() - 1);
  }
  with_ring(c.out[0].dtype, [&]<class T>(T) {
    using Sum = Wide<T>;
    Scratch<Sum> sums(static_cast<size_t>(n));
    for_each_broadcast(
        batch, batch_a, batch_b, [&](int64_t i, int64_t ia, int64_t ib) {
          const T* x = c.in[0].as<T>() + ia * m * k;
          const T* y = c.in[1].as<T>() + ib * k * n;
          T* z = c.out[0].as<T>() + i * m * n;
          for (int64_t r = 0; r < m; ++r) {
            const auto left = [&](int64_t q) {
              return static_cast<Sum>(ta ? x[q * m + r] : x[r * k + q]);
            };
            // Along rows of b, in the order of memory; each sum is added in
            // the order of q.
            std::fill(sums.begin(), sums.end(), Sum{});
            for (int64_t q = 0; !tb && q < k; ++q) {
              const Sum l = left(q);
              const T* row = y + q * n;
              for (int64_t col = 0; col < n; ++col) {
                sums[col] += l * static_cast<Sum>(row[col]);
              }
            }
            for (int64_t col = 0; tb && col < n; ++col) {
              Sum sum = 0;
              for (int64_t q = 0; q < k; ++q) {
                sum += left(q) * static_cast<Sum>(y[col * k + q]);
              }
              sums[static_cast<size_t>(col)] = sum;
            }
            for (int64_t col = 0; col < n; ++col) {
              z[r * n + col] = static_cast<T>(sums[static_cast<size_t>(col)]);
            }
          }
        });
  });
}

}  // namespace

void add_matmul(KernelTable& t) {
  t.direct("MatMul", kRingTypes, &matmul, "reference");
}

}  // namespace berth::reference
