// Indices of categories as tensors, and what layers of preprocessing share.

#ifndef BERTH_KERAS_LAYERS_CATEGORIES_H_
#define BERTH_KERAS_LAYERS_CATEGORIES_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "berth/keras/preprocessing_layers.h"

namespace berth::keras {

enum class CategoryMode : uint8_t { kInt, kOneHot, kMultiHot, kCount, kTfIdf };
// Finds one by Keras' name; fails in the layer for another, and for tf_idf
// unless `with_idf`.
CategoryMode category_mode_of(const LayerState& s, const std::string& name,
                              bool with_idf);

// indices [..., k] of any integer dtype as the mode says; `weights` [..., k]
// count instead of 1, `idf` [depth] for kTfIdf.
Tensor encoded(const Tensor& indices, CategoryMode mode, int64_t depth,
               const Tensor& weights, const std::vector<double>& idf,
               Site site);

// Calls fn(batch) for what adapt() learns from.
void each_batch(const AdaptData& data,
                const std::function<void(const Tensor&)>& fn);

// Fails unless `x` has values: its layer computes on the host.
void check_has_values(const LayerState& s, const Tensor& x);

}  // namespace berth::keras

#endif  // BERTH_KERAS_LAYERS_CATEGORIES_H_
