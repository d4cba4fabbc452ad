// MultiHeadAttention.

#include <algorithm>

#include "berth/keras/sequence_layers.h"
#include "berth/ops/array.h"
#include "berth/ops/math.h"
#include "berth/ops/nn.h"
#include "keras/config/classes.h"
#include "keras/layers/shared_fields.h"
#include "keras/models/layer_checks.h"
#include "keras/models/masks.h"

namespace berth::keras {

namespace {

class MultiHeadAttentionBase final : public LayerBase {
 public:
  MultiHeadAttentionBase(int64_t heads, int64_t key_dim,
                         MultiHeadAttentionOptions options, Site site)
      : LayerBase("MultiHeadAttention", options.name, site),
        heads_(heads),
        key_dim_(key_dim),
        value_dim_(options.value_dim ? options.value_dim : key_dim),
        o_(std::move(options)) {
    set_activity_regularizer(o_.activity_regularizer);
    check_positive(state(), "num_heads", heads_);
    check_positive(state(), "key_dim", key_dim_);
    check_positive(state(), "value_dim", value_dim_);
    if (o_.output_dim != 0)
      check_positive(state(), "output_dim", o_.output_dim);
    if (!(o_.dropout >= 0 && o_.dropout < 1)) {
      fail_in(state(),
              "MultiHeadAttention: dropout is {}; expected 0 <= dropout < 1",
              o_.dropout);
    }
  }

  void build(const std::vector<Shape>& in) override {
    if (in.size() > 4) {
      fail_in(state(),
              "MultiHeadAttention: got {} inputs; expected query, "
              "value, key and mask at most",
              in.size());
    }
    const Shape& value = in[in.size() > 1 ? 1 : 0];
    const Shape& key = in[in.size() > 2 ? 2 : (in.size() > 1 ? 1 : 0)];
    query_ = make("query", in[0], key_dim_);
    key_ = make("key", key, key_dim_);
    value_ = make("value", value, value_dim_);
    const int64_t out =
        o_.output_dim ? o_.output_dim : known_channels(state(), in[0]);
    output_.kernel =
        add_weight("attention_output/kernel", {heads_, value_dim_, out},
                   o_.kernel_initializer, kernel_options());
    if (o_.use_bias) {
      output_.bias = add_weight("attention_output/bias", {out},
                                o_.bias_initializer, bias_options());
    }
  }

  Tensors call(const Tensors& x, bool training) override {
    const Tensor& query = x[0];
    const Tensor& value = x[x.size() > 1 ? 1 : 0];
    const Tensor& key = x.size() > 2 ? x[2] : value;
    Tensor q = project(query_, query, key_dim_);
    Tensor mask = attention_mask(x.size() > 3 ? x[3] : Tensor(), {value, key},
                                 true, site());
    const Tensor seen = mask_of_input(query);
    if (seen.defined()) {  // a masked query sees all steps alike, as in Keras
      const Tensor rows = expand_dims(expand_dims(seen, 1, site()), -1, site());
      q = where(rows, q, zeros_like(q, site()), site());
      if (mask.defined() && mask.rank() == 3) {
        mask = expand_dims(mask, 1, site());
      }
      if (mask.defined()) {
        mask = math::logical_or(math::cast(mask, bool_, site()),
                                math::logical_not(rows, site()), site());
      }
    }
    const Tensor y = nn::scaled_dot_product_attention(
        q, project(key_, key, key_dim_), project(value_, value, value_dim_),
        {.mask = mask,
         .is_causal = o_.use_causal_mask,
         .dropout = training ? o_.dropout : 0},
        site());
    return {join(y, query)};
  }

 private:
  struct Projection {
    Variable kernel, bias;
  };

  WeightOptions kernel_options() const {
    return {.regularizer = o_.kernel_regularizer,
            .constraint = o_.kernel_constraint};
  }
  WeightOptions bias_options() const {
    return {.regularizer = o_.bias_regularizer,
            .constraint = o_.bias_constraint};
  }

