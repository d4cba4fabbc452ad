// Checks of what fit, evaluate and predict are given.

#include "keras/training/argument_checks.h"

#include <fmt/format.h>

#include "berth/errors.h"
#include "keras/training/batches.h"
#include "op/device_scope.h"

namespace berth::keras {

void check_pair(const char* what, const Tensor& x, const Tensor& y, Site site) {
  const bool fits = x.defined() && y.defined() && x.rank() > 0 &&
                    y.rank() > 0 && x.shape()[0] == y.shape()[0];
  if (fits) return;
  auto text = [](const Tensor& t) {
    return t.defined() ? t.shape().str() : std::string("an empty tensor");
  };
  throw errors::InvalidArgument(
      fmt::format("{}: x is {}, y is {}{}; expected as many samples in both",
                  what, text(x), text(y), where_text(nullptr, site)));
}

void check_positive(const char* what, const char* option, int64_t value,
                    Site site) {
  if (value >= 1) return;
  throw errors::InvalidArgument(
      fmt::format("{}: {} is {}{}; expected at least 1", what, option, value,
                  where_text(nullptr, site)));
}

void check_finite(const char* what, const Batches& batches, Site site) {
  if (batches.cardinality != data::kInfinite) return;
  throw errors::InvalidArgument(
      fmt::format("{}: the dataset never ends{}; expected dataset.take(n) or a "
                  "finite repeat",
                  what, where_text(nullptr, site)));
}

}  // namespace berth::keras
