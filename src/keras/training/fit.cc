// fit: the loop over batches.

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <optional>

#include "base/diagnostics.h"
#include "base/live_counts.h"
#include "base/output.h"
#include "base/timeline.h"
#include "base/where.h"
#include "berth/errors.h"
#include "berth/ops/array.h"
#include "distribute/multi_worker/gradient_exchange.h"
#include "distribute/strategy/distributed_dataset.h"
#include "distribute/strategy/ignored_launcher.h"
#include "keras/callbacks/callback_list.h"
#include "keras/callbacks/chief_only.h"
#include "keras/callbacks/progress_bar.h"
#include "keras/models/layer_state.h"
#include "keras/training/argument_checks.h"
#include "keras/training/bad_labels.h"
#include "keras/training/batches.h"
#include "keras/training/elastic_keeper.h"
#include "keras/training/evaluate.h"
#include "keras/training/input_watch.h"
#include "keras/training/nan_watch.h"
#include "keras/training/step_watch.h"
#include "keras/training/task_watch.h"
#include "keras/training/training.h"
#include "op/device_scope.h"

namespace berth::keras {

namespace {

double seconds_since(std::chrono::steady_clock::time_point t) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - t)
      .count();
}

// Says where the step ran when that is worth a look: several devices took part,
// or an op could not run where it was asked to. A table where `lines` are
// printed; on a terminal, below the bar, what was not as asked for.
void report_placement(const placement::Report& report, int verbose, bool lines,
                      History* history) {
  history->fallback_ops = static_cast<int64_t>(report.fallbacks.size());
  history->fallback_bytes = report.fallback_bytes();
  const auto used = std::count_if(report.devices.begin(), report.devices.end(),
                                  [](const auto& d) { return d.ops > 0; });
  if (verbose == 0 || (used < 2 && report.fallbacks.empty())) return;
  const std::string line = report.summary();
  user_output().write(lines ? report.brief() : line.empty() ? "" : line + "\n");
}

// Says what automatic shares gained.
void report_shares(const Model::Training& training, int verbose,
                   History* history) {
  if (training.rewrite()) history->shares = training.rewrite()->moved();
  if (verbose == 0 || history->shares.empty()) return;
  user_output().write(history->shares + "\n");
}

// What is validated on: batches, how many, how often.
struct Validation {
  std::optional<Batches> batches;
  int64_t steps;
  int freq;
};

class FitRun final : public FitLoop {
 public:
  FitRun(Model& model, Model::Training& t, const Batches& batches,
         Validation validation, const FitOptions& options, Site site)
      : model_(model),
        t_(t),
        batches_(batches),
        validation_(std::move(validation)),
        o_(options),
        site_(site),
        list_(options.callbacks),
        bar_(options.verbose, options.epochs),
        link_(t.core ? t.core->link().get() : nullptr),
        of_strategy_(t.core.get()),
        watch_(model, t),
        input_watch_(model, t, batches, site),
        nan_watch_(model, t, options, site),
        task_watch_(t.core),
        keeper_(model, t, *this, site),
        num_inputs_(model.base()->state().num_inputs),
        needs_targets_(t.own_steps() == nullptr),
        epoch_(options.initial_epoch),
        steps_(options.steps_per_epoch > 0 ? options.steps_per_epoch
                                           : batches.cardinality) {
    t_.loop = this;
  }
  ~FitRun() override { t_.loop = nullptr; }

  History run();