  Projection make(const std::string& what, const Shape& x, int64_t size) {
    Projection p;
    p.kernel =
        add_weight(what + "/kernel", {known_channels(state(), x), heads_, size},
                   o_.kernel_initializer, kernel_options());
    if (o_.use_bias) {
      p.bias = add_weight(what + "/bias", {heads_, size}, o_.bias_initializer,
                          bias_options());
    }
    return p;
  }

  // x [n, s, d] -> [n, heads, s, size].
  Tensor project(const Projection& p, const Tensor& x, int64_t size) const {
    if (x.rank() != 3 || (x.shape()[0] < 0 && x.shape()[1] < 0)) {
      fail_in(state(),
              "MultiHeadAttention: an input is {}; expected [n, s, d] "
              "with n or s known",
              x.shape().str());
    }
    check_channels(state(), x, p.kernel.shape()[0]);
    const int64_t width = heads_ * size;
    Tensor y = matmul(
        x,
        reshape(p.kernel.value(site()), {p.kernel.shape()[0], width}, site()),
        {}, site());
    if (o_.use_bias) {
      y = nn::bias_add(y, reshape(p.bias.value(site()), {width}, site()),
                       site());
    }
    const Tensor apart = reshape(
        y, {open(x.shape()[0]), open(x.shape()[1]), heads_, size}, site());
    return transpose(apart, {0, 2, 1, 3}, site());
  }

  // y [n, heads, s, value_dim] -> [n, s, out].
  Tensor join(const Tensor& y, const Tensor& query) const {
    const Shape& q = query.shape();
    const int64_t width = heads_ * value_dim_;
    const Shape& kernel = output_.kernel.shape();
    const Tensor side = reshape(transpose(y, {0, 2, 1, 3}, site()),
                                {open(q[0]), open(q[1]), width}, site());
    const Tensor z = matmul(
        side, reshape(output_.kernel.value(site()), {width, kernel[2]}, site()),
        {}, site());
    return o_.use_bias ? nn::bias_add(z, output_.bias.value(site()), site())
                       : z;
  }

  static int64_t open(int64_t dim) { return dim < 0 ? kUnknownDim : dim; }

  const int64_t heads_, key_dim_, value_dim_;
  const MultiHeadAttentionOptions o_;
  Projection query_, key_, value_, output_;
};

// output_dim is Keras' output_shape: null, a number or a list of one.
void multi_head_attention_fields(Fields& f, int64_t& num_heads,
                                 int64_t& key_dim,
                                 MultiHeadAttentionOptions& o) {
  f.must("num_heads", num_heads);
  f.must("key_dim", key_dim);
  if (!f.reading() && o.value_dim == 0) o.value_dim = key_dim;
  f("value_dim", o.value_dim);
  f("dropout", o.dropout);
  f("use_bias", o.use_bias);
  std::optional<int64_t> output_shape;
  if (o.output_dim != 0) output_shape = o.output_dim;
  f.one("output_shape", output_shape);
  o.output_dim = output_shape.value_or(0);
  if (f.reading() || o.use_causal_mask) f("use_causal_mask", o.use_causal_mask);
  f("kernel_initializer", o.kernel_initializer);
  f("bias_initializer", o.bias_initializer);
  kernel_penalty_fields(f, o);
}

}  // namespace

MultiHeadAttention::MultiHeadAttention(int64_t num_heads, int64_t key_dim,
                                       MultiHeadAttentionOptions options,
                                       Site site)
    : Layer(described<MultiHeadAttentionBase, multi_head_attention_fields>(
          site, num_heads, key_dim, std::move(options))) {}

void add_multi_head_attention_classes(Classes& c) {
  c.layers["MultiHeadAttention"] =
      &layer_of<MultiHeadAttention, multi_head_attention_fields>;
}

}  // namespace berth::keras
