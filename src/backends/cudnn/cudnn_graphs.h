/* Graphs of cudnn_api.h built with cudnn-frontend. Part of the one source. */

#ifndef BERTH_BACKENDS_CUDNN_CUDNN_GRAPHS_H_
#define BERTH_BACKENDS_CUDNN_CUDNN_GRAPHS_H_

#include <cudnn_frontend.h>

#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "backends/cudnn/cudnn_api.h"

namespace berth::cudnn {

namespace fe = cudnn_frontend;
using TensorRef = std::shared_ptr<fe::graph::Tensor_attributes>;
using Lengths = std::vector<int64_t>;

// Builds a graph; arguments are numbered from 1 in order.
class GraphWriter {
 public:
  GraphWriter(const BerthCudnnGraph& g, fe::graph::Graph& graph)
      : g_(g), graph_(graph) {
    graph.set_io_data_type(type())
        .set_intermediate_data_type(fe::DataType_t::FLOAT)
        .set_compute_data_type(fe::DataType_t::FLOAT);
  }

  // Throws std::invalid_argument for an unknown kind.
  void write();
  // Number of arguments; after them argument 2 is repeated again() times.
  int arguments() const { return next_ - 1 - again_; }
  int again() const { return again_; }

 private:
  fe::DataType_t type() const {
    switch (g_.type) {
      case BERTH_CUDNN_FLOAT32:
        return fe::DataType_t::FLOAT;
      case BERTH_CUDNN_BFLOAT16:
        return fe::DataType_t::BFLOAT16;
      case BERTH_CUDNN_FLOAT16:
        return fe::DataType_t::HALF;
      default:
        throw std::invalid_argument("no such type");
    }
  }
  TensorRef input(const char* name, const Lengths& dims,
                  const Lengths& strides) {
    return graph_.tensor(fe::graph::Tensor_attributes()
                             .set_name(name)
                             .set_dim(dims)
                             .set_stride(strides)
                             .set_data_type(type())
                             .set_uid(next_++));
  }
  void output(const TensorRef& t, const Lengths& dims, const Lengths& strides) {
    t->set_output(true)
        .set_dim(dims)
        .set_stride(strides)
        .set_data_type(type())
        .set_uid(next_++);
  }
  // Images [n, h, w, c], with axes in cuDNN's order: n, c, h, w.
  static Lengths image(int64_t n, int64_t h, int64_t w, int64_t c) {
    return {n, c, h, w};
  }
  static Lengths image_strides(int64_t h, int64_t w, int64_t c) {
    return {h * w * c, 1, w * c, c};
  }
  Lengths x_dims() const { return image(g_.n, g_.h, g_.w, g_.c); }
  Lengths x_strides() const { return image_strides(g_.h, g_.w, g_.c); }
  Lengths y_dims() const { return image(g_.n, g_.oh, g_.ow, g_.o); }
  Lengths y_strides() const { return image_strides(g_.oh, g_.ow, g_.o); }
  Lengths filter_dims() const { return {g_.o, g_.c / g_.groups, g_.kh, g_.kw}; }
  Lengths filter_strides() const {
    const int64_t c = g_.c / g_.groups;
    return image_strides(g_.kh, g_.kw, c);
  }
  TensorRef x() { return input("x", x_dims(), x_strides()); }
  TensorRef y(const char* name) { return input(name, y_dims(), y_strides()); }
  TensorRef filter() {
    return input("filter", filter_dims(), filter_strides());
  }
  // One value per channel.
  TensorRef channels(const char* name, int64_t c) {
    TensorRef t = input(name, {1, c, 1, 1}, {c, 1, c, c});
    t->set_data_type(fe::DataType_t::FLOAT);
    return t;
  }
  void channels_output(const TensorRef& t, int64_t c) {
    output(t, {1, c, 1, 1}, {c, 1, c, c});
    t->set_data_type(fe::DataType_t::FLOAT);
  }
  template <class A>
  A conv_attributes() const {
    A a;
    a.set_pre_padding({g_.pad_before[0], g_.pad_before[1]})
        .set_post_padding({g_.pad_after[0], g_.pad_after[1]})
        .set_stride({g_.stride[0], g_.stride[1]})
        .set_dilation({g_.dilation[0], g_.dilation[1]});
    return a;
  }
  TensorRef pointwise(const TensorRef& a, const TensorRef& b,
                      fe::PointwiseMode_t mode) {
    return graph_.pointwise(a, b,
                            fe::graph::Pointwise_attributes().set_mode(mode));
  }
  // Adds [residual] and [relu] to the result.
  TensorRef finished(TensorRef t, const TensorRef& residual) {
    if (residual) t = pointwise(t, residual, fe::PointwiseMode_t::ADD);
    if (g_.relu == 0) return t;
    return graph_.pointwise(t, fe::graph::Pointwise_attributes().set_mode(
                                   fe::PointwiseMode_t::RELU_FWD));
  }

