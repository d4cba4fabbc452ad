// Where variables are, and what servers have.

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <shared_mutex>
#include <thread>

#include "base/diagnostics.h"
#include "base/where.h"
#include "berth/errors.h"
#include "distribute/parameter_server/coordinator.h"
#include "distribute/parameter_server/row_copies.h"
#include "function/trace_call.h"
#include "op/dispatcher.h"
#include "op/op_registry.h"
#include "tensor/tensor_impl.h"
#include "tensor/variable_state.h"

namespace berth::distribute {

namespace {

uint64_t version_of(const Tensor& handle) {
  VariableState& v = variable_state(handle);
  std::shared_lock lock(v.mutex);
  return v.version;
}

void write_copy(const Tensor& handle, const Tensor& value) {
  static const OpDef& op = op_named("AssignVariableOp");
  const DispatchGuard outside(nullptr);
  const Tensor* in[] = {&handle, &value};
  apply(op, in, nullptr, {});
}

std::string where_of(const ServerVariable& v, const cluster::ClusterSpec&) {
  if (v.everywhere) return "all servers";
  std::string s;
  for (const ServerShard& shard : v.shards) {
    s += fmt::format("{}ps:{}", s.empty() ? "" : ", ", shard.server);
  }
  return s;
}

}  // namespace

const ServerVariable& ParameterServers::placed(const Tensor& handle) const {
  return variables_.at(handle.impl());
}

std::vector<std::string> ParameterServers::servers_of(
    const Tensor& handle) const {
  std::lock_guard lock(placing_);
  std::vector<std::string> names;
  const auto it = variables_.find(handle.impl());
  if (it == variables_.end()) return {""};
  for (const ServerShard& s : it->second.shards) {
    names.push_back(
        fmt::format("/job:ps/task:{}", servers_[s.server].task.index));
  }
  return names;
}

// A placed variable of the group, which the others follow; null: none is.
const ParameterServers::Placed* ParameterServers::placed_one_of(
    const ServerGroup& group) const {
  const Placed* known = nullptr;
  for (const Tensor& t : group.handles) {
    const auto it = variables_.find(t.impl());
    if (it == variables_.end()) continue;
    const Placed& p = it->second;
    const auto same = [](const ServerShard& a, const ServerShard& b) {
      return a.server == b.server && a.begin == b.begin && a.end == b.end;
    };
    if (known && (known->everywhere != p.everywhere ||
                  !std::equal(known->shards.begin(), known->shards.end(),
                              p.shards.begin(), p.shards.end(), same))) {
      throw errors::Unimplemented(fmt::format(
          "ParameterServerStrategy: one op changes \"{}\" on {} and \"{}\" on "
          "{}; expected variables that are first used together",
          variable_state(known->handle).name, where_of(*known, member_->spec()),
          variable_state(p.handle).name, where_of(p, member_->spec())));
    }
    known = &p;
  }
  return known;
}

// How many shards the partitioner wants of the group's oldest variable.
int64_t ParameterServers::shards_wanted(const ServerGroup& group) const {
  const VariableState& first = variable_state(group.handles[0]);
  const Partitioner& partitioner = options_.variable_partitioner;
  if (!partitioner.defined() || !first.trainable || first.shape.rank() == 0) {
    return 1;
  }
  const int64_t n = partitioner(first.shape, first.dtype)[0];
  if (n <= 1 || group.whole_because.empty()) return n;
  report_once(
      "unsharded-variable\n" + first.name,
      {"unsharded-variable", debugging::Severity::kLint,
       fmt::format("\"{}\"{} stays whole, not in {} shards: {}", first.name,
                   where_text(nullptr, first.site), n, group.whole_because),
       first.site});
  return 1;
}

// The shards of a group of which no variable is placed yet.
std::vector<ServerShard> ParameterServers::new_shards(
    const ServerGroup& group) {
  const VariableState& first = variable_state(group.handles[0]);
  const int64_t rows = first.shape.rank() > 0 ? first.shape[0] : 1;
  std::vector<ServerShard> shards;
  if (group.everywhere) {
    for (int s = 0; s < num_servers(); ++s) shards.push_back({s, 0, rows});
    return shards;
  }
  const int64_t n = shards_wanted(group);
  for (int64_t i = 0, begin = 0; i < n; ++i) {
    const int64_t end = begin + rows / n + (i < rows % n ? 1 : 0);
    shards.push_back({next_server_++ % num_servers(), begin, end});
    begin = end;
  }
  return shards;
}

void ParameterServers::place_group(const ServerGroup& group) {
  const VariableState& first = variable_state(group.handles[0]);
  const Placed* known = placed_one_of(group);
  const bool everywhere = known ? known->everywhere : group.everywhere;
  const std::vector<ServerShard> shards =
      known ? known->shards : new_shards(group);
  if (known && known->sharded() && !group.whole_because.empty()) {
    throw errors::Unimplemented(fmt::format(
        "ParameterServerStrategy: \"{}\"{} is in {} shards, and {}; expected "
        "a strategy without a partitioner for it",
        first.name, where_text(nullptr, first.site), shards.size(),
        group.whole_because));
  }
  std::vector<Placed*> fresh;
  for (const Tensor& t : group.handles) {
    const auto [it, made] = variables_.try_emplace(t.impl());
    if (!made) continue;
    Placed& p = it->second;
    p.id = next_id_++;
    p.handle = t;
    p.everywhere = everywhere;
    p.shards = shards;
    order_.push_back(t.impl());
    fresh.push_back(&p);
  }
  create(fresh);
}

void ParameterServers::place(const ServerSplit& split) {
  for (const ServerGroup& group : split.groups()) place_group(group);
}

// Adds a variable's shards to the requests of their servers.
namespace {
void add_values(const ServerVariable& v, const char* word,
                std::map<int, cluster::Message>& requests, int only = -1) {
  const Tensor value = for_sending(read_variable(v.handle));
  for (size_t i = 0; i < v.shards.size(); ++i) {
    const int server = v.shards[i].server;
    if (only >= 0 && server != only) continue;
    cluster::Message& m = requests[server];
    if (m.text.empty()) m.text = word;
    m.text += " " + v.key(i);
    m.tensors.push_back(for_sending(v.shard_of(value, i)));
  }
}
}  // namespace

void ParameterServers::create(const std::vector<Placed*>& placed) {
  std::map<int, cluster::Message> requests;
  for (Placed* p : placed) {
    p->version = version_of(p->handle);
    add_values(*p, "create", requests);
  }
  ask_all(std::move(requests), nullptr);
}

void ParameterServers::define(const StepProgram& program) {
  for (const StepStage& stage : program.stages) {
    for (const ServerPart& part : stage.updates) {
      Server& server = servers_[part.server];
      if (server.defined.contains(part.hash)) continue;
      std::map<int, cluster::Message> request;
      request[part.server] = {
          fmt::format("define {}\n{}", part.hash, part.text),
          blobs_of(part.text)};
      ask_all(std::move(request), nullptr);
      server.defined.insert(part.hash);
    }
  }
}

// Sends what the program wrote on the chief since the last transfer.
void ParameterServers::send_changed(bool all) {
  std::map<int, cluster::Message> requests;
  for (const TensorImpl* impl : order_) {
    Placed& p = variables_.at(impl);
    const uint64_t version = version_of(p.handle);
    if (version == p.version && !all) continue;
    add_values(p, "assign", requests);
    p.version = version;
    p.stale = false;
  }
  if (!requests.empty()) ask_all(std::move(requests), nullptr);
}

void ParameterServers::refresh(const std::vector<Variable>& variables) {
  std::lock_guard lock(placing_);
  fetch_changed(&variables);
}

void ParameterServers::fetch_changed(const std::vector<Variable>* only) {
  std::map<int, cluster::Message> requests;
  struct RequestedShard {
    Placed* variable;
    size_t shard;
  };
  std::map<int, std::vector<RequestedShard>> asked;
  std::map<Placed*, Tensors> values;
  for (const TensorImpl* impl : order_) {
    Placed& p = variables_.at(impl);
    if (!p.stale) continue;
    if (only == nullptr) {
      p.stale = false;
    } else if (std::none_of(only->begin(), only->end(), [&](const auto& v) {
                 return v.handle().impl() == impl;
               })) {
      continue;
    }
    // The program has written it meanwhile: that version goes to the servers.
    if (version_of(p.handle) != p.version) continue;
    const size_t n = p.everywhere ? 1 : p.shards.size();
    values[&p].resize(n);
    for (size_t i = 0; i < n; ++i) {
      cluster::Message& m = requests[p.shards[i].server];
      if (m.text.empty()) m.text = "read";
      m.text += " " + p.key(i);
      asked[p.shards[i].server].push_back({&p, i});
    }
  }
  if (requests.empty()) return;
  std::vector<int> order;
  std::vector<cluster::Message> answers = ask_all(std::move(requests), &order);
  for (size_t i = 0; i < answers.size(); ++i) {
    const auto& list = asked[order[i]];
    if (answers[i].tensors.size() != list.size()) {
      throw errors::DataLoss("a parameter server gave fewer values than asked");
    }
    for (size_t k = 0; k < list.size(); ++k) {
      values[list[k].variable][list[k].shard] = answers[i].tensors[k];
    }
  }
  for (auto& [p, parts] : values) {
    write_copy(p->handle,
               parts.size() == 1
                   ? parts[0]
                   : joined_rows(parts, variable_state(p->handle).shape));
    p->version = version_of(p->handle);
  }
}

std::vector<cluster::Message> ParameterServers::ask_all(
    std::map<int, cluster::Message> requests, std::vector<int>* order) {
  std::vector<std::future<cluster::Message>> futures;
  std::vector<int> asked;
  for (auto& [server, m] : requests) {
    futures.push_back(begin_call(*member_, servers_[server].task,
                                 kServerService, std::move(m)));
    asked.push_back(server);
  }
  std::vector<cluster::Message> answers;
  std::exception_ptr error;
  for (size_t i = 0; i < futures.size(); ++i) {
    try {
      answers.push_back(answer_of(futures[i], servers_[asked[i]].task));
    } catch (const TaskLost& e) {
      error = loss_of(e);
    } catch (const errors::Error&) {
      if (!error) error = std::current_exception();
    }
  }
  if (error) std::rethrow_exception(error);
  if (order) *order = asked;
  return answers;
}

// Returns the error of a lost server and records the loss.
std::exception_ptr ParameterServers::loss_of(const TaskLost& error) {
  // If the cluster has ended, the failure names the task.
  const auto failure = member_->failure();
  const bool ended = failure && failure->task.job == "ps";
  const TaskLost lost =
      ended ? TaskLost(failure->task, failure->message) : error;
  std::string names;
  int64_t bytes = 0, count = 0;
  for (Server& s : servers_) {
    if (s.task != lost.task()) continue;
    s.lost = true;
    const int number = static_cast<int>(&s - servers_.data());
    for (const TensorImpl* impl : order_) {
      const Placed& p = variables_.at(impl);
      if (p.everywhere) continue;
      const VariableState& v = variable_state(p.handle);
      for (size_t i = 0; i < p.shards.size(); ++i) {
        if (p.shards[i].server != number) continue;
        bytes += p.shard_shape(i).num_elements() *
                 static_cast<int64_t>(size_of(v.dtype));
        if (count++ < 8) {
          names += fmt::format("{}\"{}\"", names.empty() ? "" : ", ", v.name);
        }
      }
    }
  }
  const auto& spec = member_->spec();
  std::string address;
  if (lost.task().job == "ps") {
    address = " (" + spec.task_address("ps", lost.task().index) + ")";
  }
  return std::make_exception_ptr(errors::Unavailable(fmt::format(
      "parameter server {}{} was lost: {}; with it {} variables or shards, {} "
      "bytes: {}{}; the chief's copies are those of the last join(): restore a "
      "checkpoint, or go on from these, and what is scheduled next waits until "
      "the server is back",
      lost.task().str(), address, lost.what(), count, bytes, names,
      count > 8 ? fmt::format(" and {} more", count - 8) : "")));
}

// Restores the state of servers that are back.
void ParameterServers::recover_servers() {
  using Clock = std::chrono::steady_clock;
  for (size_t s = 0; s < servers_.size(); ++s) {
    Server& server = servers_[s];
    if (!server.lost) continue;
    const auto deadline = Clock::now() + std::chrono::duration<double>(
                                             options_.worker_timeout_seconds);
    cluster::Message hello;
    for (;;) {
      try {
        if (member_->failure()) form_again();
        auto answer =
            begin_call(*member_, server.task, kServerService, {"hello", {}});
        hello = answer_of(answer, server.task);
        break;
      } catch (const TaskLost&) {
        if (Clock::now() > deadline) throw;
        std::this_thread::sleep_for(std::chrono::milliseconds(200));
      }
    }
    server.incarnation = std::stoull(hello.text);
    server.lost = false;
    server.defined.clear();
    std::map<int, cluster::Message> requests;
    for (const TensorImpl* impl : order_) {
      Placed& p = variables_.at(impl);
      add_values(p, "create", requests, static_cast<int>(s));
    }
    if (!requests.empty()) ask_all(std::move(requests), nullptr);
    for (const auto& [key, traced] : traces_) define(*traced.program);
  }
}

ParameterServers::Traced ParameterServers::trace(
    const ClosureCall& call, const std::vector<TensorSpec>& specs) {
  std::string key;
  if (call.identity != nullptr) {
    key = fmt::format("{}|{}|", call.identity, call.fixed);
    for (const TensorSpec& s : specs) {
      key += name_of(s.dtype) + s.shape.str();
    }
    const auto it = traces_.find(key);
    if (it != traces_.end()) return it->second;
  }
  Traced traced;
  std::any structure;
  Graph graph = trace_call(
      "closure",
      [&](const Tensors& leaves) { return call.trace(leaves, &structure); },
      specs);
  traced.structure = std::make_shared<const std::any>(std::move(structure));
  for (const ValueRef& v : graph.outputs) {
    traced.results.push_back({graph.spec(v).shape, graph.spec(v).dtype, {}});
  }
  const ServerSplit split(std::move(graph), [&](const Tensor& handle) {
    const auto it = variables_.find(handle.impl());
    if (it == variables_.end()) return ServerSplit::Known::kNowhere;
    return it->second.everywhere ? ServerSplit::Known::kEverywhere
                                 : ServerSplit::Known::kSomewhere;
  });
  place(split);
  traced.program = std::make_shared<const StepProgram>(split.program(
      [this](const Tensor& t) -> const ServerVariable& { return placed(t); },
      num_servers()));
  traced.keep = call.keep;
  define(*traced.program);
  if (key.empty()) key = traced.program->hash;
  traces_[key] = traced;
  return traced;
}

}  // namespace berth::distribute
