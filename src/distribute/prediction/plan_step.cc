#include "distribute/prediction/plan_step.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/thread_pool.h"
#include "collective/device_allreduce.h"
#include "device/memory_space.h"
#include "device/virtual_clock.h"
#include "distribute/data_parallel/shard_step.h"
#include "distribute/multi_worker/gradient_exchange.h"
#include "distribute/multi_worker/task_rates.h"
#include "distribute/prediction/plan_pipeline.h"
#include "distribute/strategy/fit_rewrite.h"
#include "distribute/strategy/rebalance.h"
#include "distribute/strategy/strategy_core.h"
#include "exec/measure_plan.h"
#include "exec/report.h"
#include "function/graph_callable.h"
#include "function/trace_call.h"
#include "op/op_registry.h"
#include "tensor/variable_state.h"

namespace berth::distribute {

namespace {

constexpr int64_t kDefaultPack = int64_t{4} << 20;
constexpr double kWorthIt = 1.1;  // lower speed-ups are not worth it

// The handle of a value, found through aliases and ranges.
const Node* variable_behind(const Graph& g, ValueRef v) {
  while (g[v.node].op->kind() != OpKind::kHandle) {
    if (g[v.node].inputs.empty()) return nullptr;
    v = g[v.node].inputs[0];
  }
  return &g[v.node];
}

std::vector<Device*> devices_of(const StrategyCore& core) {
  std::vector<Device*> all;
  for (const auto& replica : core.replicas()) {
    all.insert(all.end(), replica.begin(), replica.end());
  }
  return all;
}

// Splits the step and records what is summed before that is lowered.
class NotingRewrite final : public GraphRewrite {
 public:
  NotingRewrite(std::shared_ptr<StrategyCore> core, int slices, bool one_memory)
      : core_(core),
        inner_(std::move(core), {.slices = slices}),
        one_memory_(one_memory) {}

  void apply(Graph& graph) const override {
    inner_.apply(graph);
    std::vector<DeviceId> devices;
    for (const Device* d : devices_of(*core_)) devices.push_back(d->id());
    buckets_ =
        buckets_of(graph, core_->split_plan().pack_bytes, one_memory_, devices);
  }
  uint64_t key() const override { return inner_.key(); }
  int slices() const override { return inner_.slices(); }

  SplitReport report() const { return inner_.report(); }
  std::vector<StrategyPlan::Bucket> buckets() const { return buckets_; }

 private:
  std::shared_ptr<StrategyCore> core_;
  const FitRewrite inner_;
  const bool one_memory_;
  mutable std::vector<StrategyPlan::Bucket> buckets_;
};

// The whole step on one device.
class OneDeviceRewrite final : public GraphRewrite {
 public:
  OneDeviceRewrite(DeviceId device, int slices)
      : device_(device), slices_(slices) {}
  void apply(Graph& graph) const override {
    for (Node& n : graph.nodes) {
      if (!n.op->graph_only()) n.requested = device_;
    }
  }
  int slices() const override { return slices_; }

