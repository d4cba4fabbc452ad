// Shapes and dtypes of targets, brought to those of predictions.

#include "keras/losses/loss_shapes.h"

#include <fmt/format.h>

#include "berth/errors.h"
#include "berth/ops/array.h"
#include "berth/ops/math.h"
#include "op/device_scope.h"
#include "op/dispatcher.h"

namespace berth::keras {

Tensor like_prediction(const char* what, const Tensor& y_true,
                       const Tensor& y_pred) {
  const Site site = t_state.site;
  Tensor y = y_true;
  if (y.dtype() != y_pred.dtype()) y = math::cast(y, y_pred.dtype(), site);
  const int want = y_pred.rank(), have = y.rank();
  if (have == want + 1 && y.shape()[have - 1] == 1) {
    y = squeeze(y, {-1}, site);
  } else if (want == have + 1 && y_pred.shape()[want - 1] == 1) {
    y = expand_dims(y, -1, site);
  }
  if (!y.shape().compatible_with(y_pred.shape())) {
    throw errors::InvalidArgument(fmt::format(
        "{}: targets are {}, predictions {}{}; expected equal shapes", what,
        y_true.shape().str(), y_pred.shape().str(), where_text()));
  }
  return y;
}

Tensor class_labels(const char* what, const Tensor& y_true,
                    const Tensor& y_pred) {
  const Site site = t_state.site;
  Tensor y = y_true;
  const int rank = y.rank();
  if (rank > 0 && rank == y_pred.rank() && y.shape()[rank - 1] == 1) {
    y = squeeze(y, {-1}, site);
  }
  bool fits = y.rank() + 1 == y_pred.rank();
  for (int i = 0; fits && i < y.rank(); ++i) {
    const int64_t a = y.shape()[i], b = y_pred.shape()[i];
    fits = a == b || a < 0 || b < 0;
  }
  if (!fits) {
    throw errors::InvalidArgument(fmt::format(
        "{}: labels are {}, predictions {}{}; expected labels with one axis "
        "less (one-hot targets need categorical_crossentropy)",
        what, y_true.shape().str(), y_pred.shape().str(), where_text()));
  }
  const DType d = y.dtype();
  return d == int32 || d == int64 ? y : math::cast(y, int64, site);
}

bool takes_labels(const Loss& loss) {
  return loss.name().find("sparse") != std::string::npos;
}

}  // namespace berth::keras