  int epoch() const override { return epoch_; }
  int epochs() const override { return o_.epochs; }
  int64_t batch() const override { return done_; }
  int64_t steps() const override { return steps_ >= 0 ? steps_ : -1; }
  int64_t total_steps() const override { return total_; }
  bool counts_steps() const override { return o_.steps_per_epoch > 0; }
  std::string data_part() const override {
    if (link_ == nullptr || !batches_.own_data) return "";
    return fmt::format("{} of {}", link_->rank(), link_->ranks());
  }
  FitPosition position() const override {
    return epoch_ended_ ? FitPosition{epoch_ + 1, 0}
                        : FitPosition{epoch_, done_};
  }
  bool has_validation() const override {
    return validation_.batches.has_value();
  }
  bool stopping() const override { return t_.stop; }
  void repeat_eagerly() override {
    t_.run_train_eagerly(batch_.inputs, batch_.targets);
  }
  const History& history() const override { return history_; }
  const std::vector<Callback>& callbacks() const override {
    return o_.callbacks;
  }
  const Tensors& element() const override { return element_; }
  data::Iterator* iterator() override { return pass_.iterator.get(); }
  void start_at(FitPosition position, History so_far, Restore restore) override;

 private:
  bool next();
  void begin_pass();
  void step();
  void run_epoch();
  void end_epoch(double seconds);
  NamedValues validate();

  Model& model_;
  Model::Training& t_;
  const Batches& batches_;
  const Validation validation_;
  const FitOptions& o_;
  const Site site_;
  const CallbackList list_;
  ProgressBar bar_;
  distribute::CollectiveExecutor* const link_;  // null: there is one task
  const FitOfStrategy of_strategy_;
  StepWatch watch_;
  InputWatch input_watch_;
  NaNWatch nan_watch_;
  TaskWatch task_watch_;
  ElasticKeeper keeper_;
  const size_t num_inputs_;
  const bool needs_targets_;

  History history_;
  int epoch_;
  int64_t steps_;
  int64_t done_ = 0, total_ = 0;
  bool began_ = false;  // on_train_begin is over
  bool moved_ = false;  // start_at() was called
  bool epoch_ended_ = false;
  // What start_at() asked for, until the first pass has begun.
  int64_t first_batch_ = 0;
  int skipped_passes_ = 0;
  Restore restore_;

  BatchReader pass_;
  Tensors element_;
  Batch batch_;
};

void FitRun::start_at(FitPosition position, History so_far, Restore restore) {
  if (began_ || position.epoch < 0 || position.batch < 0) {
    throw errors::FailedPrecondition(fmt::format(
        "fit: start_at(epoch {}, batch {}) {}{}; expected a call in "
        "on_train_begin, with numbers from 0",
        position.epoch, position.batch, began_ ? "after on_train_begin" : "",
        where_text(nullptr, site_)));
  }
  moved_ = true;
  epoch_ = position.epoch;
  first_batch_ = position.batch;
  skipped_passes_ = restore ? 0 : position.epoch;
  restore_ = std::move(restore);
  history_ = std::move(so_far);
}

void FitRun::begin_pass() {
  for (; skipped_passes_ > 0; --skipped_passes_) batches_.begin();
  pass_ = {};
  pass_ = batches_.begin();
  if (!restore_) {
    for (int64_t i = 0; i < first_batch_; ++i) pass_.next(element_);
  } else if (pass_.iterator) {
    restore_(*pass_.iterator);
    // That of the epoch before: its dataset knows the order of this one.
    if (o_.steps_per_epoch == 0 && pass_.iterator->status().ended) {
      pass_ = batches_.begin();
    }
  }
  restore_ = nullptr;
  first_batch_ = 0;
}

// The next element. Where steps are counted, an epoch that finds the data at
// their end begins another pass; one that runs out of them is over.
bool FitRun::next() {
  const NextBatch timed = [this](Tensors& element) {
    const NextBatch next = [this](Tensors& e) {
      return input_watch_.wait(pass_.next, e);
    };
    return watch_.wait(next, element);
  };
  if (o_.steps_per_epoch == 0) return task_watch_.wait(timed, element_);
  if (done_ >= o_.steps_per_epoch) return false;
  if (task_watch_.wait(timed, element_)) return true;
  begin_pass();
  if (done_ == 0) return task_watch_.wait(timed, element_);
  const std::string where = where_text(nullptr, site_);
  report_once(where,
              {"fit-runs-out", debugging::Severity::kWarning,
               fmt::format("fit{}: the data ended after {} of the {} steps of "
                           "epoch {}, which ends here; give it data for "
                           "steps_per_epoch * epochs batches, as repeat() of a "
                           "dataset does, or fewer steps",
                           where, done_, o_.steps_per_epoch, epoch_ + 1),
               site_});
  return false;
}

