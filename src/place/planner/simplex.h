// RowLp: a linear programme that grows by rows, for bounds by packing.
//
//   maximise c x  subject to  rows . x <= limits,  lower <= x <= upper
//
// A dense dictionary: a pivot costs rows times variables, so it suits a few
// hundred of each. Rows can be added at any time; solve() continues from there
// (dual simplex). Its results are accurate only up to rounding; proofs need
// other means as well. One thread per object; deterministic.

#ifndef BERTH_PLACE_PLANNER_SIMPLEX_H_
#define BERTH_PLACE_PLANNER_SIMPLEX_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace berth {

class RowLp {
 public:
  // Takes finite bounds, lower <= upper, so that an optimum always exists.
  RowLp(std::span<const double> objective, std::span<const double> lower,
        std::span<const double> upper);

  // Adds sum of coefficient * x[variable] <= limit; distinct variables.
  void add_row(std::span<const std::pair<int32_t, double>> row, double limit);

  // Changes the bounds of a variable to other finite ones.
  void set_bounds(int32_t variable, double lower, double upper);

  // Moves towards the optimum by at most `max_pivots`. Returns false when more
  // are needed, or when no x satisfies the rows.
  bool solve(int64_t max_pivots);

  // Drops rows with slack, the oldest first, until at most `most` rows are
  // left.
  void drop_loose_rows(size_t most);

  std::vector<double> x() const;
  double value() const { return table_[0]; }
  size_t num_rows() const { return basic_.size() - 1; }
  int64_t pivots() const { return pivots_; }

 private:
  double* row(size_t r) { return table_.data() + r * stride_; }
  const double* row(size_t r) const { return table_.data() + r * stride_; }
  double bound_of(size_t column) const;
  size_t most_violated(double* by) const;
  size_t entering(const double* leaving, bool rises) const;
  void pivot(size_t row, size_t column, double change);

  // Row r stands for basic_[r] = constant - sum of row(r)[1 + j] * nonbasic_[j]
  // and has its value at row(r)[0]; row 0 is the objective. Nonbasic variables
  // are at a bound. Variables from n_ on are slacks, with lower bound 0.
  size_t n_, stride_;
  std::vector<double> table_;
  std::vector<int32_t> basic_, nonbasic_;
  std::vector<double> lower_, upper_;
  std::vector<uint8_t> at_upper_;  // per nonbasic
  int32_t next_slack_;
  int64_t pivots_ = 0;
};

}  // namespace berth

#endif  // BERTH_PLACE_PLANNER_SIMPLEX_H_
