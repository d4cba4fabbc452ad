#include <fmt/format.h>

#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <utility>

#include "base/vertex_folder.h"
#include "base/where.h"
#include "berth/errors.h"
#include "berth/keras/checkpoint_callbacks.h"
#include "berth/keras/models.h"
#include "berth/train.h"
#include "distribute/preemption_watch.h"
#include "distribute/task_agreement.h"
#include "keras/fit_state.h"
#include "keras/tasks.h"

namespace berth::keras::callbacks {

namespace {

class BackupBase final : public CallbackBase {
 public:
  BackupBase(const std::string& folder, BackupAndRestoreOptions options,
             Site site)
      : CallbackBase("backup_and_restore"),
        folder_(or_vertex_folder(folder, "AIP_CHECKPOINT_DIR")),
        o_(std::move(options)),
        site_(site),
        call_("BackupAndRestore" + where_text(nullptr, site)) {
    if (!folder_.empty()) return;
    throw errors::InvalidArgument(
        fmt::format("{}: backup_dir is \"\" and AIP_CHECKPOINT_DIR is not set; "
                    "expected a folder",
                    call_));
  }

  void on_train_begin(Model& model) override {
    fit_ = std::make_shared<FitState>();
    core_ = tasks_of(model);
    if (o_.save_before_preemption) {
      watch_ = std::make_unique<distribute::PreemptionWatch>(
          call_, core_, o_.termination_config);
    }
    // A task may end between the saves of two others: what all have is kept.
    const bool keeps_two = o_.double_checkpoint || core_ != nullptr;
    manager_.emplace(
        train::Checkpoint(
            {{"model", model},
             {"fit", std::static_pointer_cast<train::Tracked>(fit_)},
             {"random", train::random_state()}},
            site_),
        own_folder(),
        train::CheckpointManagerOptions{
            .max_to_keep = keeps_two ? 2 : 1,
            .checkpoint_name = "backup",
            .checkpoint_options = {.enable_async = o_.enable_async}},
        site_);
    since_ = 0;
    epoch_done_ = false;
    if (restored()) fit_->apply(loop_of(model), call_);
  }

  // What other callbacks did at the end of the epoch belongs to it, so that it
  // is saved when all of them have run.
  void on_epoch_end(Model&, int, Logs&) override { epoch_done_ = true; }
  void on_epoch_begin(Model& model, int) override {
    if (epoch_done_ && o_.save_freq.batches == 0) save(model);
    epoch_done_ = false;
  }
  void on_train_batch_end(Model& model, int64_t) override {
    if (o_.save_freq.batches > 0 && ++since_ >= o_.save_freq.batches) {
      since_ = 0;
      save(model);
    }
    if (!watch_ || !watch_->must_save()) return;
    save(model);
    manager_->sync();
    watch_->end(manager_->latest_checkpoint().value_or(folder_));
  }
  void on_train_end(Model& model) override {
    watch_.reset();
    if (o_.delete_checkpoint) {
      manager_->sync();
      if (core_) core_->on_chief(call_, [] {});  // nobody needs them any more
      manager_->clear();
    } else {
      save(model);
      manager_->sync();
    }
    manager_.reset();
    core_.reset();
  }

  CallbackState get_state() const override {
    return {{{"since", static_cast<double>(since_)}}, {}, {}};
  }
  void set_state(const CallbackState& s) override {
    since_ = static_cast<int64_t>(s.numbers.at("since"));
  }

 private:
  FitLoop& loop_of(Model& model) const {
    if (FitLoop* loop = model.fit_loop()) return *loop;
    throw errors::FailedPrecondition(
        fmt::format("{}: used outside of fit; expected it among the callbacks "
                    "of model.fit",
                    call_));
  }
  void save(Model& model) {
    fit_->read(loop_of(model));
    manager_->save(core_ ? std::optional(++saves_) : std::nullopt, false,
                   site_);
  }

  // Each task has its own pass over the data, so its own backups.
  std::string own_folder() const {
    if (!core_ || core_->is_chief()) return folder_;
    return fmt::format("{}/task_{}", folder_, core_->place());
  }

  // The latest backup, in all tasks.
  bool restored() {
    if (!core_) return manager_->restore_or_initialize(site_).has_value();
    std::string mine;
    for (const std::string& path : manager_->checkpoints()) {
      mine += path.substr(path.rfind('-') + 1) + " ";
    }
    std::map<int64_t, size_t> have;
    const auto all = distribute::gather_texts(*core_->link(), mine, call_);
    for (const std::string& list : all) {
      std::istringstream in(list);
      for (int64_t n = 0; in >> n;) ++have[n];
    }
    saves_ = 0;
    for (const auto& [number, tasks] : have) {
      if (tasks == all.size()) saves_ = number;
    }
    if (saves_ == 0) return restored_from_chief();
    for (const std::string& path : manager_->checkpoints()) {
      if (!path.ends_with("-" + std::to_string(saves_))) continue;
      manager_->checkpoint().restore(path, site_).assert_consumed();
    }
    return true;
  }

  // A task came back whose backups are older than all of the chief's, or gone:
  // all go on from the chief's last. Its weights are sent before the next step.
  bool restored_from_chief() {
    const auto latest = core_->is_chief()
                            ? manager_->restore_or_initialize(site_)
                            : std::optional<std::string>();
    std::string mine;
    if (latest) {
      fit_->share();
      mine = latest->substr(latest->rfind('-') + 1) + " " + fit_->state().text;
    }
    const std::string chiefs =
        distribute::gather_texts(*core_->link(), mine, call_)[0];
    if (chiefs.empty()) return false;
    saves_ = std::stoll(chiefs);
    fit_->set_state({.text = chiefs.substr(chiefs.find(' ') + 1)});
    core_->share_random_state();
    core_->share_variables();
    return true;
  }

  const std::string folder_;
  const BackupAndRestoreOptions o_;
  const Site site_;
  const std::string call_;
  std::shared_ptr<FitState> fit_;
  std::optional<train::CheckpointManager> manager_;
  std::shared_ptr<distribute::StrategyCore> core_;  // null: there is one task
  std::unique_ptr<distribute::PreemptionWatch> watch_;  // null: not asked for
  int64_t since_ = 0, saves_ = 0;
  bool epoch_done_ = false;
};

}  // namespace

Callback BackupAndRestore(const std::string& backup_dir,
                          BackupAndRestoreOptions options, Site site) {
  return make_callback<BackupBase>(backup_dir, std::move(options), site);
}

}  // namespace berth::keras::callbacks
