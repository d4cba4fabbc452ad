// Special functions that <cmath> lacks, in double precision: the oracle of
// the suites, so accuracy comes before speed. Pure; thread-safe.

#ifndef BERTH_BACKENDS_REFERENCE_SPECIAL_FUNCTIONS_H_
#define BERTH_BACKENDS_REFERENCE_SPECIAL_FUNCTIONS_H_

namespace berth::reference {

// erf(inverse_erf(x)) == x; infinite at -1 and 1, NaN outside.
double inverse_erf(double x);
// The x with P(X <= x) = p for a standard normal X.
double normal_quantile(double p);
// exp(-|x|) times the modified Bessel function of order 0 or 1.
double scaled_bessel(int order, double x);
// log |gamma(x)|.
double log_gamma(double x);
// Derivative of log_gamma; infinite at 0, NaN at -1, -2, ...
double digamma(double x);
// Derivative of order n of digamma; NaN unless n is 0, 1, ...
double polygamma(double n, double x);
// Sum of (q + k)^-s over k = 0, 1, ...; inf for s = 1 and for q = 0, -1, ...;
// NaN for s < 1 and for q < 0 with fractional s.
double hurwitz_zeta(double s, double q);

}  // namespace berth::reference

#endif  // BERTH_BACKENDS_REFERENCE_SPECIAL_FUNCTIONS_H_
