#include "distribute/multi_worker/preemption_watch.h"

#include <fmt/format.h>

#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <utility>

#include "base/immortal.h"
#include "berth/errors.h"

namespace berth::distribute {

namespace {

std::atomic<bool> sigterm_came{false};
static_assert(std::atomic<bool>::is_always_lock_free);

// Records SIGTERM while there are listeners; then restores its old action.
class Sigterm {
 public:
  static Sigterm& get() {
    static Sigterm& one = immortal<Sigterm>();
    return one;
  }
  void listen() {
    std::lock_guard lock(mutex_);
    if (listeners_++ > 0) return;
    sigterm_came = false;
    struct sigaction action = {};
    action.sa_handler = [](int) { sigterm_came = true; };
    action.sa_flags = SA_RESTART;
    sigemptyset(&action.sa_mask);
    sigaction(SIGTERM, &action, &before_);
  }
  void leave() {
    std::lock_guard lock(mutex_);
    if (--listeners_ == 0) sigaction(SIGTERM, &before_, nullptr);
  }

 private:
  std::mutex mutex_;
  int listeners_ = 0;
  struct sigaction before_ = {};
};

}  // namespace

PreemptionWatch::PreemptionWatch(std::string what,
                                 std::shared_ptr<CollectiveExecutor> tasks,
                                 TerminationConfig config)
    : what_(std::move(what)),
      tasks_(std::move(tasks)),
      config_(std::move(config)),
      listens_(!config_.termination_watcher_fn) {
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
  if (listens_) Sigterm::get().listen();
}

PreemptionWatch::~PreemptionWatch() {
  if (listens_) Sigterm::get().leave();
}

bool PreemptionWatch::noticed() {
  const bool now =
      listens_ ? sigterm_came.load() : config_.termination_watcher_fn();
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

void PreemptionWatch::end(const std::string& saved) {
  std::fprintf(stderr,
               "berth: %s: %s is to end; saved as %s; start it again to go "
               "on\n",
               what_.c_str(), since_ ? "this task" : "another task",
               saved.c_str());
  if (tasks_) tasks_->member().leave(30);
  if (config_.exit_fn) {
    config_.exit_fn();
    throw errors::Cancelled(
        fmt::format("{}: the task is to end, and exit_fn returned", what_));
  }
  std::exit(config_.restart_code);
}

}  // namespace berth::distribute