void FitRun::step() {
  std::optional<timeline::MaybeSpan> span(std::in_place, "host",
                                          "prepare the batch", "host");
  cut_batch(element_, num_inputs_, needs_targets_, site_, &batch_);
  const int64_t examples = element_[0].shape()[0];
  if (link_ != nullptr) link_->set_step(total_);
  list_.call(&CallbackBase::on_train_batch_begin, model_, done_);
  nan_watch_.before_step(total_);
  Tensor loss;
  task_watch_.before_step();
  span.reset();
  try {
    loss = t_.run_train(batch_.inputs, batch_.targets, site_);
  } catch (const errors::Error&) {
    raise_bad_label(t_, "fit", batch_.targets,
                    fmt::format("batch {} of epoch {}", done_ + 1, epoch_ + 1),
                    site_);
    throw;
  }
  span.emplace("host", "callbacks and metrics", "host");
  watch_.after_step(examples);
  task_watch_.after_step(examples);
  if (live_counts::is_on()) live_counts::add_step(examples);
  ++done_;
  ++total_;
  bar_.step(done_, [this] { return t_.results(); });
  nan_watch_.after_step(loss, batch_, {total_ - 1, done_ - 1, epoch_});
  list_.call(&CallbackBase::on_train_batch_end, model_, done_ - 1);
  keeper_.after_step(done_ - 1, examples);
}

void FitRun::run_epoch() {
  const auto start = std::chrono::steady_clock::now();
  epoch_ended_ = false;
  done_ = first_batch_;
  list_.call(&CallbackBase::on_epoch_begin, model_, epoch_);
  {
    const timeline::MaybeSpan span("host", "begin the epoch", "host");
    // What a checkpoint restored goes on.
    if (done_ == 0) t_.reset_metrics();
    bar_.begin_epoch(epoch_, steps_);
    if (o_.steps_per_epoch == 0 || !pass_.next) begin_pass();
  }
  while (!t_.stop && next()) step();
  t_.settle(site_);
  if (done_ == 0 && !t_.stop) {
    throw errors::InvalidArgument(
        fmt::format("fit: the dataset is empty{}", where_text(nullptr, site_)));
  }
  if (!t_.stop && o_.steps_per_epoch == 0) steps_ = done_;
  end_epoch(seconds_since(start));
}

NamedValues FitRun::validate() {
  NamedValues values;
  if (!validation_.batches || (epoch_ + 1) % validation_.freq != 0) {
    return values;
  }
  run_tests(model_, t_, *validation_.batches, validation_.steps, list_, site_);
  for (auto& [name, value] : t_.results()) {
    values.emplace_back("val_" + name, value);
  }
  return values;
}

void FitRun::end_epoch(double seconds) {
  const auto start = std::chrono::steady_clock::now();
  std::optional<timeline::MaybeSpan> span(std::in_place, "host",
                                          "read the metrics", "host");
  NamedValues values = t_.results();
  span.reset();
  if (!values.empty()) {
    nan_watch_.after_epoch(values[0].second, {total_, done_, epoch_});
  }
  for (auto& v : validate()) values.push_back(std::move(v));
  bar_.end_epoch(done_, values);
  Logs logs(values.begin(), values.end());
  history_.epoch.push_back(epoch_);
  history_.seconds.push_back(seconds + seconds_since(start));
  history_.input_seconds.push_back(
      input_watch_.after_epoch(epoch_, done_, seconds));
  for (const auto& [name, value] : logs) {
    history_.history[name].push_back(value);
  }
  epoch_ended_ = !t_.stop || steps_ < 0 || done_ >= steps_;
  const Logs before = logs;
  list_.call(&CallbackBase::on_epoch_end, model_, epoch_, logs);
  for (const auto& [name, value] : logs) {
    const auto had = before.find(name);
    if (had == before.end()) {
      history_.history[name].push_back(value);
    } else if (had->second != value) {
      history_.history[name].back() = value;
    }
  }
  keeper_.after_epoch();
}

