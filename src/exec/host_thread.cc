#include "exec/host_thread.h"

#include <exception>
#include <memory>
#include <utility>

#include "base/core_set.h"
#include "base/interrupt.h"
#include "base/thread_pool.h"
#include "device/device_manager.h"
#include "exec/runners.h"

namespace berth {

std::unique_lock<std::mutex> hold_host_thread() {
  static std::mutex mutex;
  return std::unique_lock(mutex);
}

void join_host_thread(ProgramRun& run) {
  if (!run.program.host_threads) return;
  Stream& host = DeviceManager::get().host().plan_stream();
  const Event end = host.record();
  wait_in_time(run, end);
  host.synchronize(end);
}

void reset_host_thread(const Program& program) {
  if (program.host_threads) DeviceManager::get().host().reset_error();
}

namespace {

// Runs of a program of one device, on the thread of that device when the caller
// may run on cores that are not the device's.
class HomeRun final : public PreparedRun {
 public:
  HomeRun(std::unique_ptr<PreparedRun> run, Device& device)
      : run_(std::move(run)), device_(device) {}

  void launch() override {
    if (current_thread_within(device_.pool()->cores())) return run_->launch();
    struct Job {
      PreparedRun& run;
      std::atomic<bool>* caller;
      std::exception_ptr error;
    } job{*run_, interrupt_of_call(), nullptr};
    Work work;
    work.context = &job;
    work.what = "a plan";
    work.run = [](void* context, Stream&) {
      Job& job = *static_cast<Job*>(context);
      const WorksFor works(job.caller);
      try {
        job.run.launch();
      } catch (...) {
        job.error = std::current_exception();
      }
    };
    const auto hold = hold_host_thread();
    Stream& home = device_.plan_stream();
    home.launch(work);
    home.synchronize(home.record());
    if (job.error) std::rethrow_exception(job.error);
  }

 private:
  std::unique_ptr<PreparedRun> run_;
  Device& device_;
};

class HomeRunner final : public PlanRunner {
 public:
  HomeRunner(std::unique_ptr<PlanRunner> runner, Device& device)
      : runner_(std::move(runner)), device_(device) {}
  std::unique_ptr<PreparedRun> prepare(ProgramRun& run) const override {
    return std::make_unique<HomeRun>(runner_->prepare(run), device_);
  }

 private:
  std::unique_ptr<PlanRunner> runner_;
  Device& device_;
};

}  // namespace

std::unique_ptr<PlanRunner> home_runner(const Program& program,
                                        std::unique_ptr<PlanRunner> runner) {
  if (program.devices.size() != 1) return runner;
  Device& device = *program.devices[0];
  const bool has_thread = &device.plan_stream() != &device.compute_stream();
  if (!has_thread) return runner;
  return std::make_unique<HomeRunner>(std::move(runner), device);
}

}  // namespace berth
