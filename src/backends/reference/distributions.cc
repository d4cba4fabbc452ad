// Gamma, Poisson and binomial numbers. Each element has a sequence of words of
// its own: block k of element i is block i + k 2^40 of the op's stream.

#include <cmath>

#include "backends/reference/loops.h"
#include "backends/reference/reference.h"
#include "backends/reference/special_functions.h"
#include "backends/reference/stream.h"
#include "base/rng.h"

namespace berth::reference {

namespace {

class Words {
 public:
  Words(const RandomStream& stream, uint64_t element)
      : stream_(stream), block_(element) {}

  // In (0, 1).
  double uniform() {
    if (at_ == 4) {
      words_ = stream_.block(block_);
      block_ += uint64_t{1} << 40;
      at_ = 0;
    }
    return (words_[at_++] + 0.5) * 0x1p-32;
  }
  double normal() {
    const double radius = std::sqrt(-2 * std::log(uniform()));
    return radius * std::cos(6.283185307179586 * uniform());
  }

 private:
  const RandomStream& stream_;
  uint64_t block_;
  PhiloxBlock words_{};
  size_t at_ = 4;
};

// Marsaglia and Tsang, "A simple method for generating gamma variables", 2000.
double gamma_number(Words* w, double alpha) {
  if (!(alpha > 0)) return NAN;
  const double boost = alpha < 1 ? std::pow(w->uniform(), 1 / alpha) : 1;
  const double d = (alpha < 1 ? alpha + 1 : alpha) - 1. / 3;
  const double c = 1 / std::sqrt(9 * d);
  for (;;) {
    const double x = w->normal(), root = 1 + c * x;
    if (root <= 0) continue;
    const double v = root * root * root;
    if (std::log(w->uniform()) < x * x / 2 + d - d * v + d * std::log(v)) {
      return boost * d * v;
    }
  }
}

// Products of uniform numbers for small means, else transformed rejection
// (Hoermann, "The transformed rejection method for generating Poisson random
// variables", 1993).
double poisson_number(Words* w, double mean) {
  if (!(mean >= 0) || std::isinf(mean)) return NAN;
  if (mean < 10) {
    const double least = std::exp(-mean);
    double product = w->uniform(), k = 0;
    for (; product > least; ++k) product *= w->uniform();
    return k;
  }
  const double b = 0.931 + 2.53 * std::sqrt(mean);
  const double a = -0.059 + 0.02483 * b;
  const double inverse = 1.1239 + 1.1328 / (b - 3.4);
  const double sure = 0.9277 - 3.6224 / (b - 2);
  for (;;) {
    const double u = w->uniform() - 0.5, v = w->uniform();
    const double us = 0.5 - std::abs(u);
    const double k = std::floor((2 * a / us + b) * u + mean + 0.43);
    if (us >= 0.07 && v <= sure) return k;
    if (k < 0 || (us < 0.013 && v > us)) continue;
    if (std::log(v * inverse / (a / (us * us) + b)) <=
        k * std::log(mean) - mean - log_gamma(k + 1)) {
      return k;
    }
  }
}

// Sums of geometric numbers for few successes, else transformed rejection
// (Hoermann, "The generation of binomial random variates", 1993).
double binomial_number(Words* w, double n, double p) {
  if (!(n >= 0 && p >= 0 && p <= 1) || std::isinf(n)) return NAN;
  n = std::floor(n);
  if (p > 0.5) return n - binomial_number(w, n, 1 - p);
  if (p == 0 || n == 0) return 0;
  if (n * p < 10) {
    double trials = 0, successes = -1;
    for (; trials <= n; ++successes) {
      trials += std::ceil(std::log(w->uniform()) / std::log1p(-p));
    }
    return successes;
  }
  const double deviation = std::sqrt(n * p * (1 - p));
  const double b = 1.15 + 2.53 * deviation;
  const double a = -0.0873 + 0.0248 * b + 0.01 * p;
  const double c = n * p + 0.5, sure = 0.92 - 4.2 / b;
  const double alpha = (2.83 + 5.1 / b) * deviation;
  const double odds = p / (1 - p), mode = std::floor((n + 1) * p);
  const auto tail = [&](double k) {
    return log_gamma(k + 1) + log_gamma(n - k + 1);
  };
  for (;;) {
    const double u = w->uniform() - 0.5, v = w->uniform();
    const double us = 0.5 - std::abs(u);
    const double k = std::floor((2 * a / us + b) * u + c);
    if (us >= 0.07 && v <= sure) return k;
    if (k < 0 || k > n) continue;
    if (std::log(v * alpha / (a / (us * us) + b)) <=
        tail(mode) - tail(k) + (k - mode) * std::log(odds)) {
      return k;
    }
  }
}

// y[i] = fn(words, i) in the dtype of the output; NaN is -1 for integers. The
// key may follow `parameters` inputs.
template <class Fn>
void for_each_draw(const KernelCall& c, int parameters, Fn&& fn) {
  const RandomStream stream =
      stream_of(c, parameters, c.attr<bool>("stateless"));
  const auto origin = static_cast<uint64_t>(c.context->slice_origin);
  with_number(c.out[0].dtype, [&]<class T>(T) {
    for (int64_t i = 0; i < c.out[0].size(); ++i) {
      Words words(stream, origin + static_cast<uint64_t>(i));
      const double v = fn(&words, i);
      const bool whole = std::is_integral_v<T>;
      c.out[0].as<T>()[i] =
          whole && std::isnan(v) ? static_cast<T>(-1) : static_cast<T>(v);
    }
  });
}

double parameter(const View& v, int64_t i) {
  return v.dtype == float64 ? v.as<double>()[i] : double{v.as<float>()[i]};
}

}  // namespace

void add_distributions(KernelTable& t) {
  t.direct(
      "RandomGamma", kFloatingTypes,
      [](const KernelCall& c) {
        for_each_draw(c, 1, [&](Words* w, int64_t i) {
          return gamma_number(w, parameter(c.in[0], i));
        });
      },
      "reference");
  t.direct(
      "RandomPoisson", kFloatingTypes,
      [](const KernelCall& c) {
        for_each_draw(c, 1, [&](Words* w, int64_t i) {
          return poisson_number(w, parameter(c.in[0], i));
        });
      },
      "reference");
  t.direct(
      "RandomBinomial", kFloatingTypes,
      [](const KernelCall& c) {
        for_each_draw(c, 2, [&](Words* w, int64_t i) {
          return binomial_number(w, parameter(c.in[0], i),
                                 parameter(c.in[1], i));
        });
      },
      "reference");
}

}  // namespace berth::reference