 private:
  const DeviceId device_;
  const int slices_;
};

bool in_one_memory(const std::vector<Device*>& devices) {
  return std::all_of(devices.begin(), devices.end(), [&](const Device* d) {
    return same_memory(*d, *devices[0]);
  });
}

// Total number of cores of the devices.
int cores_of(const std::vector<Device*>& devices) {
  std::set<int> cores;
  int workers = 0;
  for (Device* d : devices) {
    if (d->pool() == nullptr) return 0;
    for (const int c : d->pool()->cores().cores()) cores.insert(c);
    workers = std::max(workers, d->pool()->size());
  }
  return std::max(static_cast<int>(cores.size()), workers);
}

// Time that a device spends adding the values of replicas.
double adding_us(const Plan& plan, const PlanPrediction& p, int32_t device) {
  double us = 0;
  const Graph& g = plan.graph();
  for (const int32_t i : p.costs.order.sequence) {
    if (p.costs.order.device[i] != device || !g[i].collective) continue;
    us += p.simulation.end_us[i] - p.simulation.start_us[i];
  }
  for (const SimulatedTransfer& t : p.simulation.transfers) {
    const bool wait = t.to == device && g[t.value.node].collective &&
                      p.costs.costs.link(t.from, t.to).bytes_per_us < 1e8;
    if (wait) us += t.end_us - t.start_us;
  }
  return us;
}

constexpr const char* kBetweenTasks = "between tasks";

// A lower bound of what a task sends in an exchange: the volume of a ring.
int64_t task_bytes(const Node& n) {
  const auto ranks = n.op->attr<int64_t>(n.attrs.get(), "ranks");
  int64_t bytes = 0;
  for (const OutSpec& o : n.outputs) {
    bytes += o.shape.num_elements() * static_cast<int64_t>(size_of(o.dtype));
  }
  return 2 * (ranks - 1) * bytes / ranks;
}

// How many parts of an ordered sum a task gives; 0: the sum is not ordered.
size_t ordered_parts(const Node& start) {
  return start.op->attr<std::vector<int64_t>>(start.attrs.get(), "starts")
      .size();
}

// What devices send each other if their library adds
// (collective/device_allreduce.h).
int64_t library_bytes(const Graph& graph) {
  int64_t bytes = 0;
  for (const Node& n : graph.nodes) {
    if (n.op->name() == "_TaskEnd") bytes += task_bytes(n);
    if (n.op->name() != "_AllReduceStart") continue;
    const auto ranks = n.op->attr<int64_t>(n.attrs.get(), "ranks");
    bytes += 2 * (ranks - 1) * n.outputs[0].shape.num_elements() *
             static_cast<int64_t>(size_of(n.outputs[0].dtype)) / ranks;
  }
  return bytes;
}

class Planner {
 public:
  Planner(const std::shared_ptr<StrategyCore>& core, const StepToPlan& step,
          bool may_measure)
      : core_(core),
        devices_(devices_of(*core)),
        one_memory_(in_one_memory(devices_)),
        may_measure_(may_measure),
        slices_(step.slices),
        graph_(trace_call(step.name, step.fn, step.args)) {
    for (const TensorSpec& a : step.args) shapes_.push_back(a.shape);
    plan_.strategy = core->name();
    for (const Shape& s : shapes_) {
      if (s.rank() > 0) plan_.batch = s[0];
    }
    plan_.unused = unwritten(graph_, step.trainable);
  }

  StrategyPlan run() {
    plan_replicas();
    plan_one_device();
    Clocks clocks;
    for (const Device* d : devices_) clocks.add(d->str());
    if (clocks.both()) return std::move(plan_);  // nothing to compare
    if (core_->tasks().several()) {
      count_tasks();
      plan_.advice = advice_for_tasks(plan_, core_->tasks().ranks());
    } else {
      plan_.advice = advice_for(plan_, one_memory_);
    }
    return std::move(plan_);
  }

 private:
  void plan_replicas() {
    auto rewrite = std::make_shared<NotingRewrite>(core_, slices_, one_memory_);
    GraphCallable call(graph_, {.name = graph_.name, .rewrite = rewrite});
    const GraphCallable::Prepared made = call.prepare(shapes_);
    const SplitReport report = rewrite->report();
    plan_.buckets = rewrite->buckets();
    plan_.whole = report.whole;
    plan_.bytes_per_step =
        static_cast<int64_t>(made.plan->info().copied_bytes) +
        library_bytes(made.plan->graph());
    const PlanPrediction p = predict_plan(*made.plan, may_measure_);
    const bool known = p.costs.known;
    plan_.step_us = known ? p.step_us : 0;
    if (core_->tasks().several()) plan_sums(made.plan->graph());
    if (core_->pipeline() != nullptr) {
      const auto parts = static_cast<int>(report.examples.size());
      plan_.pipeline = plan_pipeline(*core_->pipeline(), graph_, *made.plan, p,
                                     std::max(1, parts));
    }
    const std::vector<int> shares = core_->shares();
    const auto rows = work_of(*made.plan, *made.placed).report.devices;
    for (size_t r = 0; r < core_->replicas().size(); ++r) {
      StrategyPlan::ReplicaShare share;
      const size_t of_all = r + static_cast<size_t>(core_->first_here());
      share.replica = static_cast<int>(of_all);
      if (plan_.pipeline) {
        share.examples = plan_.batch;
      } else if (of_all < report.examples.size()) {
        share.examples = report.examples[of_all];
      }
      if (of_all < shares.size()) share.slices = shares[of_all];
      for (const Device* d : core_->replicas()[r]) {
        share.devices.push_back(d->str());
        if (known) add_times(*made.plan, p, d->str(), share);
        for (const placement::DeviceRow& row : rows) {
          if (row.device != d->str()) continue;
          share.peak_bytes += row.peak_bytes;
          if (plan_.pipeline) {
            plan_.pipeline->peak_bytes.push_back(row.peak_bytes);
          }
          note_limit(row, const_cast<Device*>(d)->allocator().info());
        }
      }
      plan_.replicas.push_back(std::move(share));
    }
  }

