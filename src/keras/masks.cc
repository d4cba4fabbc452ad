#include "keras/masks.h"

#include <algorithm>

#include "berth/ops/math.h"
#include "keras/layer_state.h"

namespace berth::keras {

namespace {

thread_local MaskScope* t_masks = nullptr;

constexpr const char* kPassing[] = {"Activation",
                                    "ActivityRegularization",
                                    "AlphaDropout",
                                    "BatchNormalization",
                                    "Dense",
                                    "Dropout",
                                    "ELU",
                                    "GaussianDropout",
                                    "GaussianNoise",
                                    "GroupNormalization",
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

MaskScope::MaskScope() : outer_(t_masks) {
  if (outer_ == nullptr) t_masks = this;
}
MaskScope::~MaskScope() {
  if (outer_ == nullptr) t_masks = nullptr;
}

bool Masks::wanted() { return t_masks != nullptr; }

void Masks::set(const Tensor& x, const Tensor& mask) {
  if (t_masks) t_masks->masks_.emplace_back(x, mask);
}

Tensor Masks::of(const Tensor& x) {
  if (t_masks == nullptr) return {};
  const auto& all = t_masks->masks_;
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

Tensor mask_of(const Tensor& x) { return Masks::of(x); }

bool passes_masks(const std::string& type) { return is_among(type, kPassing); }

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
