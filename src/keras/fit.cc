// fit, evaluate, predict: loops over batches.

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>

#include "berth/errors.h"
#include "berth/ops/array.h"
#include "keras/layer_state.h"
#include "keras/progress_bar.h"
#include "keras/training.h"
#include "op/device_scope.h"
#include "ops/random_key.h"

namespace berth::keras {

namespace {

// A batch cut into what goes in and what should come out.
struct Batch {
  Tensors inputs, targets;
};

Batch cut(const Tensors& element, size_t num_inputs, Site site) {
  if (element.size() <= num_inputs) {
    throw errors::InvalidArgument(fmt::format(
        "a batch has {} tensors{}; expected {} inputs, then the targets",
        element.size(), where_text(nullptr, site), num_inputs));
  }
  const auto middle = element.begin() + static_cast<std::ptrdiff_t>(num_inputs);
  Batch b{{element.begin(), middle}, {middle, element.end()}};
  for (const Tensor& t : element) {
    if (t.rank() == 0 || t.shape()[0] != element[0].shape()[0]) {
      throw errors::InvalidArgument(fmt::format(
          "a batch has tensors {} and {}{}; expected one first dimension",
          element[0].shape().str(), t.shape().str(),
          where_text(nullptr, site)));
    }
  }
  return b;
}

void check_pair(const char* what, const Tensor& x, const Tensor& y, Site site) {
  const bool fits = x.defined() && y.defined() && x.rank() > 0 &&
                    y.rank() > 0 && x.shape()[0] == y.shape()[0];
  if (fits) return;
  auto text = [](const Tensor& t) {
    return t.defined() ? t.shape().str() : std::string("an empty tensor");
  };
  throw errors::InvalidArgument(
      fmt::format("{}: x is {}, y is {}{}; expected as many samples in both",
                  what, text(x), text(y), where_text(nullptr, site)));
}

void check_positive(const char* what, const char* option, int64_t value,
                    Site site) {
  if (value >= 1) return;
  throw errors::InvalidArgument(
      fmt::format("{}: {} is {}{}; expected at least 1", what, option, value,
                  where_text(nullptr, site)));
}

data::Dataset batches_of(const Tensor& x, const Tensor& y, int64_t batch_size,
                         bool shuffle, Site site) {
  auto d = data::Dataset::from_tensor_slices({x, y}, site);
  if (shuffle && x.shape()[0] > 1) {
    const RandomKey key = next_random_key(std::nullopt);
    const uint64_t seed = static_cast<uint64_t>(key.seed) * 0x9E3779B97F4A7C15 +
                          static_cast<uint64_t>(key.op_id);
    d = d.shuffle(x.shape()[0], {.seed = seed}, site);
  }
  return d.batch(batch_size, {}, site).prefetch(2, site);
}

void check_finite(const char* what, const data::Dataset& d, Site site) {
  if (d.cardinality() != data::kInfinite) return;
  throw errors::InvalidArgument(
      fmt::format("{}: the dataset never ends{}; expected dataset.take(n) or a "
                  "finite repeat",
                  what, where_text(nullptr, site)));
}

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
void run_tests(Model::Training& training, const data::Dataset& dataset,
               Site site) {
  auto& step = training.test_step("evaluate");
  check_finite("evaluate", dataset, site);
  const size_t inputs = training.model.base()->state().num_inputs;
  training.reset_metrics();
  int64_t done = 0;
  data::Iterator batches = dataset.make_iterator();
  for (Tensors element; batches.next(element);) {
    const Batch b = cut(element, inputs, site);
    step(b.inputs, b.targets, site);
    ++done;
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

std::optional<data::Dataset> validation_of(const FitOptions& o, Site site) {
  const ValidationData& v = o.validation_data;
  if (v.dataset) return v.dataset;
  if (!v.tensors) return std::nullopt;
  check_pair("fit, validation_data", v.tensors->first, v.tensors->second, site);
  return batches_of(v.tensors->first, v.tensors->second, o.batch_size, false,
                    site);
}

}  // namespace

History Model::fit(const data::Dataset& dataset, const FitOptions& options,
                   Site site) {
  Training& t = *training_;
  auto& step = t.train_step("fit");
  check_positive("fit", "epochs", options.epochs, site);
  check_finite("fit", dataset, site);
  const std::optional<data::Dataset> validation = validation_of(options, site);
  const size_t num_inputs = base()->state().num_inputs;
  ProgressBar bar(options.verbose, options.epochs);
  History history;
  int64_t steps = dataset.cardinality();
  t.stop = false;
  call_hooks(options.callbacks, &Callback::on_train_begin, *this);
  for (int epoch = 0; epoch < options.epochs && !t.stop; ++epoch) {
    const auto start = std::chrono::steady_clock::now();
    call_hooks(options.callbacks, &Callback::on_epoch_begin, *this, epoch);
    t.reset_metrics();
    bar.begin_epoch(epoch, steps);
    int64_t done = 0;
    data::Iterator batches = dataset.make_iterator();
    for (Tensors element; batches.next(element);) {
      const Batch b = cut(element, num_inputs, site);
      step(b.inputs, b.targets, site);
      bar.step(++done, [&] { return t.results(); });
      call_hooks(options.callbacks, &Callback::on_train_batch_end, *this,
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
    call_hooks(options.callbacks, &Callback::on_epoch_end, *this, epoch,
               Logs(values.begin(), values.end()));
  }
  report_placement(placement(), options.verbose, &history);
  call_hooks(options.callbacks, &Callback::on_train_end, *this);
  return history;
}

History Model::fit(const Tensor& x, const Tensor& y, const FitOptions& options,
                   Site site) {
  training_->train_step("fit");
  check_pair("fit", x, y, site);
  check_positive("fit", "batch_size", options.batch_size, site);
  return fit(batches_of(x, y, options.batch_size, options.shuffle, site),
             options, site);
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
  return evaluate(batches_of(x, y, options.batch_size, false, site), options,
                  site);
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
