// Batch norm and its gradient.

#include <algorithm>
#include <cmath>

#include "backends/reference/loops.h"
#include "backends/reference/norm_groups.h"
#include "backends/reference/reference.h"
#include "backends/reference/scratch.h"

namespace berth::reference {

namespace {

using Doubles = Scratch<double>;

// Mean over all axes but the last of value(i, channel): [c]. NaN when empty.
template <class Fn>
Doubles channel_means(int64_t n, int64_t channels, Fn&& value) {
  Doubles sums(static_cast<size_t>(channels), 0.0);
  for (int64_t i = 0; i < n; ++i) sums[i % channels] += value(i, i % channels);
  const double count = channels ? static_cast<double>(n / channels) : 1;
  for (double& s : sums) s /= count;
  return sums;
}

template <class T>
void put(const Doubles& from, const View& to) {
  for (size_t i = 0; i < from.size(); ++i) {
    to.as<T>()[i] = static_cast<T>(from[i]);
  }
}

template <class T>
void normalise(const KernelCall& c, const Doubles& mean,
               const Doubles& variance) {
  const double epsilon = c.attr<double>("epsilon");
  const T *x = c.in[0].as<T>(), *scale = c.in[1].as<T>();
  const T* offset = c.in[2].as<T>();
  T* y = c.out[0].as<T>();
  const int64_t n = c.out[0].size();
  const auto channels = static_cast<int64_t>(mean.size());
  for (int64_t i = 0; i < n; ++i) {
    const int64_t ch = i % channels;
    const double h = (x[i] - mean[ch]) / std::sqrt(variance[ch] + epsilon);
    y[i] = static_cast<T>(h * scale[ch] + offset[ch]);
  }
}

template <class T>
void train(const KernelCall& c) {
  const T* x = c.in[0].as<T>();
  const int64_t n = c.in[0].size(), channels = c.in[1].size();
  const Doubles mean =
      channel_means(n, channels, [&](int64_t i, int64_t) { return x[i]; });
  const Doubles biased = channel_means(n, channels, [&](int64_t i, int64_t ch) {
    return (x[i] - mean[ch]) * (x[i] - mean[ch]);
  });
  const double count = channels ? static_cast<double>(n / channels) : 1;
  Doubles unbiased = biased;
  for (double& v : unbiased) v *= count / std::max(count - 1, 1.0);
  normalise<T>(c, mean, biased);
  put<T>(mean, c.out[1]);
  put<T>(unbiased, c.out[2]);
  put<T>(mean, c.out[3]);
  put<T>(biased, c.out[4]);
}

template <class T>
Doubles doubles(const View& v) {
  return Doubles(v.as<T>(), v.as<T>() + v.size());
}

void whole_batch_norm(const KernelCall& c) {
  with_floating(c.in[0].dtype, [&]<class T>(T) {
    if (c.attr<bool>("is_training")) return train<T>(c);
    const Doubles mean = doubles<T>(c.in[3]), variance = doubles<T>(c.in[4]);
    normalise<T>(c, mean, variance);
    for (int i : {1, 3}) put<T>(mean, c.out[i]);
    for (int i : {2, 4}) put<T>(variance, c.out[i]);
  });
}

void whole_batch_norm_grad(const KernelCall& c) {
  const bool training = c.attr<bool>("is_training");
  const double epsilon = c.attr<double>("epsilon");
  with_floating(c.in[0].dtype, [&]<class T>(T) {
    const T *dy = c.in[0].as<T>(), *x = c.in[1].as<T>();
    const T *scale = c.in[2].as<T>(), *mean = c.in[3].as<T>();
    const T* variance = c.in[4].as<T>();
    const int64_t n = c.in[1].size(), channels = c.in[2].size();
    Doubles inverse(static_cast<size_t>(channels));
    for (int64_t ch = 0; ch < channels; ++ch) {
      inverse[ch] = 1 / std::sqrt(variance[ch] + epsilon);
    }
    const auto h = [&](int64_t i, int64_t ch) {
      return (x[i] - mean[ch]) * inverse[ch];
    };
    const Doubles mean_dy = channel_means(
        n, channels, [&](int64_t i, int64_t) { return double{dy[i]}; });
    const Doubles mean_dy_h = channel_means(
        n, channels, [&](int64_t i, int64_t ch) { return dy[i] * h(i, ch); });
    T* dx = c.out[0].as<T>();
    for (int64_t i = 0; i < n; ++i) {
      const int64_t ch = i % channels;
      double d = dy[i];
      if (training) d -= mean_dy[ch] + h(i, ch) * mean_dy_h[ch];
      dx[i] = static_cast<T>(d * scale[ch] * inverse[ch]);
    }
    const double count = channels ? static_cast<double>(n / channels) : 0;
    for (int64_t ch = 0; ch < channels; ++ch) {
      // An empty sum is 0, its mean NaN.
      const bool any = count > 0;
      c.out[1].as<T>()[ch] = any ? static_cast<T>(mean_dy_h[ch] * count) : T(0);
      c.out[2].as<T>()[ch] = any ? static_cast<T>(mean_dy[ch] * count) : T(0);
    }
  });
}

void batch_norm(const KernelCall& c) {
  Scratch<double> sums(2 * static_cast<size_t>(c.in[1].size()));
  by_groups(c, sums.data(), &whole_batch_norm);
}

void batch_norm_grad(const KernelCall& c) {
  Scratch<double> sums(2 * static_cast<size_t>(c.in[2].size()));
  by_groups(c, sums.data(), &whole_batch_norm_grad);
}

}  // namespace

void add_norm(KernelTable& t) {
  t.direct("FusedBatchNormV3", kFloatingTypes, &batch_norm, "reference");
  t.direct("FusedBatchNormGradV3", kFloatingTypes, &batch_norm_grad,
           "reference");
}

}  // namespace berth::reference
