// GroupQueryAttention.

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

class GroupQueryAttentionBase final : public LayerBase {
 public:
  GroupQueryAttentionBase(int64_t head_dim, int64_t query_heads,
                          int64_t key_heads, GroupQueryAttentionOptions o,
                          Site site)
      : LayerBase("GroupQueryAttention", o.name, site),
        size_(head_dim),
        heads_(query_heads),
        key_heads_(key_heads),
        o_(std::move(o)) {
    check_positive(state(), "head_dim", size_);
    check_positive(state(), "num_query_heads", heads_);
    check_positive(state(), "num_key_value_heads", key_heads_);
    if (o_.sliding_window) {
      check_positive(state(), "sliding_window", *o_.sliding_window);
    }
    if (heads_ % key_heads_ != 0 || !(o_.dropout >= 0 && o_.dropout < 1)) {
      fail_in(
          state(),
          "GroupQueryAttention: num_query_heads is {}, num_key_value_heads {}, "
          "dropout {}; expected a multiple, and 0 <= dropout < 1",
          heads_, key_heads_, o_.dropout);
    }
  }

  void build(const std::vector<Shape>& in) override {
    if (in.size() > 4) {
      fail_in(state(),
              "GroupQueryAttention: got {} inputs; expected query, "
              "value, key and mask at most",
              in.size());
    }
    const Shape& value = in[in.size() > 1 ? 1 : 0];
    const Shape& key = in[in.size() > 2 ? 2 : (in.size() > 1 ? 1 : 0)];
    query_ = part("query", in[0], heads_);
    key_ = part("key", key, key_heads_);
    if (o_.use_gate) gate_ = part("gate", in[0], heads_);
    value_ = part("value", value, key_heads_);
    const int64_t out = known_channels(state(), in[0]);
    output_.kernel = add_weight("attention_output/kernel", {heads_, size_, out},
                                o_.kernel_initializer,
                                {.regularizer = o_.kernel_regularizer,
                                 .constraint = o_.kernel_constraint});
    if (o_.use_bias) output_.bias = bias("attention_output/bias", {out});
  }

  Tensors call(const Tensors& x, bool training) override {
    const Tensor& query = x[0];
    const Tensor& value = x[x.size() > 1 ? 1 : 0];
    const Tensor& key = x.size() > 2 ? x[2] : value;
    const Tensor y = nn::scaled_dot_product_attention(
        of_heads(query_, query), of_heads(key_, key), of_heads(value_, value),
        {.mask = mask_of(attention_mask(x.size() > 3 ? x[3] : Tensor(),
                                        {value, key}, true, site()),
                         query, key),
         .is_causal = o_.use_causal_mask,
         .dropout = training ? o_.dropout : 0,
         .seed = o_.seed},
        site());
    Tensor z = transpose(y, {0, 2, 1, 3}, site());
    if (o_.use_gate) {
      z = z *
          math::sigmoid(transpose(of_heads(gate_, query), {0, 2, 1, 3}, site()),
                        site());
    }
    const Shape& q = query.shape();
    const Tensor side =
        reshape(z, {open(q[0]), open(q[1]), heads_ * size_}, site());
    const Shape& k = output_.kernel.shape();
    const Tensor mixed = matmul(
        side,
        reshape(output_.kernel.value(site()), {heads_ * size_, k[2]}, site()),
        {}, site());
    return {o_.use_bias
                ? nn::bias_add(mixed, output_.bias.value(site()), site())
                : mixed};
  }

 private:
  struct Part {
    Variable kernel, bias;
    int64_t heads = 0;
  };

  Variable bias(const std::string& name, const Shape& shape) {
    return add_weight(
        name, shape, o_.bias_initializer,
        {.regularizer = o_.bias_regularizer, .constraint = o_.bias_constraint});
  }
  Part part(const std::string& what, const Shape& x, int64_t heads) {
    Part p;
    p.heads = heads;
    p.kernel =
        add_weight(what + "/kernel", {known_channels(state(), x), heads, size_},
                   o_.kernel_initializer,
                   {.regularizer = o_.kernel_regularizer,
                    .constraint = o_.kernel_constraint});
    if (o_.use_bias) p.bias = bias(what + "/bias", {heads, size_});
    return p;
  }

