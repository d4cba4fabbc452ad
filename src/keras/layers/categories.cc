// Indices as one-hot, multi-hot, counted and weighted rows.

#include "keras/layers/categories.h"

#include <fmt/format.h>

#include "base/needs_values.h"
#include "base/where.h"
#include "berth/errors.h"
#include "berth/ops/array.h"
#include "berth/ops/math.h"
#include "keras/models/layer_state.h"
#include "op/device_scope.h"

namespace berth::keras {

CategoryMode category_mode_of(const LayerState& s, const std::string& name,
                              bool with_idf) {
  if (name == "int") return CategoryMode::kInt;
  if (name == "one_hot") return CategoryMode::kOneHot;
  if (name == "multi_hot" || name == "binary") return CategoryMode::kMultiHot;
  if (name == "count") return CategoryMode::kCount;
  if (with_idf && (name == "tf_idf" || name == "tf-idf")) {
    return CategoryMode::kTfIdf;
  }
  fail_in(s,
          "{}: output_mode is \"{}\"; expected int, one_hot, "
          "multi_hot, count{}",
          s.type, name, with_idf ? " or tf_idf" : "");
}

Tensor encoded(const Tensor& indices, CategoryMode mode, int64_t depth,
               const Tensor& weights, const std::vector<double>& idf,
               Site site) {
  Tensor x = indices;
  if (mode == CategoryMode::kInt) return math::cast(x, int64, site);
  if (x.rank() == 0) x = expand_dims(x, 0, site);
  if (mode == CategoryMode::kOneHot) {
    if (x.rank() > 1 && x.shape()[x.rank() - 1] == 1) {
      x = squeeze(x, {-1}, site);
    }
    return one_hot(x, depth, {}, site);
  }
  Tensor y = one_hot(x, depth, {}, site);
  const math::ReduceOptions sample{.axis = std::vector<int64_t>{-2}};
  if (mode == CategoryMode::kMultiHot) return math::reduce_max(y, sample, site);
  if (weights.defined()) {
    y = y * expand_dims(math::cast(weights, float32, site), -1, site);
  }
  y = math::reduce_sum(y, sample, site);
  if (mode == CategoryMode::kCount) return y;
  const std::vector<float> list(idf.begin(), idf.end());
  return y * constant(list, {depth}, site);
}

void each_batch(const AdaptData& data,
                const std::function<void(const Tensor&)>& fn) {
  if (!data.batches) return fn(data.all);
  int64_t left = data.steps.value_or(-1);
  for (const Tensors& batch : *data.batches) {
    if (left-- == 0) break;
    if (!batch.empty()) fn(batch[0]);
  }
}

void check_has_values(const LayerState& s, const Tensor& x) {
  if (!x.is_symbolic()) return;
  throw Untraceable<errors::InvalidArgument>(
      fmt::format("{}: called in a traced function; expected values: "
                  "call it in Dataset::map or before the model{}",
                  s.type, where_text(nullptr, s.site)));
}

}  // namespace berth::keras
