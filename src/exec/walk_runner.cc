// Walks: how a program on core sets alone runs.
//
// The thread of each device walks the device's steps by itself; it says of a
// step that it has ended by writing the number of the turn, which threads that
// wait for the step read. So a run is one launch per device, and a hand-over
// one cache line. When a step fails, the walks go on saying that steps have
// ended, without doing any, so that nobody waits for ever.

#include <algorithm>
#include <exception>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "base/clock.h"
#include "base/core_set.h"
#include "base/spin.h"
#include "base/thread_pool.h"
#include "exec/runners.h"
#include "exec/watch_results.h"

namespace berth {

namespace {

// The steps of one device's thread.
struct Walk {
  Stream* stream = nullptr;
  Device* device = nullptr;
  bool host = false;
  std::vector<int32_t> steps;  // that do something, wait or signal
  std::vector<int32_t> final_waits;
};

std::vector<Walk> walks_of(const Program& p) {
  std::vector<Walk> walks;
  const auto walk_of = [&](const PlanStream& stream) -> Walk& {
    const auto it =
        std::find_if(walks.begin(), walks.end(),
                     [&](const Walk& w) { return w.stream == stream.stream; });
    if (it != walks.end()) return *it;
    return walks.emplace_back(
        Walk{stream.stream, stream.device, stream.host, {}, {}});
  };
  for (const PlanStream& s : p.streams) walk_of(s);
  for (size_t s = 0; s < p.steps.size(); ++s) {
    const PlanStep& step = p.steps[s];
    if (step.kind == StepKind::kNothing && step.waits.empty() &&
        !step.signals) {
      continue;
    }
    walk_of(p.streams[step.stream]).steps.push_back(static_cast<int32_t>(s));
  }
  for (const PlanStream& s : p.streams) {
    Walk& w = walk_of(s);
    w.final_waits.insert(w.final_waits.end(), s.final_waits.begin(),
                         s.final_waits.end());
  }
  // The host's last: it waits for the others, and the caller for it.
  std::stable_partition(walks.begin(), walks.end(),
                        [](const Walk& w) { return !w.host; });
  return walks;
}

class WalkRun final : public PreparedRun {
 public:
  WalkRun(ProgramRun& run, const std::vector<Walk>& walks,
          std::unique_ptr<PreparedRun> streams)
      : run_(run),
        steps_(run.program.steps),
        streams_(std::move(streams)),
        ended_(std::make_unique<std::atomic<uint32_t>[]>(steps_.size())) {
    for (const Walk& w : walks) walkers_.push_back({this, &w});
  }

  void launch() override {
    if (run_.deadline.is_set() || watches_results()) return streams_->launch();
    launch_walks();
  }
  bool ended() const override {
    return walking_.load(std::memory_order_acquire) == 0;
  }
  void finish() override {
    while (!ended()) std::this_thread::yield();
  }
  // The other core sets of a run that failed by itself: its error is thrown, it
  // does not stay with the device for later plans.
  void reset() override {
    finish();
    // A device that had failed before stays so until the user resets it.
    const bool own = std::all_of(walkers_.begin(), walkers_.end(),
                                 [](const Walker& w) { return w.begun; });
    for (const Walker& w : walkers_) {
      if (own && !w.walk->host) w.walk->device->reset_error();
    }
  }

 private:
  struct Walker {
    WalkRun* all = nullptr;
    const Walk* walk = nullptr;
    uint64_t before = 0;  // sequence of the stream when it was launched
    bool begun = false;   // in this turn; false: skipped, the stream had failed
  };

  // The caller computes what the host has to do, on a core of its own there,
  // when it may; else the host's thread does.
  void launch_walks() {
    finish();  // a body's next turn: the threads still say their end
    ++turn_;
    failed_.store(false, std::memory_order_relaxed);
    error_ = nullptr;
    for (Walker& w : walkers_) w.begun = false;
    Walker& last = walkers_.back();
    std::optional<CoreGuard> guard;
    bool here = false;
    if (last.walk->host) {
      const ThreadPool& pool = *last.walk->device->pool();
      if (pool.spin_us() > 0) guard.emplace(pool.cores()[0]);
      here = guard ? guard->holds() : current_thread_within(pool.cores());
      // What arguments, and other streams, made the host's thread wait for.
      Stream& stream = *last.walk->stream;
      if (here) stream.synchronize(stream.record());
    }
    walking_.store(static_cast<int>(walkers_.size()) - (here ? 1 : 0),
                   std::memory_order_relaxed);
    for (Walker& w : walkers_) {
      if (&w != &last || !here) launch_walk(w);
    }
    if (here) walk(last);
  }

