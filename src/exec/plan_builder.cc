#include "exec/plan_builder.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/thread_pool.h"
#include "berth/errors.h"
#include "device/device_manager.h"
#include "op/device_scope.h"

namespace berth {

namespace {

std::string where_of(const Node& node) {
  return node.sources.empty() ? ""
                              : where_text(nullptr, node.sources.front().site);
}

}  // namespace

void PlanBuilder::build() {
  check_shapes();
  values_.resize(graph_.nodes.size());
  for (int32_t i = 0; i < graph_.size(); ++i) {
    values_[i].resize(graph_[i].outputs.size());
  }
  for (const StreamRef& s : p_.schedule.streams) {
    const int d = device_index(s.device);
    Device* device = p_.devices[d];
    p_.streams.push_back(
        {device,
         s.copy ? &device->copy_stream() : &device->compute_stream(),
         {}});
  }
  for (size_t s = 0; s < p_.streams.size(); ++s) {
    p_.streams[s].start_waits = p_.schedule.start_waits[s];
    p_.streams[s].final_waits = p_.schedule.final_waits[s];
  }
  add_sources();
  add_steps();
  add_outputs();
  add_lives();
  add_arenas();
  add_operands();
  count();
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

int PlanBuilder::device_index(const std::string& name) {
  const auto [it, fresh] =
      device_of_name_.try_emplace(name, static_cast<int>(p_.devices.size()));
  if (fresh) {
    Device& d = DeviceManager::get().lookup(DeviceName::parse(name));
    p_.devices.push_back(&d);
    p_.inline_only = p_.inline_only && d.runs_inline();
  }
  return it->second;
}

int PlanBuilder::new_buffer(Where where, int device, size_t bytes, int index) {
  PlanBuffer b;
  b.where = where;
  b.device = device;
  b.bytes = bytes;
  b.index = index;
  p_.buffers.push_back(b);
  uses_.emplace_back();
  return static_cast<int>(p_.buffers.size()) - 1;
}

void PlanBuilder::add_sources() {
  p_.arg_device.assign(graph_.args.size(), -1);
  const auto users = graph_.users();
  for (int32_t i = 0; i < graph_.size(); ++i) {
    const Node& node = graph_[i];
    const std::string& op = node.op->name();
    if (op == "_Arg") {
      const int index =
          static_cast<int>(node.op->attr<int64_t>(node.attrs.get(), "index"));
      const int device = device_index(node.assigned);
      bool read = !users[i].empty();
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
      const VariableState& v = variable_state(node.variable);
      const int device = device_index(v.device->str());
      const int index = static_cast<int>(p_.variables.size());
      p_.variables.push_back({node.variable});
      values_[i][0] = {
          new_buffer(Where::kVariable, device, v.size_bytes(), index), 0};
    }
  }
}

void PlanBuilder::check_moves(const Node& transfer) const {
  if (transfer.outputs[0].dtype != string_) return;
  const Node& from = graph_[transfer.inputs[0].node];
  throw errors::InvalidArgument(fmt::format(
      "{} holds strings on {} and is used on {}{}; strings live on the host "
      "alone and do not move within a function: use them on one CPU device",
      from.name, from.assigned, transfer.assigned, where_of(transfer)));
}

void PlanBuilder::add_steps() {
  step_of_node_.assign(graph_.nodes.size(), -1);
  // The last step that reads the bytes of a value, through any alias.
  std::vector<std::pair<int32_t, int32_t>> reads;
  for (size_t at = 0; at < p_.schedule.steps.size(); ++at) {
    step_of_node_[p_.schedule.steps[at].node] = static_cast<int32_t>(at);
  }
  // Root values: aliases share their input's bytes.
  std::vector<std::vector<ValueRef>> root(graph_.nodes.size());
  last_read_.assign(graph_.nodes.size(), -1);
  for (int32_t i = 0; i < graph_.size(); ++i) {
    const Node& node = graph_[i];
    root[i].resize(node.outputs.size());
    for (size_t o = 0; o < node.outputs.size(); ++o) {
      root[i][o] = {i, static_cast<int32_t>(o)};
    }
    const bool alias = node.op->kind() == OpKind::kAlias;
    if (alias) root[i][0] = root[node.inputs[0].node][node.inputs[0].output];
    for (const ValueRef& v : node.inputs) {
      const ValueRef r = root[v.node][v.output];
      if (!alias) {
        last_read_[r.node] = std::max(last_read_[r.node], step_of_node_[i]);
      }
    }
  }
  for (const ValueRef& v : graph_.outputs) {
    last_read_[root[v.node][v.output].node] = INT32_MAX;
  }
  p_.steps.resize(p_.schedule.steps.size());
  for (size_t i = 0; i < p_.schedule.steps.size(); ++i) {
    const ScheduleStep& from = p_.schedule.steps[i];
    const Node& node = graph_[from.node];
    const auto at = static_cast<int32_t>(i);
    PlanStep& step = p_.steps[i];
    step.node = from.node;
    step.stream = from.stream;
    step.waits = from.waits;
    step.device = device_index(node.assigned);
    step.op = node.op;
    step.attrs = node.attrs.get();
    step.num_in = static_cast<int>(node.inputs.size());
    step.num_out = static_cast<int>(node.outputs.size());
    for (int32_t w : step.waits) p_.steps[w].signals = true;
    for (const ValueRef& v : node.inputs) use(value(v).buffer, at);
    if (node.op->kind() == OpKind::kAlias) {
      step.kind = StepKind::kNothing;
      values_[from.node][0] = value(node.inputs[0]);
      use(values_[from.node][0].buffer, at);
    } else if (node.op->kind() == OpKind::kReadVariable) {
      step.kind = StepKind::kNothing;
      values_[from.node][0] = value(node.inputs[0]);
      p_.variables[p_.buffers[values_[from.node][0].buffer].index].read = true;
    } else if (node.op->name() == "_Transfer") {
      check_moves(node);
      step.kind = StepKind::kTransfer;
      give_outputs(step, node, at);
      p_.info.copied_bytes += bytes_of(node.outputs[0]);
      ++p_.info.transfers;
    } else if (node.op->kind() == OpKind::kControl) {
      add_control(step, node, at);
      give_outputs(step, node, at);
    } else {
      add_kernel(step, node, at);
      give_outputs(step, node, at);
    }
  }
  for (PlanStream& s : p_.streams) {
    for (int32_t w : s.final_waits) p_.steps[w].signals = true;
  }
}

void PlanBuilder::add_kernel(PlanStep& step, const Node& node, int32_t at) {
  Device& device = *p_.devices[step.device];
  std::vector<SpecView> in;
  for (const ValueRef& v : node.inputs) in.push_back(spec(v).view());
  std::vector<OutSpec> out = node.outputs;
  const InferContext c(*node.op, node.attrs.get(), in, out);
  step.cost = node.op->cost(c);
  // Near enough for choosing whether to fork: 20 GFLOP/s, 10 GB/s.
  step.estimate_us = std::max(step.cost.flops / 20e3, step.cost.bytes / 10e3);
  const int slices = p_.slices_on(device);
  step.kernel = bind_kernel(device.kernels(),
                            {node.op, node.attrs.get(), in, out, slices});
  if (!step.kernel.def) {
    throw errors::Unimplemented(fmt::format(
        "{}: no kernel of {} for {} on {}{}", node.name, node.op->name(),
        name_of(kernel_dtype(in, out)), device.short_name(), where_of(node)));
  }
  if (step.kernel.state && step.kernel.state->scratch_bytes() > 0) {
    step.scratch = new_buffer(Where::kArena, step.device,
                              step.kernel.state->scratch_bytes());
    p_.buffers[step.scratch].scratch = true;
    use(step.scratch, at);
  }
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    const int b = value(node.inputs[i]).buffer;
    if (p_.buffers[b].where != Where::kVariable || in[i].dtype != resource) {
      continue;
    }
    auto& variable = p_.variables[p_.buffers[b].index];
    const Access access = node.op->input(static_cast<int>(i)).access;
    if (access == Access::kOverwritesVariable && !variable.read &&
        !variable.write) {
      variable.overwrite_first = true;
    }
    if (access != Access::kOverwritesVariable && !variable.overwrite_first) {
      variable.read = true;
    }
    variable.write = variable.write || writes(access);
  }
}

void PlanBuilder::give_outputs(PlanStep& step, const Node& node, int32_t at) {
  for (int o = 0; o < step.num_out; ++o) {
    int buffer = -1;
    if (step.kind == StepKind::kKernel) {
      buffer = in_place_buffer(step, node, o, at);
    }
    if (buffer < 0) {
      buffer =
          new_buffer(Where::kArena, step.device, bytes_of(node.outputs[o]));
    }
    values_[step.node][o] = {buffer, 0};
    use(buffer, at);
  }
}

// An elementwise kernel may write over an operand that nobody reads again.
int PlanBuilder::in_place_buffer(const PlanStep& step, const Node& node,
                                 int output, int32_t at) const {
  if (output != 0 || !step.kernel.def->in_place) return -1;
  // A result that escapes gets memory of its own.
  for (const ValueRef& v : graph_.outputs) {
    if (v == ValueRef{step.node, 0}) return -1;
  }
  for (const ValueRef& v : node.inputs) {
    const Value& in = values_[v.node][v.output];
    const PlanBuffer& b = p_.buffers[in.buffer];
    const OutSpec& s = graph_.spec(v);
    if (b.where != Where::kArena || b.device != step.device || in.offset != 0 ||
        !(s.shape == node.outputs[0].shape) ||
        size_of(s.dtype) != size_of(node.outputs[0].dtype)) {
      continue;
    }
    // All uses so far are earlier on this stream, and none comes later.
    ValueRef root = v;
    while (graph_[root.node].op->kind() == OpKind::kAlias) {
      root = graph_[root.node].inputs[0];
    }
    if (last_read_[root.node] != at) continue;
    bool same_stream = true;
    for (int32_t u : uses_[in.buffer]) {
      same_stream &= p_.steps[u].stream == step.stream;
    }
    if (same_stream) return in.buffer;
  }
  return -1;
}

void PlanBuilder::add_outputs() {
  for (const ValueRef& v : graph_.outputs) {
    const Value& at = value(v);
    PlanBuffer& b = p_.buffers[at.buffer];
    Plan::Impl::Output out;
    out.buffer = at.buffer;
    out.offset = at.offset;
    out.shape = spec(v).shape;
    out.dtype = spec(v).dtype;
    const int index = static_cast<int>(p_.outputs.size());
    if (b.where == Where::kArena) {
      b.where = Where::kOutput;
      b.index = index;
      p_.info.output_bytes += b.bytes;
    } else if (b.where == Where::kOutput) {
      out.same_as = b.index;
    }
    p_.outputs.push_back(std::move(out));
  }
}

void PlanBuilder::add_lives() {
  const HappensBefore hb(p_.schedule);
  std::vector<std::vector<int32_t>> writers(p_.devices.size());
  for (size_t s = 0; s < p_.streams.size(); ++s) {
    for (size_t d = 0; d < p_.devices.size(); ++d) {
      if (p_.streams[s].device == p_.devices[d]) {
        writers[d].push_back(static_cast<int32_t>(s));
      }
    }
  }
  for (size_t i = 0; i < p_.buffers.size(); ++i) {
    PlanBuffer& b = p_.buffers[i];
    if (b.where != Where::kArena) continue;
    b.begin = *std::min_element(uses_[i].begin(), uses_[i].end());
    b.end = b.begin + 1;
    for (int32_t u : uses_[i]) {
      b.end = std::max(b.end, hb.free_from(u, writers[b.device]));
    }
  }
}

void PlanBuilder::add_arenas() {
  p_.arena_bytes.assign(p_.devices.size(), 0);
  for (size_t d = 0; d < p_.devices.size(); ++d) {
    std::vector<ArenaBuffer> lives;
    std::vector<size_t> which;
    for (size_t i = 0; i < p_.buffers.size(); ++i) {
      const PlanBuffer& b = p_.buffers[i];
      if (b.where != Where::kArena || b.device != static_cast<int>(d)) continue;
      lives.push_back({b.bytes, b.begin, b.end, 0});
      which.push_back(i);
    }
    p_.arena_bytes[d] = plan_arena(lives);
    for (size_t i = 0; i < lives.size(); ++i) {
      p_.buffers[which[i]].offset = lives[i].offset;
    }
    p_.info.arena_bytes += p_.arena_bytes[d];
    p_.info.bound_bytes += liveness_bound(lives);
    p_.info.arena_by_device.push_back(
        {p_.devices[d]->str(), p_.arena_bytes[d]});
  }
  p_.guard.watch(p_);
}

void PlanBuilder::add_operands() {
  int calls = 0;
  for (PlanStep& step : p_.steps) {
    step.first_call = calls;
    step.first_view = static_cast<int>(p_.operands.size());
    if (step.kind == StepKind::kNothing) continue;
    const Node& node = graph_[step.node];
    if (!cut(step, node)) add_call(step, node, nullptr, 0, 1);
    if (step.op->random()) {
      for (int i = 0; i < step.parts; ++i) {
        p_.random_calls.push_back(calls + i);
      }
    }
    calls += step.parts;
  }
  for (size_t i = 0; i < p_.operands.size(); ++i) {
    const int b = p_.operands[i].buffer;
    const Where where = p_.buffers[b].where;
    if (where == Where::kArg || where == Where::kOutput) {
      p_.patches.push_back({static_cast<int>(i), b});
    }
  }
}

// Cuts a region into parts along the first axis when that is worth a fork and
// the kernel does not fork by itself.
bool PlanBuilder::cut(PlanStep& step, const Node& node) {
  constexpr double kWorthUs = 8;
  ThreadPool* pool = p_.devices[step.device]->pool();
  if (step.kind != StepKind::kKernel || !pool || pool->size() == 1 ||
      step.kernel.def->parallel || !step.kernel.direct || !step.op->split() ||
      step.estimate_us < kWorthUs) {
    return false;
  }
  std::vector<SpecView> in;
  for (const ValueRef& v : node.inputs) in.push_back(spec(v).view());
  std::vector<OutSpec> out = node.outputs;
  const InferContext c(*node.op, node.attrs.get(), in, out);
  for (const SplitSignature& s : node.op->split()(c)) {
    int64_t dim = INT64_MAX;
    bool fits = true;
    auto look = [&](int8_t axis, const Shape& shape) {
      if (axis == SplitSignature::kWhole) return;
      fits &= axis == 0;
      if (axis == 0) dim = std::min(dim, shape[0]);
    };
    for (size_t i = 0; i < in.size(); ++i) look(s.inputs[i], *in[i].shape);
    for (size_t o = 0; o < out.size(); ++o) {
      fits &= s.outputs[o] == 0;
      look(s.outputs[o], out[o].shape);
    }
    int parts = p_.slices_on(*p_.devices[step.device]);
    parts = static_cast<int>(
        std::min<int64_t>({parts, dim, ThreadPool::kMaxChunks}));
    if (!fits || dim == INT64_MAX || parts < 2) continue;
    step.parts = parts;
    for (int i = 0; i < parts; ++i) add_call(step, node, &s, i, parts);
    return true;
  }
  return false;
}

void PlanBuilder::add_call(const PlanStep& step, const Node& node,
                           const SplitSignature* split, int part, int parts) {
  auto add = [&](const Value& v, const OutSpec& s, int8_t axis) {
    Operand o;
    o.buffer = v.buffer;
    o.offset = v.offset;
    o.shape = &s.shape;
    o.dtype = s.dtype == resource ? s.variable : s.dtype;
    if (axis == 0) {
      const int64_t n = s.shape[0];
      const int64_t begin = n * part / parts, end = n * (part + 1) / parts;
      Shape shape = s.shape;
      shape[0] = end - begin;
      const int64_t row = n > 0 ? s.shape.num_elements() / n : 0;
      o.offset += static_cast<size_t>(begin * row) * size_of(o.dtype);
      p_.part_shapes.push_back(shape);
      o.shape = &p_.part_shapes.back();
    }
    p_.operands.push_back(o);
  };
  const int8_t whole = SplitSignature::kWhole;
  for (int i = 0; i < step.num_in; ++i) {
    add(value(node.inputs[i]), spec(node.inputs[i]),
        split ? split->inputs[i] : whole);
  }
  for (int o = 0; o < step.num_out; ++o) {
    add(values_[step.node][o], node.outputs[o],
        split ? split->outputs[o] : whole);
  }
}

void PlanBuilder::count() {
  for (const PlanStep& step : p_.steps) {
    if (step.kind != StepKind::kNothing) ++p_.info.regions;
    p_.info.waits += static_cast<int>(step.waits.size());
    if (step.kind != StepKind::kTransfer) ++p_.info.ops;
  }
  for (const PlanStream& s : p_.streams) {
    p_.info.waits += static_cast<int>(s.final_waits.size());
  }
  for (size_t i = 0; i < p_.variables.size(); ++i) {
    p_.lock_order.push_back(static_cast<int>(i));
  }
  std::sort(p_.lock_order.begin(), p_.lock_order.end(), [&](int a, int b) {
    return variable_state(p_.variables[a].handle).serial <
           variable_state(p_.variables[b].handle).serial;
  });
}

}  // namespace berth
