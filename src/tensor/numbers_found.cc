// Counts numbers by what they are.

#include "tensor/numbers_found.h"

#include <fmt/format.h>

#include <algorithm>

#include "berth/half.h"

namespace berth {

namespace {

template <class T>
void add_all(const void* data, size_t values, NumbersFound* n) {
  const auto* at = static_cast<const T*>(data);
  for (const T* end = at + values; at < end; ++at) {
    double v = 0;
    if constexpr (std::is_same_v<T, double>) {
      v = *at;
    } else {
      v = static_cast<float>(*at);
    }
    if (std::isnan(v)) {
      ++n->nans;
    } else if (std::isinf(v)) {
      ++n->infinities;
      n->negative_infinities += v < 0;
    } else {
      n->negatives += v < 0;
      n->zeros += v == 0;
      n->positives += v > 0;
      n->least = std::min(n->least, v);
      n->most = std::max(n->most, v);
    }
  }
}

}  // namespace

void NumbersFound::add(const void* data, size_t values, DType dtype) {
  count += values;
  if (dtype == float32) add_all<float>(data, values, this);
  if (dtype == float64) add_all<double>(data, values, this);
  if (dtype == float16) add_all<float16_t>(data, values, this);
  if (dtype == bfloat16) add_all<bfloat16_t>(data, values, this);
}

std::string NumbersFound::found() const {
  std::string text;
  if (nans > 0) text = fmt::format("{} NaN", nans);
  if (infinities > 0) {
    text += fmt::format("{}{} Inf", text.empty() ? "" : " and ", infinities);
  }
  return text;
}

std::string NumbersFound::range() const {
  std::string text = least > most
                         ? "no finite value"
                         : fmt::format("{:.6g} to {:.6g}", least, most);
  return bad() ? text + " and " + found() : text;
}

}  // namespace berth