History FitRun::run() {
  t_.stop = false;
  if (auto before = keeper_.begin()) return std::move(*before);
  list_.call(&CallbackBase::on_train_begin, model_);
  keeper_.apply(moved_);
  began_ = true;
  for (; epoch_ < o_.epochs && !t_.stop; ++epoch_) run_epoch();
  history_.split = watch_.split();
  if (history_.split && bar_.lines()) {
    user_output().write(history_.split->str());
  }
  report_shares(t_, o_.verbose, &history_);
  if (total_ > 0 && !t_.op_by_op() && !t_.servers()) {
    report_placement(model_.placement(), o_.verbose, bar_.lines(), &history_);
  }
  if (total_ > 0) {
    t_.options->optimizer.finalize_variable_values(
        t_.model.trainable_variables(), site_);
  }
  history_.tasks = task_watch_.report();
  if (auto seen = keeper_.seen(); !seen.empty()) {
    if (!history_.tasks) history_.tasks.emplace();  // all steps were before
    history_.tasks->epochs = std::move(seen);
  }
  if (history_.tasks && o_.verbose != 0) {
    user_output().write(history_.tasks->str());
  }
  list_.call(&CallbackBase::on_train_end, model_);
  keeper_.end(history_);
  return std::move(history_);
}

void check_options(const FitOptions& o, Site site) {
  check_positive("fit", "epochs", o.epochs, site);
  check_positive("fit", "batch_size", o.batch_size, site);
  check_positive("fit", "validation_freq", o.validation_freq, site);
  check_positive("fit", "initial_epoch + 1", int64_t{o.initial_epoch} + 1,
                 site);
  check_positive("fit", "steps_per_epoch + 1", o.steps_per_epoch + 1, site);
  check_positive("fit", "validation_steps + 1", o.validation_steps + 1, site);
}

std::optional<Batches> validation_batches(const Model::Training& t,
                                          const FitOptions& o, Site site) {
  const ValidationData& v = o.validation_data;
  const LayerState& model = t.model.base()->state();
  constexpr const char* kWhat = "fit, validation_data";
  if (v.dataset) return Batches(*v.dataset, model, kWhat, site, t.core);
  if (!v.tensors) return std::nullopt;
  const int64_t size =
      o.validation_batch_size > 0 ? o.validation_batch_size : o.batch_size;
  return Batches(
      batches_of(kWhat,
                 components_of(kWhat, t, v.tensors->first, v.tensors->second,
                               v.sample_weight, site),
                 size, false, site),
      model, kWhat, site);
}

History run_fit(Model& model, Model::Training& t, const Batches& batches,
                const FitOptions& options, Site site) {
  t.train_step("fit");
  if (!t.core) distribute::note_ignored_launcher("fit", site);
  distribute::note_late_launcher("fit", site);
  check_options(options, site);
  if (options.steps_per_epoch == 0) check_finite("fit", batches, site);
  Validation validation{validation_batches(t, options, site),
                        options.validation_steps, options.validation_freq};
  if (validation.batches && validation.steps == 0) {
    check_finite("fit, validation_data", *validation.batches, site);
  }
  t.set_class_weight(options.class_weight, site);
  FitOptions here = options;
  if (t.core && !t.core->is_chief()) here.verbose = 0;
  const auto run = [&] {
    return with_devices_reset(t, [&] {
      return FitRun(model, t, batches, std::move(validation), here, site).run();
    });
  };
  if (!t.core || !t.core->link()) return run();
  // What a callback or a dataset of one task throws ends training in all.
  try {
    return run();
  } catch (const errors::Error& e) {
    t.core->failed(e);
    throw;
  } catch (const std::exception& e) {
    t.core->failed(errors::Unknown(e.what()));
    throw;
  }
}

