// BackupAndRestore.

#include <fmt/format.h>

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <sstream>
#include <string>
#include <utility>

#include "base/urls.h"
#include "base/vertex_folder.h"
#include "base/where.h"
#include "berth/errors.h"
#include "berth/keras/checkpoint_callbacks.h"
#include "berth/keras/models.h"
#include "berth/train.h"
#include "distribute/multi_worker/elastic_run.h"
#include "distribute/multi_worker/preemption_watch.h"
#include "distribute/multi_worker/step_consensus.h"
#include "io/atomic_file.h"
#include "io/manifest.h"
#include "keras/callbacks/chief_only.h"
#include "keras/callbacks/fit_state.h"

namespace berth::keras::callbacks {

namespace {

constexpr const char* kAbsent = "is missing";

class BackupBase final : public CallbackBase {
 public:
  BackupBase(const std::string& folder, BackupAndRestoreOptions options,
             Site site)
      : CallbackBase("backup_and_restore"),
        folder_(or_vertex_folder(folder, "AIP_CHECKPOINT_DIR")),
        o_(std::move(options)),
        site_(site),
        call_("BackupAndRestore" + where_text(nullptr, site)) {
    refuse_url(folder_, call_);
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
          call_, core_ ? core_->link() : nullptr, o_.termination_config);
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
    if (core_ && core_->elastic_run() && core_->elastic_run()->restored) {
      saves_ = newest_of_all();  // the state is there, and newer
    } else if (restored(model)) {
      fit_->apply(loop_of(model), call_);
    }
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
    settle_urls();
    watch_->end(fmt::format("saved as {}; start it again to go on",
                            manager_->latest_checkpoint().value_or(folder_)));
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
    throw errors::FailedPrecondition(fmt::format(
        "{}: used outside of fit; expected it among the callbacks of model.fit",
        call_));
  }
  void save(Model& model) {
    settle(model, site_);
    fit_->read(loop_of(model));
    manager_->save(core_ ? std::optional(++saves_) : std::nullopt, false,
                   site_);
  }

  // Each task has its own pass over the data, so its own backups.
  std::string own_folder() const {
    if (!core_ || core_->place() == 0) return folder_;
    return fmt::format("{}/task_{}", folder_, core_->place());
  }

  std::string path_of(int64_t number) const {
    return fmt::format("{}/backup-{}", own_folder(), number);
  }
  // "3 4 ": what this task has, damaged ones too.
  std::string numbers() const {
    std::string list;
    std::error_code none;
    for (const auto& f :
         std::filesystem::directory_iterator(own_folder(), none)) {
      const std::string name = f.path().filename().string();
      int64_t n = 0;
      if (std::sscanf(name.c_str(), "backup-%" SCNd64, &n) == 1 &&
          name == fmt::format("backup-{}.json", n) &&
          !unreadable_.contains(n)) {
        list += std::to_string(n) + " ";
      }
    }
    return list;
  }
  // The newest that all tasks have, else of the chief's, else of any; 0: none.
  static int64_t choose(const std::vector<std::string>& lists) {
    std::map<int64_t, size_t> have;
    int64_t chiefs = 0, common = 0;
    for (const std::string& list : lists) {
      std::istringstream in(list);
      for (int64_t n = 0; in >> n;) {
        if (++have[n] == lists.size()) common = std::max(common, n);
        if (&list == &lists[0]) chiefs = std::max(chiefs, n);
      }
    }
    return common > 0     ? common
           : chiefs > 0   ? chiefs
           : have.empty() ? 0
                          : have.rbegin()->first;
  }

  int64_t newest_of_all() const {
    int64_t newest = 0;
    for (const std::string& list :
         distribute::gather_texts(*core_->link(), numbers(), call_)) {
      std::istringstream in(list);
      for (int64_t n = 0; in >> n;) newest = std::max(newest, n);
    }
    return newest;
  }

