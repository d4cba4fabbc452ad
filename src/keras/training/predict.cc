// predict: outputs in batches.

#include <fmt/format.h>

#include "berth/errors.h"
#include "berth/ops/array.h"
#include "keras/callbacks/callback_list.h"
#include "keras/models/layer_state.h"
#include "keras/training/argument_checks.h"
#include "keras/training/bad_labels.h"
#include "keras/training/batches.h"
#include "keras/training/training.h"
#include "op/device_scope.h"

namespace berth::keras {

namespace {

// Keeps the outputs of batches, then joins them.
class Outputs {
 public:
  void add(const Tensors& y) {
    parts_.resize(y.size());
    for (size_t i = 0; i < y.size(); ++i) parts_[i].push_back(y[i]);
  }
  Tensors joined(Site site) const {
    Tensors outputs;
    for (const Tensors& p : parts_) {
      outputs.push_back(p.size() == 1 ? p[0] : concat(p, 0, site));
    }
    return outputs;
  }

 private:
  std::vector<Tensors> parts_;  // by output
};

Tensors run_predict(Model& model, Model::Training& t,
                    const data::Dataset& dataset, size_t num_inputs,
                    const PredictOptions& o, Site site) {
  const CallbackList list(o.callbacks);
  list.call(&CallbackBase::on_predict_begin, model);
  Outputs outputs;
  int64_t done = 0;
  const BatchReader pass =
      Batches(dataset, model.base()->state(), "predict", site).begin();
  Tensors x;
  for (Tensors element; (o.steps == 0 || done < o.steps) && pass.next(element);
       ++done) {
    if (element.size() < num_inputs) {
      throw errors::InvalidArgument(
          fmt::format("predict: a batch has {} tensors{}; expected {} inputs",
                      element.size(), where_text(nullptr, site), num_inputs));
    }
    x.assign(element.begin(),
             element.begin() + static_cast<std::ptrdiff_t>(num_inputs));
    list.call(&CallbackBase::on_predict_batch_begin, model, done);
    const Tensors y = t.run_forward(x, site);
    list.call(&CallbackBase::on_predict_batch_end, model, done, y);
    outputs.add(y);
  }
  if (done == 0) {
    throw errors::InvalidArgument(fmt::format("predict: the dataset is empty{}",
                                              where_text(nullptr, site)));
  }
  list.call(&CallbackBase::on_predict_end, model);
  return outputs.joined(site);
}

}  // namespace

Tensors Model::predict(const data::Dataset& dataset,
                       const PredictOptions& options, Site site) {
  check_positive("predict", "steps + 1", options.steps + 1, site);
  if (options.steps == 0) {
    check_finite("predict", Batches(dataset, base()->state(), "predict", site),
                 site);
  }
  return with_devices_reset(*training_, [&] {
    return run_predict(*this, *training_, dataset, base()->state().num_inputs,
                       options, site);
  });
}

Tensors Model::predict(const Tensors& x, const PredictOptions& options,
                       Site site) {
  check_positive("predict", "batch_size", options.batch_size, site);
  if (x.empty()) {
    throw errors::InvalidArgument(
        fmt::format("predict: there are no inputs{}; expected at least one",
                    where_text(nullptr, site)));
  }
  for (const Tensor& t : x) check_pair("predict", x[0], t, site);
  if (x[0].shape()[0] <= options.batch_size && options.callbacks.empty()) {
    return training_->run_forward(x, site);
  }
  const auto batches = data::Dataset::from_tensor_slices(x, site).batch(
      options.batch_size, {}, site);
  return with_devices_reset(*training_, [&] {
    return run_predict(*this, *training_, batches, x.size(), options, site);
  });
}

Tensors Model::predict(const NamedTensors& x, const PredictOptions& options,
                       Site site) {
  return predict(in_order("predict", x, base()->state().input_names, site),
                 options, site);
}
Tensor Model::predict(const Tensor& x, const PredictOptions& options,
                      Site site) {
  return predict(Tensors{x}, options, site)[0];
}
Tensors Model::predict_on_batch(const NamedTensors& x, Site site) {
  return training_->run_forward(
      in_order("predict_on_batch", x, base()->state().input_names, site), site);
}

}  // namespace berth::keras
