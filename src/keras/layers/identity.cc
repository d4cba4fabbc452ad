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

struct IdentityArgs {
  NameOptions o;
  void fields(Fields& f) { f("name", o.name); }
  Layer make(Site site) const { return Identity(o, site); }
};

}  // namespace

Identity::Identity(NameOptions o, Site site)
    : Layer(make_layer<IdentityBase>(o, site)) {
  describe(*this, IdentityArgs{std::move(o)});
}

void add_identity_classes(Classes& c);
void add_identity_classes(Classes& c) {
  c.layers["Identity"] = &layer_of<IdentityArgs>;
}

}  // namespace berth::keras