  // One backup in all tasks: who lacks it gets it from one that can read it.
  bool restored(Model& model) {
    if (!core_) return manager_->restore_or_initialize(site_).has_value();
    const auto gather = [&](const std::string& mine) {
      return distribute::gather_texts(*core_->link(), mine, call_);
    };
    unreadable_.clear();
    std::string first_error;
    while ((saves_ = choose(gather(numbers()))) > 0) {
      const std::vector<std::string> wrong = gather(restore_here());
      const auto good = std::find(wrong.begin(), wrong.end(), "");
      if (good != wrong.end()) {
        share(static_cast<int>(good - wrong.begin()), wrong);
        if (!wrong[static_cast<size_t>(core_->link()->rank())].empty()) {
          fit_->read_anew(loop_of(model).data_part());
        }
        return true;
      }
      unreadable_.insert(saves_);
      std::string error = kAbsent;
      for (const std::string& text : wrong) {
        if (error == kAbsent) error = text;
      }
      if (core_->is_chief()) say("no task can read it: " + error);
      if (first_error.empty()) first_error = error;
    }
    if (first_error.empty()) return false;
    throw errors::DataLoss(fmt::format(
        "{}: no task has a backup in \"{}\" that can be read: {}; delete the "
        "folder to begin anew",
        call_, folder_, first_error));
  }

  // Why it cannot; "": it can.
  std::string restore_here() {
    if (!io::is_regular_file(path_of(saves_) + ".json")) return kAbsent;
    try {
      manager_->checkpoint().restore(path_of(saves_), site_).assert_consumed();
      return "";
    } catch (const errors::DataLoss& e) {
      return e.what();
    } catch (const errors::NotFound& e) {
      return e.what();
    }
  }

  // Sends the files to tasks where something is wrong, which restore them.
  void share(int from, const std::vector<std::string>& wrong) {
    const auto tasks = core_->link()->member().ranks();
    const auto rank = static_cast<size_t>(core_->link()->rank());
    const bool lacks = !wrong[rank].empty();
    if (static_cast<size_t>(std::count(wrong.begin(), wrong.end(), "")) ==
        wrong.size()) {
      return;
    }
    const bool sends = core_->link()->rank() == from;
    std::ifstream file(sends ? path_of(saves_) + ".json" : "");
    const std::string text = distribute::gather_texts(
        *core_->link(), {std::istreambuf_iterator<char>(file), {}},
        call_)[static_cast<size_t>(from)];
    if (lacks) io::make_folder(own_folder(), call_);
    for (const auto& f : io::parse_manifest(text, call_).files) {
      share_file(own_folder() + "/" + f.name, f.bytes, from, lacks);
    }
    if (!lacks) return;
    io::AtomicFile manifest(path_of(saves_) + ".json", call_);
    manifest.append(text.data(), text.size());
    manifest.commit();
    manager_->checkpoint().restore(path_of(saves_), site_).assert_consumed();
    say(fmt::format("{} takes that of {}: its own {}", tasks[rank].str(),
                    tasks[static_cast<size_t>(from)].str(), wrong[rank]));
  }
  void say(const std::string& what) const {
    std::fprintf(
        stderr, "%s",
        fmt::format("berth: {}: backup {}: {}\n", call_, saves_, what).c_str());
  }
  void share_file(const std::string& path, uint64_t bytes, int from,
                  bool lacks) {
    constexpr uint64_t kPiece = uint64_t{16} << 20;
    std::ifstream in(core_->link()->rank() == from ? path : "");
    std::optional<io::AtomicFile> out;
    if (lacks) out.emplace(path, call_);
    std::string piece(std::min(bytes, kPiece), '\0');
    for (uint64_t left = bytes; left > 0;) {
      const uint64_t n = std::min(left, kPiece);
      in.read(piece.data(), static_cast<std::streamsize>(n));
      core_->link()->member().exchange().broadcast(
          piece.data(), static_cast<int64_t>(n), from,
          {.channel = "agree", .what = "a backup that a task lacks"});
      if (out) out->append(piece.data(), n);
      left -= n;
    }
    if (out) out->commit();
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
  std::set<int64_t> unreadable_;  // backups that no task could read
  bool epoch_done_ = false;
};

}  // namespace

Callback BackupAndRestore(const std::string& backup_dir,
                          BackupAndRestoreOptions options, Site site) {
  return make_callback<BackupBase>(backup_dir, std::move(options), site);
}

}  // namespace berth::keras::callbacks
