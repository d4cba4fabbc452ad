// evaluate, and single batches.

#include "keras/training/evaluate.h"

#include <fmt/format.h>

#include "base/output.h"
#include "berth/errors.h"
#include "keras/callbacks/progress_bar.h"
#include "keras/models/layer_state.h"
#include "keras/training/argument_checks.h"
#include "keras/training/bad_labels.h"
#include "op/device_scope.h"

namespace berth::keras {

void run_tests(Model& model, Model::Training& training, const Batches& batches,
               int64_t steps, const CallbackList& callbacks, Site site) {
  training.test_step("evaluate");
  if (steps <= 0) check_finite("evaluate", batches, site);
  const size_t inputs = training.model.base()->state().num_inputs;
  const bool needs_targets = training.own_steps() == nullptr;
  callbacks.call(&CallbackBase::on_test_begin, model);
  training.reset_metrics();
  struct InTests {
    explicit InTests(bool* flag) : flag(flag) { *flag = true; }
    ~InTests() { *flag = false; }
    bool* flag;
  } const in_tests(&training.in_tests);
  int64_t done = 0;
  const BatchReader pass = batches.begin();
  Batch b;
  for (Tensors element; (steps <= 0 || done < steps) && pass.next(element);) {
    cut_batch(element, inputs, needs_targets, site, &b);
    callbacks.call(&CallbackBase::on_test_batch_begin, model, done);
    ++done;
    try {
      training.run_test(b.inputs, b.targets, site);
    } catch (const errors::Error&) {
      raise_bad_label(training, "evaluate", b.targets,
                      fmt::format("batch {}", done), site);
      throw;
    }
    callbacks.call(&CallbackBase::on_test_batch_end, model, done - 1);
  }
  if (done == 0) {
    throw errors::InvalidArgument(fmt::format(
        "evaluate: the dataset is empty{}", where_text(nullptr, site)));
  }
  training.settle(site);
  if (callbacks.empty()) return;
  const NamedValues values = training.results();
  callbacks.call(&CallbackBase::on_test_end, model,
                 Logs(values.begin(), values.end()));
}

Tensors components_of(const char* what, const Model::Training& training,
                      const NamedTensors& x, const NamedTensors& y,
                      const Tensor& sample_weight, Site site) {
  const LayerState& state = training.model.base()->state();
  Tensors all = in_order(what, x, state.input_names, site);
  if (all.size() != state.num_inputs) {
    throw errors::InvalidArgument(fmt::format(
        "{}: {} inputs for model \"{}\"{}; expected {}", what, all.size(),
        state.name, where_text(nullptr, site), state.num_inputs));
  }
  // Losses by name say which outputs have targets.
  std::vector<std::string> names = state.output_names;
  if (training.options && !training.options->losses.names.empty()) {
    const auto losses = training.losses_of(names.size());
    const auto metrics = training.metrics_of(names.size());
    std::vector<std::string> kept;
    for (size_t i = 0; i < names.size(); ++i) {
      if (losses[i].defined() || !metrics[i].empty()) kept.push_back(names[i]);
    }
    names = kept;
  }
  for (Tensor& t : in_order(what, y, names, site)) all.push_back(std::move(t));
  if (sample_weight.defined()) all.push_back(sample_weight);
  // Rows are counted before any step.
  for (size_t i = 1; i < all.size(); ++i) {
    check_pair(what, all[0], all[i], site);
  }
  if (all.size() == 1) check_pair(what, all[0], all[0], site);
  return all;
}

Tensors targets_of(const Model::Training& training, const Tensors& components) {
  const size_t n = training.model.base()->state().num_inputs;
  return {components.begin() + static_cast<std::ptrdiff_t>(n),
          components.end()};
}

void check_no_tensor_options(const FitOptions& options, Site site) {
  const char* option = options.sample_weight.defined() ? "sample_weight"
                       : options.validation_split != 0 ? "validation_split"
                                                       : nullptr;
  if (option == nullptr) return;
  throw errors::InvalidArgument(fmt::format(
      "fit: {} with a dataset{}; expected tensors, or a dataset whose elements "
      "have weights behind the targets, and validation_data",
      option, where_text(nullptr, site)));
}

Logs Model::evaluate(const data::Dataset& dataset,
                     const EvaluateOptions& options, Site site) {
  training_->check_compiled("evaluate");
  check_positive("evaluate", "steps + 1", options.steps + 1, site);
  const auto& core = training_->core;
  const NamedValues values = with_devices_reset(*training_, [&] {
    run_tests(*this, *training_,
              Batches(dataset, base()->state(), "evaluate", site, core),
              options.steps, CallbackList(options.callbacks), site);
    return training_->results();
  });
  if (options.verbose > 0 && (core == nullptr || core->is_chief())) {
    user_output().write(metrics_text(values) + "\n");
  }
  return Logs(values.begin(), values.end());
}

Logs Model::evaluate(const NamedTensors& x, const NamedTensors& y,
                     const EvaluateOptions& options, Site site) {
  training_->test_step("evaluate");
  check_positive("evaluate", "batch_size", options.batch_size, site);
  const Tensors all =
      components_of("evaluate", *training_, x, y, options.sample_weight, site);
  try {
    return evaluate(
        batches_of("evaluate", all, options.batch_size, false, site), options,
        site);
  } catch (const errors::Error&) {
    raise_bad_label(*training_, "evaluate", targets_of(*training_, all), "y",
                    site);
    throw;
  }
}
Logs Model::evaluate(const Tensors& x, const Tensors& y,
                     const EvaluateOptions& options, Site site) {
  return evaluate(NamedTensors(x), NamedTensors(y), options, site);
}
Logs Model::evaluate(const Tensor& x, const Tensor& y,
                     const EvaluateOptions& options, Site site) {
  return evaluate(NamedTensors(x), NamedTensors(y), options, site);
}

Tensor Model::train_on_batch(const Tensors& inputs, const Tensors& targets,
                             Site site) {
  training_->train_step("train_on_batch");
  training_->set_class_weight({}, site);
  return training_->run_train(inputs, targets, site);
}
Tensor Model::train_on_batch(const Tensor& x, const Tensor& y, Site site) {
  return train_on_batch(Tensors{x}, Tensors{y}, site);
}
Tensor Model::train_on_batch(const NamedTensors& x, const NamedTensors& y,
                             const OnBatchOptions& options, Site site) {
  Training& t = *training_;
  t.check_compiled("train_on_batch");
  t.set_class_weight(options.class_weight, site);
  const Tensors all =
      components_of("train_on_batch", t, x, y, options.sample_weight, site);
  Batch b;
  cut_batch(all, base()->state().num_inputs, t.own_steps() == nullptr, site,
            &b);
  return t.run_train(b.inputs, b.targets, site);
}

Tensor Model::test_on_batch(const NamedTensors& x, const NamedTensors& y,
                            const OnBatchOptions& options, Site site) {
  Training& t = *training_;
  t.check_compiled("test_on_batch");
  const Tensors all =
      components_of("test_on_batch", t, x, y, options.sample_weight, site);
  Batch b;
  cut_batch(all, base()->state().num_inputs, t.own_steps() == nullptr, site,
            &b);
  return t.run_test(b.inputs, b.targets, site);
}

}  // namespace berth::keras
