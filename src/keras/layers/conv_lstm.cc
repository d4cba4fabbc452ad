// ConvLSTM1D to 3D.

#include <algorithm>

#include "berth/keras/conv_recurrent_layers.h"
#include "berth/ops/array.h"
#include "berth/ops/control_flow.h"
#include "berth/ops/conv.h"
#include "berth/ops/conv3d.h"
#include "berth/ops/indexing.h"
#include "berth/ops/math.h"
#include "berth/ops/nn.h"
#include "keras/layers/gated_layer.h"
#include "keras/layers/shared_fields.h"
#include "keras/models/layer_checks.h"
#include "keras/models/masks.h"

namespace berth::keras {

namespace {

constexpr int64_t kUnrolledSteps = 64;

// x [n, pixels..., c] with a kernel [size..., c, filters].
Tensor convolved(const Tensor& x, const Tensor& kernel,
                 const std::vector<int64_t>& strides,
                 const std::string& padding,
                 const std::vector<int64_t>& dilations, Site site) {
  switch (strides.size()) {
    case 1:
      return nn::conv1d(
          x, kernel,
          {.stride = strides[0], .padding = padding, .dilations = dilations[0]},
          site);
    case 2:
      return nn::conv2d(
          x, kernel,
          {.strides = strides, .padding = padding, .dilations = dilations},
          site);
    default:
      return nn::conv3d(
          x, kernel,
          {.strides = strides, .padding = padding, .dilations = dilations},
          site);
  }
}

template <class Size>
class ConvLSTMBase final : public LayerBase {
 public:
  ConvLSTMBase(const char* type, int64_t filters, Size size,
               const ConvLSTMOptions<Size>& o, Site site)
      : LayerBase(type, o.name, site),
        filters_(filters),
        size_(lengths_of(size)),
        strides_(lengths_of(o.strides)),
        dilations_(lengths_of(o.dilation_rate)),
        ones_(size_.size(), 1),
        o_(o) {
    check_positive(state(), "filters", filters_);
    for (const auto* list : {&size_, &strides_, &dilations_}) {
      check_positive(state(), "a kernel_size, stride or dilation_rate",
                     *std::min_element(list->begin(), list->end()));
    }
    check_activation(state(), o_.activation);
    check_activation(state(), o_.recurrent_activation);
    padding_ = padding_of(state(), o_.padding);
    for (const double rate : {o_.dropout, o_.recurrent_dropout}) {
      if (rate >= 0 && rate < 1) continue;
      fail_in(state(), "{}: a dropout rate is {}; expected 0 <= rate < 1", type,
              rate);
    }
    set_activity_regularizer(o_.activity_regularizer);
  }

  void build(const std::vector<Shape>& inputs) override {
    check(inputs[0]);
    channels_ = known_channels(state(), inputs[0]);
    const auto kernel_of = [&](int64_t channels) {
      Shape shape;
      for (const int64_t s : size_) shape.push_back(s);
      shape.push_back(channels);
      shape.push_back(4 * filters_);
      return shape;
    };
    kernel_ = add_weight("kernel", kernel_of(channels_), o_.kernel_initializer,
                         {.regularizer = o_.kernel_regularizer,
                          .constraint = o_.kernel_constraint});
    recurrent_ = add_weight("recurrent_kernel", kernel_of(filters_),
                            o_.recurrent_initializer,
                            {.regularizer = o_.recurrent_regularizer,
                             .constraint = o_.recurrent_constraint});
    if (!o_.use_bias) return;
    bias_ = add_weight(
        "bias", {4 * filters_}, Initializer([this](const Shape&, DType dtype) {
          return first_bias(dtype);
        }),
        {.regularizer = o_.bias_regularizer, .constraint = o_.bias_constraint});
  }

  Tensors call(const Tensors& inputs, bool training) override {
    Tensor x = one_input(state(), inputs);
    check(x.shape());
    check_channels(state(), x, channels_);
    const int64_t steps = x.shape()[1];
    Tensor mask = Masks::of(x);
    if (o_.go_backwards) {
      x = reverse(x, {1}, site());
      if (mask.defined()) mask = reverse(mask, {1}, site());
    }
    if (training && o_.dropout > 0) {
      const Tensor one = slice_of(x, 0);
      x = x * expand_dims(dropped(one, o_.dropout), 1, site());
    }
    const Tensor parts = project(x);
    Tensors result = steps <= kUnrolledSteps ? unrolled(parts, mask, training)
                                             : looped(parts, mask, training);
    if (!o_.return_state) result.resize(1);
    return result;
  }

