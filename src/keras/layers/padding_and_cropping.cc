// ZeroPadding1D to 3D, Cropping1D to 3D.

#include <algorithm>

#include "berth/keras/volume_layers.h"
#include "berth/ops/array.h"
#include "keras/config/classes.h"
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
      fail_in(state(), "{}: a margin is {{{}, {}}}; expected 0 or more", type,
              m.before, m.after);
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
      fail_in(state(),
              "{}: the input is {}, the margin {{{}, {}}}; expected "
              "known axes longer than that",
              state().type, x.shape().str(), m.before, m.after);
    }
    begin.push_back(0);
    size.push_back(-1);
    return slice(x, begin, size, site());
  }

  const bool adds_;
  const std::vector<Margin> margins_;
};

Layer margin(const char* type, bool adds, std::vector<Margin> margins,
             const NameOptions& o, Site site) {
  return make_layer<MarginBase>(type, adds, std::move(margins), o, site);
}

void margins_field(Fields& f, const char* name, Margin& m) { f.must(name, m); }
void margins_field(Fields& f, const char* name, Margins2D& m) {
  std::vector<Margin> axes{m.h, m.w};
  f.must(name, axes);
  m = {axes[0], axes[1]};
}
void margins_field(Fields& f, const char* name, Margins3D& m) {
  std::vector<Margin> axes{m.d, m.h, m.w};
  f.must(name, axes);
  m = {axes[0], axes[1], axes[2]};
}
template <class Margins>
void padding_fields(Fields& f, Margins& m, NameOptions&) {
  margins_field(f, "padding", m);
}
template <class Margins>
void cropping_fields(Fields& f, Margins& m, NameOptions&) {
  margins_field(f, "cropping", m);
}

}  // namespace

ZeroPadding2D::ZeroPadding2D(Margins2D m, NameOptions o, Site site)
    : Layer(margin("ZeroPadding2D", true, {m.h, m.w}, o, site)) {
  describe<padding_fields<Margins2D>>(*this, m, std::move(o));
}
ZeroPadding1D::ZeroPadding1D(Margin steps, NameOptions o, Site site)
    : Layer(margin("ZeroPadding1D", true, {steps}, o, site)) {
  describe<padding_fields<Margin>>(*this, steps, std::move(o));
}
Cropping2D::Cropping2D(Margins2D m, NameOptions o, Site site)
    : Layer(margin("Cropping2D", false, {m.h, m.w}, o, site)) {
  describe<cropping_fields<Margins2D>>(*this, m, std::move(o));
}
Cropping1D::Cropping1D(Margin steps, NameOptions o, Site site)
    : Layer(margin("Cropping1D", false, {steps}, o, site)) {
  describe<cropping_fields<Margin>>(*this, steps, std::move(o));
}
ZeroPadding3D::ZeroPadding3D(Margins3D m, NameOptions o, Site site)
    : Layer(margin("ZeroPadding3D", true, {m.d, m.h, m.w}, o, site)) {
  describe<padding_fields<Margins3D>>(*this, m, std::move(o));
}
Cropping3D::Cropping3D(Margins3D m, NameOptions o, Site site)
    : Layer(margin("Cropping3D", false, {m.d, m.h, m.w}, o, site)) {
  describe<cropping_fields<Margins3D>>(*this, m, std::move(o));
}

void add_padding_and_cropping_classes(Classes& c) {
  c.layers["ZeroPadding3D"] =
      &layer_of<ZeroPadding3D, padding_fields<Margins3D>>;
  c.layers["Cropping3D"] = &layer_of<Cropping3D, cropping_fields<Margins3D>>;
  c.layers["ZeroPadding2D"] =
      &layer_of<ZeroPadding2D, padding_fields<Margins2D>>;
  c.layers["ZeroPadding1D"] = &layer_of<ZeroPadding1D, padding_fields<Margin>>;
  c.layers["Cropping2D"] = &layer_of<Cropping2D, cropping_fields<Margins2D>>;
  c.layers["Cropping1D"] = &layer_of<Cropping1D, cropping_fields<Margin>>;
}

}  // namespace berth::keras
