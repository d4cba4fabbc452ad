// Looks at losses, and runs a step again to name the layer.

#include "keras/training/nan_watch.h"

#include <fmt/format.h>

#include <cmath>

#include "base/diagnostics.h"
#include "base/where.h"
#include "berth/errors.h"
#include "device/device.h"
#include "keras/callbacks/nan_finder.h"
#include "tensor/tensor_impl.h"

namespace berth::keras {

namespace {

// True when the loss can be read without a wait or a copy.
bool at_hand(const Tensor& loss) {
  if (!loss.defined() || !loss.impl() || !loss.impl()->block) return false;
  const Block& block = *loss.impl()->block;
  if (!block.device->memory().host_addressable) return false;
  return block.ready.stream == nullptr || block.ready.stream->done(block.ready);
}

bool is_watched_by_callback(const std::vector<Callback>& callbacks) {
  for (const Callback& c : callbacks) {
    if (c.object && c.object->name() == "terminate_on_nan") return true;
  }
  return false;
}

int64_t bytes_of_weights(const Model& model) {
  int64_t bytes = 0;
  for (const Variable& v : model.weights()) {
    bytes +=
        v.shape().num_elements() * static_cast<int64_t>(size_of(v.dtype()));
  }
  return bytes;
}

}  // namespace

NaNWatch::NaNWatch(Model& model, Model::Training& training,
                   const FitOptions& options, Site site)
    : model_(model),
      training_(training),
      policy_(options.on_nan),
      site_(site),
      watching_(policy_ != OnNaN::kIgnore &&
                !is_watched_by_callback(options.callbacks)),
      // Replicas, and tasks, run no step op by op beside the others.
      keeps_weights_(watching_ && training.core == nullptr) {}

void NaNWatch::before_step(int64_t step) {
  if (!keeps_weights_) return;
  if (step >= kFirstSteps && !suspicious_) {
    before_.clear();
    return;
  }
  if (bytes_of_weights(model_) > kMostBytes) {
    keeps_weights_ = false;
    before_.clear();
    return;
  }
  // They share their memory with the weights until the step writes those.
  before_ = model_.get_weights();
}

void NaNWatch::after_step(const Tensor& loss, const Batch& batch,
                          const Where& where) {
  if (!watching_ || !at_hand(loss)) return;
  const double value = loss.item<double>();
  if (std::isfinite(value)) {
    if (first_loss_ < 0) first_loss_ = std::fabs(value);
    suspicious_ = std::fabs(value) > kGrowth * first_loss_ + 1e-6;
    return;
  }
  watching_ = keeps_weights_ = false;
  tell(value,
       fmt::format("after step {} (batch {} of epoch {})", where.step + 1,
                   where.batch + 1, where.epoch + 1),
       origin(batch));
}

void NaNWatch::after_epoch(double loss, const Where& last) {
  if (!watching_ || std::isfinite(loss)) return;
  watching_ = keeps_weights_ = false;
  tell(loss,
       fmt::format("by step {} (batch {}, the last of epoch {})", last.step,
                   last.batch, last.epoch + 1),
       "; callbacks::TerminateOnNaN() looks at each batch and names the op");
}

void NaNWatch::tell(double loss, const std::string& where,
                    const std::string& origin) {
  // A NaN's sign says nothing.
  const std::string what = fmt::format(
      "fit: the loss is {} {}{}{}", std::isnan(loss) ? std::fabs(loss) : loss,
      where, where_text(nullptr, site_), origin);
  before_.clear();
  if (policy_ == OnNaN::kRaise) throw errors::InvalidArgument(what);
  const bool stops = policy_ == OnNaN::kStop;
  report({"nan-loss", debugging::Severity::kWarning,
          what + (stops ? "; training ends"
                        : "; training goes on: .on_nan = OnNaN::kStop ends it"),
          site_});
  if (stops) training_.stop = true;
}

std::string NaNWatch::origin(const Batch& batch) {
  for (const auto& [what, tensors] : {std::pair("input", &batch.inputs),
                                      std::pair("target", &batch.targets)}) {
    for (size_t i = 0; i < tensors->size(); ++i) {
      if (all_finite((*tensors)[i])) continue;
      return fmt::format("; {} {} of the batch is not finite", what, i);
    }
  }
  if (training_.core != nullptr) return "";
  const Tensors after = model_.get_weights();
  const bool known = before_.size() == after.size();
  if (known) model_.set_weights(before_);
  std::string text;
  for (const Variable& v : model_.weights()) {
    if (all_finite(v.value())) continue;
    text = known ? fmt::format(
                       "; variable \"{}\" was not finite before this "
                       "step: the gradients of an earlier one were too "
                       "large; lower the rate, or set clipnorm",
                       v.name())
                 : fmt::format(
                       "; the step made variable \"{}\" not finite, "
                       "too: callbacks::TerminateOnNaN() keeps the "
                       "weights of each step, and names the op",
                       v.name());
    break;
  }
  if (text.empty()) text = by_running_again(batch);
  model_.set_weights(after);
  return text;
}

std::string NaNWatch::by_running_again(const Batch& batch) {
  NaNFinder finder;
  try {
    training_.run_loss_eagerly(batch.inputs, batch.targets);
  } catch (const errors::Error&) {
    // What was found before it failed counts.
  }
  if (finder.found().empty()) {
    return "; run again, op by op, the step stays finite: random numbers "
           "differ, or sums overflow in another order";
  }
  if (finder.layer().empty()) {
    return "; the outputs of all layers are finite, the loss is not: " +
           finder.found();
  }
  return fmt::format(
      "; the first layer whose output is not finite is \"{}\": {}",
      finder.layer(), finder.found());
}

}  // namespace berth::keras
