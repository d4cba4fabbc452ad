#include "exec/measure_costs.h"

#include <algorithm>
#include <chrono>
#include <unordered_set>

#include "device/device_manager.h"
#include "exec/measure_machine.h"
#include "exec/measure_op.h"
#include "op/kernel.h"
#include "place/cost_store.h"

namespace berth {

namespace {

// The kernel that would be tried first is part of what the time depends on.
std::string where_text(const Graph& graph, int32_t node, const Device& device,
                       const DeviceClass& on) {
  const Node& n = graph[node];
  std::vector<SpecView> in;
  for (const ValueRef& v : n.inputs) in.push_back(graph.spec(v).view());
  const DType dtype = kernel_dtype(in, n.outputs);
  std::string label = "lowered";
  for (const KernelDef& def : device.kernels().candidates(*n.op)) {
    if (!(def.dtypes & dtype_bit(dtype))) continue;
    label = def.label;
    break;
  }
  return on.name + ", " + label;
}

// One measurement to make: of a node on one device class.
struct Job {
  int32_t node = -1;
  int32_t device_class = -1;
  bool elsewhere = false;  // not where the node is
  double estimate_us = 0;
  std::string key;
};

class CostFinder {
 public:
  explicit CostFinder(const Graph& graph) : graph_(graph) {
    const Machine machine = this_machine();
    for (size_t c = 0; c < machine.classes.size(); ++c) {
      devices_.push_back(&device_of_class(machine, static_cast<int32_t>(c)));
    }
    EstimateOptions options;
    options.runs = [&](const OpDef& op, DType dtype, const DeviceClass& on) {
      for (size_t c = 0; c < machine.classes.size(); ++c) {
        if (machine.classes[c].name != on.name) continue;
        return op.id() != kDetachedOp &&
               can_run(devices_[c]->kernels(), op, dtype);
      }
      return false;
    };
    table_ = estimate_costs(graph, machine, options);
    table_.error = CostStore::get().error();
    look_up();
  }

  void measure(const MeasureOptions& options) {
    std::sort(missing_.begin(), missing_.end(), [](const Job& a, const Job& b) {
      if (a.elsewhere != b.elsewhere) return b.elsewhere;
      return a.estimate_us > b.estimate_us;
    });
    using Clock = std::chrono::steady_clock;
    const auto last =
        Clock::now() + std::chrono::duration<double>(options.budget_s);
    std::unordered_set<std::string> tried;
    int done = 0;
    for (const Job& job : missing_) {
      if (Clock::now() >= last) break;
      if (!tried.insert(job.key).second) continue;
      if (options.progress) {
        options.progress(done, static_cast<int>(missing_.size()),
                         graph_[job.node].op->name());
      }
      ++done;
      const auto t =
          measure_op(graph_, job.node, *devices_[job.device_class], options);
      if (t) CostStore::get().add_op(job.key, *t);
    }
    if (done > 0) CostStore::get().save();
    look_up();
  }

  CostTable take() { return std::move(table_); }

 private:
  // Puts what is kept in the place of estimates; notes what is missing.
  void look_up() {
    missing_.clear();
    const auto classes = static_cast<int32_t>(table_.classes.size());
    for (int32_t i = 0; i < graph_.size(); ++i) {
      if (graph_[i].op->kind() != OpKind::kCompute ||
          meets_others(*graph_[i].op)) {
        continue;
      }
      for (int32_t c = 0; c < classes; ++c) {
        OpTime& time = table_.times[static_cast<size_t>(i * classes + c)];
        const DeviceClass& on = table_.classes[c];
        if (time.origin != CostOrigin::kEstimated ||
            on.origin == CostOrigin::kDeclared) {
          continue;
        }
        std::string key =
            op_key(graph_, i, where_text(graph_, i, *devices_[c], on));
        if (key.empty()) continue;
        if (const auto kept = CostStore::get().find_op(key)) {
          time = *kept;
          continue;
        }
        const int32_t own = table_.find(graph_[i].assigned.text());
        const bool elsewhere =
            own >= 0 && table_.devices[own].device_class != c;
        missing_.push_back({i, c, elsewhere, time.us, std::move(key)});
      }
    }
  }

  const Graph& graph_;
  std::vector<Device*> devices_;  // per class
  CostTable table_;
  std::vector<Job> missing_;
};

}  // namespace

std::optional<OpTime> measure_on_class(const Graph& graph, int32_t node,
                                       const Machine& machine,
                                       int32_t device_class,
                                       const MeasureOptions& options) {
  Device& device = device_of_class(machine, device_class);
  const DeviceClass& on = machine.classes[device_class];
  const auto t = measure_op(graph, node, device, options);
  const std::string key =
      op_key(graph, node, where_text(graph, node, device, on));
  if (t && !key.empty() && on.origin != CostOrigin::kDeclared) {
    CostStore::get().add_op(key, *t);
  }
  return t;
}

CostTable kept_costs(const Graph& placed) { return CostFinder(placed).take(); }

CostTable measured_costs(const Graph& placed, const MeasureOptions& options) {
  CostFinder finder(placed);
  finder.measure(options);
  return finder.take();
}

}  // namespace berth
