#include "distribute/multi_worker/preemption_watch.h"

#include <fmt/format.h>

#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <mutex>
#include <utility>

#include "base/immortal.h"
#include "berth/errors.h"

namespace berth::distribute {

namespace {

std::atomic<bool> notice_came{false};
static_assert(std::atomic<bool>::is_always_lock_free);

// Records signals while there are listeners; then restores their old actions.
class NoticeSignals {
 public:
  static NoticeSignals& get() {
    static NoticeSignals& one = immortal<NoticeSignals>();
    return one;
  }
  void listen(const std::vector<int>& signals) {
    std::lock_guard lock(mutex_);
    if (listened_.empty()) notice_came = false;
    for (const int signal : signals) {
      Listened& l = listened_[signal];
      if (l.times++ > 0) continue;
      struct sigaction action = {};
      action.sa_handler = [](int) { notice_came = true; };
      action.sa_flags = SA_RESTART;
      sigemptyset(&action.sa_mask);
      sigaction(signal, &action, &l.before);
    }
  }
  void leave(const std::vector<int>& signals) {
    std::lock_guard lock(mutex_);
    for (const int signal : signals) {
      Listened& l = listened_.at(signal);
      if (--l.times > 0) continue;
      sigaction(signal, &l.before, nullptr);
      listened_.erase(signal);
    }
  }

 private:
  struct Listened {
    int times = 0;
    struct sigaction before = {};
  };
  std::mutex mutex_;
  std::map<int, Listened> listened_;
};

std::vector<int> signals_of(const TerminationConfig& config) {
  if (config.termination_watcher_fn) return {};
  return config.signals.empty() ? std::vector<int>{SIGTERM} : config.signals;
}

}  // namespace

PreemptionWatch::PreemptionWatch(std::string what,
                                 std::shared_ptr<CollectiveExecutor> tasks,
                                 TerminationConfig config)
    : what_(std::move(what)),
      tasks_(std::move(tasks)),
      config_(std::move(config)),
      signals_(signals_of(config_)) {
  if (config_.restart_code < 1 || config_.restart_code > 255) {
    throw errors::InvalidArgument(
        fmt::format("{}: restart_code is {}; expected 1 to 255", what_,
                    config_.restart_code));
  }
  if (!(config_.grace_period_seconds >= 0)) {
    throw errors::InvalidArgument(
        fmt::format("{}: grace_period_seconds is {}; expected 0 or more", what_,
                    config_.grace_period_seconds));
  }
  for (const int signal : signals_) {
    if (signal >= 1 && signal < NSIG && signal != SIGKILL &&
        signal != SIGSTOP) {
      continue;
    }
    throw errors::InvalidArgument(
        fmt::format("{}: signals has {}, which cannot be a notice; expected "
                    "SIGTERM, SIGUSR1 or another one that processes can take",
                    what_, signal));
  }
  NoticeSignals::get().listen(signals_);
}

PreemptionWatch::~PreemptionWatch() { NoticeSignals::get().leave(signals_); }

bool PreemptionWatch::noticed() {
  std::error_code none;
  const bool now =
      (config_.termination_watcher_fn ? config_.termination_watcher_fn()
                                      : notice_came.load()) ||
      (!config_.notice_file.empty() &&
       std::filesystem::exists(config_.notice_file, none));
  if (!now) return false;
  const auto time = std::chrono::steady_clock::now();
  if (!since_) since_ = time;
  return std::chrono::duration<double>(time - *since_).count() >=
         config_.grace_period_seconds;
}

bool PreemptionWatch::must_save() {
  int32_t any = noticed() ? 1 : 0;
  if (tasks_) {
    tasks_->member().exchange().all_reduce(
        &any, 1, int32, cluster::Reduction::kMax,
        {.channel = "preemption", .what = "whether a task is to end"});
  }
  return any != 0;
}

void PreemptionWatch::end(const std::string& after) {
  std::fprintf(stderr, "berth: %s: %s is to end; %s\n", what_.c_str(),
               since_ ? "this task" : "another task", after.c_str());
  if (tasks_) tasks_->member().leave(30);
  if (config_.exit_fn) {
    config_.exit_fn();
    throw errors::Cancelled(
        fmt::format("{}: the task is to end, and exit_fn returned", what_));
  }
  std::exit(config_.restart_code);
}

}  // namespace berth::distribute
