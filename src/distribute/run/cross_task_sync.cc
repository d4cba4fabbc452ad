#include "distribute/run/cross_task_sync.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <numeric>

#include "base/where.h"
#include "berth/errors.h"
#include "berth/ops/array.h"
#include "device/device_manager.h"
#include "distribute/multi_worker/gradient_exchange.h"
#include "distribute/multi_worker/step_consensus.h"
#include "graph/tracer.h"
#include "op/device_scope.h"
#include "ops/op_call.h"
#include "tensor/tensor_impl.h"

namespace berth::distribute {

namespace {

bool meets_replicas(const Node& n) {
  return n.op->kind() == OpKind::kCrossReplica;
}

void check_known(const Shape& shape, const char* what) {
  if (shape.is_fully_defined()) return;
  throw errors::Unimplemented(fmt::format(
      "{} over several tasks of a {}{}; expected a known shape: no -1 in an "
      "input_signature",
      what, shape.str(), where_text()));
}

Tensor host_copy(const Tensor& t) {
  Tensor copy = make_tensor(DeviceManager::get().host(), t.dtype(), t.shape());
  t.copy_to(copy.impl()->data());
  return copy;
}

}  // namespace

TaskMeetings::TaskMeetings(StrategyCore& core, const Graph& trace,
                           const std::vector<int64_t>& examples)
    : core_(core),
      examples_(examples),
      level_(trace.nodes.size(), 0),
      feeds_(trace.nodes.size(), false) {
  if (!several()) return;
  base_ = core.reserve_meetings(static_cast<int64_t>(trace.nodes.size()) + 1);
  const auto visit = [&](int32_t i, auto&& fn) {
    for (const ValueRef& v : trace[i].inputs) fn(v.node);
    for (const int32_t c : trace[i].controls) fn(c);
  };
  for (int32_t i = 0; i < trace.size(); ++i) {
    visit(i, [&](int32_t p) {
      level_[i] =
          std::max(level_[i], level_[p] + (meets_replicas(trace[p]) ? 1 : 0));
    });
  }
  for (int32_t i = trace.size(); i-- > 0;) {
    if (!meets_replicas(trace[i]) && !feeds_[i]) continue;
    visit(i, [&](int32_t p) { feeds_[p] = true; });
  }
}

TaskMeetings::TaskMeetings(StrategyCore& core)
    : core_(core), level_(1, 0), feeds_(1, true) {
  if (several()) base_ = core.reserve_meetings(2);
}

bool TaskMeetings::has_first() const {
  int first = 0;
  for (size_t r = 0; r < examples_.size(); ++r) {
    if (examples_[r] == 0) continue;
    first = static_cast<int>(r);
    break;
  }
  return core_.tasks().is_here(first);
}

bool TaskMeetings::is_meeting(const Node& n) {
  return n.op->name() == "_TaskReduce" || n.op->name() == "_TaskGather";
}

std::vector<Attrs::Pair> TaskMeetings::attrs(int32_t node,
                                             const TensorSpec& spec,
                                             size_t replicas) {
  std::vector<int64_t> wanting(replicas);
  std::iota(wanting.begin(), wanting.end(), 0);
  const auto at = static_cast<size_t>(node);
  const TaskPart& tasks = core_.tasks();
  return {{"T", spec.dtype},
          {"shape", spec.shape},
          {"link", tasks.link},
          {"ranks", int64_t{tasks.ranks()}},
          {"replicas", wanting},
          {"number", core_.reserve_meetings(1)},
          {"level", base_ + level_[at]},
          {"feeds", bool{feeds_[at]}},
          {"base", base_},
          {"pack_bytes", core_.options().communication.bytes_per_pack},
          {"device", tasks.device.text()}};
}

Tensors TaskMeetings::reduce(int32_t node, const Tensors& pieces,
                             const TensorSpec& spec, const Attrs* like) {
  static const OpDef& op = op_named("_TaskReduce");
  static const OpDef& all_reduce = op_named("_AllReduce");
  if (!(dtype_bit(spec.dtype) & kEveryNumber)) {
    throw errors::Unimplemented(
        fmt::format("a {} over several tasks{}; expected numbers", spec.str(),
                    where_text()));
  }
  check_known(spec.shape, "a sum");
  auto pairs = attrs(node, spec, static_cast<size_t>(core_.num_here()));
  if (like != nullptr) {
    pairs.emplace_back("reduction",
                       all_reduce.attr<std::string>(like, "reduction"));
  }
  int64_t owners = core_.num_replicas();
  if (!examples_.empty()) {
    const auto none = std::count(examples_.begin(), examples_.end(), 0);
    if (none < owners) owners -= none;
  }
  pairs.emplace_back("owners", owners);
  return call_list(op, pieces, AttrsRef(std::move(pairs)).get());
}

std::vector<int64_t> TaskMeetings::lengths(int64_t mine, const char* what) {
  std::vector<int64_t> all;
  for (const std::string& s :
       gather_texts(*core_.link(), std::to_string(mine), what)) {
    all.push_back(std::stoll(s));
  }
  return all;
}

Tensor TaskMeetings::gather(int32_t node, const Tensor& mine, int64_t axis) {
  static const OpDef& op = op_named("_TaskGather");
  check_known(mine.shape(), "a gather");
  TensorSpec whole = mine.spec();
  const auto along = static_cast<int>(axis);
  const auto rows = lengths(whole.shape[along], "rows to gather");
  whole.shape[along] = std::accumulate(rows.begin(), rows.end(), int64_t{0});
  auto pairs = attrs(node, whole, 1);
  pairs.emplace_back("axis", axis);
  pairs.emplace_back("lengths", rows);
  return call_list(op, {mine}, AttrsRef(std::move(pairs)).get())[0];
}

int64_t TaskMeetings::rows_before(const Tensors& parts, int axis) {
  int64_t mine = 0;
  for (const Tensor& t : parts) {
    check_known(t.shape(), "the gradient of a gather");
    mine += t.shape()[axis];
  }
  const auto all = lengths(mine, "rows of a gradient");
  return std::accumulate(all.begin(), all.begin() + core_.tasks().rank,
                         int64_t{0});
}

// It waits for the call's level; each value is sent by itself, in order.
Node TaskMeetings::in_call(int32_t call, const Node& n) {
  Node as = n;
  auto pairs = n.attrs.get()->pairs();
  for (auto& [name, value] : pairs) {
    if (name == "number") value = core_.reserve_meetings(1);
    if (name == "level") value = base_ + level_[static_cast<size_t>(call)];
    if (name == "feeds") value = true;
    if (name == "pack_bytes") value = int64_t{1};
  }
  as.attrs = AttrsRef(std::move(pairs));
  return as;
}

Tensor sum_over_tasks(StrategyCore& core, const Tensor& value) {
  if (!core.link()) return value;
  if (tracing()) {
    return TaskMeetings(core).reduce(0, {value}, value.spec(), nullptr)[0];
  }
  Tensor sum = host_copy(value);
  core.link()->member().exchange().all_reduce(
      sum.impl()->data(), sum.num_elements(), sum.dtype(),
      cluster::Reduction::kSum,
      {.channel = "run", .what = "reduce()", .step = core.link()->step()});
  return copy_to_device(sum, *core.replicas()[0][0]);
}

Tensor gather_over_tasks(StrategyCore& core, const Tensor& value,
                         int64_t axis) {
  if (!core.link()) return value;
  if (tracing()) return TaskMeetings(core).gather(0, value, axis);
  const Tensor mine = host_copy(value);
  const auto along = static_cast<int>(axis);
  int64_t row = static_cast<int64_t>(size_of(mine.dtype()));
  for (int d = 0; d < mine.rank(); ++d) row *= d == along ? 1 : mine.shape()[d];
  std::vector<int64_t> rows, bytes;
  for (const std::string& s :
       gather_texts(*core.link(), std::to_string(mine.shape()[along]),
                    "rows to gather")) {
    rows.push_back(std::stoll(s));
    bytes.push_back(rows.back() * row);
  }
  const int64_t total = std::accumulate(rows.begin(), rows.end(), int64_t{0});
  const Tensor all = make_tensor(
      DeviceManager::get().host(), mine.dtype(),
      Shape{total * row / static_cast<int64_t>(size_of(mine.dtype()))});
  core.link()->member().exchange().all_gather(
      mine.impl()->data(), bytes, all.impl()->data(),
      {.channel = "run", .what = "gather()", .step = core.link()->step()});
  Tensors parts;
  int64_t at = 0;
  for (size_t r = 0; r < rows.size(); ++r) {
    Shape shape = mine.shape();
    shape[along] = rows[r];
    if (rows[r] > 0) {
      parts.push_back(make_alias(all, shape, static_cast<size_t>(at)));
    }
    at += bytes[r];
  }
  if (parts.empty()) return value;
  return parts.size() == 1 ? parts[0] : concat(parts, axis);
}

}  // namespace berth::distribute
