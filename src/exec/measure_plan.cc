#include "exec/measure_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <mutex>
#include <set>
#include <utility>

#include "base/clock.h"
#include "base/immortal.h"
#include "base/thread_pool.h"
#include "device/device_manager.h"
#include "exec/measure_costs.h"
#include "exec/measure_machine.h"
#include "exec/measure_op.h"
#include "exec/regions.h"
#include "exec/runners.h"
#include "graph/body.h"
#include "op/dispatcher.h"
#include "place/cost_store.h"
#include "tensor/tensor_impl.h"

namespace berth {

namespace {

constexpr size_t kFewestRounds = 5, kFewestOfSlow = 2, kMostRounds = 500;

// A run whose variables, arguments and results are zeros of its own.
class Rehearsal {
 public:
  explicit Rehearsal(const Program& program)
      : program_(program), run_(program) {
    for (size_t d = 0; d < program.devices.size(); ++d) {
      run_.arena_base[d] = zeros(static_cast<int>(d), program.arena_bytes[d]);
    }
    for (size_t b = 0; b < program.buffers.size(); ++b) {
      const PlanBuffer& buffer = program.buffers[b];
      std::byte*& base = run_.bases[b];
      if (buffer.where == Where::kConst) {
        base = program.constants[buffer.index].impl()->data();
      } else if (buffer.where != Where::kArena) {
        base = zeros(buffer.device, buffer.bytes);
      } else if (std::byte* arena = run_.arena_base[buffer.device]) {
        base = arena + buffer.offset;
      }
    }
    run_.resolve();
  }

  // Times of the regions of a device, as its own thread runs them.
  void measure(int device, double budget_ms, std::vector<OpTime>& times) {
    samples_.assign(program_.steps.size(), {});
    last_us_ = host_clock_us() + 1000 * budget_ms;
    device_ = device;
    Work work;
    work.context = this;
    work.what = "a measurement";
    work.run = [](void* context, Stream&) {
      static_cast<Rehearsal*>(context)->run_rounds();
    };
    Stream& stream = program_.devices[device]->plan_stream();
    stream.launch(work);
    stream.synchronize(stream.record());
    for (size_t s = 0; s < samples_.size(); ++s) {
      std::vector<double>& v = samples_[s];
      if (v.size() < fewest_) continue;
      std::sort(v.begin(), v.end());
      // The lowest tenth: others may have had the cores meanwhile.
      const double us = std::max(v[v.size() / 10], 0.01);
      const double quartiles = v[v.size() * 3 / 4] - v[v.size() / 4];
      times[s] = {us, static_cast<float>(quartiles / 2 / us),
                  CostOrigin::kMeasured};
    }
  }

 private:
  // Empty for memory that the host may not touch.
  std::byte* zeros(int device, size_t bytes) {
    Device& d = *program_.devices[device];
    if (!d.memory().host_addressable || bytes == 0) return nullptr;
    memory_.push_back(
        make_tensor(d, uint8, Shape({static_cast<int64_t>(bytes)})));
    std::byte* data = memory_.back().impl()->data();
    d.fill_async(d.compute_stream(), data, 0, bytes);
    return data;
  }

  bool runs(const PlanStep& step) const {
    return step.device == device_ && step.kind == StepKind::kKernel &&
           std::find(failed_.begin(), failed_.end(), &step) == failed_.end();
  }

  void run_rounds() {
    fewest_ = kFewestRounds;
    for (size_t round = 0; round <= kMostRounds; ++round) {
      const bool late = host_clock_us() > last_us_;
      // Steps that take that long are not worth waiting for more of them.
      if (round == 1 && late) fewest_ = kFewestOfSlow;
      if (round > fewest_ && late) return;
      for (size_t s = 0; s < program_.steps.size(); ++s) {
        if (!runs(program_.steps[s])) continue;
        const double begin = host_clock_us();
        try {
          run_step(program_.steps[s], run_);
        } catch (const std::exception&) {
          failed_.push_back(&program_.steps[s]);
          samples_[s].clear();
          continue;
        }
        // The first round warms up.
        if (round > 0) samples_[s].push_back(host_clock_us() - begin);
      }
    }
  }

