// What a strategy over several tasks does in addition: the tasks meet when it
// is made and hear of steps that fail.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "base/where.h"
#include "device/device_manager.h"
#include "device/memory_space.h"
#include "distribute/multi_worker/gradient_exchange.h"
#include "distribute/multi_worker/step_consensus.h"
#include "distribute/strategy/device_list.h"
#include "distribute/strategy/strategy_core.h"
#include "function/task_changes.h"
#include "ops/random_key.h"

namespace berth::distribute {

bool task_kernels_are_there();  // task_kernels.cc

namespace {

// Options that must be equal in all tasks, and how many replicas each has.
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

StrategyCore::StrategyCore(std::shared_ptr<CollectiveExecutor> link,
                           StrategyOptions options, Site site)
    : StrategyCore(
          StrategyKind::kMultiWorkerMirrored,
          [&] {
            // Shares and slices cover all tasks: read below.
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
  cut_slices(weights_now(), static_cast<size_t>(num_replicas()), site);
}

// Weights of the replicas that are there, according to the options for all; a
// task that was never there is taken to have as many as this one.
std::vector<double> StrategyCore::weights_now() const {
  const std::vector<double>& all = options_.shares.weights();
  const std::vector<TaskId> places = link_->member().spec().ranks();
  if (now_ == places) return all;
  std::vector<double> left;
  size_t at = 0;
  for (const TaskId& task : places) {
    const auto met =
        std::find_if(began_.begin(), began_.end(),
                     [&](const auto& b) { return b.first == task; });
    const size_t end =
        at + (met == began_.end() ? replicas_.size()
                                  : static_cast<size_t>(met->second));
    if (end > all.size()) return all;
    const bool is_here =
        std::find(now_.begin(), now_.end(), task) != now_.end();
    for (; at < end; ++at) {
      if (is_here) left.push_back(all[at]);
    }
  }
  if (at != all.size()) return all;
  const bool none = std::all_of(left.begin(), left.end(),
                                [](double weight) { return weight == 0; });
  return none ? std::vector<double>() : left;
}

int StrategyCore::place() const {
  if (!link_) return 0;
  const std::vector<TaskId> all = link_->member().spec().ranks();
  const auto found = std::find(all.begin(), all.end(), link_->member().task());
  return static_cast<int>(found - all.begin());
}

void StrategyCore::meet_tasks(Site site) {
  const std::vector<std::string> said =
      gather_texts(*link_, said_by(options_, replicas_.size()), "strategy");
  const std::vector<TaskId> members = link_->member().ranks();
  tasks_.link = link_->id();
  tasks_.rank = link_->rank();
  tasks_.first = {0};
  now_ = members;
  for (size_t r = 0; r < said.size(); ++r) {
    if (behind_replicas(said[r]) != behind_replicas(said[0])) {
      throw errors::InvalidArgument(fmt::format(
          "{}: {} has {}; {} has {}{}; expected the same options in all tasks",
          name_, members[0].str(), behind_replicas(said[0]), members[r].str(),
          behind_replicas(said[r]), where_text(nullptr, site)));
    }
    const int replicas = std::stoi(said[r]);
    tasks_.first.push_back(tasks_.first.back() + replicas);
    const auto had =
        std::find_if(began_.begin(), began_.end(),
                     [&](const auto& b) { return b.first == members[r]; });
    if (had == began_.end()) {
      began_.emplace_back(members[r], replicas);
    } else if (had->second != replicas) {
      throw errors::InvalidArgument(fmt::format(
          "{}: {} came back with another number of replicas: {} instead of {}; "
          "expected the devices that it had",
          name_, members[r].str(), replicas, had->second));
    }
  }
  Device& first = *replicas_[0][0];
  Device& host = DeviceManager::get().host();
  tasks_.device = same_memory(first, host) ? first.id() : host.id();
  share_random_state();
}

// Random numbers drawn from here on are the same in all tasks.
void StrategyCore::share_random_state() const {
  RandomState state = random_state();
  link_->member().exchange().broadcast(
      &state, sizeof(state), 0,
      {.channel = "agree", .what = "the seed of the process"});
  set_random_state(state);
}

// Steps with another key are compiled again.
uint64_t StrategyCore::steps_key() const {
  if (!link_) return 0;
  return (link_->member().generation() - 1) * 0x9E3779B97F4A7C15u;
}

void StrategyCore::set_task_rows(const std::vector<int64_t>& rows,
                                 const Tensor& of) {
  std::lock_guard lock(mutex_);
  rows_of_ = of.defined() ? of.impl() : nullptr;
  if (tasks_.rows == rows) return;
  tasks_.rows = rows;
  tasks_.own_rows = !rows.empty();
  rows_key_ = hash_of_rows(rows) ^ steps_key();
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

void StrategyCore::form_again(double timeout_seconds, bool shrink) {
  // Ends pending work of the failed step: an exchange that a device began after
  // the others formed again would wait for ever. The cluster failed, not the
  // devices, so they are usable again.
  for (const auto& devices : replicas_) {
    for (Device* d : devices) d->reset_error();
  }
  const std::vector<TaskId> before = now_;
  // A restarted task creates its strategy: the others meet it there. It may
  // fail again meanwhile.
  constexpr int kMostFailures = 10;
  for (int i = 0;; ++i) {
    link_->form_again(timeout_seconds, shrink);
    try {
      meet_tasks({});
      break;
    } catch (const errors::Error&) {
      const auto failure = link_->member().failure();
      const bool again =
          failure && (failure->code == errors::Code::kUnavailable ||
                      failure->code == errors::Code::kAborted);
      if (!again || i == kMostFailures) throw;
    }
  }
  ++g_task_changes;
  std::lock_guard lock(mutex_);
  tasks_.rows.clear();
  tasks_.own_rows = false;
  rows_of_ = nullptr;
  if (now_ != before) {
    cut_slices(weights_now(), static_cast<size_t>(num_replicas()), {});
  }
  rows_key_ = steps_key();
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