  void note_limit(const placement::DeviceRow& row, const MemoryInfo& memory) {
    const auto limit = static_cast<int64_t>(memory.limit_bytes);
    if (limit == 0 || row.peak_bytes <= limit) return;
    plan_.too_small.push_back({row.device, row.peak_bytes, limit});
  }

  void add_times(const Plan& plan, const PlanPrediction& p,
                 const std::string& device, StrategyPlan::ReplicaShare& share) {
    const int32_t at = p.costs.costs.find(device);
    const double adding = adding_us(plan, p, at);
    share.compute_us += p.simulation.busy_us[at] - adding;
    plan_.all_reduce_us = std::max(plan_.all_reduce_us, adding);
  }

  // Sums between tasks, none of which overlaps with computation: on one core
  // nothing does.
  void plan_sums(const Graph& graph) {
    const int ranks = core_->tasks().ranks();
    local_us_ = plan_.step_us;
    double bytes = 0, given = 0;
    bool ordered = false;
    for (const Node& n : graph.nodes) {
      if (n.op->name() != "_TaskEnd") continue;
      ++sums_;
      const auto of_sum = static_cast<double>(task_bytes(n));
      const size_t parts = ordered_parts(graph[n.inputs[0].node]);
      ordered = ordered || parts > 0;
      bytes += of_sum;
      given += of_sum * static_cast<double>(std::max(parts, size_t{1}));
    }
    const cluster::Member* member =
        core_->link() ? &core_->link()->member() : nullptr;
    std::vector<TaskId> tasks;
    if (member) tasks = member->ranks();
    sum_ = rate_of_sum(ranks, member ? hosts_of(member->spec(), tasks) : 1,
                       ordered);
    plan_.exchange_measured = sum_.first.origin == CostOrigin::kMeasured;
    plan_.exchange_us = sum_.us(sums_, given);
    if (plan_.step_us > 0) plan_.step_us += plan_.exchange_us;
    sum_bytes_ = given;
    for (size_t r = 0; r < tasks.size(); ++r) {
      const TaskId& from = tasks[r];
      const TaskId& to = tasks[(r + 1) % tasks.size()];
      const LinkCost link = rate_between(member->spec(), from, to);
      plan_.links.push_back(
          {from.str(), to.str(), static_cast<int64_t>(bytes),
           sums_ * link.latency_us + bytes / link.bytes_per_us,
           link.origin == CostOrigin::kMeasured});
    }
  }

  // The step of so many tasks with the devices of this one: what is computed
  // grows along the line through what this task and what one device have.
  void count_tasks() {
    const int n = core_->tasks().ranks();
    if (plan_.step_us <= 0 || plan_.one_device_us <= 0) return;
    int64_t here = 0;
    for (const auto& r : plan_.replicas) here += r.examples;
    if (here <= 0 || here >= plan_.batch) return;
    const auto batch = static_cast<double>(plan_.batch);
    const auto part = static_cast<double>(here);
    const bool alike = devices_.size() == 1;
    const double per_example =
        alike
            ? std::max(0.0, (plan_.one_device_us - local_us_) / (batch - part))
            : local_us_ / part;
    std::set<int> counts{n};
    for (int k = 1; k <= 2 * n; k *= 2) counts.insert(k);
    for (const int k : counts) {
      double us = local_us_ + per_example * (batch / k - part);
      if (k > 1) {
        us += sums_ * sum_.first.latency_us * (k - 1) / (n - 1) +
              sum_.us(0, sum_bytes_) * ring_bytes(1, k) / ring_bytes(1, n);
      }
      plan_.task_counts.push_back({k, k == n ? plan_.step_us : us});
    }
  }

