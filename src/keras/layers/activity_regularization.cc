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
void activity_regularization_fields(Fields& f,
                                    ActivityRegularizationOptions& o) {
  f("l1", o.l1);
  f("l2", o.l2);
}

}  // namespace

ActivityRegularization::ActivityRegularization(ActivityRegularizationOptions o,
                                               Site site)
    : Layer(
          described<ActivityRegularizationBase, activity_regularization_fields>(
              site, std::move(o))) {}

void add_activity_regularization_classes(Classes& c) {
  c.layers["ActivityRegularization"] =
      &layer_of<ActivityRegularization, activity_regularization_fields>;
}

}  // namespace berth::keras
