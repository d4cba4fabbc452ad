#include "exec/plan_builder.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/thread_pool.h"
#include "berth/errors.h"
#include "device/device_manager.h"
#include "exec/measure_machine.h"
#include "op/device_scope.h"
#include "tensor/mirrors.h"
#include "tensor/shards.h"

namespace berth {

namespace {

std::string where_of(const Node& node) {
  return node.sources.empty() ? ""
                              : where_text(nullptr, node.sources.front().site);
}

}  // namespace

BuiltPlan PlanBuilder::build() {
  p_.name = graph_.name;
  p_.workers = options_.workers;
  p_.host_threads = options_.host_threads;
  check_shapes();
  values_.resize(graph_.nodes.size());
  for (int32_t i = 0; i < graph_.size(); ++i) {
    values_[i].resize(graph_[i].outputs.size());
  }
  users_ = graph_.users();
  escaping_.insert(graph_.outputs.begin(), graph_.outputs.end());
  add_streams();
  add_sources();
  add_regions();
  find_last_reads();
  add_values();
  add_outputs();
  add_arenas();
  add_calls();
  add_homes();
  add_written();
  order_locks();
  count();
  drop_wait();
  built_.program = std::move(program_);
  return std::move(built_);
}

void PlanBuilder::add_streams() {
  for (const StreamRef& s : schedule_.streams) {
    Device* device = p_.devices[device_index(s.device)];
    PlanStream stream;
    stream.device = device;
    stream.host = device->runs_inline();
    const Computes by = computes_for(*device, p_.host_threads);
    stream.here = by.here;
    stream.stream = s.copy && !stream.host ? &device->copy_stream() : by.stream;
    p_.streams.push_back(std::move(stream));
  }
}

void PlanBuilder::check_shapes() const {
  for (const Node& node : graph_.nodes) {
    for (const OutSpec& out : node.outputs) {
      const int64_t n = out.shape.num_elements();
      if (n > kMostElements) {
        throw errors::InvalidArgument(fmt::format(
            "{} ({}): cannot allocate a tensor of shape {}{}", node.name,
            node.op->name(), out.shape.str(), where_of(node)));
      }
      if (n >= 0) continue;
      throw errors::InvalidArgument(fmt::format(
          "{} ({}): shape {} is not known{}; a plan needs every dimension: "
          "give reshape a -1 or a number that follows from the inputs",
          node.name, node.op->name(), out.shape.str(), where_of(node)));
    }
  }
}

int PlanBuilder::device_index(DeviceId name) {
  const auto [it, fresh] =
      device_of_name_.try_emplace(name, static_cast<int>(p_.devices.size()));
  if (fresh) {
    Device& d = DeviceManager::get().lookup(name.name());
    p_.devices.push_back(&d);
    p_.is_inline = p_.is_inline && p_.runs_here(d);
  }
  return it->second;
}

void PlanBuilder::add_sources() {
  p_.arg_device.assign(graph_.args.size(), -1);
  p_.arg_escapes.assign(graph_.args.size(), false);
  for (int32_t i = 0; i < graph_.size(); ++i) {
    const Node& node = graph_[i];
    const std::string& op = node.op->name();
    if (op == "_Arg") {
      const int index =
          static_cast<int>(node.op->attr<int64_t>(node.attrs.get(), "index"));
      const int device = device_index(node.assigned);
      bool read = !users_[i].empty();
      for (const ValueRef& v : graph_.outputs) read |= v.node == i;
      if (read) p_.arg_device[index] = device;
      values_[i][0] = {
          new_buffer(Where::kArg, device, bytes_of(node.outputs[0]), index), 0};
    } else if (op == "Const") {
      const int device = device_index(node.assigned);
      const Tensor t =
          copy_to_device(node.op->attr<Tensor>(node.attrs.get(), "value"),
                         *p_.devices[device]);
      synchronize(t.impl()->block->ready);
      const int index = static_cast<int>(p_.constants.size());
      p_.constants.push_back(t);
      values_[i][0] = {
          new_buffer(Where::kConst, device, bytes_of(node.outputs[0]), index),
          0};
    } else if (op == "VarHandleOp") {
      variables_.holds.emplace_back(node.variable);
      const VariableState& v = variable_state(node.variable);
      if (v.device->id() != node.assigned) {
        throw errors::FailedPrecondition(fmt::format(
            "{}: variable \"{}\" was put on {} while this step was compiled "
            "for {}; call it again",
            node.name, v.name, v.device->name().short_str(),
            node.assigned.name().short_str()));
      }
      const int device = device_index(v.device->id());
      const int index = static_cast<int>(variables_.uses.size());
      variables_.uses.push_back({node.variable});
      values_[i][0] = {
          new_buffer(Where::kVariable, device, v.size_bytes(), index), 0};
    } else if (op == "_VariableRange") {
      values_[i][0] = at_row(value(node.inputs[0]), node);
    }
  }
}

// The value from row, or element of a variable, "begin" of the node on.
PlanBuilder::Value PlanBuilder::at_row(Value v, const Node& node) const {
  const OutSpec& s = node.outputs[0];
  int64_t row = 1;
  for (int i = 1; i < s.shape.rank(); ++i) row *= s.shape[i];
  const DType dtype = s.dtype == resource ? s.variable : s.dtype;
  v.offset += static_cast<size_t>(
                  node.op->attr<int64_t>(node.attrs.get(), "begin") * row) *
              size_of(dtype);
  v.rows = true;
  return v;
}

void PlanBuilder::check_moves(const Node& transfer) const {
  if (transfer.outputs[0].dtype != string_) return;
  const Node& from = graph_[transfer.inputs[0].node];
  throw errors::InvalidArgument(fmt::format(
      "{} holds strings on {} and is used on {}{}; strings live on the host "
      "alone and do not move within a function: use them on one CPU device",
      from.name, from.assigned.text(), transfer.assigned.text(),
      where_of(transfer)));
}

void PlanBuilder::add_regions() {
  std::vector<RegionStream> streams;
  for (size_t s = 0; s < p_.streams.size(); ++s) {
    Device& device = *p_.streams[s].device;
    const bool cut = device.pool() && !schedule_.streams[s].copy;
    streams.push_back(
        {&device, cut ? slices_on(device) : 1, options_.slicing_rule});
  }
  built_.binder = std::make_unique<PartBinder>(graph_);
  const std::vector<Region> regions = grow_regions(
      graph_, streams, *built_.binder, schedule_, options_.in_order);
  for (size_t s = 0; s < p_.streams.size(); ++s) {
    p_.streams[s].start_waits = schedule_.start_waits[s];
    p_.streams[s].final_waits = schedule_.final_waits[s];
  }
  step_of_node_.assign(graph_.nodes.size(), -1);
  for (size_t r = 0; r < regions.size(); ++r) {
    PlanStep step;
    step.stream = regions[r].stream;
    step.waits = schedule_.steps[r].waits;
    step.device = device_index(graph_[regions[r].members[0].node].assigned);
    step.parts = regions[r].parts;
    step.first_op = static_cast<int>(p_.ops.size());
    step.num_ops = static_cast<int>(regions[r].members.size());
    for (const RegionMember& m : regions[r].members) {
      const Node& node = graph_[m.node];
      PlanOp op;
      op.node = m.node;
      op.name = node.name;
      op.replica = node.replica;
      if (!node.sources.empty()) op.site = node.sources.front().site;
      op.op = node.op;
      op.attrs = node.attrs.get();
      op.split = m.split;
      op.of_parts = m.kernels ? m.kernels->def : nullptr;
      op.num_in = static_cast<int>(node.inputs.size());
      op.num_out = static_cast<int>(node.outputs.size());
      step_of_node_[m.node] = static_cast<int32_t>(r);
      p_.ops.push_back(std::move(op));
      part_kernels_.push_back(m.kernels);
    }
    p_.steps.push_back(std::move(step));
  }
  for (const PlanStep& step : p_.steps) {
    for (int32_t w : step.waits) p_.steps[w].signals = true;
  }
  for (const PlanStream& s : p_.streams) {
    for (int32_t w : s.final_waits) p_.steps[w].signals = true;
  }
}

// The last op that reads the bytes of a value, through any alias.
void PlanBuilder::find_last_reads() {
  std::vector<std::vector<ValueRef>> root(graph_.nodes.size());
  for (int32_t i = 0; i < graph_.size(); ++i) {
    const Node& node = graph_[i];
    for (size_t o = 0; o < node.outputs.size(); ++o) {
      root[i].push_back({i, static_cast<int32_t>(o)});
    }
    if (node.op->kind() == OpKind::kAlias) {
      root[i][0] = root[node.inputs[0].node][node.inputs[0].output];
    }
  }
  last_read_.assign(graph_.nodes.size(), -1);
  for (size_t k = 0; k < p_.ops.size(); ++k) {
    const Node& node = node_of(p_.ops[k]);
    if (node.op->kind() == OpKind::kAlias) continue;
    for (const ValueRef& v : node.inputs) {
      last_read_[root[v.node][v.output].node] = static_cast<int>(k);
    }
  }
  for (const ValueRef& v : graph_.outputs) {
    last_read_[root[v.node][v.output].node] = INT32_MAX;
  }
}

void PlanBuilder::add_values() {
  for (size_t s = 0; s < p_.steps.size(); ++s) {
    PlanStep& step = p_.steps[s];
    const auto at = static_cast<int32_t>(s);
    bool computes = false;
    if (step.parts > 1) touched_ = {};
    for (int k = 0; k < step.num_ops; ++k) {
      add_op(step, at, step.first_op + k);
      computes |= p_.ops[step.first_op + k].kind != StepKind::kNothing;
    }
    step.kind = computes ? p_.ops[step.first_op].kind : StepKind::kNothing;
    if (step.parts > 1) {
      step.kind = StepKind::kKernel;
      step.forks = options_.slicing_rule.always_forks ||
                   step.estimate_us >= kWorthForkUs;
      add_slices_memory(step, at);
    }
  }
}

double PlanBuilder::core_us(const PlanStep& step, const Cost& cost) {
  Device& device = *p_.devices[step.device];
  if (step.parts < 2 || device.pool() == nullptr) return 0;
  rates_.resize(p_.devices.size());
  auto& rates = rates_[static_cast<size_t>(step.device)];
  if (!rates) rates = rates_of(device);
  return berth::core_us(cost, *rates, device.pool()->size());
}

void PlanBuilder::add_op(PlanStep& step, int32_t at, int index) {
  PlanOp& op = p_.ops[index];
  const Node& node = node_of(op);
  const int member = index - step.first_op;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    const ValueRef v = node.inputs[i];
    if (value(v).slot >= 0) {
      slots_[value(v).slot].at.end = member + 1;
    } else {
      use(value(v).buffer, at);
    }
    if (op.split) touch(op, v, op.split->inputs[i]);
  }
  if (node.op->kind() == OpKind::kAlias ||
      node.op->kind() == OpKind::kReadVariable) {
    op.kind = StepKind::kNothing;
    values_[op.node][0] = node.op == &rows_op_
                              ? at_row(value(node.inputs[0]), node)
                              : value(node.inputs[0]);
    if (op.split) touch(op, {op.node, 0}, op.split->outputs[0]);
    if (node.op->kind() == OpKind::kReadVariable) {
      variables_.uses[p_.buffers[values_[op.node][0].buffer].index].read = true;
    }
    return;
  }
  if (node.op->kind() == OpKind::kTransfer) {
    check_moves(node);
    op.kind = StepKind::kTransfer;
    built_.info.copied_bytes += bytes_of(node.outputs[0]);
    step.cost.bytes += static_cast<double>(bytes_of(node.outputs[0]));
    ++built_.info.transfers;
  } else if (node.op->kind() == OpKind::kControl) {
    add_control(step, op, at);
  } else {
    const Cost cost = work_of_op(graph_, op.node).cost;
    step.cost.flops += cost.flops;
    step.cost.bytes += cost.bytes;
    step.estimate_us += core_us(step, cost);
    if (step.parts == 1) bind_whole(step, at, op);
    const PartKernels* parts = part_kernels_[static_cast<size_t>(index)];
    if (step.parts > 1 && parts->scratch_bytes() > 0) {
      scratch_slot_[index] = new_slot(at, parts->scratch_bytes(), member);
    }
    note_variables(op);
  }
  add_outputs_of(step, at, index);
}

