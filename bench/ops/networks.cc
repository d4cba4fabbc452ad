// Rows of ops of networks: activations by rows, norms, convolutions, pools,
// attention, recurrence and losses, each with its gradient.

#include "bench/ops/rows.h"

namespace berth_bench {

using namespace berth;

namespace {

Tensor channels(int64_t side, double low = 0.5, double high = 1.5) {
  return values(float32, {image(side)[3]}, low, high);
}

void add_rows_of_classes(Rows& rows) {
  add(rows, "Softmax", "softmax", kFloats, 1, {}, -2, 2);
  add(rows, "LogSoftmax", "log_softmax", kFloats, 1, {}, -2, 2);
  add(rows, "MaskedSoftmax", "masked_softmax", kFloats, 2, {{"scale", 0.5}}, -2,
      2);
  add(rows, "SoftmaxCrossEntropyWithLogits", "cross_entropy", kFloats,
      [](DType d, int64_t side) {
        return Call{{values(d, {side, side}, -2, 2),
                     nn::softmax(values(d, {side, side}, -2, 2))}};
      });
  add(rows, "SparseSoftmaxCrossEntropyWithLogits", "sparse_cross_entropy",
      kFloats, [](DType d, int64_t side) {
        return Call{
            {values(d, {side, side}, -2, 2), places(int64, {side}, side)}};
      });
  const auto pair = [](auto fn) {
    return [fn](DType d, int64_t side) {
      return Call{{values(d, {side, side}, 0, 1), values(d, {side, side})},
                  {},
                  {},
                  [fn](const Tensors& t) { return fn(t[0], t[1]); }};
    };
  };
  add(rows, "Mean", "binary_cross_entropy", kFloats,
      pair([](const Tensor& y, const Tensor& x) {
        return math::reduce_mean(nn::sigmoid_cross_entropy_with_logits(y, x));
      }));
  add(rows, "SquaredDifference", "mean_squared_error", kFloats,
      pair([](const Tensor& y, const Tensor& x) {
        return math::reduce_mean(math::squared_difference(y, x));
      }));
  add(rows, "Abs", "mean_absolute_error", kFloats,
      pair([](const Tensor& y, const Tensor& x) {
        return math::reduce_mean(math::abs(y - x));
      }));
}

void add_norms(Rows& rows) {
  const auto row_norm = [](DType d, int64_t side) {
    return Call{
        {values(d, {side, side}), values(d, {side}), values(d, {side})}};
  };
  add(rows, "LayerNorm", "layer_norm", kFloats, row_norm);
  add(rows, "LayerNormGrad", "layer_norm_grad", kFloats,
      [](DType d, int64_t side) {
        const Tensor x = values(d, {side, side});
        const Tensor mean = math::reduce_mean(x, {.axis = 1});
        return Call{{values(d, {side, side}), x, values(d, {side}), mean,
                     math::rsqrt(math::reduce_variance(x, {.axis = 1}))}};
      });
  add(rows, "RMSNorm", "rms_norm", kFloats, [](DType d, int64_t side) {
    return Call{{values(d, {side, side}), values(d, {side})}};
  });
  const auto image_norm = [](Pairs attrs) {
    return [attrs](DType d, int64_t side) {
      return Call{{values(d, image(side)), channels(side), channels(side)},
                  attrs};
    };
  };
  add(rows, "GroupNorm", "group_norm", kFloats,
      image_norm({{"num_groups", int64_t{4}}}));
  add(rows, "FusedBatchNormV3", "batch_norm", kFloats, image_norm({}));
  add(rows, "FusedBatchNormV3", "batch_norm_inference", kFloats,
      [](DType d, int64_t side) {
        return Call{{values(d, image(side)), channels(side), channels(side),
                     channels(side), channels(side)},
                    {{"is_training", false}}};
      });
  add(rows, "FusedBatchNormGradV3", "batch_norm_grad", kFloats,
      [](DType d, int64_t side) {
        return Call{{values(d, image(side)), values(d, image(side)),
                     channels(side), channels(side), channels(side)}};
      });
  add(rows, "LRN", "local_response_norm", kFloats, [](DType d, int64_t side) {
    return Call{{values(d, image(side))}, {{"depth_radius", int64_t{2}}}};
  });
}

Shape filter(int64_t side) {
  const int64_t c = image(side)[3];
  return {3, 3, c, c};
}

Ints sizes(const Shape& s) { return {s.begin(), s.end()}; }

const Pairs kConv = {{"strides", Ints{1, 1, 1, 1}},
                     {"padding", std::string("SAME")}};

Pairs conv_with(const char* name, const Ints& shape) {
  Pairs attrs = kConv;
  attrs.push_back({name, shape});
  return attrs;
}

void add_convolutions(Rows& rows) {
  add(rows, "Conv2D", "conv2d", kFloats, [](DType d, int64_t side) {
    return Call{{values(d, image(side)), values(d, filter(side))}, kConv};
  });
  add(rows, "Conv2DBackpropInput", "conv2d_grad_input", kFloats,
      [](DType d, int64_t side) {
        return Call{{values(d, filter(side)), values(d, image(side))},
                    conv_with("input_sizes", sizes(image(side)))};
      });
  add(rows, "Conv2DBackpropFilter", "conv2d_grad_filter", kFloats,
      [](DType d, int64_t side) {
        return Call{{values(d, image(side)), values(d, image(side))},
                    conv_with("filter_sizes", sizes(filter(side)))};
      });
  add(rows, "DepthwiseConv2dNative", "depthwise_conv2d", kFloats,
      [](DType d, int64_t side) {
        return Call{
            {values(d, image(side)), values(d, {3, 3, image(side)[3], 1})},
            kConv};
      });
}

void add_pools(Rows& rows) {
  const Pairs attrs = {{"ksize", Ints{1, 2, 2, 1}},
                       {"strides", Ints{1, 2, 2, 1}},
                       {"padding", std::string("VALID")}};
  const auto pooled = [](int64_t side) {
    const Shape s = image(side);
    return Shape{s[0], s[1] / 2, s[2] / 2, s[3]};
  };
  const auto forward = [attrs](DType d, int64_t side) {
    return Call{{values(d, image(side))}, attrs};
  };
  add(rows, "MaxPool", "max_pool", kFloats, forward);
  add(rows, "AvgPool", "avg_pool", kFloats, forward);
  add(rows, "MaxPoolWithArgmax", "max_pool_argmax", kFloats, forward);
  const auto backward = [=](bool twice) {
    return [=](DType d, int64_t side) {
      const Tensor x = values(d, image(side));
      return Call{
          {x, nn::max_pool2d(x), values(d, twice ? image(side) : pooled(side))},
          attrs};
    };
  };
  add(rows, "MaxPoolGrad", "max_pool_grad", kFloats, backward(false));
  add(rows, "MaxPoolGradGrad", "max_pool_grad_grad", kFloats, backward(true));
  add(rows, "AvgPoolGrad", "avg_pool_grad", kFloats,
      [=](DType d, int64_t side) {
        Pairs with = attrs;
        with.push_back({"orig_input_shape", sizes(image(side))});
        return Call{{values(d, pooled(side))}, with};
      });
}

// [batch, heads, length, 64]
Shape heads(int64_t side) {
  return side < 100    ? Shape{1, 2, 8, 64}
         : side < 2000 ? Shape{4, 8, 512, 64}
                       : Shape{18, 8, 1024, 64};
}

Call attention(DType d, int64_t side) {
  const Shape s = heads(side);
  return {{values(d, s, -1, 1), values(d, s, -1, 1), values(d, s, -1, 1)},
          {{"scale", 0.125}}};
}

void add_attention(Rows& rows) {
  const char* op = "ScaledDotProductAttention";
  add(rows, op, "attention", kFloats, attention);
  add(rows, op, "attention_causal", kFloats, [](DType d, int64_t side) {
    Call call = attention(d, side);
    call.attrs.push_back({"is_causal", true});
    return call;
  });
  add(rows, "ScaledDotProductAttentionGrad", "attention_grad", kFloats,
      [](DType d, int64_t side) {
        Call call = attention(d, side);
        const Tensors& in = call.in;
        const Tensor scores =
            matmul(in[0], in[1], {.transpose_b = true}) * 0.125;
        const Tensor logarithms = math::reduce_logsumexp(scores, {.axis = -1});
        const Tensor result = matmul(nn::softmax(scores), in[2]);
        call.in.insert(call.in.end(), {result, logarithms, result});
        return call;
      });
}

struct Lstm {
  int64_t batch, time, units;
};

Lstm lstm(int64_t side) {
  return side < 100    ? Lstm{2, 4, 32}
         : side < 2000 ? Lstm{32, 64, 128}
                       : Lstm{64, 72, 512};
}

void add_recurrent(Rows& rows) {
  add(rows, "LSTM", "lstm", kFloats, [](DType d, int64_t side) {
    const auto [n, t, u] = lstm(side);
    return Call{{values(d, {n, t, 4 * u}, -1, 1), values(d, {u, 4 * u}, -1, 1),
                 zeros({n, u}), zeros({n, u})}};
  });
  add(rows, "LSTMGrad", "lstm_grad", kFloats, [](DType d, int64_t side) {
    const auto [n, t, u] = lstm(side);
    return Call{{values(d, {n, t, u}, -1, 1), values(d, {n, u}, -1, 1),
                 values(d, {u, 4 * u}, -1, 1), zeros({n, u}),
                 values(d, {n, t, 4 * u}, 0.1, 0.9),
                 values(d, {n, t, u}, 0.1, 0.9)}};
  });
}

}  // namespace

void add_networks(Rows& rows) {
  add_rows_of_classes(rows);
  add_norms(rows);
  add_convolutions(rows);
  add_pools(rows);
  add_attention(rows);
  add_recurrent(rows);
}

}  // namespace berth_bench
