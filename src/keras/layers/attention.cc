// Attention and AdditiveAttention.

#include "berth/keras/attention_layers.h"
#include "berth/ops/array.h"
#include "berth/ops/linalg.h"
#include "berth/ops/math.h"
#include "berth/ops/nn.h"
#include "keras/layers/shared_fields.h"
#include "keras/models/layer_checks.h"
#include "keras/models/masks.h"

namespace berth::keras {

namespace {

void check_rate(const LayerState& s, double rate) {
  if (rate >= 0 && rate < 1) return;
  fail_in(s, "{}: dropout is {}; expected 0 <= dropout < 1", s.type, rate);
}

class AttentionBase final : public LayerBase {
 public:
  AttentionBase(bool additive, AttentionLayerOptions o, Site site)
      : LayerBase(additive ? "AdditiveAttention" : "Attention", o.name, site),
        additive_(additive),
        o_(std::move(o)) {
    check_rate(state(), o_.dropout);
    if (o_.score_mode != "dot" && o_.score_mode != "concat") {
      fail_in(state(),
              "Attention: score_mode is \"{}\"; expected \"dot\" or \"concat\"",
              o_.score_mode);
    }
  }

  void build(const std::vector<Shape>& in) override {
    if (in.size() < 2 || in.size() > 4) {
      fail_in(state(),
              "{}: got {} inputs; expected query and value, then key "
              "and mask at most",
              state().type, in.size());
    }
    if (o_.use_scale && additive_) {
      scale_ = add_weight("scale", {known_channels(state(), in[0])},
                          "glorot_uniform");
    } else if (o_.use_scale) {
      scale_ = add_weight("scale", {}, "ones");
    }
    if (o_.score_mode == "concat") {
      concat_weight_ = add_weight("concat_score_weight", {}, "ones");
    }
  }

  Tensors call(const Tensors& x, bool training) override {
    for (const Tensor& t : x) {
      if (t.rank() >= 2 && t.rank() <= 3) continue;
      fail_in(state(), "{}: an input is {}; expected [n, steps, channels]",
              state().type, t.shape().str());
    }
    const Tensor& value = x[1];
    const Tensor& key = x.size() > 2 ? x[2] : value;
    const Tensor mask = attention_mask(x.size() > 3 ? wide(x[3]) : Tensor(),
                                       {value}, false, site());
    const bool drops = training && o_.dropout > 0;
    const bool plain = !additive_ && o_.score_mode == "dot" &&
                       !scale_.defined() && !mask.defined() && !drops &&
                       !o_.return_attention_scores;
    if (plain) {
      return {
          seen_rows(nn::scaled_dot_product_attention(
                        x[0], key, value,
                        {.is_causal = o_.use_causal_mask, .scale = 1}, site()),
                    x[0])};
    }
    Tensor s = scores(x[0], key);
    if (mask.defined()) s = without(s, mask);
    const Tensor weights =
        nn::masked_softmax(s, {}, {.is_causal = o_.use_causal_mask}, site());
    const Tensor kept =
        drops ? nn::dropout(weights, o_.dropout, {.seed = o_.seed}, site())
              : weights;
    const Tensor y = seen_rows(matmul(kept, value, {}, site()), x[0]);
    if (o_.return_attention_scores) return {y, kept};
    return {y};
  }

 private:
  // y with zeros in rows of queries that are masked.
  Tensor seen_rows(const Tensor& y, const Tensor& query) const {
    const Tensor seen = Masks::of(query);
    if (!seen.defined()) return y;
    return math::multiply(
        y, expand_dims(math::cast(seen, y.dtype(), site()), -1, site()),
        site());
  }
  Tensor scores(const Tensor& query, const Tensor& key) const {
    if (!additive_ && o_.score_mode == "dot") {
      const Tensor s = matmul(query, key, {.transpose_b = true}, site());
      return scale_.defined() ? math::multiply(s, scale_.value(site()), site())
                              : s;
    }
    Tensor sum = math::add(expand_dims(query, -2, site()),
                           expand_dims(key, -3, site()), site());
    const math::ReduceOptions last{.axis = std::vector<int64_t>{-1}};
    if (!additive_) {
      if (scale_.defined()) {
        sum = math::multiply(sum, scale_.value(site()), site());
      }
      return math::multiply(
          math::reduce_sum(math::tanh(sum, site()), last, site()),
          concat_weight_.value(site()), site());
    }
    Tensor t = math::tanh(sum, site());
    if (scale_.defined()) t = math::multiply(t, scale_.value(site()), site());
    return math::reduce_sum(t, last, site());
  }

  // Scores that no softmax sees where the mask is false.
  Tensor without(const Tensor& scores, const Tensor& mask) const {
    const double far = scores.dtype() == float16 ? 65504 : 1e9;
    return where(mask, scores, scores - far, site());
  }
  // A mask of values [n, t] as one of scores.
  Tensor wide(const Tensor& mask) const {
    const Tensor seen = math::cast(mask, bool_, site());
    return seen.rank() == 2 ? expand_dims(seen, -2, site()) : seen;
  }

  const bool additive_;
  const AttentionLayerOptions o_;
  Variable scale_, concat_weight_;
};

AttentionLayerOptions as_attention(const AdditiveAttentionOptions& o) {
  return {.use_scale = o.use_scale,
          .dropout = o.dropout,
          .seed = o.seed,
          .use_causal_mask = o.use_causal_mask,
          .return_attention_scores = o.return_attention_scores,
          .name = o.name};
}

template <class Options>
void attention_fields(Fields& f, Options& o) {
  f("use_scale", o.use_scale);
  if constexpr (requires { o.score_mode; }) f("score_mode", o.score_mode);
  f("dropout", o.dropout);
  f("seed", o.seed);
  // Arguments of Keras' call.
  if (f.reading() || o.use_causal_mask) f("use_causal_mask", o.use_causal_mask);
  if (f.reading() || o.return_attention_scores) {
    f("return_attention_scores", o.return_attention_scores);
  }
}

}  // namespace

Attention::Attention(AttentionLayerOptions o, Site site)
    : Layer(make_layer<AttentionBase>(false, o, site)) {
  describe<attention_fields<AttentionLayerOptions>>(*this, std::move(o));
}
AdditiveAttention::AdditiveAttention(AdditiveAttentionOptions o, Site site)
    : Layer(make_layer<AttentionBase>(true, as_attention(o), site)) {
  describe<attention_fields<AdditiveAttentionOptions>>(*this, std::move(o));
}

void add_attention_classes(Classes& c) {
  c.layers["Attention"] =
      &layer_of<Attention, attention_fields<AttentionLayerOptions>>;
  c.layers["AdditiveAttention"] =
      &layer_of<AdditiveAttention, attention_fields<AdditiveAttentionOptions>>;
}

}  // namespace berth::keras