  Tensors compute_mask(const Tensors&, const Tensors& masks) override {
    return o_.return_sequences ? Tensors{masks[0]} : Tensors{};
  }

 private:
  void check(const Shape& x) const {
    const int rank = static_cast<int>(size_.size()) + 3;
    if (x.rank() == rank && x[1] > 0) return;
    fail_in(state(),
            "{}: the input is {}; expected [batch, time, {} axes of "
            "pixels, channels] with a known time above 0",
            state().type, x.str(), size_.size());
  }

  Tensor first_bias(DType dtype) const {
    const Tensor all = o_.bias_initializer(Shape{4 * filters_}, dtype);
    if (!o_.unit_forget_bias) return all;
    const Tensor before = slice(all, {0}, {filters_}, site());
    const Tensor behind = slice(all, {2 * filters_}, {2 * filters_}, site());
    return concat({before, ones({filters_}, dtype, site()), behind}, 0, site());
  }

  // The inputs' part of the gates, of all steps at once:
  // [n, t, pixels..., 4 filters].
  Tensor project(const Tensor& x) const {
    const auto joined = [&](const Shape& s, int from) {
      Shape shape{-1};
      for (int i = from; i < s.rank(); ++i) shape.push_back(s[i]);
      return shape;
    };
    const Tensor flat = reshape(x, joined(x.shape(), 2), site());
    Tensor y = convolved(flat, kernel_.value(site()), strides_, padding_,
                         dilations_, site());
    if (o_.use_bias) y = nn::bias_add(y, bias_.value(site()), site());
    Shape apart{-1, x.shape()[1]};
    for (int i = 1; i < y.rank(); ++i) apart.push_back(y.shape()[i]);
    return reshape(y, apart, site());
  }

  Tensor slice_of(const Tensor& x, int64_t step) const {
    return gather(x, constant(step, site()), 1, site());
  }
  Tensor dropped(const Tensor& like, double rate) const {
    return nn::dropout(ones_like(like, site()), rate, {.seed = o_.seed},
                       site());
  }

  // {h, c} after a step.
  Tensors step(const Tensor& part, const Tensor& h, const Tensor& c,
               const Tensor& kept, const Tensor& mask) const {
    const Tensor seen = kept.defined() ? h * kept : h;
    const Tensor z = part + convolved(seen, recurrent_.value(site()), ones_,
                                      "SAME", ones_, site());
    const Tensors gates = split(z, 4, -1, site());
    const auto gate = [&](const Tensor& t) {
      return apply_activation(o_.recurrent_activation, t, site());
    };
    const auto active = [&](const Tensor& t) {
      return apply_activation(o_.activation, t, site());
    };
    Tensor next_c = gate(gates[1]) * c + gate(gates[0]) * active(gates[2]);
    Tensor next_h = gate(gates[3]) * active(next_c);
    if (mask.defined()) {
      Tensor counts = mask;
      while (counts.rank() < h.rank()) counts = expand_dims(counts, -1, site());
      next_h = where(counts, next_h, h, site());
      next_c = where(counts, next_c, c, site());
    }
    return {next_h, next_c};
  }

  Tensor first_state(const Tensor& parts) const {
    return zeros_like(split(slice_of(parts, 0), 4, -1, site())[0], site());
  }
  Tensor kept_states(const Tensor& state, bool training) const {
    return training && o_.recurrent_dropout > 0
               ? dropped(state, o_.recurrent_dropout)
               : Tensor();
  }

  Tensors unrolled(const Tensor& parts, const Tensor& mask,
                   bool training) const {
    Tensor h = first_state(parts), c = h;
    const Tensor kept = kept_states(h, training);
    Tensors outputs;
    for (int64_t t = 0; t < parts.shape()[1]; ++t) {
      const Tensors next = step(slice_of(parts, t), h, c, kept,
                                mask.defined() ? slice_of(mask, t) : Tensor());
      h = next[0];
      c = next[1];
      if (o_.return_sequences) outputs.push_back(h);
    }
    return {o_.return_sequences ? stack(outputs, 1, site()) : h, h, c};
  }

