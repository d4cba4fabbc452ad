#include "backends/reference/special_functions.h"

#include <math.h>  // lgamma_r

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

namespace berth::reference {

namespace {

constexpr double kPi = std::numbers::pi;
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();

// B(2), B(4), ...
constexpr double kBernoulli[] = {1.0 / 6,   -1.0 / 30,    1.0 / 42,
                                 -1.0 / 30, 5.0 / 66,     -691.0 / 2730.,
                                 7.0 / 6,   -3617.0 / 510};

// Winitzki's estimate of the y >= 0 with 1 - erf(y)^2 = exp(log_rest), accurate
// to 1 in 400.
double first_guess(double log_rest) {
  constexpr double kA = 0.147;
  const double t = 2 / (kPi * kA) + log_rest / 2;
  return std::sqrt(std::max(0.0, std::sqrt(t * t - log_rest / kA) - t));
}

// Refines it by Halley's method to the y with erf(y) = x, or erfc(y) = q.
template <class Error>
double polish(double y, Error&& error) {
  for (int i = 0; i < 4; ++i) {
    const double slope = 2 / std::sqrt(kPi) * std::exp(-y * y);
    if (slope == 0) break;
    const double step = error(y) / slope;
    y -= step / (1 + y * step);
  }
  return y;
}

// For q in [0, 1].
double inverse_erfc(double q) {
  if (q == 0) return kInf;
  return polish(first_guess(std::log(q * (2 - q))),
                [q](double y) { return q - std::erfc(y); });
}

}  // namespace

double inverse_erf(double x) {
  if (!(std::fabs(x) <= 1)) return kNan;
  const double a = std::fabs(x);
  const double y = a > 0.5 ? inverse_erfc(1 - a)
                           : polish(first_guess(std::log1p(-a * a)),
                                    [a](double v) { return std::erf(v) - a; });
  return std::copysign(y, x);
}

double normal_quantile(double p) {
  if (!(p >= 0 && p <= 1)) return kNan;
  const double root = std::numbers::sqrt2;
  if (p < 0.25) return -root * inverse_erfc(2 * p);
  if (p > 0.75) return root * inverse_erfc(2 * (1 - p));
  return root * inverse_erf(2 * p - 1);
}

double log_gamma(double x) {
  int sign = 0;  // std::lgamma writes a global
  return lgamma_r(x, &sign);
}

// The power series, whose terms are positive, and the asymptotic one, whose
// least term is exp(-2 |x|).
double scaled_bessel(int order, double x) {
  const double size = std::fabs(x), sign = order == 1 && x < 0 ? -1 : 1;
  if (std::isnan(x)) return x;
  double term = 1, sum = 1;
  if (size < 20) {
    term = sum = order == 1 ? size / 2 : 1;
    for (double k = 1; term > 1e-18 * sum; ++k) {
      term *= size * size / 4 / (k * (k + order));
      sum += term;
    }
    return sign * sum * std::exp(-size);
  }
  for (double k = 1; k < size && std::fabs(term) > 1e-18; ++k) {
    const double odd = 2 * k - 1;
    term *= (odd * odd - 4 * order) / (8 * k * size);
    sum += term;
  }
  return sign * sum / std::sqrt(2 * kPi * size);
}

double digamma(double x) {
  if (x == 0) return -std::copysign(kInf, x);
  if (x < 0) {
    const double fraction = x - std::floor(x);
    if (fraction == 0) return kNan;
    return digamma(1 - x) - kPi / std::tan(kPi * fraction);
  }
  double shift = 0;
  for (; x < 12; x += 1) shift -= 1 / x;
  double series = 0, power = 1;
  for (int k = 0; k < 8; ++k) {
    power /= x * x;
    series += kBernoulli[k] / (2 * (k + 1)) * power;
  }
  return shift + std::log(x) - 0.5 / x - series;
}

namespace {

// For q > 0 and s > 1: sums the first terms; the Euler-Maclaurin formula gives
// the rest from where its series converges.
double positive_zeta(double s, double q) {
  double sum = 0;
  const double begin = std::min(s + 12, 2000.0);
  for (; q < begin; q += 1) {
    const double term = std::pow(q, -s);
    sum += term;
    if (term < 1e-18 * sum) return sum;
  }
  const double power = std::pow(q, -s);
  sum += power * q / (s - 1) + power / 2;
  double factor = power * s / q;  // s (s+1) ... / (2j)! q^-(s+2j-1)
  double factorial = 2;
  for (int j = 0; j < 8; ++j) {
    const double m = 2.0 * (j + 1);
    sum += kBernoulli[j] * factor / factorial;
    factor *= (s + m - 1) * (s + m) / (q * q);
    factorial *= (m + 1) * (m + 2);
  }
  return sum;
}

}  // namespace

double hurwitz_zeta(double s, double q) {
  if (s == 1) return kInf;
  if (!(s > 1) || std::isnan(q)) return kNan;
  if (q > 0) {
    if (std::isinf(q)) return 0;
    return std::isinf(s) ? (q > 1 ? 0 : q < 1 ? kInf : 1) : positive_zeta(s, q);
  }
  const double floor = std::floor(q);
  if (q == floor) return kInf;
  if (s != std::floor(s) || std::isinf(s)) return kNan;
  // The terms below 0 are those of -q, times (-1)^s.
  const double above = q - floor, terms = -floor;
  const double below =
      positive_zeta(s, 1 - above) - positive_zeta(s, terms + 1 - above);
  return positive_zeta(s, above) + (std::fmod(s, 2) == 0 ? below : -below);
}

double polygamma(double n, double x) {
  if (!(n >= 0) || n != std::floor(n)) return kNan;
  if (n == 0) return digamma(x);
  const double value = std::exp(log_gamma(n + 1)) * hurwitz_zeta(n + 1, x);
  return std::fmod(n, 2) == 0 ? -value : value;
}

}  // namespace berth::reference
