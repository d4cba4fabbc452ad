#include "distribute/multi_worker/step_consensus.h"

#include <fmt/format.h>

#include <cstring>

#include "berth/errors.h"
#include "device/device_manager.h"
#include "device/memory_space.h"
#include "graph/body.h"
#include "op/device_scope.h"
#include "op/dispatcher.h"
#include "ops/op_call.h"
#include "tensor/variable_state.h"

namespace berth::distribute {

namespace {

constexpr const char* kAgreeChannel = "agree";
constexpr size_t kMostHashedBytes = 64 << 10;  // of a constant

class StepHash {
 public:
  uint64_t of(const Graph& graph) {
    for (const Node& n : graph.nodes) add(n);
    for (const ValueRef& v : graph.outputs) add(v);
    return hash_;
  }

 private:
  void add(uint64_t x) { hash_ = (hash_ ^ x) * 1099511628211ull; }
  void add(const ValueRef& v) {
    add(static_cast<uint64_t>(v.node));
    add(static_cast<uint64_t>(v.output));
  }
  void add_text(const std::string& s) {
    for (const char c : s) add(static_cast<uint64_t>(c));
  }

  void add(const Node& n) {
    add_text(n.op->name());
    for (const ValueRef& v : n.inputs) add(v);
    for (const OutSpec& o : n.outputs) {
      add(static_cast<uint64_t>(o.dtype));
      for (const int64_t d : o.shape) add(static_cast<uint64_t>(d));
    }
    const Attrs* attrs = n.attrs.get();
    for (size_t i = 0; attrs != nullptr && i < attrs->pairs().size(); ++i) {
      add_attr(attrs->pairs()[i]);
    }
    visit_bodies(n, [&](const std::string&, const Graph& body) { of(body); });
  }

  void add_attr(const Attrs::Pair& pair) {
    const auto& [name, value] = pair;
    if (name == "seed" || name == "op_id" || name == "shared_name") return;
    if (std::holds_alternative<std::shared_ptr<Callable>>(value)) return;
    add_text(name);
    const auto* tensor = std::get_if<Tensor>(&value);
    if (tensor == nullptr) return add(hash_value(value));
    if (!tensor->defined() || tensor->is_symbolic()) return;
    const TensorImpl& t = *tensor->impl();
    const size_t bytes = t.size_bytes();
    const bool here =
        same_memory(*t.block->device, DeviceManager::get().host());
    if (!here || bytes > kMostHashedBytes || tensor->dtype() == string_) return;
    const auto* at = reinterpret_cast<const unsigned char*>(t.data());
    for (size_t i = 0; i < bytes; ++i) add(uint64_t{at[i]});
  }