  Tensors looped(const Tensor& parts, const Tensor& mask, bool training) const {
    const int64_t steps = parts.shape()[1];
    const Tensor zero = first_state(parts);
    const Tensor kept = kept_states(zero, training);
    Tensors vars{constant(int64_t{0}, site()), zero, zero};
    if (o_.return_sequences) {
      vars.push_back(
          stack(Tensors(static_cast<size_t>(steps), zero), 0, site()));
    }
    vars = while_loop(
        [&](const Tensors& v) {
          return math::less(v[0], constant(steps, site()), site());
        },
        [&](const Tensors& v) {
          Tensors next =
              step(gather(parts, v[0], 1, site()), v[1], v[2], kept,
                   mask.defined() ? gather(mask, v[0], 1, site()) : Tensor());
          next.insert(next.begin(), v[0] + 1);
          if (o_.return_sequences) {
            next.push_back(tensor_scatter_nd_update(
                v[3], reshape(v[0], {1, 1}, site()),
                expand_dims(next[1], 0, site()), site()));
          }
          return next;
        },
        vars, {.max_iterations = steps}, site());
    if (!o_.return_sequences) return {vars[1], vars[1], vars[2]};
    std::vector<int64_t> order;
    for (int i = 0; i < vars[3].rank(); ++i) order.push_back(i);
    std::swap(order[0], order[1]);
    return {transpose(vars[3], order, site()), vars[1], vars[2]};
  }

  const int64_t filters_;
  const std::vector<int64_t> size_, strides_, dilations_, ones_;
  const ConvLSTMOptions<Size> o_;
  std::string padding_;
  int64_t channels_ = 0;
  Variable kernel_, recurrent_, bias_;
};

template <class Size>
void conv_lstm_fields(Fields& f, int64_t& filters, Size& kernel_size,
                      ConvLSTMOptions<Size>& o) {
  if (f.reading()) kernel_size = 1;
  f.must("filters", filters);
  size_field(f, "kernel_size", kernel_size);
  size_field(f, "strides", o.strides);
  f("padding", o.padding);
  f.fixed("data_format", "channels_last");
  size_field(f, "dilation_rate", o.dilation_rate);
  gate_option_fields(f, o);
  f("return_sequences", o.return_sequences);
  f("return_state", o.return_state);
  f("go_backwards", o.go_backwards);
  f.fixed("stateful", false);
  f.fixed("unroll", false);
}

}  // namespace

ConvLSTM1D::ConvLSTM1D(int64_t filters, int64_t size, ConvLSTM1DOptions o,
                       Site site)
    : Layer(make_layer<ConvLSTMBase<int64_t>>("ConvLSTM1D", filters, size, o,
                                              site)) {
  describe<conv_lstm_fields<int64_t>>(*this, filters, size, std::move(o));
}
ConvLSTM2D::ConvLSTM2D(int64_t filters, Size2D size, ConvLSTM2DOptions o,
                       Site site)
    : Layer(make_layer<ConvLSTMBase<Size2D>>("ConvLSTM2D", filters, size, o,
                                             site)) {
  describe<conv_lstm_fields<Size2D>>(*this, filters, size, std::move(o));
}
ConvLSTM3D::ConvLSTM3D(int64_t filters, Size3D size, ConvLSTM3DOptions o,
                       Site site)
    : Layer(make_layer<ConvLSTMBase<Size3D>>("ConvLSTM3D", filters, size, o,
                                             site)) {
  describe<conv_lstm_fields<Size3D>>(*this, filters, size, std::move(o));
}

void add_conv_lstm_classes(Classes& c) {
  c.layers["ConvLSTM1D"] = &layer_of<ConvLSTM1D, conv_lstm_fields<int64_t>>;
  c.layers["ConvLSTM2D"] = &layer_of<ConvLSTM2D, conv_lstm_fields<Size2D>>;
  c.layers["ConvLSTM3D"] = &layer_of<ConvLSTM3D, conv_lstm_fields<Size3D>>;
}

}  // namespace berth::keras
