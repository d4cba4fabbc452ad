// Pools to a given number of pixels.

#include <fmt/format.h>

#include "berth/keras/volume_layers.h"
#include "berth/ops/array.h"
#include "berth/ops/math.h"
#include "keras/layers/shared_fields.h"
#include "keras/models/layer_checks.h"

namespace berth::keras {

namespace {

class AdaptivePoolingBase final : public LayerBase {
 public:
  AdaptivePoolingBase(bool max, std::vector<int64_t> size, const NameOptions& o,
                      Site site)
      : LayerBase(fmt::format("Adaptive{}Pooling{}D", max ? "Max" : "Average",
                              size.size()),
                  o.name, site),
        max_(max),
        size_(std::move(size)) {
    for (int64_t s : size_) check_positive(state(), "output_size", s);
  }

  Tensors call(const Tensors& inputs, bool) override {
    const int dims = static_cast<int>(size_.size());
    Tensor x = input_of_rank(state(), inputs, dims + 2, pixels_form(dims));
    for (int i = 0; i < dims; ++i) x = along(x, i + 1, size_[i]);
    return {x};
  }

 private:
  // Parts are boxes: a mean over one is a mean of means along each axis.
  Tensor along(const Tensor& x, int axis, int64_t parts) const {
    const int64_t length = x.shape()[axis];
    if (length < 1) {
      fail_in(state(),
              "{}: the input is {}; expected known pixels, one at "
              "least along each axis",
              state().type, x.shape().str());
    }
    if (parts == length) return x;
    const math::ReduceOptions over{.axis = std::vector<int64_t>{axis},
                                   .keepdims = true};
    const size_t rank = static_cast<size_t>(x.rank());
    Tensors list;
    for (int64_t i = 0; i < parts; ++i) {
      std::vector<int64_t> begin(rank, 0), size(rank, -1);
      begin[static_cast<size_t>(axis)] = i * length / parts;
      size[axis] = ((i + 1) * length + parts - 1) / parts - i * length / parts;
      const Tensor part = slice(x, begin, size, site());
      list.push_back(max_ ? math::reduce_max(part, over, site())
                          : math::reduce_mean(part, over, site()));
    }
    return concat(list, axis, site());
  }

  const bool max_;
  const std::vector<int64_t> size_;
};

void set_lengths(int64_t& s, const std::vector<int64_t>& v) { s = v[0]; }
void set_lengths(Size2D& s, const std::vector<int64_t>& v) { s = {v[0], v[1]}; }
void set_lengths(Size3D& s, const std::vector<int64_t>& v) {
  s = {v[0], v[1], v[2]};
}
template <class Size>
void adaptive_fields(Fields& f, Size& size, NameOptions&) {
  std::vector<int64_t> lengths = lengths_of(size);
  const size_t axes = lengths.size();
  f.must("output_size", lengths);
  lengths.resize(axes, 0);
  set_lengths(size, lengths);
}

template <class Size>
Layer adaptive(bool max, Size size, NameOptions o, Site site) {
  const Layer layer =
      make_layer<AdaptivePoolingBase>(max, lengths_of(size), o, site);
  describe<adaptive_fields<Size>>(layer, size, std::move(o));
  return layer;
}

}  // namespace

AdaptiveMaxPooling1D::AdaptiveMaxPooling1D(int64_t size, NameOptions o,
                                           Site site)
    : Layer(adaptive(true, size, std::move(o), site)) {}
AdaptiveMaxPooling2D::AdaptiveMaxPooling2D(Size2D size, NameOptions o,
                                           Site site)
    : Layer(adaptive(true, size, std::move(o), site)) {}
AdaptiveMaxPooling3D::AdaptiveMaxPooling3D(Size3D size, NameOptions o,
                                           Site site)
    : Layer(adaptive(true, size, std::move(o), site)) {}
AdaptiveAveragePooling1D::AdaptiveAveragePooling1D(int64_t size, NameOptions o,
                                                   Site site)
    : Layer(adaptive(false, size, std::move(o), site)) {}
AdaptiveAveragePooling2D::AdaptiveAveragePooling2D(Size2D size, NameOptions o,
                                                   Site site)
    : Layer(adaptive(false, size, std::move(o), site)) {}
AdaptiveAveragePooling3D::AdaptiveAveragePooling3D(Size3D size, NameOptions o,
                                                   Site site)
    : Layer(adaptive(false, size, std::move(o), site)) {}

void add_adaptive_classes(Classes& c) {
  c.layers["AdaptiveMaxPooling1D"] =
      &layer_of<AdaptiveMaxPooling1D, adaptive_fields<int64_t>>;
  c.layers["AdaptiveMaxPooling2D"] =
      &layer_of<AdaptiveMaxPooling2D, adaptive_fields<Size2D>>;
  c.layers["AdaptiveMaxPooling3D"] =
      &layer_of<AdaptiveMaxPooling3D, adaptive_fields<Size3D>>;
  c.layers["AdaptiveAveragePooling1D"] =
      &layer_of<AdaptiveAveragePooling1D, adaptive_fields<int64_t>>;
  c.layers["AdaptiveAveragePooling2D"] =
      &layer_of<AdaptiveAveragePooling2D, adaptive_fields<Size2D>>;
  c.layers["AdaptiveAveragePooling3D"] =
      &layer_of<AdaptiveAveragePooling3D, adaptive_fields<Size3D>>;
}

}  // namespace berth::keras