void PlanBuilder::bind_whole(PlanStep& step, int32_t at, PlanOp& op) {
  Device& device = *p_.devices[step.device];
  const Node& node = node_of(op);
  std::vector<SpecView> in;
  bool parts = node.part != nullptr;
  for (const ValueRef& v : node.inputs) {
    in.push_back(spec(v).view());
    parts |= value(v).rows;  // which may begin anywhere, as parts do
  }
  op.kernel =
      bind_kernel(device.kernels(),
                  {op.op, op.attrs, in, node.outputs, slices_of(node, device),
                   parts ? unsplit_shape(graph_, node) : nullptr});
  if (!op.kernel.def) {
    throw errors::Unimplemented(
        fmt::format("{}: no kernel of {} for {} on {}{}", node.name,
                    node.op->name(), name_of(kernel_dtype(in, node.outputs)),
                    device.short_name(), where_of(node)));
  }
  if (op.kernel.state && op.kernel.state->scratch_bytes() > 0) {
    step.scratch = new_buffer(Where::kArena, step.device,
                              op.kernel.state->scratch_bytes());
    p_.buffers[step.scratch].scratch = true;
    use(step.scratch, at);
  }
}

void PlanBuilder::note_variables(const PlanOp& op) {
  const Node& node = node_of(op);
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    const int b = value(node.inputs[i]).buffer;
    if (spec(node.inputs[i]).dtype != resource ||
        p_.buffers[b].where != Where::kVariable) {
      continue;
    }
    auto& variable = variables_.uses[p_.buffers[b].index];
    Access access = node.op->input(static_cast<int>(i)).access;
    // Overwriting a range keeps the rest of the variable.
    if (access == Access::kOverwritesVariable &&
        graph_[node.inputs[i].node].op->kind() == OpKind::kHandleRange) {
      access = Access::kWritesVariable;
    }
    if (access == Access::kOverwritesVariable && !variable.read &&
        !variable.write) {
      variable.overwrite_first = true;
    }
    if (access != Access::kOverwritesVariable && !variable.overwrite_first) {
      variable.read = true;
    }
    variable.write = variable.write || writes(access);
    variable.writes += writes(access);
  }
}

