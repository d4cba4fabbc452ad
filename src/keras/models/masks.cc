// Masks of layers' inputs and outputs, by identity.

#include "keras/models/masks.h"

#include <algorithm>

#include "berth/ops/array.h"
#include "berth/ops/math.h"
#include "keras/models/layer_state.h"
#include "keras/models/thread_state.h"

namespace berth::keras {

namespace {

constexpr const char* kPassing[] = {"Activation",
                                    "ActivityRegularization",
                                    "AdditiveAttention",
                                    "AlphaDropout",
                                    "Attention",
                                    "BatchNormalization",
                                    "Dense",
                                    "Dropout",
                                    "ELU",
                                    "GaussianDropout",
                                    "GaussianNoise",
                                    "GroupNormalization",
                                    "GroupQueryAttention",
                                    "Identity",
                                    "LayerNormalization",
                                    "LeakyReLU",
                                    "MultiHeadAttention",
                                    "Normalization",
                                    "PReLU",
                                    "ReLU",
                                    "RMSNormalization",
                                    "Rescaling",
                                    "Softmax",
                                    "SpatialDropout1D",
                                    "SpectralNormalization",
                                    "TimeDistributed",
                                    "UnitNormalization"};
constexpr const char* kMerging[] = {"Add",     "Average",  "Maximum",
                                    "Minimum", "Multiply", "Subtract"};

template <size_t n>
bool is_among(const std::string& type, const char* const (&names)[n]) {
  return std::any_of(names, names + n,
                     [&](const char* name) { return type == name; });
}

}  // namespace

MaskScope::MaskScope() : outer_(keras_thread().masks) {
  if (outer_ == nullptr) keras_thread().masks = this;
}
MaskScope::~MaskScope() {
  if (outer_ == nullptr) keras_thread().masks = nullptr;
}

bool Masks::wanted() { return keras_thread().masks != nullptr; }

void Masks::set(const Tensor& x, const Tensor& mask) {
  if (keras_thread().masks) keras_thread().masks->masks_.emplace_back(x, mask);
}

Tensor Masks::of(const Tensor& x) {
  if (keras_thread().masks == nullptr) return {};
  const auto& all = keras_thread().masks->masks_;
  const auto found = std::find_if(all.rbegin(), all.rend(), [&](const auto& m) {
    return m.first.impl() == x.impl();
  });
  return found == all.rend() ? Tensor() : found->second;
}

void Masks::pass(LayerBase& layer, const Tensors& x, const Tensors& y) {
  Tensors masks;
  for (const Tensor& t : x) masks.push_back(of(t));
  const Tensors result = layer.compute_mask(x, masks);
  for (size_t i = 0; i < std::min(result.size(), y.size()); ++i) {
    if (result[i].defined()) set(y[i], result[i]);
  }
}

Tensor LayerBase::mask_of_input(const Tensor& x) { return Masks::of(x); }
Tensor mask_of(const Tensor& x) { return Masks::of(x); }

Tensor mask_weights(const Tensor& mask, DType dtype, Site site) {
  const Tensor m = math::cast(mask, dtype, site);
  return math::divide_no_nan(m, math::reduce_mean(m, {}, site), site);
}

bool passes_masks(const std::string& type) { return is_among(type, kPassing); }

bool reads_or_passes_masks(const std::string& type) {
  constexpr const char* kReading[] = {
      "Bidirectional", "Embedding", "GRU", "GlobalAveragePooling1D",
      "LSTM",          "Masking",   "RNN", "ReversibleEmbedding",
      "SimpleRNN"};
  return passes_masks(type) || is_among(type, kMerging) ||
         is_among(type, kReading);
}

Tensor attention_mask(const Tensor& given, const Tensors& values, bool heads,
                      Site site) {
  Tensor all = given;
  const TensorImpl* before = nullptr;
  for (const Tensor& value : values) {
    const Tensor mask = Masks::of(value);
    if (!mask.defined() || mask.impl() == before) continue;
    before = mask.impl();
    Tensor wide = expand_dims(mask, 1, site);
    if (heads) wide = expand_dims(wide, 1, site);
    if (heads && all.defined() && all.rank() == 3) {
      all = expand_dims(all, 1, site);
    }
    all = all.defined()
              ? math::logical_and(math::cast(all, bool_, site), wide, site)
              : wide;
  }
  return all;
}

Tensors LayerBase::compute_mask(const Tensors&, const Tensors& masks) {
  const std::string& type = state().type;
  if (masks.empty()) return {};
  if (passes_masks(type)) return {masks[0]};
  if (!is_among(type, kMerging)) return {};
  Tensor any = masks[0];
  for (const Tensor& mask : masks) {
    if (!mask.defined()) return {};
    if (&mask != &masks[0]) any = math::logical_or(any, mask, site());
  }
  return {any};
}

}  // namespace berth::keras
