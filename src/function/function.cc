// FunctionCore: finds or makes the trace of a signature.

#include "berth/function.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <list>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/diagnostics.h"
#include "base/immortal.h"
#include "base/live_counts.h"
#include "base/thread_pool.h"
#include "base/timeline.h"
#include "berth/errors.h"
#include "function/graph_callable.h"
#include "function/task_changes.h"
#include "graph/tracer.h"
#include "op/contract_scope.h"
#include "op/device_scope.h"
#include "op/dispatcher.h"
#include "op/watched_ops.h"
#include "ops/op_call.h"
#include "ops/random_key.h"
#include "tensor/tensor_impl.h"

namespace berth {

namespace {

constexpr size_t kMaxSignatures = 16;
constexpr int kManyTraces = 5;
constexpr int kMaxInlined = 100;  // nested functions, on the stack

// What a call hands on, kept per thread so that a warm call allocates nothing.
struct ArgumentPointers {
  std::vector<const Tensor*> list;
};

struct Signature {
  std::vector<TensorSpec> leaves;
  std::string fixed;  // signature text of the other arguments
  std::string scope;
};

bool same_leaves(const std::vector<TensorSpec>& specs, const Tensors& leaves) {
  if (specs.size() != leaves.size()) return false;
  for (size_t i = 0; i < leaves.size(); ++i) {
    if (specs[i].dtype != leaves[i].dtype() ||
        !(specs[i].shape == leaves[i].shape())) {
      return false;
    }
  }
  return true;
}

bool accepts(const std::vector<TensorSpec>& specs, const Tensors& leaves) {
  if (specs.size() != leaves.size()) return false;
  for (size_t i = 0; i < leaves.size(); ++i) {
    if (specs[i].dtype != leaves[i].dtype() ||
        !specs[i].shape.compatible_with(leaves[i].shape())) {
      return false;
    }
  }
  return true;
}

// Equal in every process.
std::string key_of(const Signature& s) {
  std::string key;
  for (const TensorSpec& leaf : s.leaves) key += leaf.str() + " ";
  for (const unsigned char c : s.fixed) key += fmt::format("{:02x}", c);
  return key + " " + s.scope;
}

}  // namespace

class FunctionCore::Impl {
 public:
  explicit Impl(FunctionOptions options) : options_(std::move(options)) {}

  struct Traced {
    Signature signature;
    std::shared_ptr<GraphCallable> callable;
    std::any structure;
    bool meets_tasks = false;
    uint64_t task_changes = g_task_changes;  // when it was traced
    double trace_seconds = 0;
    TracedRandomIds::Ids random_ids;
  };
  // No signature, or none yet.
  struct Earlier {
    TracedRandomIds::Ids random_ids;
    GraphCallable::RunCounts counts;
  };

  std::shared_ptr<Traced> find_or_trace(const Tensors& leaves,
                                        const std::string& fixed,
                                        const Body& body);
  // Null when the signature has not been traced. The caller holds the lock.
  std::shared_ptr<Traced> find(const Tensors& leaves, const std::string& fixed);
  std::shared_ptr<Traced> trace(const Tensors& leaves, const std::string& fixed,
                                const Body& body);
  std::shared_ptr<Traced> last() const {
    std::lock_guard lock(mutex_);
    if (traced_.empty()) {
      throw errors::FailedPrecondition(fmt::format(
          "{} has not been called yet; call it first", options_.name));
    }
    return traced_.front();
  }
  // The trace that ran last. A later one may be another thread's, which has not
  // come to run it, or part of the trace of another function.
  std::shared_ptr<GraphCallable> last_run() const {
    const auto front = last();
    std::lock_guard lock(mutex_);
    const auto ran = [](const auto& t) { return t->callable->has_run(); };
    const auto found = std::find_if(traced_.begin(), traced_.end(), ran);
    return (found == traced_.end() ? front : *found)->callable;
  }