  // x [n, s, d] -> [n, query heads, s, size], each head for all that share it.
  Tensor of_heads(const Part& p, const Tensor& x) const {
    if (x.rank() != 3 || (x.shape()[0] < 0 && x.shape()[1] < 0)) {
      fail_in(state(),
              "GroupQueryAttention: an input is {}; expected "
              "[n, s, d] with n or s known",
              x.shape().str());
    }
    check_channels(state(), x, p.kernel.shape()[0]);
    const int64_t width = p.heads * size_;
    Tensor y = matmul(
        x,
        reshape(p.kernel.value(site()), {p.kernel.shape()[0], width}, site()),
        {}, site());
    if (o_.use_bias) {
      y = nn::bias_add(y, reshape(p.bias.value(site()), {width}, site()),
                       site());
    }
    y = reshape(y, {open(x.shape()[0]), open(x.shape()[1]), p.heads, size_},
                site());
    y = transpose(y, {0, 2, 1, 3}, site());
    return p.heads == heads_ ? y : repeat(y, heads_ / p.heads, 1, site());
  }

  Tensor mask_of(const Tensor& given, const Tensor& query,
                 const Tensor& key) const {
    Tensor mask = given;
    // [n, s, t] of all heads.
    if (mask.defined() && mask.rank() == 3) mask = expand_dims(mask, 1, site());
    if (!o_.sliding_window) return mask;
    const int64_t s = query.shape()[1], t = key.shape()[1];
    if (s < 0 || t < 0) {
      fail_in(state(),
              "GroupQueryAttention: inputs are {} and {}; expected "
              "known steps with a sliding_window",
              query.shape().str(), key.shape().str());
    }
    const int64_t far = *o_.sliding_window - 1;
    const Tensor near = math::cast(
        linalg::band_part(ones({s, t}), far, far, site()), bool_, site());
    return mask.defined() ? math::logical_and(math::cast(mask, bool_, site()),
                                              near, site())
                          : near;
  }

  static int64_t open(int64_t dim) { return dim < 0 ? kUnknownDim : dim; }

  const int64_t size_, heads_, key_heads_;
  const GroupQueryAttentionOptions o_;
  Part query_, key_, value_, gate_, output_;
};

void group_query_attention_fields(Fields& f, int64_t& head_dim,
                                  int64_t& num_query_heads,
                                  int64_t& num_key_value_heads,
                                  GroupQueryAttentionOptions& o) {
  f.must("head_dim", head_dim);
  f.must("num_query_heads", num_query_heads);
  f.must("num_key_value_heads", num_key_value_heads);
  f("dropout", o.dropout);
  f("use_bias", o.use_bias);
  f("sliding_window", o.sliding_window);
  f("use_gate", o.use_gate);
  if (f.reading() || o.use_causal_mask) f("use_causal_mask", o.use_causal_mask);
  f("kernel_initializer", o.kernel_initializer);
  f("bias_initializer", o.bias_initializer);
  kernel_penalty_fields(f, o);
  f("seed", o.seed);
}

}  // namespace

GroupQueryAttention::GroupQueryAttention(int64_t head_dim, int64_t query_heads,
                                         int64_t key_heads,
                                         GroupQueryAttentionOptions o,
                                         Site site)
    : Layer(described<GroupQueryAttentionBase, group_query_attention_fields>(
          site, head_dim, query_heads, key_heads, std::move(o))) {}

void add_group_query_classes(Classes& c) {
  c.layers["GroupQueryAttention"] =
      &layer_of<GroupQueryAttention, group_query_attention_fields>;
}

}  // namespace berth::keras