  static void launch_walk(Walker& w) {
    w.before = w.walk->stream->record().sequence;
    Work work;
    work.context = &w;
    work.what = "a plan";
    work.run = [](void* context, Stream&) {
      auto& walker = *static_cast<Walker*>(context);
      walker.all->walk(walker);
    };
    work.drop = [](void* context) {
      auto& walker = *static_cast<Walker*>(context);
      WalkRun& all = *walker.all;
      if (!walker.begun) all.skip(walker);
      all.walking_.fetch_sub(1, std::memory_order_release);
    };
    w.walk->stream->launch(work);
  }

  // The stream had failed before: so has this run.
  void skip(Walker& w) {
    try {
      synchronize({w.walk->stream, w.before + 1});
      throw errors::Internal("a plan was skipped");
    } catch (...) {
      fail(*w.walk, std::current_exception());
    }
    for (const int32_t s : w.walk->steps) say_ended(s);
  }

  // On the thread of the device.
  void walk(Walker& w) {
    const Walk& walk = *w.walk;
    w.begun = true;
    const int spin_us = walk.device->pool()->spin_us();
    bool failed = false;
    for (const int32_t s : walk.steps) {
      for (const int32_t before : steps_[s].waits) await(before, spin_us);
      failed = failed || failed_.load(std::memory_order_acquire);
      if (!failed) {
        try {
          walk_step(s);
        } catch (...) {
          failed = true;
          fail(walk, std::current_exception());
        }
      }
      if (steps_[s].signals) say_ended(s);
    }
    for (const int32_t s : walk.final_waits) await(s, spin_us);
    // The caller is told what failed on the host; devices that had done all
    // their work by then are not concerned.
    if (!failed && failed_.load(std::memory_order_acquire)) {
      std::lock_guard lock(error_mutex_);
      failed = !failed_on_->host;
    }
    if (failed) rethrow();
  }

  void walk_step(int32_t s) {
    const double begin = run_.sampled ? host_clock_us() : 0;
    run_step(steps_[s], run_);
    if (run_.sampled) run_.times[s] = {begin, host_clock_us()};
  }

  void say_ended(int32_t step) {
    std::atomic<uint32_t>& ended = ended_[step];
    ended.store(turn_, std::memory_order_release);
    ended.notify_all();
  }

  void await(int32_t step, int spin_us) const {
    const std::atomic<uint32_t>& ended = ended_[step];
    const auto ready = [&] {
      return ended.load(std::memory_order_acquire) == turn_;
    };
    if (ready() || (spin_us > 0 && spin_until(spin_us, ready))) return;
    for (uint32_t seen = ended.load(std::memory_order_acquire); seen != turn_;
         seen = ended.load(std::memory_order_acquire)) {
      ended.wait(seen, std::memory_order_acquire);
    }
  }

  void fail(const Walk& walk, std::exception_ptr error) {
    std::lock_guard lock(error_mutex_);
    if (error_) return;
    error_ = std::move(error);
    failed_on_ = &walk;
    failed_.store(true, std::memory_order_release);
  }

  [[noreturn]] void rethrow() {
    std::exception_ptr error;
    {
      std::lock_guard lock(error_mutex_);
      error = error_;
    }
    std::rethrow_exception(error);
  }

  ProgramRun& run_;
  const std::vector<PlanStep>& steps_;
  std::unique_ptr<PreparedRun> streams_;
  std::vector<Walker> walkers_;
  // By step: the last turn in which it ended; and what failed in this one.
  std::unique_ptr<std::atomic<uint32_t>[]> ended_;
  uint32_t turn_ = 0;
  std::atomic<int> walking_{0};  // walks of which the last word is not said
  std::atomic<bool> failed_{false};
  std::mutex error_mutex_;
  std::exception_ptr error_;
  const Walk* failed_on_ = nullptr;
};

class WalkRunner final : public PlanRunner {
 public:
  WalkRunner(const Program& program, std::unique_ptr<PlanRunner> streams)
      : walks_(walks_of(program)), streams_(std::move(streams)) {}
  std::unique_ptr<PreparedRun> prepare(ProgramRun& run) const override {
    return std::make_unique<WalkRun>(run, walks_, streams_->prepare(run));
  }

 private:
  const std::vector<Walk> walks_;
  const std::unique_ptr<PlanRunner> streams_;
};

bool can_walk(const Program& p) {
  if (p.is_inline || !p.host_threads) return false;
  const auto cores = [](Device* d) { return d->pool() != nullptr; };
  const auto control = [](const PlanStep& step) {
    return step.kind == StepKind::kControl;
  };
  return std::all_of(p.devices.begin(), p.devices.end(), cores) &&
         std::none_of(p.steps.begin(), p.steps.end(), control);
}

}  // namespace

std::unique_ptr<PlanRunner> walk_runner(const Program& program,
                                        std::unique_ptr<PlanRunner>& streams) {
  if (!can_walk(program)) return nullptr;
  return std::make_unique<WalkRunner>(program, std::move(streams));
}

}  // namespace berth