  const FunctionOptions options_;
  mutable std::mutex mutex_;
  std::list<std::shared_ptr<Traced>> traced_;  // most recently used first
  std::map<std::string, Earlier> earlier_;
  int num_traces_ = 0;
};

std::shared_ptr<FunctionCore::Impl::Traced> FunctionCore::Impl::find_or_trace(
    const Tensors& leaves, const std::string& fixed, const Body& body) {
  {
    std::lock_guard lock(mutex_);
    if (auto traced = find(leaves, fixed)) return traced;
  }
  // Not under the lock: the callable is the user's, and may wait for a thread
  // that calls this function. The first of two traces of a signature is kept.
  auto fresh = trace(leaves, fixed, body);
  std::lock_guard lock(mutex_);
  if (auto traced = find(leaves, fixed)) return traced;
  traced_.push_front(fresh);
  if (traced_.size() > kMaxSignatures) {
    const Traced& oldest = *traced_.back();
    earlier_[key_of(oldest.signature)] = {oldest.random_ids,
                                          oldest.callable->run_counts()};
    traced_.pop_back();
  }
  if (++num_traces_ == kManyTraces) {
    report({"retrace", debugging::Severity::kLint,
            fmt::format("function \"{}\" was traced {} times; pass numbers "
                        "that change as tensors, or give an input_signature "
                        "with -1 for dimensions that vary",
                        options_.name, num_traces_),
            t_state.site});
  }
  return fresh;
}

std::shared_ptr<FunctionCore::Impl::Traced> FunctionCore::Impl::find(
    const Tensors& leaves, const std::string& fixed) {
  const DeviceScope* scope = t_state.scope;
  for (auto it = traced_.begin(); it != traced_.end(); ++it) {
    const Signature& s = (*it)->signature;
    const bool scope_fits =
        scope ? s.scope == scope->name.str() : s.scope.empty();
    const bool fits = options_.input_signature.empty()
                          ? same_leaves(s.leaves, leaves)
                          : accepts(s.leaves, leaves);
    if (!scope_fits || s.fixed != fixed || !fits) continue;
    if ((*it)->meets_tasks && (*it)->task_changes != g_task_changes) continue;
    if (it != traced_.begin()) traced_.splice(traced_.begin(), traced_, it);
    if (traced_.front()->meets_tasks) MeetsTasks::note();
    return traced_.front();
  }
  return nullptr;
}

std::shared_ptr<FunctionCore::Impl::Traced> FunctionCore::Impl::trace(
    const Tensors& leaves, const std::string& fixed, const Body& body) {
  const auto start = std::chrono::steady_clock::now();
  auto traced = std::make_shared<Traced>();
  traced->signature.fixed = fixed;
  if (t_state.scope) traced->signature.scope = t_state.scope->name.str();
  const bool declared = !options_.input_signature.empty();
  std::vector<TensorSpec> signature;
  for (int i = 0; i < body.copies; ++i) {
    signature.insert(signature.end(), options_.input_signature.begin(),
                     options_.input_signature.end());
  }
  if (declared && !accepts(signature, leaves)) {
    std::string got, want;
    for (const Tensor& t : leaves) got += " " + t.spec().str();
    for (const TensorSpec& s : options_.input_signature) want += " " + s.str();
    throw errors::InvalidArgument(
        fmt::format("{}: called with{}; its input_signature is{}{}",
                    options_.name, got, want, where_text()));
  }
  for (size_t i = 0; i < leaves.size(); ++i) {
    if (leaves[i].dtype() != resource) continue;
    throw errors::InvalidArgument(
        fmt::format("{}: argument {} is a Variable's handle{}; expected the "
                    "Variable, or its value()",
                    options_.name, i, where_text()));
  }
  // Only the caller's device scope reaches the trace.
  const DispatchGuard outside(nullptr);
  const ContractsSwap no_contracts(nullptr);
  const ThreadState saved = t_state;
  struct Restore {
    const ThreadState& saved;
    ~Restore() {
      t_state.layer = saved.layer;
      t_state.site = saved.site;
      t_state.follows = saved.follows;
    }
  } restore{saved};
  t_state.layer = nullptr;
  t_state.follows = -1;
  Tracer tracer(options_.name);
  Tensors args;
  for (size_t i = 0; i < leaves.size(); ++i) {
    const TensorSpec spec = declared ? signature[i] : leaves[i].spec();
    traced->signature.leaves.push_back(spec);
    args.push_back(tracer.add_arg(spec));
  }
  std::optional<Earlier> earlier;
  {
    std::lock_guard lock(mutex_);
    const auto it = earlier_.find(key_of(traced->signature));
    if (it != earlier_.end()) earlier = it->second;
  }
  TracedRandomIds ids(earlier ? std::optional(earlier->random_ids)
                              : std::nullopt);
  tracer.start();
  const MeetsTasks tasks;
  const Tensors results = body.trace(body.context, args, &traced->structure);
  traced->meets_tasks = tasks.found();
  traced->random_ids = ids.taken();
  for (const Tensor& t : results) {
    if (!t.defined() || t.dtype() != resource) continue;
    throw errors::InvalidArgument(fmt::format(
        "{}: a result is a Variable's handle; expected the Variable's value()",
        options_.name));
  }
  Graph graph = tracer.finish(results);
  traced->callable =
      std::make_shared<GraphCallable>(std::move(graph), options_);
  traced->callable->check_contract_names();
  if (earlier) traced->callable->set_run_counts(std::move(earlier->counts));
  traced->trace_seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start)
          .count();
  return traced;
}