  void conv();
  void conv_image_grad();
  void conv_filter_grad();
  void batch_norm();
  void batch_norm_grad();
  void attention();
  void attention_grad();
  // [batch, heads, rows, length]
  static Lengths rows(const BerthCudnnGraph& g, int64_t n, int64_t length) {
    return {g.batch, g.heads, n, length};
  }
  static Lengths row_strides(const BerthCudnnGraph& g, int64_t n,
                             int64_t length) {
    return {g.heads * n * length, n * length, length, 1};
  }
  TensorRef rows_input(const char* name, int64_t n, int64_t length) {
    return input(name, rows(g_, n, length), row_strides(g_, n, length));
  }
  void rows_output(const TensorRef& t, int64_t n, int64_t length) {
    output(t, rows(g_, n, length), row_strides(g_, n, length));
  }

  const BerthCudnnGraph& g_;
  fe::graph::Graph& graph_;
  int next_ = 1;
  int again_ = 0;
};

inline void GraphWriter::conv() {
  TensorRef in = x(), weights = filter(), bias, residual;
  if (g_.bias != 0) {
    bias = input("bias", {1, g_.o, 1, 1}, {g_.o, 1, g_.o, g_.o});
    bias->set_data_type(fe::DataType_t::FLOAT);
  }
  if (g_.residual != 0) residual = y("residual");
  TensorRef t = graph_.conv_fprop(
      in, weights, conv_attributes<fe::graph::Conv_fprop_attributes>());
  if (bias) t = pointwise(t, bias, fe::PointwiseMode_t::ADD);
  output(finished(t, residual), y_dims(), y_strides());
}

inline void GraphWriter::conv_image_grad() {
  TensorRef weights = filter(), dy = y("dy");
  output(graph_.conv_dgrad(dy, weights,
                           conv_attributes<fe::graph::Conv_dgrad_attributes>()),
         x_dims(), x_strides());
}

inline void GraphWriter::conv_filter_grad() {
  TensorRef in = x(), dy = y("dy");
  output(graph_.conv_wgrad(dy, in,
                           conv_attributes<fe::graph::Conv_wgrad_attributes>()),
         filter_dims(), filter_strides());
}

inline void GraphWriter::batch_norm() {
  TensorRef in = x(), scale = channels("scale", g_.c),
            offset = channels("offset", g_.c), residual;
  if (g_.residual != 0) residual = input("residual", x_dims(), x_strides());
  const int first_out = next_;
  // Numbered after the five results.
  next_ += 5;
  TensorRef mean_before = channels("mean_before", g_.c),
            variance_before = channels("variance_before", g_.c);
  const int end = next_;
  next_ = first_out;
  again_ = 2;
  TensorRef epsilon = graph_.tensor(static_cast<float>(g_.epsilon));
  TensorRef all = graph_.tensor(1.0f);
  auto attributes =
      fe::graph::Batchnorm_attributes()
          .set_epsilon(epsilon)
          .set_previous_running_stats(mean_before, variance_before, all);
  auto [t, mean, inverse, next_mean, next_variance] =
      graph_.batchnorm(in, scale, offset, attributes);
  output(finished(t, residual), x_dims(), x_strides());
  for (const TensorRef& m : {mean, inverse, next_mean, next_variance}) {
    channels_output(m, g_.c);
  }
  next_ = end;
}

inline void GraphWriter::batch_norm_grad() {
  TensorRef dy = input("dy", x_dims(), x_strides()), in = x(),
            scale = channels("scale", g_.c), mean = channels("mean", g_.c),
            inverse = channels("inverse", g_.c);
  auto attributes = fe::graph::Batchnorm_backward_attributes()
                        .set_saved_mean_and_inv_variance(mean, inverse);
  auto [dx, dscale, doffset] =
      graph_.batchnorm_backward(dy, in, scale, attributes);
  output(dx, x_dims(), x_strides());
  channels_output(dscale, g_.c);
  channels_output(doffset, g_.c);
}

inline void GraphWriter::attention() {
  TensorRef q = rows_input("q", g_.s, g_.d), k = rows_input("k", g_.t, g_.d),
            v = rows_input("v", g_.t, g_.e);
  auto attributes = fe::graph::SDPA_attributes()
                        .set_generate_stats(true)
                        .set_causal_mask(g_.causal != 0)
                        .set_attn_scale(static_cast<float>(g_.scale));
  auto [o, logarithms] = graph_.sdpa(q, k, v, attributes);
  rows_output(o, g_.s, g_.e);
  rows_output(logarithms, g_.s, 1);
  logarithms->set_data_type(fe::DataType_t::FLOAT);
}

inline void GraphWriter::attention_grad() {
  TensorRef q = rows_input("q", g_.s, g_.d), k = rows_input("k", g_.t, g_.d),
            v = rows_input("v", g_.t, g_.e), o = rows_input("o", g_.s, g_.e),
            d_o = rows_input("do", g_.s, g_.e),
            logarithms = rows_input("logarithms", g_.s, 1);
  logarithms->set_data_type(fe::DataType_t::FLOAT);
  auto attributes = fe::graph::SDPA_backward_attributes()
                        .set_causal_mask(g_.causal != 0)
                        .set_deterministic_algorithm(true)
                        .set_attn_scale(static_cast<float>(g_.scale));
  auto [dq, dk, dv] =
      graph_.sdpa_backward(q, k, v, o, d_o, logarithms, attributes);
  rows_output(dq, g_.s, g_.d);
  rows_output(dk, g_.t, g_.d);
  rows_output(dv, g_.t, g_.e);
}

inline void GraphWriter::write() {
  if (g_.what >= BERTH_CUDNN_CONV && g_.what <= BERTH_CUDNN_CONV_FILTER_GRAD &&
      (g_.groups < 1 || g_.c % g_.groups != 0)) {
    throw std::invalid_argument("channels that groups do not divide");
  }
  switch (g_.what) {
    case BERTH_CUDNN_CONV:
      return conv();
    case BERTH_CUDNN_CONV_IMAGE_GRAD:
      return conv_image_grad();
    case BERTH_CUDNN_CONV_FILTER_GRAD:
      return conv_filter_grad();
    case BERTH_CUDNN_BATCH_NORM:
      return batch_norm();
    case BERTH_CUDNN_BATCH_NORM_GRAD:
      return batch_norm_grad();
    case BERTH_CUDNN_ATTENTION:
      return attention();
    case BERTH_CUDNN_ATTENTION_GRAD:
      return attention_grad();
    default:
      throw std::invalid_argument("no such kind of graph");
  }
}

}  // namespace berth::cudnn

#endif  // BERTH_BACKENDS_CUDNN_CUDNN_GRAPHS_H_