// The last rows become what is validated on.
void split_off(Tensors* components, double share, FitOptions* o,
               size_t num_inputs, size_t num_targets, Site site) {
  if (!(share > 0 && share < 1)) {
    throw errors::InvalidArgument(
        fmt::format("fit: validation_split is {}{}; expected a share from 0 to "
                    "1, without them",
                    share, where_text(nullptr, site)));
  }
  const int64_t n = (*components)[0].shape()[0];
  const auto kept =
      static_cast<int64_t>(std::floor(static_cast<double>(n) * (1 - share)));
  if (kept == 0 || kept == n) {
    throw errors::InvalidArgument(fmt::format(
        "fit: validation_split {} of {} samples leaves {} to train on and {} "
        "to validate on{}; expected some of each",
        share, n, kept, n - kept, where_text(nullptr, site)));
  }
  Tensors x, y;
  Tensor weight;
  for (size_t i = 0; i < components->size(); ++i) {
    Tensor& t = (*components)[i];
    const Tensor last = t[{slice(kept, n)}];
    t = t[{slice(0, kept)}];
    if (i < num_inputs) {
      x.push_back(last);
    } else if (i < num_inputs + num_targets) {
      y.push_back(last);
    } else {
      weight = last;
    }
  }
  o->validation_data = ValidationData(NamedTensors(x), NamedTensors(y), weight);
}

}  // namespace

History Model::fit(const data::Dataset& dataset, const FitOptions& options,
                   Site site) {
  check_no_tensor_options(options, site);
  return run_fit(
      *this, *training_,
      Batches(dataset, base()->state(), "fit", site, training_->core), options,
      site);
}

History Model::fit(const distribute::DistributedDataset& dataset,
                   const FitOptions& options, Site site) {
  check_no_tensor_options(options, site);
  return run_fit(*this, *training_, Batches(dataset, training_->core), options,
                 site);
}

History Model::fit(const utils::experimental::DatasetCreator& creator,
                   const FitOptions& options, Site site) {
  const auto& core = training_->core;
  if (!creator.dataset_fn) {
    throw errors::InvalidArgument(
        fmt::format("fit: the DatasetCreator has no function{}; expected one "
                    "that makes a dataset",
                    where_text(nullptr, site)));
  }
  if (!core || training_->servers()) {
    return fit(creator.dataset_fn({}), options, site);
  }
  return fit(distribute::dataset_from_function(core, creator.dataset_fn, site),
             options, site);
}

History Model::fit(const NamedTensors& x, const NamedTensors& y,
                   const FitOptions& given, Site site) {
  Training& t = *training_;
  t.train_step("fit");
  FitOptions options = given;
  check_options(options, site);
  Tensors all = components_of("fit", t, x, y, options.sample_weight, site);
  const Tensors targets = all;
  const size_t num_targets = y.items().size();
  if (options.validation_split != 0) {
    for (const Tensor& c : all) check_pair("fit", all[0], c, site);
    split_off(&all, options.validation_split, &options,
              base()->state().num_inputs, num_targets, site);
  }
  try {
    return run_fit(*this, t,
                   Batches(batches_of("fit", all, options.batch_size,
                                      options.shuffle, site),
                           base()->state(), "fit", site),
                   options, site);
  } catch (const errors::Error&) {
    raise_bad_label(t, "fit", targets_of(t, targets), "y", site);
    throw;
  }
}

History Model::fit(const Tensors& x, const Tensors& y,
                   const FitOptions& options, Site site) {
  return fit(NamedTensors(x), NamedTensors(y), options, site);
}
History Model::fit(const Tensor& x, const Tensor& y, const FitOptions& options,
                   Site site) {
  return fit(NamedTensors(x), NamedTensors(y), options, site);
}

}  // namespace berth::keras
