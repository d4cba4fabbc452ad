// Layers of several inputs of one shape, and Concatenate.

#include "berth/keras/element_layers.h"
#include "berth/ops/array.h"
#include "berth/ops/math.h"
#include "keras/config/classes.h"
#include "keras/models/layer_checks.h"

namespace berth::keras {

namespace {

struct Merge {
  const char* type;
  Tensor (*combine)(const Tensor&, const Tensor&, Site);
  size_t inputs = 0;  // any number
  bool mean = false;
};

// As Keras': axes of 1 go with any.
bool broadcast(const Shape& a, const Shape& b) {
  if (a.rank() != b.rank()) return false;
  for (int i = 0; i < a.rank(); ++i) {
    if (a[i] != b[i] && a[i] > 1 && b[i] > 1) return false;
    if (a[i] != b[i] && (a[i] == 0 || b[i] == 0)) return false;
  }
  return true;
}

class MergeBase final : public LayerBase {
 public:
  MergeBase(const Merge& kind, const NameOptions& o, Site site)
      : LayerBase(kind.type, o.name, site), kind_(kind) {}

  Tensors call(const Tensors& x, bool) override {
    if (kind_.inputs != 0 && x.size() != kind_.inputs) {
      fail_in(state(), "{}: got {} inputs; expected {}", state().type, x.size(),
              kind_.inputs);
    }
    Tensor result = x[0];
    for (size_t i = 1; i < x.size(); ++i) {
      if (!broadcast(x[i].shape(), result.shape())) {
        fail_in(state(),
                "{}: inputs are {} and {}; expected equal shapes, or axes of 1",
                state().type, x[0].shape().str(), x[i].shape().str());
      }
      result = kind_.combine(result, x[i], site());
    }
    if (kind_.mean) result = result * (1 / static_cast<double>(x.size()));
    return {result};
  }

 private:
  const Merge kind_;
};

Layer merge(const Merge& kind, NameOptions o, Site site) {
  const Layer layer = make_layer<MergeBase>(kind, o, site);
  describe<name_only>(layer, std::move(o));
  return layer;
}

class ConcatenateBase final : public LayerBase {
 public:
  ConcatenateBase(const ConcatenateOptions& o, Site site)
      : LayerBase("Concatenate", o.name, site), axis_(o.axis) {}

  Tensors call(const Tensors& x, bool) override {
    return {concat(x, axis_, site())};
  }

 private:
  const int64_t axis_;
};

void concatenate_fields(Fields& f, ConcatenateOptions& o) { f("axis", o.axis); }

}  // namespace

Add::Add(NameOptions o, Site site)
    : Layer(merge({"Add", &math::add}, std::move(o), site)) {}
Subtract::Subtract(NameOptions o, Site site)
    : Layer(merge({.type = "Subtract", .combine = &math::subtract, .inputs = 2},
                  std::move(o), site)) {}
Multiply::Multiply(NameOptions o, Site site)
    : Layer(merge({"Multiply", &math::multiply}, std::move(o), site)) {}
Average::Average(NameOptions o, Site site)
    : Layer(merge({.type = "Average", .combine = &math::add, .mean = true},
                  std::move(o), site)) {}
Maximum::Maximum(NameOptions o, Site site)
    : Layer(merge({"Maximum", &math::maximum}, std::move(o), site)) {}
Minimum::Minimum(NameOptions o, Site site)
    : Layer(merge({"Minimum", &math::minimum}, std::move(o), site)) {}
Concatenate::Concatenate(ConcatenateOptions options, Site site)
    : Layer(described<ConcatenateBase, concatenate_fields>(
          site, std::move(options))) {}

void add_merge_classes(Classes& c) {
  c.layers["Add"] = &layer_of<Add, name_only>;
  c.layers["Subtract"] = &layer_of<Subtract, name_only>;
  c.layers["Multiply"] = &layer_of<Multiply, name_only>;
  c.layers["Average"] = &layer_of<Average, name_only>;
  c.layers["Maximum"] = &layer_of<Maximum, name_only>;
  c.layers["Minimum"] = &layer_of<Minimum, name_only>;
  c.layers["Concatenate"] = &layer_of<Concatenate, concatenate_fields>;
}

}  // namespace berth::keras
