// Identity.

#include "berth/keras/core_layers.h"
#include "keras/layers/shared_fields.h"

namespace berth::keras {

namespace {

class IdentityBase final : public LayerBase {
 public:
  IdentityBase(const NameOptions& o, Site site)
      : LayerBase("Identity", o.name, site) {}
  Tensors call(const Tensors& x, bool) override { return x; }
};

}  // namespace

Identity::Identity(NameOptions o, Site site)
    : Layer(described<IdentityBase, name_only>(site, std::move(o))) {}

void add_identity_classes(Classes& c) {
  c.layers["Identity"] = &layer_of<Identity, name_only>;
}

}  // namespace berth::keras
