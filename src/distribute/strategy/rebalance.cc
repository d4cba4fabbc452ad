#include "distribute/strategy/rebalance.h"

#include <algorithm>

#include "base/thread_pool.h"
#include "berth/errors.h"
#include "device/device_manager.h"
#include "device/virtual_clock.h"
#include "distribute/data_parallel/shares.h"
#include "exec/measure_costs.h"

namespace berth::distribute {

namespace {

// Reductions and updates of variables, which are split evenly.
bool is_fixed(const Node& n) {
  static const OpDef& merged = op_named("_MultiApply");
  return n.collective || n.op->update() || n.op == &merged;
}

// The lower quartile ignores occasional load by others, not constant load.
double usual(std::vector<double> v) {
  if (v.empty()) return 0;
  const auto at = v.begin() + static_cast<std::ptrdiff_t>(v.size() / 4);
  std::nth_element(v.begin(), at, v.end());
  return *at;
}

// The times of the runs in between.
PlanTimes difference(const PlanTimes& now, const PlanTimes& before) {
  PlanTimes d = now;
  if (before.devices.size() != now.devices.size()) return {};
  d.samples -= before.samples;
  for (size_t i = 0; i < d.devices.size(); ++i) {
    d.devices[i].us -= before.devices[i].us;
    d.devices[i].fixed_us -= before.devices[i].fixed_us;
  }
  return d;
}

int64_t batch_of(const Plan& plan) {
  for (const int32_t a : plan.graph().args) {
    const Shape& s = plan.graph()[a].outputs[0].shape;
    if (s.rank() > 0) return s[0];
  }
  return 0;
}

bool by_itself(const StrategyCore& core) {
  return core.options().shares.automatic() && core.num_replicas() > 1 &&
         !core.link();
}

}  // namespace

std::vector<int> shares_by_speed(const StrategyCore& core) {
  const Machine machine = this_machine();
  // Rates of some core sets tell nothing about the others.
  const bool measured = std::all_of(
      core.replicas().begin(), core.replicas().end(), [&](const auto& r) {
        return machine.class_of(machine.find(r[0]->str())).origin !=
               CostOrigin::kEstimated;
      });
  std::vector<double> weights;
  for (const std::vector<Device*>& replica : core.replicas()) {
    double rate = 0;
    for (Device* d : replica) {
      const DeviceClass& c = machine.class_of(machine.find(d->str()));
      const double cores = d->pool() ? d->pool()->size() : 1;
      rate += measured
                  ? c.flops_per_us
                  : assumed_machine({d->str()}).classes[0].flops_per_us * cores;
    }
    weights.push_back(rate / static_cast<double>(replica.size()));
  }
  return slices_by_weight(weights, core.slices());
}

void start_shares(StrategyCore& core) {
  if (!by_itself(core)) return;
  std::vector<int> even;
  for (const int64_t n :
       even_parts(core.slices(), static_cast<size_t>(core.num_replicas()))) {
    even.push_back(static_cast<int>(n));
  }
  if (core.shares() == even) core.set_shares(shares_by_speed(core));
}

namespace {

std::vector<int> started(StrategyCore& core) {
  start_shares(core);
  return core.shares();
}

}  // namespace

Rebalancer::Rebalancer(std::shared_ptr<StrategyCore> core)
    : core_(std::move(core)), balancer_(started(*core_)) {}

bool Rebalancer::accept(const Plan& plan) {
  const std::vector<int> shares = core_->shares();
  std::vector<ReplicaSpeed> speeds;
  std::vector<int> most;
  bool fits = true;
  for (size_t r = 0; r < shares.size(); ++r) {
    double room = 1;  // the fraction of the plan's need that fits
    for (const Device* d : core_->replicas()[r]) {
      const MemoryInfo info = const_cast<Device*>(d)->allocator().info();
      if (info.limit_bytes == 0) continue;
      for (const auto& [name, bytes] : plan.info().arena_by_device) {
        if (name != d->str() || bytes == 0) continue;
        const double left = static_cast<double>(
            info.limit_bytes - std::min(info.limit_bytes, info.current_bytes));
        room = std::min(room, left / static_cast<double>(bytes));
      }
    }
    fits = fits && room >= 1;
    const auto held = static_cast<int>(room * shares[r]);
    most.push_back(room >= 1 ? core_->slices() : held);
    // The other replicas take it over in proportion.
    speeds.push_back({0, 1.0 / std::max(shares[r], 1), most.back()});
  }
  if (fits) return true;
  try {
    core_->set_shares(balanced_shares(speeds, core_->slices()));
  } catch (const errors::ResourceExhausted&) {
    return true;  // the run will report who holds the memory
  }
  balancer_ = Balancer(core_->shares(), most);
  return false;
}

void Rebalancer::ran(Plan& plan) {
  if (&plan != plan_) {
    const int64_t batch = batch_of(plan);
    // The last batch of an epoch is not representative.
    if (batch < largest_batch_) return;
    largest_batch_ = batch_ = batch;
    plan_ = &plan;
    runs_ = 0;
    to_collect_ = 0;
    before_.reset();
    samples_.clear();
  }
  ++runs_;
  if (to_collect_ > 0) return collect(plan);
  if (runs_ != kWarmUp && runs_ % kBetween != 0) return;
  // Each move raises the number of samples that the next one needs.
  to_collect_ = kRuns * std::min(1 + balancer_.moves(), 8);
  samples_.clear();
  before_ = plan_times(plan, is_fixed);
  plan.sample_next(to_collect_);
}

void Rebalancer::collect(Plan& plan) {
  const PlanTimes now = plan_times(plan, is_fixed);
  PlanTimes d = difference(now, *before_);
  before_ = now;
  if (d.samples == 1) samples_.push_back(std::move(d));
  if (--to_collect_ == 0) move();
}

void Rebalancer::move() {
  if (samples_.empty()) return;
  std::vector<double> compute, fixed, steps;
  for (const PlanTimes& s : samples_) steps.push_back(s.last_step_us);
  for (const std::vector<Device*>& replica : core_->replicas()) {
    std::vector<double> us, fixed_us;
    for (const PlanTimes& s : samples_) {
      double all = 0, of_it = 0;
      for (const PlanTimes::Device& d : s.devices) {
        for (const Device* mine : replica) {
          if (d.name != mine->str()) continue;
          all += d.us;
          of_it += d.fixed_us;
        }
      }
      us.push_back(all);
      fixed_us.push_back(of_it);
    }
    compute.push_back(usual(us));
    fixed.push_back(usual(fixed_us));
  }
  samples_.clear();
  const auto next = balancer_.sample(compute, fixed, usual(steps));
  if (next) core_->set_shares(*next);
}

std::string Rebalancer::str() const {
  Clocks clocks;
  for (const auto& replica : core_->replicas()) {
    for (const Device* d : replica) clocks.add(d->str());
  }
  return balancer_.str(clocks.mark());
}

}  // namespace berth::distribute