  void plan_one_device() {
    if (plan_.pipeline) {
      plan_.one_device = "its stages one after the other";
      for (const StrategyPlan::Stage& s : plan_.pipeline->stages) {
        plan_.one_device_us +=
            (s.forward_us + s.backward_us) * plan_.pipeline->micro_batches;
      }
      return;
    }
    Device& home = *devices_[0];
    if (devices_.size() == 1 && !core_->tasks().several()) {
      plan_.one_device = home.short_name();
      plan_.one_device_us = plan_.step_us;
      return;
    }
    if (core_->shard_plan().divides()) {
      plan_.one_device = "one device that holds everything";
      for (const auto& r : plan_.replicas) plan_.one_device_us += r.compute_us;
      return;
    }
    const int cores = cores_of(devices_);
    const int slices = std::min(cores, ThreadPool::kMaxChunks);
    GraphCallable call(graph_, {.name = graph_.name,
                                .rewrite = std::make_shared<OneDeviceRewrite>(
                                    home.str(), slices)});
    const auto plan = call.prepare(shapes_).plan;
    PlanPrediction p = predict_plan(*plan, may_measure_);
    plan_.one_device = home.short_name();
    if (p.costs.known) plan_.one_device_us = p.step_us;
    if (cores == 0) return;
    plan_.one_device =
        fmt::format("one device with {} core{}", cores, cores == 1 ? "" : "s");
    if (!p.costs.known) return;
    plan_.one_device_us = on_cores_us(*plan, p, home, cores);
  }

