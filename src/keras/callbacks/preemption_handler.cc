// Saves and ends when the machine is about to be taken away.

#include <fmt/format.h>

#include <string>
#include <utility>

#include "base/where.h"
#include "berth/preemption.h"
#include "distribute/multi_worker/preemption_watch.h"
#include "distribute/strategy/strategy_core.h"

namespace berth::distribute {

struct PreemptionCheckpointHandler::Impl {
  train::CheckpointManager& manager;
  const Site site;
  PreemptionWatch watch;
  int64_t calls = 0;
};

PreemptionCheckpointHandler::PreemptionCheckpointHandler(
    const Strategy& strategy, train::CheckpointManager& manager,
    TerminationConfig termination_config, Site site)
    : impl_(new Impl{
          manager, site,
          PreemptionWatch(
              "PreemptionCheckpointHandler" + where_text(nullptr, site),
              strategy.core() ? strategy.core()->link() : nullptr,
              std::move(termination_config))}) {
  // Checkpoints are numbered by the calls before them.
  const auto path = manager.restore_or_initialize(site);
  if (!path) return;
  const size_t dash = path->rfind('-');
  if (dash == std::string::npos) return;
  impl_->calls = std::atoll(path->c_str() + dash + 1);
}

PreemptionCheckpointHandler::~PreemptionCheckpointHandler() = default;

int64_t PreemptionCheckpointHandler::total_run_calls() const {
  return impl_->calls;
}

void PreemptionCheckpointHandler::count_call() {
  ++impl_->calls;
  save_checkpoint_if_preempted();
}

void PreemptionCheckpointHandler::save_checkpoint_if_preempted() {
  if (!impl_->watch.must_save()) return;
  const auto path = impl_->manager.save(impl_->calls, false, impl_->site);
  impl_->manager.sync();
  impl_->watch.end(fmt::format("saved as {}; start it again to go on",
                               path.value_or(impl_->manager.directory())));
}

}  // namespace berth::distribute
