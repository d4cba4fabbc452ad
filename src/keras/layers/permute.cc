// Permute: moves axes.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "berth/keras/core_layers.h"
#include "berth/ops/array.h"
#include "berth/ops/math.h"
#include "keras/layers/shared_fields.h"
#include "keras/models/layer_checks.h"

namespace berth::keras {

namespace {

class PermuteBase final : public LayerBase {
 public:
  PermuteBase(std::vector<int64_t> dims, const NameOptions& o, Site site)
      : LayerBase("Permute", o.name, site), dims_(std::move(dims)) {
    std::vector<int64_t> sorted = dims_;
    std::sort(sorted.begin(), sorted.end());
    for (size_t i = 0; i < sorted.size(); ++i) {
      if (sorted[i] == static_cast<int64_t>(i) + 1) continue;
      fail_in(state(), "Permute: dims are [{}]; expected each of 1 to {} once",
              fmt::join(dims_, ", "), dims_.size());
    }
  }
  Tensors call(const Tensors& inputs, bool) override {
    const Tensor& x = one_input(state(), inputs);
    if (x.rank() != static_cast<int>(dims_.size()) + 1) {
      fail_in(state(),
              "Permute: the input is {}; expected {} axes behind the batch",
              x.shape().str(), dims_.size());
    }
    std::vector<int64_t> perm{0};
    perm.insert(perm.end(), dims_.begin(), dims_.end());
    return {transpose(x, perm, site())};
  }

 private:
  const std::vector<int64_t> dims_;
};
void permute_fields(Fields& f, std::vector<int64_t>& dims, NameOptions&) {
  f.must("dims", dims);
}

}  // namespace

Permute::Permute(std::vector<int64_t> dims, NameOptions o, Site site)
    : Layer(described<PermuteBase, permute_fields>(site, std::move(dims),
                                                   std::move(o))) {}

void add_permute_classes(Classes& c) {
  c.layers["Permute"] = &layer_of<Permute, permute_fields>;
}

}  // namespace berth::keras
