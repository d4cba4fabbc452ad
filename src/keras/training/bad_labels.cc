// Finds the label that is not a class, and its row.

#include "keras/training/bad_labels.h"

#include <fmt/format.h>

#include <cmath>
#include <optional>
#include <set>

#include "base/where.h"
#include "berth/errors.h"
#include "device/device.h"
#include "keras/losses/loss_shapes.h"
#include "keras/models/layer_state.h"
#include "tensor/variable_state.h"

namespace berth::keras {

namespace {

struct BadLabel {
  double label;
  int64_t row;
};

// The first of [n, ...] that is not a number from 0 to classes - 1.
std::optional<BadLabel> first_bad(const Tensor& labels, int64_t classes) {
  if (!labels.defined() || labels.rank() == 0 || is_complex(labels.dtype())) {
    return std::nullopt;
  }
  std::vector<double> all;
  try {
    all = labels.to_vector<double>();
  } catch (const errors::Error&) {
    return std::nullopt;  // the device that has them failed
  }
  for (size_t i = 0; i < all.size(); ++i) {
    const double label = std::trunc(all[i]);
    if (!(label < 0 || label >= static_cast<double>(classes))) continue;
    const size_t per_row = all.size() / static_cast<size_t>(labels.shape()[0]);
    return BadLabel{label, static_cast<int64_t>(i / per_row)};
  }
  return std::nullopt;
}

}  // namespace

void raise_bad_label(const Model::Training& training, const char* what,
                     const Tensors& targets, const std::string& of, Site site) {
  const std::vector<Shape>& outputs =
      training.model.base()->state().build.output_shapes;
  if (outputs.empty()) return;  // nothing has run yet
  // All tasks say the same.
  if (training.core && training.core->link()) return;
  const StepData data =
      training.split({}, targets, outputs.size(), /*lenient=*/true);
  const std::vector<Loss> losses = training.losses_of(outputs.size());
  for (size_t i = 0; i < data.y.size() && i < outputs.size(); ++i) {
    const Loss& loss = losses[i];
    if (!takes_labels(loss) || outputs[i].rank() == 0) continue;
    const int64_t classes = outputs[i][outputs[i].rank() - 1];
    const auto bad = classes < 0 ? std::nullopt : first_bad(data.y[i], classes);
    if (!bad) continue;
    throw errors::InvalidArgument(fmt::format(
        "{}: label {} in row {} of {}{}; expected 0 <= label < {}, the number "
        "of classes: check the last layer's size and the labels",
        what, bad->label, bad->row, of, where_text(nullptr, site), classes));
  }
}

void reset_devices(const Model::Training& training) {
  std::set<Device*> devices;
  if (training.core) {
    for (const auto& replica : training.core->replicas()) {
      devices.insert(replica.begin(), replica.end());
    }
  }
  for (const Variable& v : training.model.weights()) {
    devices.insert(variable_state(v.handle()).device);
  }
  for (Device* device : devices) {
    if (device != nullptr) device->reset_error();
  }
}

}  // namespace berth::keras
