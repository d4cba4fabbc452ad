#include "place/planner/simplex.h"

#include <algorithm>
#include <cmath>

namespace berth {

namespace {

constexpr double kTolerance = 1e-9;   // of bounds, relative to 1
constexpr double kLeastPivot = 1e-8;  // smaller coefficients are noise
constexpr size_t kNone = ~size_t{0};

}  // namespace

RowLp::RowLp(std::span<const double> objective, std::span<const double> lower,
             std::span<const double> upper)
    : n_(objective.size()),
      stride_(n_ + 1),
      table_(stride_, 0),
      basic_{-1},
      lower_(lower.begin(), lower.end()),
      upper_(upper.begin(), upper.end()),
      next_slack_(static_cast<int32_t>(n_)) {
  for (size_t j = 0; j < n_; ++j) {
    nonbasic_.push_back(j);
    at_upper_.push_back(objective[j] > 0);
    table_[1 + j] = -objective[j];
    table_[0] += objective[j] * bound_of(j);
  }
}

double RowLp::bound_of(size_t column) const {
  const size_t v = nonbasic_[column];
  if (v >= n_) return 0;  // slacks have no upper bound
  return at_upper_[column] ? upper_[v] : lower_[v];
}

void RowLp::add_row(std::span<const std::pair<int32_t, double>> entries,
                    double limit) {
  std::vector<double> of_variable(n_, 0), added(stride_, 0);
  for (const auto& [v, a] : entries) of_variable[v] = a;
  added[0] = limit;
  for (size_t j = 0; j < n_; ++j) {
    if (static_cast<size_t>(nonbasic_[j]) >= n_) continue;
    const double a = of_variable[nonbasic_[j]];
    added[1 + j] += a;
    added[0] -= a * bound_of(j);
  }
  for (size_t r = 1; r < basic_.size(); ++r) {
    if (static_cast<size_t>(basic_[r]) >= n_) continue;
    const double a = of_variable[basic_[r]];
    if (a == 0) continue;
    // The row's value is not a coefficient, but changes in the same way.
    for (size_t k = 0; k < stride_; ++k) added[k] -= a * row(r)[k];
  }
  basic_.push_back(next_slack_++);
  table_.insert(table_.end(), added.begin(), added.end());
}

void RowLp::set_bounds(int32_t variable, double lower, double upper) {
  const auto at = std::find(nonbasic_.begin(), nonbasic_.end(), variable);
  const size_t column = at - nonbasic_.begin();
  const double before = column < n_ ? bound_of(column) : 0;
  lower_[variable] = lower;
  upper_[variable] = upper;
  if (column == n_) return;
  const double change = bound_of(column) - before;
  for (size_t r = 0; r < basic_.size(); ++r) {
    row(r)[0] -= row(r)[1 + column] * change;
  }
}

// The basic variable that is farthest outside its bounds; *by: how far it must
// rise.
size_t RowLp::most_violated(double* by) const {
  size_t worst = kNone;
  double most = kTolerance;
  for (size_t r = 1; r < basic_.size(); ++r) {
    const size_t v = basic_[r];
    const double value = row(r)[0];
    const double below = (v < n_ ? lower_[v] : 0) - value;
    const double above = v < n_ ? value - upper_[v] : 0;
    if (std::max(below, above) <= most) continue;
    most = std::max(below, above);
    worst = r;
    *by = below > above ? below : -above;
  }
  return worst;
}

// The column whose objective changes sign first when the leaving one rises (or
// falls); among equal ones that with the largest coefficient.
size_t RowLp::entering(const double* leaving, bool rises) const {
  size_t best = kNone;
  double least = 0, size = 0;
  for (size_t j = 0; j < n_; ++j) {
    const double a = leaving[1 + j];
    if (std::abs(a) < kLeastPivot || (a < 0) != (rises != (at_upper_[j] != 0)))
      continue;
    const double ratio = std::abs(table_[1 + j] / a);
    if (best == kNone || ratio < least - 1e-12 ||
        (ratio < least + 1e-12 && std::abs(a) > size)) {
      best = j;
      least = ratio;
      size = std::abs(a);
    }
  }
  return best;
}

// Changes the variable of row `r` by `change`, to a bound, and puts the
// variable of column `c` in its place.
void RowLp::pivot(size_t r, size_t c, double change) {
  double* const leaving = row(r);
  const double a = leaving[1 + c];
  const double step = -change / a;
  const double entered = bound_of(c) + step;
  for (size_t k = 1; k < stride_; ++k) leaving[k] /= a;
  leaving[1 + c] = 1 / a;
  for (size_t i = 0; i < basic_.size(); ++i) {
    if (i == r) continue;
    double* const other = row(i);
    const double b = other[1 + c];
    if (b == 0) continue;
    other[0] -= b * step;
    other[1 + c] = 0;
    for (size_t k = 1; k < stride_; ++k) other[k] -= b * leaving[k];
  }
  leaving[0] = entered;
  std::swap(basic_[r], nonbasic_[c]);
  at_upper_[c] = change < 0;
  ++pivots_;
}

bool RowLp::solve(int64_t max_pivots) {
  for (int64_t k = 0; k < max_pivots; ++k) {
    double change = 0;
    const size_t r = most_violated(&change);
    if (r == kNone) return true;
    const size_t c = entering(row(r), change > 0);
    if (c == kNone) return false;
    pivot(r, c, change);
  }
  return false;
}

void RowLp::drop_loose_rows(size_t most) {
  size_t surplus = num_rows() > most ? num_rows() - most : 0;
  size_t kept = 1;
  for (size_t r = 1; r < basic_.size(); ++r) {
    const bool slack = static_cast<size_t>(basic_[r]) >= n_;
    if (surplus > 0 && slack && row(r)[0] > kTolerance) {
      --surplus;
      continue;
    }
    std::copy_n(row(r), stride_, row(kept));
    basic_[kept++] = basic_[r];
  }
  basic_.resize(kept);
  table_.resize(kept * stride_);
}

std::vector<double> RowLp::x() const {
  std::vector<double> x(n_);
  for (size_t j = 0; j < n_; ++j) {
    const size_t v = nonbasic_[j];
    if (v < n_) x[v] = bound_of(j);
  }
  for (size_t r = 1; r < basic_.size(); ++r) {
    const size_t v = basic_[r];
    if (v < n_) x[v] = row(r)[0];
  }
  return x;
}

}  // namespace berth
