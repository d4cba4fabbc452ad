// ActivityRegularization.

#include "berth/keras/core_layers.h"
#include "keras/layers/shared_fields.h"

namespace berth::keras {

namespace {

class ActivityRegularizationBase final : public LayerBase {
 public:
  ActivityRegularizationBase(const ActivityRegularizationOptions& o, Site site)
      : LayerBase("ActivityRegularization", o.name, site) {
    set_activity_regularizer(regularizers::L1L2(o.l1, o.l2));
  }
  Tensors call(const Tensors& x, bool) override { return x; }
};
struct ActivityRegularizationArgs {
  ActivityRegularizationOptions o;
  void fields(Fields& f) {
    f("l1", o.l1);
    f("l2", o.l2);
    f("name", o.name);
  }
  Layer make(Site site) const { return ActivityRegularization(o, site); }
};

}  // namespace

ActivityRegularization::ActivityRegularization(ActivityRegularizationOptions o,
                                               Site site)
    : Layer(make_layer<ActivityRegularizationBase>(o, site)) {
  describe(*this, ActivityRegularizationArgs{std::move(o)});
}

void add_activity_regularization_classes(Classes& c);
void add_activity_regularization_classes(Classes& c) {
  c.layers["ActivityRegularization"] = &layer_of<ActivityRegularizationArgs>;
}

}  // namespace berth::keras
