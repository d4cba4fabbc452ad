// Activations, bias and dropout.

#include <cmath>
#include <numbers>

#include "backends/reference/loops.h"
#include "backends/reference/reference.h"
#include "backends/reference/scratch.h"
#include "base/rng.h"

namespace berth::reference {

namespace {

void relu(const KernelCall& c) {
  with_number(c.in[0].dtype, [&]<class T>(T) {
    const T* x = c.in[0].as<T>();
    T* y = c.out[0].as<T>();
    const int64_t n = c.out[0].size();
    for (int64_t i = 0; i < n; ++i) y[i] = x[i] < T(0) ? T(0) : x[i];
  });
}

// Calls fn(gradient, feature) for each element.
template <class T, class Fn>
void backward(const KernelCall& c, Fn&& fn) {
  const T *dy = c.in[0].as<T>(), *x = c.in[1].as<T>();
  T* dx = c.out[0].as<T>();
  for_each_broadcast(
      *c.out[0].shape, *c.in[0].shape, *c.in[1].shape,
      [&](int64_t i, int64_t a, int64_t b) { dx[i] = fn(dy[a], x[b]); });
}

void relu_grad(const KernelCall& c) {
  with_number(c.in[0].dtype, [&]<class T>(T) {
    backward<T>(c, [](T dy, T x) { return x > T(0) ? dy : T(0); });
  });
}

const double kTanhScale = std::sqrt(2 / std::numbers::pi);
constexpr double kCubic = 0.044715;

double normal_cdf(double x) {
  return 0.5 * std::erfc(-x / std::numbers::sqrt2);
}

double gelu_value(double x, bool approximate) {
  if (!approximate) return x * normal_cdf(x);
  return 0.5 * x * (1 + std::tanh(kTanhScale * (x + kCubic * x * x * x)));
}

double gelu_slope(double x, bool approximate) {
  if (!approximate) {
    const double density =
        std::exp(-0.5 * x * x) / std::sqrt(2 * std::numbers::pi);
    return normal_cdf(x) + x * density;
  }
  const double t = std::tanh(kTanhScale * (x + kCubic * x * x * x));
  const double slope = kTanhScale * (1 + 3 * kCubic * x * x);
  return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * slope;
}

void gelu(const KernelCall& c) {
  const bool approximate = c.attr<bool>("approximate");
  with_floating(c.in[0].dtype, [&]<class T>(T) {
    const T* x = c.in[0].as<T>();
    T* y = c.out[0].as<T>();
    const int64_t n = c.out[0].size();
    for (int64_t i = 0; i < n; ++i) {
      y[i] = static_cast<T>(gelu_value(x[i], approximate));
    }
  });
}

void gelu_grad(const KernelCall& c) {
  const bool approximate = c.attr<bool>("approximate");
  with_floating(c.in[0].dtype, [&]<class T>(T) {
    backward<T>(c, [&](T dy, T x) {
      return static_cast<T>(dy * gelu_slope(x, approximate));
    });
  });
}

void bias_add(const KernelCall& c) {
  with_number(c.in[0].dtype, [&]<class T>(T) {
    using Wide = std::conditional_t<std::is_floating_point_v<T>, T, uint64_t>;
    backward<T>(c, [](T value, T bias) {
      return static_cast<T>(Wide(value) + Wide(bias));
    });
  });
}

void bias_add_grad(const KernelCall& c) {
  with_number(c.in[0].dtype, [&]<class T>(T) {
    using Sum =
        std::conditional_t<std::is_floating_point_v<T>, double, uint64_t>;
    const T* dy = c.in[0].as<T>();
    const int64_t channels = c.out[0].size(), n = c.in[0].size();
    Scratch<Sum> sums(static_cast<size_t>(channels), Sum(0));
    for (int64_t i = 0; i < n; ++i) {
      sums[i % channels] += static_cast<Sum>(dy[i]);
    }
    T* db = c.out[0].as<T>();
    for (int64_t i = 0; i < channels; ++i) db[i] = static_cast<T>(sums[i]);
  });
}

void dropout(const KernelCall& c) {
  const double rate = c.attr<double>("rate");
  const auto threshold = static_cast<float>(rate);
  const RandomStream random(static_cast<uint64_t>(c.attr<int64_t>("seed")),
                            static_cast<uint32_t>(c.attr<int64_t>("op_id")),
                            c.context->step());
  const auto origin = static_cast<uint64_t>(c.context->slice_origin);
  with_floating(c.in[0].dtype, [&]<class T>(T) {
    const T* x = c.in[0].as<T>();
    T* y = c.out[0].as<T>();
    auto* mask = c.out[1].as<uint8_t>();
    const int64_t n = c.out[0].size();
    for (int64_t i = 0; i < n; ++i) {
      const bool keep =
          random.uniform(origin + static_cast<uint64_t>(i)) >= threshold;
      mask[i] = keep;
      y[i] = keep ? static_cast<T>(x[i] / (1 - rate)) : T(0);
    }
  });
}

void dropout_grad(const KernelCall& c) {
  const double rate = c.attr<double>("rate");
  with_floating(c.in[0].dtype, [&]<class T>(T) {
    const T* dy = c.in[0].as<T>();
    const auto* mask = c.in[1].as<uint8_t>();
    T* dx = c.out[0].as<T>();
    for_each_broadcast(*c.out[0].shape, *c.in[0].shape, *c.in[1].shape,
                       [&](int64_t i, int64_t a, int64_t b) {
                         dx[i] = mask[b] ? static_cast<T>(dy[a] / (1 - rate))
                                         : T(0);
                       });
  });
}

}  // namespace

void add_nn(KernelTable& t) {
  t.direct("Relu", kOwnNumbers, &relu, "reference", true);
  t.direct("ReluGrad", kOwnNumbers, &relu_grad, "reference", true);
  t.direct("Gelu", kFloatingTypes, &gelu, "reference", true);
  t.direct("GeluGrad", kFloatingTypes, &gelu_grad, "reference", true);
  t.direct("BiasAdd", kOwnNumbers, &bias_add, "reference", true);
  t.direct("BiasAddGrad", kOwnNumbers, &bias_add_grad, "reference");
  t.direct("Dropout", kFloatingTypes, &dropout, "reference");
  t.direct("DropoutGrad", kFloatingTypes, &dropout_grad, "reference", true);
}

}  // namespace berth::reference