  const Program& program_;
  ProgramRun run_;
  std::vector<Tensor> memory_;
  std::vector<std::vector<double>> samples_;
  std::vector<const PlanStep*> failed_;
  double last_us_ = 0;
  int device_ = -1;
  size_t fewest_ = kFewestRounds;
};

uint64_t digest(const std::string& text) {
  uint64_t h = 14695981039346656037u;
  for (const char c : text) {
    h = (h ^ static_cast<unsigned char>(c)) * 1099511628211u;
  }
  return h;
}

// The device a step runs on, as the costs number it.
int32_t device_of(const Program& p, const PlanStep& step, const Machine& m) {
  return m.find(p.devices[step.device]->str());
}

// The plan's own order of ops, for the simulator.
PlacePlan order_of(const Plan& plan, const Machine& machine) {
  const Program& p = plan.program();
  PlacePlan order = plan_of(plan.graph(), machine);
  order.sequence.clear();
  for (const PlanStep& step : p.steps) {
    if (step.kind == StepKind::kTransfer) continue;
    for (int k = step.first_op; k < step.first_op + step.num_ops; ++k) {
      const int32_t node = p.ops[k].node;
      if (takes_time(plan.graph()[node])) order.sequence.push_back(node);
    }
  }
  return order;
}

// The member that the time of a region stands at; -1: none computes.
int32_t last_member(const Program& p, const PlanStep& step) {
  for (int k = step.first_op + step.num_ops - 1; k >= step.first_op; --k) {
    if (p.ops[k].kind == StepKind::kKernel) return p.ops[k].node;
  }
  return -1;
}

void put_times(const Program& p, const std::vector<OpTime>& times,
               CostTable& costs) {
  const size_t classes = costs.classes.size();
  for (size_t s = 0; s < p.steps.size(); ++s) {
    const PlanStep& step = p.steps[s];
    const int32_t last = last_member(p, step);
    if (times[s].origin == CostOrigin::kNone || last < 0) continue;
    const int32_t c = costs.devices[device_of(p, step, costs)].device_class;
    for (int k = step.first_op; k < step.first_op + step.num_ops; ++k) {
      const int32_t node = p.ops[k].node;
      OpTime& at = costs.times[static_cast<size_t>(node) * classes + c];
      at = node == last ? times[s] : OpTime{0, 0, CostOrigin::kMeasured};
    }
  }
}

// What a region reads and writes beyond what its device's caches hold.
double bus_bytes(const Program& p, const PlanStep& step) {
  std::map<std::pair<int, size_t>, double> views;  // by buffer and offset
  const int calls = step.parts > 1 ? step.calls_per_part * step.parts : 1;
  for (int c = step.first_call; c < step.first_call + calls; ++c) {
    const PlanCall& call = p.calls[c];
    for (int k = 0; k < call.num_in + call.num_out; ++k) {
      const Operand& o = p.operands[call.first_view + k];
      if (o.buffer < 0 || p.buffers[o.buffer].scratch) continue;
      double& bytes = views[{o.buffer, o.offset}];
      bytes = std::max(bytes, static_cast<double>(o.shape->num_elements()) *
                                  static_cast<double>(size_of(o.dtype)));
    }
  }
  double bytes = 0;
  for (const auto& [at, of] : views) bytes += of;
  return std::max(0.0, bytes - cache_bytes_of(*p.devices[step.device]));
}

void put_bus_bytes(const Plan& plan, CostTable& costs) {
  const Program& p = plan.program();
  if (costs.buses.empty()) return;
  costs.bus_bytes.assign(plan.graph().nodes.size(), 0);
  for (const PlanStep& step : p.steps) {
    const int32_t last = last_member(p, step);
    if (last >= 0) costs.bus_bytes[last] = bus_bytes(p, step);
  }
}

// A sum of four numbers on each of several devices.
Graph tiny_sums(const std::vector<Device*>& devices) {
  const OutSpec four{float32, Shape({4})};
  Graph g;
  Node arg;
  arg.op = &op_named("_Arg");
  arg.name = "x";
  set_arg(arg, 0, four.dtype, four.shape);
  arg.assigned = devices[0]->id();
  g.args.push_back(g.add(std::move(arg)));
  for (const Device* d : devices) {
    Node n;
    n.op = &op_named("AddV2");
    n.name = "sum_" + d->short_name();
    n.inputs = {{g.args[0], 0}, {g.args[0], 0}};
    n.outputs = {four};
    n.assigned = d->id();
    g.outputs.push_back({g.add(std::move(n)), 0});
  }
  return g;
}

// What a run takes beside its regions: to hand work to the threads of devices,
// and to wait for the last of them.
double around_us(const std::vector<Device*>& devices) {
  if (devices.empty()) return 0;
  static std::mutex mutex;
  static auto& known = immortal<std::map<std::vector<Device*>, double>>();
  {
    std::lock_guard lock(mutex);
    if (const auto it = known.find(devices); it != known.end()) {
      return it->second;
    }
  }
  const DispatchGuard outside(nullptr);
  std::vector<double> us;
  try {
    const auto plan = Plan::build(tiny_sums(devices), {});
    const Tensor x =
        make_tensor(DeviceManager::get().host(), float32, Shape({4}));
    std::memset(x.impl()->data(), 0, 4 * sizeof(float));
    const Tensor* in[] = {&x};
    std::vector<Tensor> out(devices.size());
    for (int i = 0; i < 300; ++i) {
      const double begin = host_clock_us();
      plan->run(in, out);
      us.push_back(host_clock_us() - begin);
    }
  } catch (const errors::Error&) {
    return 0;  // a device that has failed: not ours to say
  }
  std::sort(us.begin(), us.end());
  std::lock_guard lock(mutex);
  return known[devices] = us[us.size() / 10];
}

// True when a time of every kernel of the plan is known, not estimated.
// Regions were measured whole; elsewhere, each op has its own. Rates that are
// declared are true by definition.
bool all_known(const Program& p, const CostTable& costs) {
  for (const PlanStep& step : p.steps) {
    if (step.kind == StepKind::kControl) return false;
    if (step.kind != StepKind::kKernel) continue;
    const int32_t d = device_of(p, step, costs);
    if (costs.class_of(d).origin == CostOrigin::kDeclared) continue;
    for (int k = step.first_op; k < step.first_op + step.num_ops; ++k) {
      if (p.ops[k].kind != StepKind::kKernel) continue;
      const CostOrigin origin = costs.time(p.ops[k].node, d).origin;
      if (origin != CostOrigin::kMeasured) return false;
    }
  }
  return true;
}

// True when a device has a region that is neither kept nor like one measured
// just now: of equal devices, one is measured.
bool has_news(const Program& p, int device,
              const std::vector<std::string>& keys,
              const std::vector<OpTime>& so_far) {
  std::set<std::string> measured;
  for (size_t s = 0; s < so_far.size(); ++s) {
    if (so_far[s].origin != CostOrigin::kNone) measured.insert(keys[s]);
  }
  for (size_t s = 0; s < p.steps.size(); ++s) {
    const PlanStep& step = p.steps[s];
    if (step.device != device || step.kind != StepKind::kKernel) continue;
    if (keys[s].empty() ||
        (!measured.contains(keys[s]) && !CostStore::get().find_op(keys[s]))) {
      return true;
    }
  }
  return false;
}

// Keeps what was measured. Regions that are alike take what the fastest of them
// took.
void keep(const std::vector<std::string>& keys, std::vector<OpTime>& times) {
  std::map<std::string, OpTime> best;
  for (size_t s = 0; s < times.size(); ++s) {
    if (times[s].origin == CostOrigin::kNone || keys[s].empty()) continue;
    const auto [it, fresh] = best.try_emplace(keys[s], times[s]);
    if (times[s].us < it->second.us) it->second = times[s];
  }
  for (const auto& [key, time] : best) CostStore::get().add_op(key, time);
  CostStore::get().save();
  for (size_t s = 0; s < times.size(); ++s) {
    if (const auto it = best.find(keys[s]); it != best.end()) {
      times[s] = it->second;
    }
  }
}

}  // namespace

std::string region_key(Plan& plan, int step, const Machine& machine) {
  const Program& p = plan.program();
  const PlanStep& s = p.steps[static_cast<size_t>(step)];
  const int32_t device = device_of(p, s, machine);
  if (s.kind != StepKind::kKernel || device < 0) return "";
  std::string text = fmt::format("{} parts {}", s.parts, s.forks ? "fork" : "");
  for (int k = s.first_op; k < s.first_op + s.num_ops; ++k) {
    if (p.ops[k].kind != StepKind::kKernel) continue;
    const std::string key = op_key(plan.graph(), p.ops[k].node,
                                   p.ops[k].def() ? p.ops[k].def()->label : "");
    if (key.empty()) return "";
    text += "; " + key;
  }
  return fmt::format("region {:016x} of {} ops on {}", digest(text), s.num_ops,
                     machine.class_of(device).name);
}

std::vector<OpTime> measure_regions(
    Plan& plan, double budget_ms,
    const std::function<bool(int, const std::vector<OpTime>&)>& wanted) {
  const Program& p = plan.program();
  std::vector<OpTime> times(p.steps.size());
  const DispatchGuard outside(nullptr);
  try {
    Rehearsal rehearsal(p);
    for (size_t d = 0; d < p.devices.size(); ++d) {
      if (p.devices[d]->pool() == nullptr) continue;
      if (wanted && !wanted(static_cast<int>(d), times)) continue;
      rehearsal.measure(static_cast<int>(d), budget_ms, times);
    }
  } catch (const errors::Error&) {
    // No memory for the scratch: what was not measured is estimated.
  }
  return times;
}

PlanCosts costs_of_plan(Plan& plan, bool may_measure, double budget_ms) {
  const Program& p = plan.program();
  if (may_measure) measure_bus();
  PlanCosts result;
  result.costs = kept_costs(plan.graph());
  result.order = order_of(plan, result.costs);
  CostStore& store = CostStore::get();
  std::vector<std::string> keys;
  std::vector<OpTime> times(p.steps.size());
  bool missing = false, known = false;
  for (size_t s = 0; s < p.steps.size(); ++s) {
    keys.push_back(region_key(plan, static_cast<int>(s), result.costs));
    if (p.devices[p.steps[s].device]->pool() == nullptr) continue;
    const auto kept = keys[s].empty() ? std::nullopt : store.find_op(keys[s]);
    if (kept) times[s] = *kept;
    known |= kept.has_value();
    missing |= !kept && p.steps[s].kind == StepKind::kKernel;
  }
  if (missing && may_measure) {
    std::vector<OpTime> fresh =
        measure_regions(plan, budget_ms, [&](int device, const auto& so_far) {
          return has_news(p, device, keys, so_far);
        });
    keep(keys, fresh);
    for (size_t s = 0; s < fresh.size(); ++s) {
      if (fresh[s].origin != CostOrigin::kNone) times[s] = fresh[s];
    }
  }
  put_times(p, times, result.costs);
  put_bus_bytes(plan, result.costs);
  result.known = all_known(p, result.costs);
  std::vector<Device*> hosts;
  for (Device* d : p.devices) {
    if (d->pool() != nullptr) hosts.push_back(d);
  }
  if (known || may_measure) result.around_us = around_us(hosts);
  return result;
}

PlanPrediction predict_plan(Plan& plan, bool may_measure, double budget_ms) {
  PlanPrediction p;
  p.costs = costs_of_plan(plan, may_measure, budget_ms);
  const SimulatedGraph graph(plan.graph());
  p.simulation = simulate(graph, p.costs.costs, p.costs.order);
  p.step_us = p.simulation.step_us + p.costs.around_us;
  return p;
}

double on_cores_us(Plan& plan, PlanPrediction& p, const Device& device,
                   int cores) {
  const Program& impl = plan.program();
  const int own = const_cast<Device&>(device).pool()->size();
  CostTable& costs = p.costs.costs;
  const int32_t d = costs.find(device.str());
  const auto c = static_cast<size_t>(costs.devices[d].device_class);
  for (const PlanStep& step : impl.steps) {
    const int32_t last = last_member(impl, step);
    if (last < 0 || step.parts < 2 || !step.forks) continue;
    OpTime& t =
        costs.times[static_cast<size_t>(last) * costs.classes.size() + c];
    const double alone = own > 1 ? std::max(t.us - kForkUs, 0.0) : t.us;
    // Whole parts go to cores.
    const auto rounds = [&](int on) { return (step.parts + on - 1) / on; };
    double us = alone * rounds(cores) / rounds(std::min(own, step.parts));
    if (!costs.bus_bytes.empty() && costs.devices[d].bus >= 0) {
      us = std::max(us, costs.bus_bytes[last] /
                            costs.buses[costs.devices[d].bus].bytes_per_us);
    }
    t.us = us + (cores > 1 ? kForkUs : 0);
  }
  const SimulatedGraph graph(plan.graph());
  p.simulation = simulate(graph, costs, p.costs.order);
  p.step_us = p.simulation.step_us + p.costs.around_us;
  return p.step_us;
}

}  // namespace berth
