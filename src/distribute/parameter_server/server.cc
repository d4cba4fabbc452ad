#include "distribute/parameter_server/server.h"

#include <fmt/format.h>

#include "berth/ops/array.h"
#include "device/device_manager.h"
#include "graph/blob_table.h"
#include "graph/replay.h"
#include "op/device_scope.h"
#include "op/dispatcher.h"
#include "tensor/tensor_impl.h"

namespace berth::distribute {

Tensors run_part(GraphCallable& part, const Tensors& args) {
  if (args.size() != part.num_args()) {
    throw errors::InvalidArgument(fmt::format("{} takes {} tensors and got {}",
                                              part.name(), part.num_args(),
                                              args.size()));
  }
  std::vector<const Tensor*> in;
  for (const Tensor& t : args) in.push_back(&t);
  Tensors out(part.output_specs().size());
  const DispatchGuard outside(nullptr);
  part.call(in, out);
  return out;
}

Variable PsServer::variable(const std::string& key) const {
  std::lock_guard lock(mutex_);
  const auto it = variables_.find(key);
  if (it != variables_.end()) return it->second;
  throw errors::NotFound(
      fmt::format("there is no variable {} on this parameter server; it may "
                  "have been started again",
                  key));
}

Tensors PsServer::read(Request& request, const Tensors& ids) const {
  Tensors values;
  size_t next = 0;
  for (std::string key; request.operands >> key;) {
    if (key[0] != '@') {
      values.push_back(for_sending(variable(key).value({})));
      continue;
    }
    if (next == ids.size()) {
      throw errors::InvalidArgument("a request for rows lacks their ids");
    }
    const Variable v = variable(key.substr(1));
    values.push_back(for_sending(gather(v.value({}), ids[next++], 0, Site{})));
  }
  return values;
}

void PsServer::define(const std::string& hash, const std::string& text) {
  {
    std::lock_guard lock(mutex_);
    if (parts_.contains(hash)) return;
  }
  auto part = std::make_shared<Part>();
  part->graph = parse_graph(text);
  for (Node& n : part->graph.nodes) {
    part->random = part->random || n.op->random();
    if (n.op->kind() == OpKind::kHandle) {
      n.variable =
          variable(n.op->attr<std::string>(n.attrs.get(), "shared_name"))
              .handle();
    }
  }
  for (const int32_t a : part->graph.args) {
    part->eager =
        part->eager || !part->graph[a].outputs[0].shape.is_fully_defined();
  }
  if (!part->eager) {
    part->compiled = std::make_unique<GraphCallable>(
        part->graph, FunctionOptions{.name = part->graph.name});
  }
  std::lock_guard lock(mutex_);
  parts_.emplace(hash, std::move(part));
}

Tensors PsServer::run(const std::string& hash, const Tensors& args) {
  std::shared_ptr<Part> part;
  {
    std::lock_guard lock(mutex_);
    const auto it = parts_.find(hash);
    if (it != parts_.end()) part = it->second;
  }
  if (part == nullptr) {
    throw errors::NotFound(
        "this parameter server does not know the function; it may have been "
        "started again");
  }
  Tensors out;
  if (!part->eager) {
    out = run_part(*part->compiled, args);
  } else if (args.size() == part->graph.args.size()) {
    const DispatchGuard outside(nullptr);
    out = replay(part->graph, args);
  } else {
    throw errors::InvalidArgument(
        fmt::format("{} takes {} tensors and got {}", part->graph.name,
                    part->graph.args.size(), args.size()));
  }
  for (Tensor& t : out) t = for_sending(t);
  return out;
}

cluster::Message PsServer::handle(Request& request, Tensors& tensors) {
  const OnDevice host(&DeviceManager::get().host());
  const std::string& word = request.word;
  if (word == "run") {
    return {"ok", run(operand<std::string>(request.operands), tensors)};
  }
  if (word == "read") return {"ok", read(request, tensors)};
  if (word == "begin") {
    std::lock_guard lock(mutex_);
    variables_.clear();
    parts_.clear();
  }
  if (word == "hello" || word == "begin")
    return {fmt::format("{}", incarnation_), {}};
  if (word == "create" || word == "assign") {
    for (const Tensor& t : tensors) {
      const auto key = operand<std::string>(request.operands);
      std::unique_lock lock(mutex_);
      const auto it = variables_.find(key);
      if (it == variables_.end() && word == "create") {
        variables_.emplace(key,
                           Variable(t, {.name = key, .trainable = false}, {}));
      } else if (word == "assign") {
        lock.unlock();
        variable(key).assign(t, {});
      }
    }
    return {"ok", {}};
  }
  if (word == "define") {
    for (const Tensor& t : tensors) keep_blob(t);
    define(operand<std::string>(request.operands), request.body);
    return {"ok", {}};
  }
  throw errors::InvalidArgument(
      fmt::format("a parameter server is asked to \"{}\"", word));
}

}  // namespace berth::distribute
