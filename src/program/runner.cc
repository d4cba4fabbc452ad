#include "program/runner.h"

#include <mutex>
#include <utility>
#include <vector>

namespace berth {

namespace {

struct RunnerFactories {
  std::mutex mutex;
  std::vector<RunnerFactory> all;  // first registered first
};

RunnerFactories& runner_factories() {
  // Never destroyed: threads may build plans while the process ends.
  static auto& factories = *std::make_unique<RunnerFactories>().release();
  return factories;
}

}  // namespace

void register_runner(RunnerFactory factory) {
  RunnerFactories& factories = runner_factories();
  std::lock_guard lock(factories.mutex);
  factories.all.push_back(std::move(factory));
}

std::unique_ptr<PlanRunner> choose_runner(
    const Program& program, std::unique_ptr<PlanRunner> standard) {
  std::vector<RunnerFactory> all;
  {
    RunnerFactories& factories = runner_factories();
    std::lock_guard lock(factories.mutex);
    all = factories.all;
  }
  for (auto it = all.rbegin(); it != all.rend(); ++it) {
    if (auto runner = (*it)(program, standard)) return runner;
  }
  return standard;
}

}  // namespace berth