  const std::shared_ptr<StrategyCore> core_;
  const std::vector<Device*> devices_;
  const bool one_memory_;
  const bool may_measure_;
  const int slices_;
  Graph graph_;
  std::vector<Shape> shapes_;
  StrategyPlan plan_;
  // These are for several tasks alone.
  SumRate sum_;
  double local_us_ = 0, sum_bytes_ = 0;
  int sums_ = 0;
};

}  // namespace

std::vector<std::string> unwritten(const Graph& graph,
                                   const std::vector<Variable>& variables) {
  std::set<const VariableState*> written;
  for (const Node& n : graph.nodes) {
    for (size_t i = 0; i < n.inputs.size(); ++i) {
      if (graph.spec(n.inputs[i]).dtype != resource) continue;
      if (!writes(n.op->input(static_cast<int>(i)).access)) continue;
      const Node* handle = variable_behind(graph, n.inputs[i]);
      if (handle) written.insert(&variable_state(handle->variable));
    }
  }
  std::vector<std::string> names;
  for (const Variable& v : variables) {
    if (!written.contains(&variable_state(v.handle()))) {
      names.push_back(v.name());
    }
  }
  return names;
}

std::vector<StrategyPlan::Bucket> buckets_of(
    const Graph& graph, int64_t pack_bytes, bool one_memory,
    const std::vector<DeviceId>& devices) {
  if (pack_bytes <= 0) pack_bytes = kDefaultPack;
  const auto users = graph.users();
  // The variables that a value ends up in, through nodes that keep its bytes.
  const auto updates = [&](ValueRef v) {
    std::vector<std::string> names;
    for (const int32_t user : users[v.node]) {
      const Node& n = graph[user];
      const bool reads = std::count(n.inputs.begin(), n.inputs.end(), v) > 0;
      if (!reads || n.inputs.empty()) continue;
      if (graph.spec(n.inputs[0]).dtype != resource) continue;
      const Node* handle = variable_behind(graph, n.inputs[0]);
      if (handle == nullptr) continue;
      const std::string& name = variable_state(handle->variable).name;
      if (n.op->update()) names.push_back(name);
    }
    return names;
  };
  std::vector<StrategyPlan::Bucket> buckets;
  bool ordered = false, library = true;
  size_t replicas = 0;
  for (int32_t i = 0; i < graph.size(); ++i) {
    const Node& n = graph[i];
    const bool tasks = n.op->name() == "_TaskReduce";
    if (n.op->name() != "_AllReduce" && !tasks) continue;
    // Other results update the mirrors of the same variables.
    const std::vector<std::string> names = updates({i, 0});
    if (names.empty()) continue;
    const OutSpec& spec = n.outputs[0];
    const int64_t bytes =
        spec.shape.num_elements() * static_cast<int64_t>(size_of(spec.dtype));
    std::string algorithm =
        tasks ? kBetweenTasks
              : n.op->attr<std::string>(n.attrs.get(), "algorithm");
    ordered =
        !n.op->attr<std::vector<int64_t>>(n.attrs.get(), "starts").empty();
    replicas = n.outputs.size();
    library = library && replicas == devices.size() &&
              share_library(devices, spec.dtype);
    if (one_memory && !tasks) algorithm = "shared memory";
    if (buckets.empty() || buckets.back().algorithm != algorithm ||
        buckets.back().bytes + bytes > pack_bytes) {
      buckets.push_back({{}, 0, algorithm});
    }
    buckets.back().bytes += bytes;
    buckets.back().variables.insert(buckets.back().variables.end(),
                                    names.begin(), names.end());
  }
  for (StrategyPlan::Bucket& b : buckets) {
    if (one_memory || b.algorithm == kBetweenTasks) continue;
    b.algorithm = choose_algorithm(b.algorithm, {.bytes = b.bytes,
                                                 .givers = replicas,
                                                 .takers = replicas,
                                                 .both = replicas,
                                                 .ordered = ordered,
                                                 .library = library});
  }
  return buckets;
}

std::string advice_for(const StrategyPlan& plan, bool one_memory) {
  const size_t n = plan.replicas.size();
  if (n < 2 || plan.step_us <= 0 || plan.one_device_us <= 0 ||
      plan.speed_up() >= kWorthIt) {
    return "";
  }
  if (one_memory) {
    return fmt::format("{} replicas on one memory bus: {:.1f}x; use {}", n,
                       plan.speed_up(), plan.one_device);
  }
  return fmt::format(
      "{} replicas: {:.1f}x, {:.0f} % of the step adds gradients; use {} or a "
      "larger batch",
      n, plan.speed_up(), 100 * plan.all_reduce_us / plan.step_us,
      plan.one_device);
}

std::string advice_for_tasks(const StrategyPlan& plan, int tasks) {
  double now = 0, one = 0;
  StrategyPlan::TaskCount best;
  for (const StrategyPlan::TaskCount& c : plan.task_counts) {
    if (c.tasks == tasks) now = c.step_us;
    if (c.tasks == 1) one = c.step_us;
    if (best.tasks == 0 || c.step_us < best.step_us) best = c;
  }
  if (now <= 0 || one <= 0) return "";
  const double share = 100 * plan.exchange_us / now;
  if (one / now < kWorthIt) {
    return fmt::format(
        "{} tasks: {:.1f}x one, {:.0f} % of the step are sums between tasks; "
        "use one task or a larger batch",
        tasks, one / now, share);
  }
  if (best.tasks > tasks && now / best.step_us >= kWorthIt) {
    return fmt::format("more tasks pay: {} would be {:.1f}x as fast",
                       best.tasks, now / best.step_us);
  }
  return fmt::format(
      "more tasks do not pay: {:.0f} % of the step are sums between tasks",
      share);
}

StrategyPlan plan_step(const std::shared_ptr<StrategyCore>& core,
                       const StepToPlan& step, bool may_measure) {
  start_shares(*core);
  return Planner(core, step, may_measure).run();
}

// Between one example for each replica and what does not fit, by halves: what
// a step holds grows with its batch.
StrategyPlan plan_batch(const std::shared_ptr<StrategyCore>& core,
                        const StepToPlan& step,
                        const std::function<StepToPlan(int64_t)>& step_of) {
  StrategyPlan plan = plan_step(core, step);
  if (plan.too_small.empty()) return plan;
  const auto fits = [&](int64_t batch) {
    return plan_step(core, step_of(batch), false).too_small.empty();
  };
  int64_t fit = core->num_replicas(), not_fit = plan.batch;
  if (fit >= not_fit || !fits(fit)) return plan;
  while (not_fit - fit > 1) {
    const int64_t batch = fit + (not_fit - fit) / 2;
    (fits(batch) ? fit : not_fit) = batch;
  }
  plan.largest_batch = fit;
  return plan;
}

}  // namespace berth::distribute
