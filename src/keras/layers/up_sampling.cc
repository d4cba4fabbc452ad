// UpSampling1D to 3D.

#include <algorithm>

#include "berth/keras/volume_layers.h"
#include "berth/ops/array.h"
#include "keras/config/classes.h"
#include "keras/layers/image_resize.h"
#include "keras/layers/shared_fields.h"
#include "keras/models/layer_checks.h"

namespace berth::keras {

namespace {

using Sizes = std::vector<int64_t>;

// Each pixel several times, by a new axis after each of the pixels'.
class UpSamplingBase final : public LayerBase {
 public:
  UpSamplingBase(const char* type, Sizes size, const NameOptions& o, Site site)
      : LayerBase(type, o.name, site), size_(std::move(size)) {
    for (int64_t s : size_) check_positive(state(), "size", s);
  }

  Tensors call(const Tensors& inputs, bool) override {
    const size_t dims = size_.size();
    Tensor x = input_of_rank(state(), inputs, static_cast<int>(dims) + 2,
                             pixels_form(static_cast<int>(dims)));
    for (size_t i = 0; i < dims; ++i) {
      x = repeated(x, static_cast<int>(i) + 1, size_[i]);
    }
    return {x};
  }

 private:
  Tensor repeated(const Tensor& x, int axis, int64_t times) const {
    if (times == 1) return x;
    Shape result = x.shape();
    int unknown = 0;
    for (int i = 0; i < result.rank(); ++i) {
      if (result[i] < 0) result[i] = kUnknownDim;
      unknown += result[i] < 0;
    }
    if (unknown > 1) {
      fail_in(state(),
              "{}: the input is {}; expected at most one unknown dimension",
              state().type, x.shape().str());
    }
    if (result[axis] >= 0) result[axis] *= times;
    Sizes multiples(static_cast<size_t>(x.rank()) + 1, 1);
    multiples[static_cast<size_t>(axis) + 1] = times;
    return reshape(tile(expand_dims(x, axis + 1, site()), multiples, site()),
                   result, site());
  }

  const Sizes size_;
};

// More pixels, made of several of their neighbours.
class SmoothBase final : public LayerBase {
 public:
  SmoothBase(Size2D size, const UpSampling2DOptions& o, Site site)
      : LayerBase("UpSampling2D", o.name, site),
        size_(size),
        kind_(interpolation_of(state(), o.interpolation)) {
    check_positive(state(), "size", std::min(size.h, size.w));
  }
  Tensors call(const Tensors& inputs, bool) override {
    const Tensor& x = input_of_rank(state(), inputs, 4, pixels_form(2));
    const Shape& s = x.shape();
    check_known_pixels(state(), x);
    return {resized(x, s[1] * size_.h, s[2] * size_.w, kind_, false, site())};
  }

 private:
  const Size2D size_;
  const Interpolation kind_;
};
void up_sampling_2d_fields(Fields& f, Size2D& size, UpSampling2DOptions& o) {
  if (f.reading()) size = 2;
  f("size", size);
  f("interpolation", o.interpolation);
}
void up_sampling_3d_fields(Fields& f, Size3D& size, NameOptions&) {
  if (f.reading()) size = 2;
  size_field(f, "size", size);
}
void up_sampling_1d_fields(Fields& f, int64_t& size, NameOptions&) {
  if (f.reading()) size = 2;
  f("size", size);
}

}  // namespace

UpSampling2D::UpSampling2D(Size2D size, UpSampling2DOptions o, Site site)
    : Layer(o.interpolation == "nearest"
                ? make_layer<UpSamplingBase>("UpSampling2D",
                                             Sizes{size.h, size.w},
                                             NameOptions{o.name}, site)
                : make_layer<SmoothBase>(size, o, site)) {
  describe<up_sampling_2d_fields>(*this, size, std::move(o));
}
UpSampling3D::UpSampling3D(Size3D size, NameOptions o, Site site)
    : Layer(make_layer<UpSamplingBase>(
          "UpSampling3D", Sizes{size.d, size.h, size.w}, o, site)) {
  describe<up_sampling_3d_fields>(*this, size, std::move(o));
}
UpSampling1D::UpSampling1D(int64_t size, NameOptions o, Site site)
    : Layer(make_layer<UpSamplingBase>("UpSampling1D", Sizes{size}, o, site)) {
  describe<up_sampling_1d_fields>(*this, size, std::move(o));
}

void add_up_sampling_classes(Classes& c) {
  c.layers["UpSampling3D"] = &layer_of<UpSampling3D, up_sampling_3d_fields>;
  c.layers["UpSampling2D"] = &layer_of<UpSampling2D, up_sampling_2d_fields>;
  c.layers["UpSampling1D"] = &layer_of<UpSampling1D, up_sampling_1d_fields>;
}

}  // namespace berth::keras
