// fit, evaluate, predict: loops over batches.

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>

#include "berth/errors.h"
#include "berth/ops/array.h"
#include "keras/bad_labels.h"
#include "keras/batches.h"
#include "keras/layer_state.h"
#include "keras/progress_bar.h"
#include "keras/step_watch.h"
#include "keras/training.h"
#include "op/device_scope.h"

namespace berth::keras {

namespace {

double seconds_since(std::chrono::steady_clock::time_point t) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - t)
      .count();
}

template <class Hook, class... Args>
void call_hooks(const std::vector<Callback>& callbacks, Hook hook,
                Args&&... args) {
  for (const Callback& c : callbacks) {
    if (c.*hook) (c.*hook)(args...);
  }
}

// Runs test steps; returns their number.
void run_tests(Model::Training& training, const Batches& batches, Site site) {
  auto& step = training.test_step("evaluate");
  check_finite("evaluate", batches, site);
  const size_t inputs = training.model.base()->state().num_inputs;
  training.reset_metrics();
  int64_t done = 0;
  const NextBatch next = batches.begin();
  for (Tensors element; next(element);) {
    const Batch b = cut_batch(element, inputs, site);
    ++done;
    try {
      step(b.inputs, b.targets, site);
    } catch (const errors::Error&) {
      raise_bad_label(training, "evaluate", b.targets,
                      fmt::format("batch {}", done), site);
      throw;
    }
  }
  if (done == 0) {
    throw errors::InvalidArgument(fmt::format(
        "evaluate: the dataset is empty{}", where_text(nullptr, site)));
  }
}

// Prints where the step ran when that is worth a look: several devices took
// part, or an op could not run where it was asked to.
void report_placement(const placement::Report& report, int verbose,
                      History* history) {
  history->fallback_ops = static_cast<int64_t>(report.fallbacks.size());
  history->fallback_bytes = report.fallback_bytes();
  const auto used = std::count_if(report.devices.begin(), report.devices.end(),
                                  [](const auto& d) { return d.ops > 0; });
  if (verbose == 0 || (used < 2 && report.fallbacks.empty())) return;
  std::printf("%s", report.brief().c_str());
  std::fflush(stdout);
}

// Says what automatic shares gained.
void report_shares(const Model::Training& training, int verbose,
                   History* history) {
  if (training.rewrite()) history->shares = training.rewrite()->moved();
  if (verbose == 0 || history->shares.empty()) return;
  std::printf("%s\n", history->shares.c_str());
  std::fflush(stdout);
}

std::optional<data::Dataset> validation_of(const FitOptions& o, Site site) {
  const ValidationData& v = o.validation_data;
  if (v.dataset) return v.dataset;
  if (!v.tensors) return std::nullopt;
  check_pair("fit, validation_data", v.tensors->first, v.tensors->second, site);
  return batches_of(v.tensors->first, v.tensors->second, o.batch_size, false,
                    site);
}

}  // namespace

