// Layers that add, take away and repeat pixels.

#include <fmt/format.h>

#include <algorithm>

#include "berth/keras/volume_layers.h"
#include "berth/ops/array.h"
#include "keras/config/classes.h"
#include "keras/layers/pixels.h"
#include "keras/layers/shared_fields.h"
#include "keras/models/layer_checks.h"

namespace berth::keras {

namespace {

using Sizes = std::vector<int64_t>;

// Zeros around the axes of the pixels, or as many taken away.
class MarginBase final : public LayerBase {
 public:
  MarginBase(const char* type, bool adds, std::vector<Margin> margins,
             const NameOptions& o, Site site)
      : LayerBase(type, o.name, site),
        adds_(adds),
        margins_(std::move(margins)) {
    for (const Margin& m : margins_) {
      if (std::min(m.before, m.after) >= 0) continue;
      fail(fmt::format("{}: a margin is {{{}, {}}}; expected 0 or more", type,
                       m.before, m.after));
    }
  }

  Tensors call(const Tensors& inputs, bool) override {
    const size_t dims = margins_.size();
    const Tensor& x = input_of_rank(state(), inputs, static_cast<int>(dims) + 2,
                                    pixels_form(static_cast<int>(dims)));
    return {adds_ ? padded(x) : cropped(x)};
  }

 private:
  Tensor padded(const Tensor& x) const {
    Sizes paddings{0, 0};
    for (const Margin& m : margins_) {
      paddings.insert(paddings.end(), {m.before, m.after});
    }
    paddings.insert(paddings.end(), {0, 0});
    return pad(x, paddings, {}, site());
  }

  Tensor cropped(const Tensor& x) const {
    Sizes begin{0}, size{-1};
    for (size_t i = 0; i < margins_.size(); ++i) {
      const Margin& m = margins_[i];
      const int64_t length = x.shape()[static_cast<int>(i) + 1];
      begin.push_back(m.before);
      size.push_back(m.after == 0 ? -1 : length - m.before - m.after);
      if (length < 0 ? m.after == 0 : length > m.before + m.after) continue;
      fail(
          fmt::format("{}: the input is {}, the margin {{{}, {}}}; expected "
                      "known axes longer than that",
                      state().type, x.shape().str(), m.before, m.after));
    }
    begin.push_back(0);
    size.push_back(-1);
    return slice(x, begin, size, site());
  }