FunctionCore::FunctionCore(FunctionOptions options)
    : impl_(std::make_unique<Impl>(std::move(options))) {
  const int slices = impl_->options_.slices;
  if (slices < 0 || slices > ThreadPool::kMaxChunks) {
    throw errors::InvalidArgument(
        fmt::format("{}: slices is {}; expected 0 (one per core) to {}",
                    impl_->options_.name, slices, ThreadPool::kMaxChunks));
  }
  for (const placement::Contract& c : impl_->options_.contract.list()) {
    const ParsedContract well_formed(c);
  }
}
FunctionCore::~FunctionCore() = default;

FunctionCore::Scratch& FunctionCore::scratch_of_this_thread() {
  return of_this_thread<Scratch>();
}

void FunctionCore::call(const Tensors& leaves, const std::string& fixed,
                        const Body& body, Tensors* results,
                        std::shared_ptr<const std::any>* structure, Site site) {
  set_site(site);
  const bool op_by_op = wants_op_by_op() && t_state.strategy == nullptr &&
                        t_state.replica == nullptr &&
                        impl_->options_.rewrite == nullptr;
  if (tracing() || op_by_op) {
    // Inside a trace, the callable becomes part of it.
    static thread_local int depth = 0;
    struct Level {
      Level() { ++depth; }
      ~Level() { --depth; }
    } level;
    if (depth > kMaxInlined) {
      throw errors::InvalidArgument(fmt::format(
          "{}: more than {} functions are called inside each other while a "
          "step is traced{}; expected a recursion that ends: a condition on a "
          "tensor cannot end it, a plain number can",
          impl_->options_.name, kMaxInlined, where_text()));
    }
    auto inlined = std::make_shared<std::any>();
    *results = body.trace(body.context, leaves, inlined.get());
    *structure = std::move(inlined);
    return;
  }
  auto traced = impl_->find_or_trace(leaves, fixed, body);
  *structure = {traced, &traced->structure};
  GraphCallable& f = *traced->callable;
  if (t_state.top == nullptr) {
    auto& pointers = of_this_thread<ArgumentPointers>().list;
    std::vector<const Tensor*> in = std::move(pointers);
    in.clear();
    for (const Tensor& t : leaves) in.push_back(&t);
    results->resize(f.output_specs().size());
    const timeline::MaybeSpan span("calls", impl_->options_.name, "call", site);
    f.call(in, *results);
    if (live_counts::is_on()) [[unlikely]]
      live_counts::add_call(impl_->options_.name);
    pointers = std::move(in);
    return;
  }
  // Under tapes: one differentiable call.
  static const OpDef& op = op_named("PartitionedCall");
  const std::shared_ptr<GraphCallable> taped = [&] {
    const ContractsSwap no_contracts(nullptr);
    return f.taped();
  }();
  Tensors args = leaves;
  for (const Tensor& v : taped->variables()) args.push_back(v);
  const AttrsRef attrs({{"f", std::shared_ptr<Callable>(taped)}});
  *results = call_list(op, args, attrs.get());
  results->resize(f.output_specs().size());
}

