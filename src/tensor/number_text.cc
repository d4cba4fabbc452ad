#include "tensor/number_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "berth/half.h"

namespace berth {

namespace {

constexpr int kDigits = 8;  // after the point, at most

// Decimal digits that a dtype can always hold; they say from where on numbers
// have exponents.
int digits_of(DType dtype) {
  switch (dtype) {
    case DType::kFloat64:
      return 15;
    case DType::kFloat32:
      return 6;
    case DType::kFloat16:
      return 3;
    default:
      return 2;
  }
}

// The number of `dtype` that a text names.
double parsed(const std::string& s, DType dtype) {
  switch (dtype) {
    case DType::kFloat64:
      return std::strtod(s.c_str(), nullptr);
    case DType::kFloat32:
      return std::strtof(s.c_str(), nullptr);
    case DType::kFloat16:
      return static_cast<float>(float16_t(std::strtof(s.c_str(), nullptr)));
    default:
      return static_cast<float>(bfloat16_t(std::strtof(s.c_str(), nullptr)));
  }
}

// The fewest digits after the first one that name a finite number, in the
// form 1.25e-03.
std::string shortest(double value, DType dtype) {
  std::string s;
  for (int digits = 0; digits < 17; ++digits) {
    s = fmt::format("{:.{}e}", value, digits);
    if (parsed(s, dtype) == value) break;
  }
  return s;
}

// "-1." and "25" and "-03" of "-1.25e-03"; the fraction without zeros after.
struct Parts {
  std::string whole, fraction, exponent;
};

Parts split_number(const std::string& s) {
  Parts p;
  const size_t e = std::min(s.find('e'), s.size());
  const size_t point = std::min(s.find('.'), e);
  p.whole = s.substr(0, point);
  if (point < e) p.fraction = s.substr(point + 1, e - point - 1);
  p.fraction.erase(p.fraction.find_last_not_of('0') + 1);
  if (e < s.size()) p.exponent = s.substr(e + 1);
  return p;
}

// Digits after the point that a number needs when it is written without an
// exponent.
int places(const std::string& scientific) {
  const Parts p = split_number(scientific);
  const int exponent = std::atoi(p.exponent.c_str());
  return std::max(0, static_cast<int>(p.fraction.size()) - exponent);
}

Parts plain(double value, DType dtype, int most) {
  const std::string s = shortest(value, dtype);
  const int needed = places(s);
  if (needed <= most) {
    // More digits than name the number would be noise: zeros fill up.
    const Parts p = split_number(s);
    const int exponent = std::atoi(p.exponent.c_str());
    if (exponent > static_cast<int>(p.fraction.size())) {
      return {p.whole + p.fraction +
                  std::string(static_cast<size_t>(exponent) - p.fraction.size(),
                              '0'),
              "", ""};
    }
  }
  return split_number(fmt::format("{:.{}f}", value, std::min(needed, most)));
}

Parts scientific(double value, DType dtype) {
  Parts p = split_number(shortest(value, dtype));
  if (p.fraction.size() > static_cast<size_t>(kDigits)) {
    p = split_number(fmt::format("{:.{}e}", value, kDigits));
  }
  return p;
}

std::string signed_text(double value, bool sign, std::string text) {
  return sign && !std::signbit(value) ? "+" + text : text;
}

bool with_exponents(const std::vector<double>& values, DType dtype) {
  double least = INFINITY, most = 0;
  for (const double v : values) {
    if (v == 0 || !std::isfinite(v)) continue;
    least = std::min(least, std::abs(v));
    most = std::max(most, std::abs(v));
  }
  if (most == 0) return false;
  const double limit = std::pow(10., std::min(8, digits_of(dtype)));
  return most >= limit || least < 1e-4 || most / least > 1000;
}

std::string not_finite(double value, bool sign) {
  if (std::isnan(value)) return sign ? "+nan" : "nan";
  return value < 0 ? "-inf" : sign ? "+inf" : "inf";
}

}  // namespace

FloatColumn::FloatColumn(const std::vector<double>& values, DType dtype,
                         bool sign)
    : dtype_(dtype), sign_(sign), exponents_(with_exponents(values, dtype)) {
  size_t widest = 0;
  for (const double v : values) {
    if (!std::isfinite(v)) {
      widest = std::max(widest, not_finite(v, sign_).size());
      continue;
    }
    const Parts p =
        exponents_ ? scientific(v, dtype) : plain(v, dtype, kDigits);
    left_ = std::max(left_, signed_text(v, sign_, p.whole).size());
    digits_ = std::max(digits_, p.fraction.size());
    if (exponents_) {
      exponent_digits_ = std::max(exponent_digits_, p.exponent.size() - 1);
    }
  }
  right_ = exponents_ ? digits_ + exponent_digits_ + 2 : digits_;
  if (widest > right_ + 1) left_ = std::max(left_, widest - right_ - 1);
}

std::string FloatColumn::padded(std::string text) const {
  const size_t width = left_ + right_ + 1;
  return text.size() >= width ? text
                              : std::string(width - text.size(), ' ') + text;
}

std::string FloatColumn::text(double value) const {
  if (!std::isfinite(value)) return padded(not_finite(value, sign_));
  if (exponents_) {
    // As many digits as the longest, in the exponent, too.
    Parts p = split_number(fmt::format("{:.{}e}", value, digits_));
    p.fraction.append(digits_ - p.fraction.size(), '0');
    p.exponent.insert(1, exponent_digits_ + 1 - p.exponent.size(), '0');
    return padded(signed_text(value, sign_, p.whole) + "." + p.fraction + "e" +
                  p.exponent);
  }
  Parts p = plain(value, dtype_, kDigits);
  p.fraction.append(digits_ - p.fraction.size(), ' ');
  return padded(signed_text(value, sign_, p.whole) + "." + p.fraction);
}

std::string number_text(double value, DType dtype) {
  if (!std::isfinite(value)) return not_finite(value, false);
  const double size = std::abs(value);
  const double limit =
      dtype == float64 ? 1e16 : std::pow(10., digits_of(dtype));
  if (size == 0 || (size >= 1e-4 && size < limit)) {
    const Parts p = plain(value, dtype, 24);
    return p.whole + "." + (p.fraction.empty() ? "0" : p.fraction);
  }
  const Parts p = split_number(shortest(value, dtype));
  return p.whole + (p.fraction.empty() ? "" : ".") + p.fraction + "e" +
         p.exponent;
}

}  // namespace berth
