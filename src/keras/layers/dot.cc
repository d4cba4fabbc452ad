// Dot: a product of two inputs along numbered axes.

#include "berth/keras/core_layers.h"
#include "berth/ops/array.h"
#include "berth/ops/contract.h"
#include "berth/ops/math.h"
#include "keras/layers/shared_fields.h"

namespace berth::keras {

namespace {

class DotBase final : public LayerBase {
 public:
  DotBase(DotAxes axes, const DotOptions& o, Site site)
      : LayerBase("Dot", o.name, site), axes_(axes), normalize_(o.normalize) {
    if (axes_.first == 0 || axes_.second == 0) {
      fail("Dot: an axis is 0, the batch; expected one of the others");
    }
  }

  Tensors call(const Tensors& x, bool) override {
    if (x.size() != 2 || x[0].rank() < 2 || x[1].rank() < 2) {
      fail_in(state(),
              "Dot: got {} inputs{}; expected two, of two axes at least",
              x.size(),
              x.size() == 2
                  ? ", " + x[0].shape().str() + " and " + x[1].shape().str()
                  : std::string());
    }
    const int a = axis_of(x[0], axes_.first), b = axis_of(x[1], axes_.second);
    const int64_t m = x[0].shape()[a], n = x[1].shape()[b];
    if (m >= 0 && n >= 0 && m != n) {
      fail_in(state(),
              "Dot: inputs are {} and {}, axes {} and {}; expected "
              "them to have one length",
              x[0].shape().str(), x[1].shape().str(), a, b);
    }
    const Tensor left = prepared(x[0], a), right = prepared(x[1], b);
    const Tensor y = einsum(equation_of(x[0].rank(), a, x[1].rank(), b),
                            {left, right}, site());
    return {y.rank() == 1 ? expand_dims(y, 1, site()) : y};
  }

 private:
  int axis_of(const Tensor& x, int64_t axis) const {
    const int i = normalize_axis(axis, x.rank(), "Dot: an axis");
    if (i == 0) fail("Dot: an axis is 0, the batch; expected another");
    return i;
  }
  Tensor prepared(const Tensor& x, int axis) const {
    if (!normalize_) return x;
    return math::l2_normalize(x, std::vector<int64_t>{axis}, 1e-12, site());
  }
  // 'a' is the batch, 'z' is summed.
  static std::string equation_of(int left, int a, int right, int b) {
    std::string x = "a", y = "a", result = "a";
    char next = 'b';
    for (int i = 1; i < left; ++i) {
      x += i == a ? 'z' : next;
      if (i != a) result += next++;
    }
    for (int i = 1; i < right; ++i) {
      y += i == b ? 'z' : next;
      if (i != b) result += next++;
    }
    return x + "," + y + "->" + result;
  }

  const DotAxes axes_;
  const bool normalize_;
};
void dot_fields(Fields& f, DotAxes& axes, DotOptions& o) {
  std::vector<int64_t> both{axes.first, axes.second};
  f.must("axes", both);
  if (both.size() == 1) both.push_back(both[0]);
  both.resize(2);
  axes = {both[0], both[1]};
  f("normalize", o.normalize);
}

}  // namespace

Dot::Dot(DotAxes axes, DotOptions o, Site site)
    : Layer(described<DotBase, dot_fields>(site, axes, std::move(o))) {}

void add_dot_classes(Classes& c) {
  c.layers["Dot"] = &layer_of<Dot, dot_fields>;
}

}  // namespace berth::keras