std::string FunctionCore::text(const std::string& stage) const {
  const GraphCallable::Stages s = impl_->last()->callable->stages();
  if (stage == "trace") return s.traced;
  if (stage == "optimize") return s.optimized;
  if (stage == "place") return s.placed;
  if (stage == "plan") return s.plan;
  throw errors::InvalidArgument(fmt::format(
      "there is no stage '{}'; expected trace, optimize, place or plan",
      stage));
}

FunctionPlanInfo FunctionCore::plan_info() const {
  const auto last = impl_->last();
  FunctionPlanInfo info = last->callable->plan_info();
  info.trace_seconds = last->trace_seconds;
  return info;
}

placement::Report FunctionCore::placement() const {
  return impl_->last_run()->placement();
}

std::vector<placement::Report> FunctionCore::placements() const {
  std::vector<std::shared_ptr<Impl::Traced>> traced;
  {
    std::lock_guard lock(impl_->mutex_);
    traced.assign(impl_->traced_.begin(), impl_->traced_.end());
  }
  std::vector<placement::Report> reports;
  for (const auto& t : traced) {
    for (placement::Report& r : t->callable->placements()) {
      reports.push_back(std::move(r));
    }
  }
  return reports;
}

placement::Explanation FunctionCore::explain(const std::string& op) const {
  return impl_->last_run()->explain(op);
}

int FunctionCore::num_traces() const {
  std::lock_guard lock(impl_->mutex_);
  return impl_->num_traces_;
}

std::string FunctionCore::random_state() const {
  std::map<std::string, Impl::Earlier> all;
  {
    std::lock_guard lock(impl_->mutex_);
    all = impl_->earlier_;
    for (const auto& t : impl_->traced_) {
      all[key_of(t->signature)] = {t->random_ids, t->callable->run_counts()};
    }
  }
  nlohmann::json list = nlohmann::json::object();
  for (const auto& [key, e] : all) {
    list[key] = {{"seed", e.random_ids.seed},
                 {"ids", e.random_ids.ids},
                 {"at_once", e.random_ids.at_once},
                 {"runs", e.counts}};
  }
  using nlohmann::json;
  return list.dump(-1, ' ', false, json::error_handler_t::replace);
}

void FunctionCore::set_random_state(const std::string& text) {
  std::map<std::string, Impl::Earlier> all;
  try {
    const nlohmann::json list = nlohmann::json::parse(text);
    for (const auto& [key, e] : list.items()) {
      Impl::Earlier& one = all[key];
      e.at("seed").get_to(one.random_ids.seed);
      e.at("ids").get_to(one.random_ids.ids);
      e.at("at_once").get_to(one.random_ids.at_once);
      e.at("runs").get_to(one.counts);
    }
  } catch (const nlohmann::json::exception& error) {
    throw errors::InvalidArgument(
        fmt::format("{}: this is no random state of a function ({}); expected "
                    "what random_state() returned",
                    impl_->options_.name, error.what()));
  }
  std::lock_guard lock(impl_->mutex_);
  // Trace again what had other numbers then, or did not exist then.
  std::erase_if(impl_->traced_, [&](const auto& t) {
    const auto it = all.find(key_of(t->signature));
    const bool known = it != all.end();
    const bool same = known && t->random_ids.ids == it->second.random_ids.ids &&
                      t->random_ids.seed == it->second.random_ids.seed;
    if (!t->random_ids.ids.empty() && !same) return true;
    t->callable->set_run_counts(known ? it->second.counts
                                      : GraphCallable::RunCounts{});
    if (known) all.erase(it);
    return false;
  });
  impl_->earlier_ = std::move(all);
}

}  // namespace berth