  uint64_t hash_ = 14695981039346656037ull;
};

// Calls `fn`, which reads or sets numbers, for every random op, in bodies too.
template <class Fn>
void visit_random(Graph& graph, const Fn& fn) {
  for (Node& n : graph.nodes) {
    if (n.op->random()) fn(n);
    rewrite_bodies(n, [&](const std::string&, Graph& body) {
      visit_random(body, fn);
      return true;
    });
  }
}

void agree_on_random_numbers(CollectiveExecutor& link, Graph& graph) {
  std::vector<int64_t> keys;
  const auto is_key = [](const Attrs::Pair& p) {
    return (p.first == "seed" || p.first == "op_id") &&
           std::holds_alternative<int64_t>(p.second);
  };
  visit_random(graph, [&](Node& n) {
    if (n.attrs.get() == nullptr) return;
    for (const Attrs::Pair& p : n.attrs.get()->pairs()) {
      if (is_key(p)) keys.push_back(std::get<int64_t>(p.second));
    }
  });
  if (keys.empty()) return;
  link.member().exchange().broadcast(
      keys.data(), static_cast<int64_t>(keys.size() * sizeof(int64_t)), 0,
      {.channel = kAgreeChannel,
       .what = "the random numbers of " + graph.name,
       .hash = keys.size()});
  if (link.rank() == 0) return;
  size_t at = 0;
  visit_random(graph, [&](Node& n) {
    if (n.attrs.get() == nullptr) return;
    auto pairs = n.attrs.get()->pairs();
    for (Attrs::Pair& p : pairs) {
      if (is_key(p)) p.second = keys[at++];
    }
    n.attrs = AttrsRef(std::move(pairs));
  });
}

}  // namespace

std::vector<std::string> gather_texts(CollectiveExecutor& link,
                                      const std::string& mine,
                                      const std::string& what) {
  cluster::Exchange& exchange = link.member().exchange();
  const auto ranks = static_cast<size_t>(link.ranks());
  const auto size = static_cast<int64_t>(mine.size());
  std::vector<int64_t> sizes(ranks);
  const std::vector<int64_t> each(ranks, sizeof(size));
  const cluster::Tag tag{.channel = kAgreeChannel, .what = what};
  exchange.all_gather(&size, each, sizes.data(), tag);
  int64_t total = 0;
  for (const int64_t n : sizes) total += n;
  std::string all(static_cast<size_t>(total), '\0');
  exchange.all_gather(mine.data(), sizes, all.data(), tag);
  std::vector<std::string> texts;
  size_t at = 0;
  for (const int64_t n : sizes) {
    texts.push_back(all.substr(at, static_cast<size_t>(n)));
    at += static_cast<size_t>(n);
  }
  return texts;
}

uint64_t hash_of_step(const Graph& graph) { return StepHash().of(graph); }

void agree_on_step(CollectiveExecutor& link, Graph& graph) {
  std::vector<Tensor> variables;
  int64_t weights = 0;
  for (const Node& n : graph.nodes) {
    if (!n.variable.defined()) continue;
    variables.push_back(n.variable);
    weights += n.variable.shape().num_elements();
  }
  const std::string mine = fmt::format(
      "{} of {} nodes and {} numbers in {} variables (hash {:016x})",
      graph.name, graph.size(), weights, variables.size(), hash_of_step(graph));
  const auto all = gather_texts(link, mine, "a step to be compiled");
  const auto tasks = link.member().ranks();
  std::string others;
  for (size_t r = 1; r < all.size(); ++r) {
    if (all[r] == all[0]) continue;
    others += fmt::format("{}{} has {}", others.empty() ? "" : "; ",
                          tasks[r].str(), all[r]);
  }
  if (!others.empty()) {
    throw errors::InvalidArgument(fmt::format(
        "the tasks are about to compute different steps: {} has {}; {}; "
        "expected the same program, with the same model and batches, in all "
        "tasks",
        tasks[0].str(), all[0], others));
  }
  agree_on_random_numbers(link, graph);
  agree_on_variables(link, variables);
}

namespace {

void add_variables(const Graph& graph, std::vector<Tensor>* all) {
  for (const Node& n : graph.nodes) {
    if (n.variable.defined()) all->push_back(n.variable);
    visit_bodies(n, [&](const std::string&, const Graph& body) {
      add_variables(body, all);
    });
    if (n.op->kind() != OpKind::kCrossReplica) continue;
    const auto& f = n.op->attr<std::shared_ptr<Callable>>(n.attrs.get(), "f");
    if (f && f->body()) add_variables(*f->body(), all);
  }
}

}  // namespace

void agree_on_meetings(CollectiveExecutor& link, const Graph& trace) {
  std::string mine;
  for (const Node& n : trace.nodes) {
    if (n.op->kind() != OpKind::kCrossReplica) continue;
    mine += n.op->attr<std::string>(n.attrs.get(), "what");
    const bool rows = mine.ends_with("gather") || mine.ends_with("grad");
    if (!n.outputs.empty() && !rows) {
      mine += fmt::format(" {} {}", name_of(n.outputs[0].dtype),
                          n.outputs[0].shape.str());
    }
    mine += "\n";
  }
  const auto all = gather_texts(link, mine, "the function of run()");
  const auto tasks = link.member().ranks();
  for (size_t r = 1; r < all.size(); ++r) {
    if (all[r] == all[0]) continue;
    throw errors::InvalidArgument(fmt::format(
        "run(): replicas of different tasks meet at different places: those of "
        "{} at\n{}those of {} at\n{}expected the same function in all tasks",
        tasks[0].str(), all[0], tasks[r].str(), all[r]));
  }
  std::vector<Tensor> variables;
  add_variables(trace, &variables);
  agree_on_variables(link, variables);
}

void agree_on_variables(CollectiveExecutor& link,
                        const std::vector<Tensor>& handles) {
  static const OpDef& read = op_named("ReadVariableOp");
  static const OpDef& assign = op_named("AssignVariableOp");
  const NoDeviceScope no_scope;
  const DispatchGuard at_once(nullptr);  // even within a trace
  Device& host = DeviceManager::get().host();
  for (const Tensor& handle : handles) {
    const VariableState& v = variable_state(handle);
    if (v.dtype == string_ || !link.is_new(v.serial)) continue;
    const Tensor value = make_tensor(host, v.dtype, v.shape);
    call1(read, handle).copy_to(value.impl()->data());
    link.member().exchange().broadcast(
        value.impl()->data(), static_cast<int64_t>(value.impl()->size_bytes()),
        0, {.channel = kAgreeChannel, .what = "the first value of a variable"});
    if (link.rank() == 0) continue;
    const Tensor* in[] = {&handle, &value};
    apply(assign, in, nullptr, {});
  }
}

}  // namespace berth::distribute