  const bool adds_;
  const std::vector<Margin> margins_;
};

// Each pixel several times, by a new axis behind each of the pixels'.
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
      fail(
          fmt::format("{}: the input is {}; expected at most one unknown "
                      "dimension",
                      state().type, x.shape().str()));
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

Layer margin(const char* type, bool adds, std::vector<Margin> margins,
             const NameOptions& o, Site site) {
  return make_layer<MarginBase>(type, adds, std::move(margins), o, site);
}

template <class Margined>
struct MarginArgs {
  static constexpr bool kPads = std::is_same_v<Margined, ZeroPadding2D> ||
                                std::is_same_v<Margined, ZeroPadding1D>;
  static constexpr bool kImages = std::is_same_v<Margined, ZeroPadding2D> ||
                                  std::is_same_v<Margined, Cropping2D>;
  std::vector<Margin> margins = std::vector<Margin>(kImages ? 2 : 1, Margin(0));
  NameOptions o;
  void fields(Fields& f) {
    const char* name = kPads ? "padding" : "cropping";
    if constexpr (kImages) {
      f.must(name, margins);
    } else {
      f.must(name, margins[0]);
    }
    f("name", o.name);
  }
  Layer make(Site site) const {
    if constexpr (kImages) {
      return Margined(Margins2D(margins[0], margins[1]), o, site);
    } else {
      return Margined(margins[0], o, site);
    }
  }
};
struct UpSampling2DArgs {
  Size2D size = 2;
  UpSampling2DOptions o;
  void fields(Fields& f) {
    f("size", size);
    f("interpolation", o.interpolation);
    f("name", o.name);
  }
  Layer make(Site site) const { return UpSampling2D(size, o, site); }
};
struct UpSampling1DArgs {
  int64_t size = 2;
  NameOptions o;
  void fields(Fields& f) {
    f("size", size);
    f("name", o.name);
  }
  Layer make(Site site) const { return UpSampling1D(size, o, site); }
};

}  // namespace

ZeroPadding2D::ZeroPadding2D(Margins2D m, NameOptions o, Site site)
    : Layer(margin("ZeroPadding2D", true, {m.h, m.w}, o, site)) {
  describe(*this, MarginArgs<ZeroPadding2D>{{m.h, m.w}, std::move(o)});
}
ZeroPadding1D::ZeroPadding1D(Margin steps, NameOptions o, Site site)
    : Layer(margin("ZeroPadding1D", true, {steps}, o, site)) {
  describe(*this, MarginArgs<ZeroPadding1D>{{steps}, std::move(o)});
}
Cropping2D::Cropping2D(Margins2D m, NameOptions o, Site site)
    : Layer(margin("Cropping2D", false, {m.h, m.w}, o, site)) {
  describe(*this, MarginArgs<Cropping2D>{{m.h, m.w}, std::move(o)});
}
Cropping1D::Cropping1D(Margin steps, NameOptions o, Site site)
    : Layer(margin("Cropping1D", false, {steps}, o, site)) {
  describe(*this, MarginArgs<Cropping1D>{{steps}, std::move(o)});
}
UpSampling2D::UpSampling2D(Size2D size, UpSampling2DOptions o, Site site)
    : Layer(o.interpolation == "nearest"
                ? make_layer<UpSamplingBase>("UpSampling2D",
                                             Sizes{size.h, size.w},
                                             NameOptions{o.name}, site)
                : make_layer<SmoothBase>(size, o, site)) {
  describe(*this, UpSampling2DArgs{size, std::move(o)});
}
UpSampling3D::UpSampling3D(Size3D size, NameOptions o, Site site)
    : Layer(make_layer<UpSamplingBase>(
          "UpSampling3D", Sizes{size.d, size.h, size.w}, o, site)) {
  describe(*this, UpSampling3DArgs{size, std::move(o)});
}
ZeroPadding3D::ZeroPadding3D(Margins3D m, NameOptions o, Site site)
    : Layer(margin("ZeroPadding3D", true, {m.d, m.h, m.w}, o, site)) {
  describe(*this, Margin3DArgs<ZeroPadding3D>{{m.d, m.h, m.w}, std::move(o)});
}
Cropping3D::Cropping3D(Margins3D m, NameOptions o, Site site)
    : Layer(margin("Cropping3D", false, {m.d, m.h, m.w}, o, site)) {
  describe(*this, Margin3DArgs<Cropping3D>{{m.d, m.h, m.w}, std::move(o)});
}
UpSampling1D::UpSampling1D(int64_t size, NameOptions o, Site site)
    : Layer(make_layer<UpSamplingBase>("UpSampling1D", Sizes{size}, o, site)) {
  describe(*this, UpSampling1DArgs{size, std::move(o)});
}

void add_resize_classes(Classes& c);
void add_resize_classes(Classes& c) {
  c.layers["ZeroPadding3D"] = &layer_of<Margin3DArgs<ZeroPadding3D>>;
  c.layers["Cropping3D"] = &layer_of<Margin3DArgs<Cropping3D>>;
  c.layers["UpSampling3D"] = &layer_of<UpSampling3DArgs>;
  c.layers["ZeroPadding2D"] = &layer_of<MarginArgs<ZeroPadding2D>>;
  c.layers["ZeroPadding1D"] = &layer_of<MarginArgs<ZeroPadding1D>>;
  c.layers["Cropping2D"] = &layer_of<MarginArgs<Cropping2D>>;
  c.layers["Cropping1D"] = &layer_of<MarginArgs<Cropping1D>>;
  c.layers["UpSampling2D"] = &layer_of<UpSampling2DArgs>;
  c.layers["UpSampling1D"] = &layer_of<UpSampling1DArgs>;
}

}  // namespace berth::keras
