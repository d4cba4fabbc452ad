// Softmax and cross-entropies: rows over the last axis.

#include "backends/cpu/kernels.h"
#include "backends/cpu/loops.h"

namespace berth::cpu {

namespace {

template <bool kLog>
void softmax(const KernelCall& c) {
  const Shape& shape = *c.in[0].shape;
  const int64_t n = c.in[0].size();
  if (n == 0) return;
  const int64_t cols = shape[shape.rank() - 1];
  auto* loop = kLog ? loops().log_softmax : loops().softmax;
  loop(c.in[0].as<float>(), c.out[0].as<float>(), n / cols, cols);
}

void cross_entropy(const KernelCall& c) {
  loops().xent_dense(c.in[0].as<float>(), c.in[1].as<float>(),
                     c.out[0].as<float>(), c.out[1].as<float>(), c.in[0].dim(0),
                     c.in[0].dim(1));
}

template <class T>
bool all_below(const T* labels, int64_t n, int64_t classes) {
  for (int64_t i = 0; i < n; ++i) {
    if (labels[i] < 0 || labels[i] >= classes) return false;
  }
  return true;
}

template <class T, class Loop>
void sparse(const KernelCall& c, Loop* loop) {
  const int64_t rows = c.in[0].dim(0), cols = c.in[0].dim(1);
  const T* labels = c.in[1].as<T>();
  // The reference kernel throws the error that names the label.
  if (!all_below(labels, rows, cols)) return run_reference(c);
  loop(c.in[0].as<float>(), labels, c.out[0].as<float>(), c.out[1].as<float>(),
       rows, cols);
}

void sparse_cross_entropy(const KernelCall& c) {
  if (c.in[1].dtype == int32) {
    sparse<int32_t>(c, loops().xent_i32);
  } else {
    sparse<int64_t>(c, loops().xent_i64);
  }
}

}  // namespace

void add_softmax(KernelTable& t) {
  t.direct("Softmax", kFloat32, &softmax<false>, "loops", true);
  t.direct("LogSoftmax", kFloat32, &softmax<true>, "loops", true);
  t.direct("SoftmaxCrossEntropyWithLogits", kFloat32, &cross_entropy, "loops");
  t.direct("SparseSoftmaxCrossEntropyWithLogits", kFloat32,
           &sparse_cross_entropy, "loops");
}

}  // namespace berth::cpu
