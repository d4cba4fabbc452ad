// What a strategy over several tasks does besides: the tasks meet when it is
// made, and hear of steps that fail.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "base/where.h"
#include "device/device_manager.h"
#include "device/memory_space.h"
#include "distribute/device_list.h"
#include "distribute/strategy_core.h"
#include "distribute/task_agreement.h"
#include "distribute/task_link.h"
#include "ops/random_key.h"

namespace berth::distribute {

bool task_kernels_are_there();  // task_kernels.cc

namespace {

// What must be equal in all tasks, and how many replicas each has.
std::string said_by(const StrategyOptions& o, size_t replicas) {
  return fmt::format(
      "{} replicas; slices {}, devices_per_replica {}, "
      "bytes_per_pack {}, shares {}{}",
      replicas, o.slices, o.devices_per_replica, o.communication.bytes_per_pack,
      o.shares.automatic() ? "automatic" : "",
      fmt::join(o.shares.weights(), ":"));
}

std::string behind_replicas(const std::string& said) {
  return said.substr(said.find(';') + 2);
}

uint64_t hash_of_rows(const std::vector<int64_t>& rows) {
  uint64_t h = rows.empty() ? 0 : 14695981039346656037ull;
  for (const int64_t n : rows) {
    h = (h ^ static_cast<uint64_t>(n)) * 1099511628211ull;
  }
  return h;
}

}  // namespace

StrategyCore::StrategyCore(std::shared_ptr<TaskLink> link,
                           StrategyOptions options, Site site)
    : StrategyCore(
          StrategyKind::kMultiWorkerMirrored,
          [&] {
            // Shares and slices are of all tasks: read below.
            StrategyOptions mine = options;
            mine.shares = {};
            mine.slices = 0;
            return mine;
          }(),
          site) {
  task_kernels_are_there();
  options_.shares = options.shares;
  options_.slices = options.slices;
  link_ = std::move(link);
  meet_tasks(site);
  cut_slices(static_cast<size_t>(num_replicas()), site);
}

void StrategyCore::meet_tasks(Site site) {
  const std::vector<std::string> said =
      gather_texts(*link_, said_by(options_, replicas_.size()), "strategy");
  const auto& members = link_->member().spec().ranks();
  tasks_.link = link_->id();
  tasks_.rank = link_->rank();
  const std::vector<int> before = std::exchange(tasks_.first, {0});
  for (size_t r = 0; r < said.size(); ++r) {
    if (behind_replicas(said[r]) != behind_replicas(said[0])) {
      throw errors::InvalidArgument(fmt::format(
          "{}: {} has {}; {} has {}{}; expected the same options in all tasks",
          name_, members[0].str(), behind_replicas(said[0]), members[r].str(),
          behind_replicas(said[r]), where_text(nullptr, site)));
    }
    tasks_.first.push_back(tasks_.first.back() + std::stoi(said[r]));
  }
  if (!before.empty() && tasks_.first != before) {
    throw errors::InvalidArgument(fmt::format(
        "{}: a task came back with another number of replicas: they began at "
        "{}, now at {}; expected the devices that it had",
        name_, fmt::join(before, ", "), fmt::join(tasks_.first, ", ")));
  }
  Device& first = *replicas_[0][0];
  Device& host = DeviceManager::get().host();
  tasks_.device = same_memory(first, host) ? first.id() : host.id();
  // What is drawn from here on is the same everywhere.
  RandomState state = random_state();
  link_->member().exchange().broadcast(
      &state, sizeof(state), 0,
      {.channel = "agree", .what = "the seed of the process"});
  set_random_state(state);
}

void StrategyCore::set_task_rows(const std::vector<int64_t>& rows,
                                 const Tensor& of) {
  std::lock_guard lock(mutex_);
  rows_of_ = of.defined() ? of.impl() : nullptr;
  if (tasks_.rows == rows) return;
  tasks_.rows = rows;
  tasks_.own_rows = !rows.empty();
  rows_key_ =
      hash_of_rows(rows) ^
      (link_ ? (link_->member().generation() - 1) * 0x9E3779B97F4A7C15u : 0);
  key_ =
      (shares_.empty() ? 0 : hash_of_rows({shares_.begin(), shares_.end()})) ^
      rows_key_;
}

void StrategyCore::on_chief(const std::string& what,
                            const std::function<void()>& write) const {
  if (!link_) return write();
  try {
    if (is_chief()) write();
    link_->member().exchange().barrier(
        {.channel = "chief", .what = what, .step = link_->step()});
  } catch (const errors::Error& e) {
    failed(e);
    throw;
  }
}

void StrategyCore::form_again(double timeout_seconds) {
  // Ends what a device still has of the failed step: an exchange that it began
  // after the others have formed again would wait for ever. What failed was the
  // cluster, so the devices are good again.
  for (const auto& devices : replicas_) {
    for (Device* d : devices) d->reset_error();
  }
  // A task that was started anew makes its strategy: the others meet it there.
  // It may fail meanwhile once more.
  constexpr int kMostFailures = 10;
  for (int i = 0;; ++i) {
    link_->form_again(timeout_seconds);
    try {
      meet_tasks({});
      break;
    } catch (const errors::Error&) {
      const auto failure = link_->member().failure();
      const bool again = failure && failure->code == errors::Code::kUnavailable;
      if (!again || i == kMostFailures) throw;
    }
  }
  const uint64_t generation = link_->member().generation();
  std::lock_guard lock(mutex_);
  tasks_.rows.clear();
  tasks_.own_rows = false;
  rows_of_ = nullptr;
  rows_key_ = (generation - 1) * 0x9E3779B97F4A7C15u;
  key_ =
      (shares_.empty() ? 0 : hash_of_rows({shares_.begin(), shares_.end()})) ^
      rows_key_;
}

void StrategyCore::failed(const errors::Error& e) const {
  if (!link_) return;
  cluster::Member& member = link_->member();
  member.check();
  member.abort(e.code(), e.what(), link_->step());
  member.check();
}

}  // namespace berth::distribute