namespace {

// fit, on the training of `model`.
History run_fit(Model& model, Model::Training& t, const Batches& batches,
                const FitOptions& options, Site site) {
  auto& step = t.train_step("fit");
  check_positive("fit", "epochs", options.epochs, site);
  check_finite("fit", batches, site);
  const std::optional<data::Dataset> validation = validation_of(options, site);
  const size_t num_inputs = model.base()->state().num_inputs;
  ProgressBar bar(options.verbose, options.epochs);
  StepWatch watch(model, t);
  History history;
  int64_t steps = batches.cardinality;
  t.stop = false;
  call_hooks(options.callbacks, &Callback::on_train_begin, model);
  for (int epoch = 0; epoch < options.epochs && !t.stop; ++epoch) {
    const auto start = std::chrono::steady_clock::now();
    call_hooks(options.callbacks, &Callback::on_epoch_begin, model, epoch);
    t.reset_metrics();
    bar.begin_epoch(epoch, steps);
    int64_t done = 0;
    const NextBatch next = batches.begin();
    for (Tensors element; watch.wait(next, element);) {
      const Batch b = cut_batch(element, num_inputs, site);
      const int64_t examples = element[0].shape()[0];
      if (done == 0) check_batch("fit", examples, t.num_replicas(), site);
      try {
        step(b.inputs, b.targets, site);
      } catch (const errors::Error&) {
        raise_bad_label(
            t, "fit", b.targets,
            fmt::format("batch {} of epoch {}", done + 1, epoch + 1), site);
        throw;
      }
      if (watch.after_step(examples)) bar.note(watch.split()->str());
      bar.step(++done, [&] { return t.results(); });
      call_hooks(options.callbacks, &Callback::on_train_batch_end, model,
                 done - 1);
      if (t.stop) break;
    }
    if (done == 0) {
      throw errors::InvalidArgument(fmt::format("fit: the dataset is empty{}",
                                                where_text(nullptr, site)));
    }
    steps = t.stop ? steps : done;
    NamedValues values = t.results();
    if (validation) {
      run_tests(t, *validation, site);
      for (auto& [name, value] : t.results()) {
        values.emplace_back("val_" + name, value);
      }
    }
    bar.end_epoch(done, values);
    history.epoch.push_back(epoch);
    history.seconds.push_back(seconds_since(start));
    for (const auto& [name, value] : values) {
      history.history[name].push_back(value);
    }
    call_hooks(options.callbacks, &Callback::on_epoch_end, model, epoch,
               Logs(values.begin(), values.end()));
  }
  history.split = watch.split();
  report_shares(t, options.verbose, &history);
  report_placement(model.placement(), options.verbose, &history);
  call_hooks(options.callbacks, &Callback::on_train_end, model);
  return history;
}

}  // namespace

History Model::fit(const data::Dataset& dataset, const FitOptions& options,
                   Site site) {
  return run_fit(*this, *training_, dataset, options, site);
}

History Model::fit(const distribute::DistributedDataset& dataset,
                   const FitOptions& options, Site site) {
  return run_fit(*this, *training_, Batches(dataset), options, site);
}

History Model::fit(const Tensor& x, const Tensor& y, const FitOptions& options,
                   Site site) {
  training_->train_step("fit");
  check_pair("fit", x, y, site);
  check_positive("fit", "batch_size", options.batch_size, site);
  check_batch("fit", options.batch_size, training_->num_replicas(), site);
  try {
    return fit(batches_of(x, y, options.batch_size, options.shuffle, site),
               options, site);
  } catch (const errors::Error&) {
    raise_bad_label(*training_, "fit", {y}, "y", site);
    throw;
  }
}

Logs Model::evaluate(const data::Dataset& dataset,
                     const EvaluateOptions& options, Site site) {
  run_tests(*training_, dataset, site);
  const NamedValues values = training_->results();
  if (options.verbose > 0) std::printf("%s\n", metrics_text(values).c_str());
  return Logs(values.begin(), values.end());
}

Logs Model::evaluate(const Tensor& x, const Tensor& y,
                     const EvaluateOptions& options, Site site) {
  training_->test_step("evaluate");
  check_pair("evaluate", x, y, site);
  check_positive("evaluate", "batch_size", options.batch_size, site);
  try {
    return evaluate(batches_of(x, y, options.batch_size, false, site), options,
                    site);
  } catch (const errors::Error&) {
    raise_bad_label(*training_, "evaluate", {y}, "y", site);
    throw;
  }
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
  auto& forward = training_->forward();
  if (x[0].shape()[0] <= options.batch_size) return forward(x, site);
  std::vector<Tensors> parts;  // by output
  auto batches = data::Dataset::from_tensor_slices(x, site).batch(
      options.batch_size, {}, site);
  for (const Tensors& element : batches) {
    const Tensors y = forward(element, site);
    parts.resize(y.size());
    for (size_t i = 0; i < y.size(); ++i) parts[i].push_back(y[i]);
  }
  Tensors outputs;
  for (const Tensors& p : parts) outputs.push_back(concat(p, 0, site));
  return outputs;
}

Tensor Model::predict(const Tensor& x, const PredictOptions& options,
                      Site site) {
  return predict(Tensors{x}, options, site)[0];
}

}  // namespace berth::keras
