// Updates of optimizers.

#include <cmath>

#include "backends/reference/loops.h"
#include "backends/reference/reference.h"

namespace berth::reference {

namespace {

template <class T>
double scalar(const KernelCall& c, int i) {
  return *c.in[i].as<T>();
}

void gradient_descent(const KernelCall& c) {
  with_floating(c.in[0].dtype, [&]<class T>(T) {
    const double rate = scalar<T>(c, 1);
    T* var = c.in[0].as<T>();
    const T* grad = c.in[2].as<T>();
    const int64_t n = c.in[0].size();
    for (int64_t i = 0; i < n; ++i) {
      var[i] = static_cast<T>(var[i] - rate * grad[i]);
    }
  });
}

void momentum(const KernelCall& c) {
  const bool nesterov = c.attr<bool>("use_nesterov");
  with_floating(c.in[0].dtype, [&]<class T>(T) {
    const double rate = scalar<T>(c, 2), mu = scalar<T>(c, 4);
    T *var = c.in[0].as<T>(), *accum = c.in[1].as<T>();
    const T* grad = c.in[3].as<T>();
    const int64_t n = c.in[0].size();
    for (int64_t i = 0; i < n; ++i) {
      const double a = accum[i] * mu + grad[i];
      accum[i] = static_cast<T>(a);
      var[i] =
          static_cast<T>(var[i] - rate * (nesterov ? grad[i] + mu * a : a));
    }
  });
}

void keras_momentum(const KernelCall& c) {
  const bool nesterov = c.attr<bool>("use_nesterov");
  with_floating(c.in[0].dtype, [&]<class T>(T) {
    const double rate = scalar<T>(c, 2), mu = scalar<T>(c, 4);
    T *var = c.in[0].as<T>(), *accum = c.in[1].as<T>();
    const T* grad = c.in[3].as<T>();
    const int64_t n = c.in[0].size();
    for (int64_t i = 0; i < n; ++i) {
      const double step = rate * grad[i];
      const double a = accum[i] * mu - step;
      accum[i] = static_cast<T>(a);
      var[i] = static_cast<T>(var[i] + (nesterov ? a * mu - step : a));
    }
  });
}

// Adam, and AdamW when `kDecay`.
template <bool kDecay>
void adam(const KernelCall& c) {
  const bool nesterov = c.attr<bool>("use_nesterov");
  with_floating(c.in[0].dtype, [&]<class T>(T) {
    const double beta1 = scalar<T>(c, 6), beta2 = scalar<T>(c, 7);
    const double epsilon = scalar<T>(c, 8), lr = scalar<T>(c, 5);
    const double alpha =
        lr * std::sqrt(1 - scalar<T>(c, 4)) / (1 - scalar<T>(c, 3));
    const double keep = kDecay ? 1 - lr * scalar<T>(c, 9) : 1;
    T *var = c.in[0].as<T>(), *m = c.in[1].as<T>(), *v = c.in[2].as<T>();
    const T* grad = c.in[kDecay ? 10 : 9].as<T>();
    const int64_t n = c.in[0].size();
    for (int64_t i = 0; i < n; ++i) {
      const double g = grad[i];
      const double first = m[i] + (g - m[i]) * (1 - beta1);
      const double second = v[i] + (g * g - v[i]) * (1 - beta2);
      const double top = nesterov ? first * beta1 + (1 - beta1) * g : first;
      m[i] = static_cast<T>(first);
      v[i] = static_cast<T>(second);
      var[i] = static_cast<T>(var[i] * keep -
                              alpha * top / (std::sqrt(second) + epsilon));
    }
  });
}

template <bool kCentered>
void rms_prop(const KernelCall& c) {
  with_floating(c.in[0].dtype, [&]<class T>(T) {
    constexpr int kScalars = kCentered ? 4 : 3;
    const double lr = scalar<T>(c, kScalars), rho = scalar<T>(c, kScalars + 1);
    const double momentum = scalar<T>(c, kScalars + 2);
    const double epsilon = scalar<T>(c, kScalars + 3);
    T* var = c.in[0].as<T>();
    T *mg = c.in[1].as<T>(), *ms = c.in[kScalars - 2].as<T>();
    T* mom = c.in[kScalars - 1].as<T>();
    const T* grad = c.in[kScalars + 4].as<T>();
    const int64_t n = c.in[0].size();
    for (int64_t i = 0; i < n; ++i) {
      const double g = grad[i], square = ms[i] + (g * g - ms[i]) * (1 - rho);
      double spread = square;
      if constexpr (kCentered) {
        const double mean = mg[i] + (g - mg[i]) * (1 - rho);
        mg[i] = static_cast<T>(mean);
        spread -= mean * mean;
      }
      const double move =
          mom[i] * momentum + lr * g / std::sqrt(spread + epsilon);
      ms[i] = static_cast<T>(square);
      mom[i] = static_cast<T>(move);
      var[i] = static_cast<T>(var[i] - move);
    }
  });
}

void adagrad(const KernelCall& c) {
  with_floating(c.in[0].dtype, [&]<class T>(T) {
    const double lr = scalar<T>(c, 2), epsilon = scalar<T>(c, 3);
    T *var = c.in[0].as<T>(), *accum = c.in[1].as<T>();
    const T* grad = c.in[4].as<T>();
    const int64_t n = c.in[0].size();
    for (int64_t i = 0; i < n; ++i) {
      const double g = grad[i], sum = accum[i] + g * g;
      accum[i] = static_cast<T>(sum);
      var[i] = static_cast<T>(var[i] - lr * g / (std::sqrt(sum) + epsilon));
    }
  });
}

}  // namespace

void add_training(KernelTable& t) {
  t.direct("ResourceApplyGradientDescent", kFloatingTypes, &gradient_descent,
           "reference");
  t.direct("ResourceApplyMomentum", kFloatingTypes, &momentum, "reference");
  t.direct("ResourceApplyKerasMomentum", kFloatingTypes, &keras_momentum,
           "reference");
  t.direct("ResourceApplyAdam", kFloatingTypes, &adam<false>, "reference");
  t.direct("ResourceApplyAdamWithWeightDecay", kFloatingTypes, &adam<true>,
           "reference");
  t.direct("ResourceApplyRMSProp", kFloatingTypes, &rms_prop<false>,
           "reference");
  t.direct("ResourceApplyCenteredRMSProp", kFloatingTypes, &rms_prop<true>,
           "reference");
  t.direct("ResourceApplyAdagradV2", kFloatingTypes, &adagrad, "reference");
}

}  // namespace berth::reference
