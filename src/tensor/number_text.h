// number_text: columns of numbers for people, as NumPy prints them.
//
// A column of floating numbers shares one form: plain, or with exponents when
// they are far apart; points stand below each other, and each number has the
// fewest digits that name it, at most 8 of them after the point. Pure.

#ifndef BERTH_TENSOR_NUMBER_TEXT_H_
#define BERTH_TENSOR_NUMBER_TEXT_H_

#include <string>
#include <vector>

#include "berth/dtype.h"

namespace berth {

class FloatColumn {
 public:
  // For these values, exact in double, of a floating dtype. `sign`: "+" stands
  // before what is not negative.
  FloatColumn(const std::vector<double>& values, DType dtype,
              bool sign = false);
  // One of them, as wide as all.
  std::string text(double value) const;

 private:
  std::string padded(std::string text) const;

  const DType dtype_;
  const bool sign_;
  bool exponents_ = false;
  size_t left_ = 0, right_ = 0;  // widths before and after the point
  size_t digits_ = 0, exponent_digits_ = 2;  // with exponents
};

// A number alone: "2.5", "1.0", "1e-05".
std::string number_text(double value, DType dtype);

}  // namespace berth

#endif  // BERTH_TENSOR_NUMBER_TEXT_H_
