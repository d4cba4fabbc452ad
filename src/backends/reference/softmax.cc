// Softmax and the cross entropies.

#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "backends/reference/loops.h"
#include "backends/reference/reference.h"

namespace berth::reference {

namespace {

// Maximum and log of the sum of exp(x - maximum) of one row.
struct RowSum {
  double max = -std::numeric_limits<double>::infinity();
  double log_sum = 0;

  template <class T>
  RowSum(const T* x, int64_t n) {
    for (int64_t i = 0; i < n; ++i) {
      if (x[i] > max) max = x[i];
    }
    double sum = 0;
    for (int64_t i = 0; i < n; ++i) sum += std::exp(x[i] - max);
    log_sum = std::log(sum);
  }
  template <class T>
  double log_softmax(T x) const {
    return x - max - log_sum;
  }
};

template <bool kLog>
void softmax(const KernelCall& c) {
  const Shape& shape = *c.in[0].shape;
  const int64_t classes = shape[shape.rank() - 1];
  const int64_t rows = classes ? c.in[0].size() / classes : 0;
  with_floating(c.in[0].dtype, [&]<class T>(T) {
    for (int64_t r = 0; r < rows; ++r) {
      const T* x = c.in[0].as<T>() + r * classes;
      T* y = c.out[0].as<T>() + r * classes;
      const RowSum sum(x, classes);
      for (int64_t i = 0; i < classes; ++i) {
        const double v = sum.log_softmax(x[i]);
        y[i] = static_cast<T>(kLog ? v : std::exp(v));
      }
    }
  });
}

void cross_entropy(const KernelCall& c) {
  const int64_t rows = c.in[0].dim(0), classes = c.in[0].dim(1);
  with_floating(c.in[0].dtype, [&]<class T>(T) {
    for (int64_t r = 0; r < rows; ++r) {
      const T* x = c.in[0].as<T>() + r * classes;
      const T* labels = c.in[1].as<T>() + r * classes;
      T* backprop = c.out[1].as<T>() + r * classes;
      const RowSum sum(x, classes);
      double loss = 0;
      for (int64_t i = 0; i < classes; ++i) {
        const double v = sum.log_softmax(x[i]);
        loss -= labels[i] * v;
        backprop[i] = static_cast<T>(std::exp(v) - labels[i]);
      }
      c.out[0].as<T>()[r] = static_cast<T>(loss);
    }
  });
}

int64_t label_of(const KernelCall& c, int64_t row, int64_t classes) {
  const int64_t label = c.in[1].dtype == int32 ? c.in[1].as<int32_t>()[row]
                                               : c.in[1].as<int64_t>()[row];
  if (label < 0 || label >= classes) {
    throw errors::InvalidArgument(fmt::format(
        "{}: label {} in row {}; expected 0 <= label < {}, the number of "
        "classes: check the last layer's size and the labels",
        c.op->name(), label, row, classes));
  }
  return label;
}

void sparse_cross_entropy(const KernelCall& c) {
  const int64_t rows = c.in[0].dim(0), classes = c.in[0].dim(1);
  with_floating(c.in[0].dtype, [&]<class T>(T) {
    for (int64_t r = 0; r < rows; ++r) {
      const int64_t label = label_of(c, r, classes);
      const T* x = c.in[0].as<T>() + r * classes;
      T* backprop = c.out[1].as<T>() + r * classes;
      const RowSum sum(x, classes);
      for (int64_t i = 0; i < classes; ++i) {
        const double p = std::exp(sum.log_softmax(x[i]));
        backprop[i] = static_cast<T>(i == label ? p - 1 : p);
      }
      c.out[0].as<T>()[r] = static_cast<T>(-sum.log_softmax(x[label]));
    }
  });
}

}  // namespace

void add_softmax(KernelTable& t) {
  t.direct("Softmax", kFloatingTypes, &softmax<false>, "reference");
  t.direct("LogSoftmax", kFloatingTypes, &softmax<true>, "reference");
  t.direct("SoftmaxCrossEntropyWithLogits", kFloatingTypes, &cross_entropy,
           "reference");
  t.direct("SparseSoftmaxCrossEntropyWithLogits", kFloatingTypes,
           &sparse_cross_entropy, "reference");
}

}  // namespace berth::reference
