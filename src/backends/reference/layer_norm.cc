// Layer norm and its gradient.

#include <cmath>

#include "backends/reference/loops.h"
#include "backends/reference/reference.h"
#include "backends/reference/scratch.h"

namespace berth::reference {

namespace {

void layer_norm(const KernelCall& c) {
  const double epsilon = c.attr<double>("epsilon");
  with_floating(c.in[0].dtype, [&]<class T>(T) {
    const T *scale = c.in[1].as<T>(), *offset = c.in[2].as<T>();
    const int64_t d = c.in[1].size(), rows = c.out[1].size();
    for (int64_t r = 0; r < rows; ++r) {
      const T* x = c.in[0].as<T>() + r * d;
      T* y = c.out[0].as<T>() + r * d;
      double mean = 0, variance = 0;
      for (int64_t i = 0; i < d; ++i) mean += x[i];
      mean /= static_cast<double>(d);
      for (int64_t i = 0; i < d; ++i) variance += (x[i] - mean) * (x[i] - mean);
      variance /= static_cast<double>(d);
      const double rstd = 1 / std::sqrt(variance + epsilon);
      for (int64_t i = 0; i < d; ++i) {
        y[i] = static_cast<T>((x[i] - mean) * rstd * scale[i] + offset[i]);
      }
      c.out[1].as<T>()[r] = static_cast<T>(mean);
      c.out[2].as<T>()[r] = static_cast<T>(rstd);
    }
  });
}

void layer_norm_grad(const KernelCall& c) {
  with_floating(c.in[0].dtype, [&]<class T>(T) {
    const T* scale = c.in[2].as<T>();
    const int64_t d = c.in[2].size(), rows = c.in[3].size();
    Scratch<double> dscale(static_cast<size_t>(d)), doffset(dscale);
    for (int64_t r = 0; r < rows; ++r) {
      const T *dy = c.in[0].as<T>() + r * d, *x = c.in[1].as<T>() + r * d;
      const double mean = c.in[3].as<T>()[r], rstd = c.in[4].as<T>()[r];
      T* dx = c.out[0].as<T>() + r * d;
      const auto h = [&](int64_t i) { return (x[i] - mean) * rstd; };
      double sum = 0, sum_h = 0;
      for (int64_t i = 0; i < d; ++i) {
        const double k = double{dy[i]} * scale[i];
        sum += k / static_cast<double>(d);
        sum_h += k * h(i) / static_cast<double>(d);
        dscale[i] += dy[i] * h(i);
        doffset[i] += dy[i];
      }
      for (int64_t i = 0; i < d; ++i) {
        const double k = double{dy[i]} * scale[i];
        dx[i] = static_cast<T>(rstd * (k - sum - h(i) * sum_h));
      }
    }
    for (int64_t i = 0; i < d; ++i) {
      c.out[1].as<T>()[i] = static_cast<T>(dscale[i]);
      c.out[2].as<T>()[i] = static_cast<T>(doffset[i]);
    }
  });
}

}  // namespace

void add_layer_norm(KernelTable& t) {
  t.direct("LayerNorm", kFloatingTypes, &layer_norm, "reference");
  t.direct("LayerNormGrad", kFloatingTypes, &layer_norm_grad, "reference");
}

}  // namespace berth::reference
