#include "exec/measure_op.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <map>
#include <mutex>

#include "base/immortal.h"
#include "device/device_manager.h"
#include "exec/plan.h"
#include "graph/body.h"
#include "op/dispatcher.h"
#include "tensor/tensor_impl.h"
#include "tensor/variable_state.h"
#include "tensor/visit_dtype.h"

namespace berth {

namespace {

// Runs of a sample take so long together: on a device of streams, so much that
// what the host waits for it at the end is a small part.
constexpr double kSampleUs = 100, kStreamSampleUs = 1000;
constexpr size_t kFewestSamples = 7, kMostSamples = 31;
constexpr double kLeastUs = 0.01;  // nothing takes no time

double now_us() {
  return std::chrono::duration<double, std::micro>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

// A graph of one node (and what `prepare` makes of it) with its inputs.
class Bench {
 public:
  Bench(Device& device, const MeasureOptions& options)
      : device_(device), options_(options) {}

  // `integers`: what whole numbers are filled with.
  bool add(const Graph& graph, int32_t node, int integers) {
    Node n = graph[node];
    n.controls.clear();
    n.colocated.clear();
    n.follows = -1;
    n.requested.clear();
    n.assigned = device_.id();
    std::map<ValueRef, ValueRef> made;
    int64_t bytes = 0;
    for (ValueRef& v : n.inputs) {
      const OutSpec& spec = graph.spec(v);
      bytes += size_in_bytes(spec);
      if (bytes > kMostMeasuredBytes || !can_make(spec)) return false;
      const auto [it, fresh] = made.try_emplace(v);
      if (fresh) it->second = input(spec, integers);
      v = it->second;
    }
    for (const OutSpec& o : n.outputs) {
      bytes += size_in_bytes(o);
      if (bytes > kMostMeasuredBytes || !can_make(o) || o.dtype == resource) {
        return false;
      }
    }
    const auto outputs = static_cast<int32_t>(n.outputs.size());
    const int32_t id = graph_.add(std::move(n));
    for (int32_t o = 0; o < outputs; ++o) graph_.outputs.push_back({id, o});
    if (options_.prepare) options_.prepare(graph_);
    return true;
  }

  // An argument on `from`, brought to this device.
  void add_copy(Device& from, int64_t bytes) {
    const OutSpec spec{uint8, Shape({bytes})};
    Node n;
    n.op = &op_named("_Transfer");
    n.name = "copy";
    n.inputs = {argument(spec, from, 1)};
    n.outputs = {spec};
    n.assigned = device_.id();
    graph_.outputs = {{graph_.add(std::move(n)), 0}};
  }

  // An argument that is the result.
  void add_nothing() {
    graph_.outputs = {argument({float32, Shape({4})}, device_, 1)};
  }

  OpTime run(double budget_ms) {
    plan_ = Plan::build(std::move(graph_), {});
    results_.resize(plan_->graph().outputs.size());
    for (const Tensor& t : args_) pointers_.push_back(&t);
    const double begin = now_us(), last = begin + 1000 * budget_ms;
    const double cold = time(1);  // code and memory are
    // A clock of its own always says the same.
    if (device_.clock_us() >= 0) return {cold, 0, CostOrigin::kMeasured};
    // Cold runs may take many times longer; but this one is too long anyway.
    if (now_us() - begin > 10'000 * budget_ms) {
      return {cold, 0.5f, CostOrigin::kMeasured};
    }
    const int calls = calls_of_a_sample();
    std::vector<double> samples;
    // A few more than the budget allows: others may have had the cores.
    const auto go_on = [&] {
      const double late = now_us() - last;
      return late < 0
                 ? samples.size() < kMostSamples
                 : samples.size() < kFewestSamples && late < 4000 * budget_ms;
    };
    do {
      samples.push_back(time(calls));
    } while (go_on());
    std::sort(samples.begin(), samples.end());
    const size_t n = samples.size();
    const double median = samples[n / 2];
    const double quartiles = samples[n * 3 / 4] - samples[n / 4];
    return {median, static_cast<float>(quartiles / 2 / std::max(median, 1e-9)),
            CostOrigin::kMeasured};
  }

 private:
  int calls_of_a_sample() {
    const auto calls_for = [](double sample_us, double us) {
      return static_cast<int>(
          std::clamp(sample_us / std::max(us, 1e-3), 1.0, 10'000.0));
    };
    const double one = time(1);
    if (device_.runs_inline()) return calls_for(kSampleUs, one);
    // One run by itself is mostly the wait for it.
    return calls_for(kStreamSampleUs, time(calls_for(kStreamSampleUs, one)));
  }

  static int64_t size_in_bytes(const OutSpec& s) {
    const DType dtype = s.dtype == resource ? s.variable : s.dtype;
    return s.shape.num_elements() * static_cast<int64_t>(size_of(dtype));
  }
  static bool can_make(const OutSpec& s) {
    const DType dtype = s.dtype == resource ? s.variable : s.dtype;
    return s.shape.is_fully_defined() && size_of(dtype) > 0 &&
           s.shape.num_elements() <= kMostMeasuredBytes;
  }

  ValueRef input(const OutSpec& spec, int integers) {
    if (spec.dtype != resource) return argument(spec, device_, integers);
    const Tensor handle = make_variable(device_, "scratch", spec.variable,
                                        spec.shape, false, Site{});
    VariableState& v = variable_state(handle);
    fill(device_, v.storage->data, spec.variable, spec.shape, integers);
    Node n;
    n.op = &op_named("VarHandleOp");
    n.name = "scratch_" + std::to_string(graph_.size());
    n.attrs = AttrsRef({{"shared_name", v.name},
                        {"dtype", spec.variable},
                        {"shape", spec.shape}});
    n.outputs = {spec};
    n.variable = handle;
    n.assigned = device_.id();
    return {graph_.add(std::move(n)), 0};
  }

  ValueRef argument(const OutSpec& spec, Device& on, int integers) {
    args_.push_back(make_tensor(on, spec.dtype, spec.shape));
    fill(on, args_.back().impl()->data(), spec.dtype, spec.shape, integers);
    Node n;
    n.op = &op_named("_Arg");
    n.name = "arg_" + std::to_string(graph_.size());
    set_arg(n, static_cast<int64_t>(graph_.args.size()), spec.dtype,
            spec.shape);
    n.assigned = on.id();
    const int32_t id = graph_.add(std::move(n));
    graph_.args.push_back(id);
    return {id, 0};
  }

  // Numbers between 0.5 and 1.5, so that roots, logarithms and quotients are
  // ordinary ones; whole numbers as told, since they may be indices.
  static void fill(Device& device, void* to, DType dtype, const Shape& shape,
                   int integers) {
    const auto n = static_cast<size_t>(shape.num_elements());
    std::vector<std::byte> bytes(n * size_of(dtype));
    visit_dtype(dtype, "measuring", [&]<class T>(T) {
      uint32_t state = 1;
      for (size_t i = 0; i < n; ++i) {
        state = state * 1664525u + 1013904223u;
        const double real = 0.5 + (state >> 8) * 0x1p-24;
        const T value = convert_element<T>(
            is_inexact(dtype) ? real : static_cast<double>(integers));
        std::memcpy(&bytes[i * sizeof(T)], &value, sizeof(T));
      }
    });
    device.copy_from_host(to, bytes.data(), bytes.size());
  }

  // Microseconds per run of `calls` runs.
  double time(int calls) {
    if (device_.clock_us() >= 0) catch_up();
    const double clock = device_.clock_us(), begin = now_us();
    for (int i = 0; i < calls; ++i) plan_->run(pointers_, results_);
    synchronize(device_.compute_stream().record());
    synchronize(device_.copy_stream().record());
    const double took =
        clock >= 0 ? device_.clock_us() - clock : now_us() - begin;
    return took / calls;
  }

  // A clock of its own stands still while others work.
  void catch_up() {
    const Tensor t = make_tensor(device_, float32, Shape({1}));
    const float zero = 0;
    device_.copy_from_host(t.impl()->data(), &zero, sizeof zero);
  }

  Device& device_;
  const MeasureOptions& options_;
  Graph graph_;
  std::unique_ptr<Plan> plan_;
  Tensors args_, results_;
  std::vector<const Tensor*> pointers_;
};

// Runs `make_and_run` out of sight of traces and tapes. Empty when it throws;
// the device is then as it was before.
template <class Fn>
std::optional<OpTime> attempt(Device& device, Fn&& make_and_run) {
  const DispatchGuard outside(nullptr);
  try {
    // What failed here before is not ours to clear. (Events from before a
    // reset fail for ever, so there must be one since.)
    Work nothing;
    nothing.run = [](void*, Stream&) {};
    nothing.what = "Nothing";
    device.compute_stream().launch(nothing);
    synchronize(device.compute_stream().record());
  } catch (const std::exception&) {
    return std::nullopt;
  }
  try {
    return make_and_run();
  } catch (const std::exception&) {
    if (!device.runs_inline()) device.reset_error();
    return std::nullopt;
  }
}

OpTime less(OpTime t, double us) {
  const double whole = t.us;
  t.us = std::max(t.us - us, kLeastUs);
  // Equal microseconds are a larger share of less.
  t.spread *= static_cast<float>(std::min(whole / t.us, 100.0));
  return t;
}

}  // namespace

double empty_run_us(Device& device) {
  static std::mutex mutex;
  static auto& known = immortal<std::map<const Device*, double>>();
  {
    std::lock_guard lock(mutex);
    if (const auto it = known.find(&device); it != known.end()) {
      return it->second;
    }
  }
  const MeasureOptions options;
  // The best of three: it is the same for ever, and others may have the cores.
  double best = -1;
  for (int k = 0; k < 3; ++k) {
    const auto t = attempt(device, [&]() -> std::optional<OpTime> {
      Bench bench(device, options);
      bench.add_nothing();
      return bench.run(2);
    });
    if (t && (best < 0 || t->us < best)) best = t->us;
  }
  std::lock_guard lock(mutex);
  return known[&device] = std::max(best, 0.0);
}

std::optional<OpTime> measure_op(const Graph& graph, int32_t node,
                                 Device& device,
                                 const MeasureOptions& options) {
  if (device.name().job != "localhost") return std::nullopt;
  const Node& n = graph[node];
  if (n.op->kind() != OpKind::kCompute || n.op->id() == kDetachedOp ||
      meets_others(*n.op)) {
    return std::nullopt;
  }
  const double nothing = empty_run_us(device);
  // Zeros are indices that every array has; some ops refuse to divide by them.
  for (const int integers : {0, 1}) {
    const auto t = attempt(device, [&]() -> std::optional<OpTime> {
      Bench bench(device, options);
      if (!bench.add(graph, node, integers)) return std::nullopt;
      return less(bench.run(options.op_budget_ms), nothing);
    });
    if (t) return t;
  }
  return std::nullopt;
}

std::optional<OpTime> measure_copy(Device& from, Device& to, int64_t bytes,
                                   double budget_ms) {
  if (from.name().job != to.name().job) return std::nullopt;
  const double nothing = empty_run_us(to);
  const MeasureOptions options;
  return attempt(to, [&]() -> std::optional<OpTime> {
    Bench bench(to, options);
    bench.add_copy(from, bytes);
    return less(bench.run(budget_ms), nothing);
  });
}

}  // namespace berth