// A mirror is brought up to date from its home, which the plan therefore locks
// and keeps, also when it uses the mirror alone.
void PlanBuilder::add_homes() {
  for (size_t i = 0; i < variables_.uses.size(); ++i) {
    const Tensor home = home_of(variables_.uses[i].handle);
    if (!home.defined()) continue;
    auto at = std::find_if(
        variables_.uses.begin(), variables_.uses.end(),
        [&](const auto& use) { return use.handle.impl() == home.impl(); });
    if (at == variables_.uses.end()) {
      at = variables_.uses.insert(at, VariableUse{home});
    }
    // The plan has the shards of a divided variable, not its home.
    const bool shard = is_shard(variable_state(variables_.uses[i].handle));
    at->read |= variables_.uses[i].read && !shard;
    variables_.uses[i].home = static_cast<int>(at - variables_.uses.begin());
    variables_.mirrors.push_back(static_cast<int>(i));
  }
  // Shards get what their home has before their own mirrors get it.
  std::stable_partition(
      variables_.mirrors.begin(), variables_.mirrors.end(), [&](int m) {
        return is_shard(variable_state(variables_.uses[m].handle));
      });
}

// A home and its mirrors are written alike.
void PlanBuilder::add_written() {
  const auto home_of = [&](int use) {
    const int home = variables_.uses[use].home;
    return home < 0 ? use : home;
  };
  std::map<int, std::vector<Tensor>> handles;  // by home
  for (int i = 0; i < static_cast<int>(variables_.uses.size()); ++i) {
    if (!variables_.uses[i].write) continue;
    std::vector<Tensor>& all = handles[home_of(i)];
    if (all.empty()) all.push_back(variables_.uses[home_of(i)].handle);
    if (home_of(i) != i) all.push_back(variables_.uses[i].handle);
  }
  std::map<int, int32_t> mark_of;
  for (auto& [home, all] : handles) {
    mark_of[home] = static_cast<int32_t>(built_.writes.marks.size());
    built_.writes.marks.push_back(std::make_shared<WriteMark>(std::move(all)));
  }
  built_.writes.of_op.resize(p_.ops.size());
  for (size_t o = 0; o < p_.ops.size(); ++o) {
    const Node& node = node_of(p_.ops[o]);
    // What a body writes, its own plan knows.
    if (node.op->kind() == OpKind::kControl) continue;
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      if (spec(node.inputs[i]).dtype != resource ||
          !writes(node.op->input(static_cast<int>(i)).access)) {
        continue;
      }
      // A value that never exists has no buffer.
      const int32_t buffer = value(node.inputs[i]).buffer;
      if (buffer < 0 || p_.buffers[buffer].where != Where::kVariable) continue;
      const int home = home_of(p_.buffers[buffer].index);
      built_.writes.of_op[o].push_back(mark_of.at(home));
    }
  }
}

void PlanBuilder::order_locks() {
  for (size_t i = 0; i < variables_.uses.size(); ++i) {
    variables_.lock_order.push_back(static_cast<int>(i));
  }
  std::sort(variables_.lock_order.begin(), variables_.lock_order.end(),
            [&](int a, int b) {
              return variable_state(variables_.uses[a].handle).serial <
                     variable_state(variables_.uses[b].handle).serial;
            });
}

void PlanBuilder::count() {
  for (const PlanStep& step : p_.steps) {
    if (step.kind != StepKind::kNothing) ++built_.info.regions;
    built_.info.waits += static_cast<int>(step.waits.size());
    if (step.kind != StepKind::kTransfer) built_.info.ops += step.num_ops;
  }
  for (const PlanStream& s : p_.streams) {
    built_.info.waits += static_cast<int>(s.final_waits.size());
  }
}

void PlanBuilder::drop_wait() {
  if (!options_.dropped_wait) return;
  const auto [step, wait] = *options_.dropped_wait;
  auto& waits = step >= 0
                    ? p_.steps.at(static_cast<size_t>(step)).waits
                    : p_.streams.at(static_cast<size_t>(-step - 1)).final_waits;
  waits.erase(waits.begin() + wait);
}

}  // namespace berth
