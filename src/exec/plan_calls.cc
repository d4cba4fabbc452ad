// Calls of a plan: views of operands, whole or split into parts.

#include <fmt/format.h>

#include "berth/errors.h"
#include "exec/plan_builder.h"

namespace berth {

void PlanBuilder::add_calls() {
  for (PlanStep& step : p_.steps) {
    step.first_call = static_cast<int>(p_.calls.size());
    if (step.kind == StepKind::kNothing) continue;
    for (int part = 0; part < step.parts; ++part) {
      for (int k = 0; k < step.num_ops; ++k) {
        const int op = step.first_op + k;
        if (p_.ops[op].kind != StepKind::kNothing) add_call(step, op, part);
      }
    }
    const int calls = static_cast<int>(p_.calls.size()) - step.first_call;
    step.calls_per_part = calls / step.parts;
    if (step.num_sums > 0) add_sums(step);
  }
  patch_operands();
}

void PlanBuilder::add_call(const PlanStep& step, int index, int part) {
  const PlanOp& op = p_.ops[index];
  const Node& node = node_of(op);
  PlanCall call;
  call.op = index;
  call.part = part;
  call.first_view = static_cast<int>(p_.operands.size());
  call.num_in = op.num_in;
  call.num_out = op.num_out;
  if (node.part) {
    call.slice_origin = node.part->origin;
    call.unsplit = unsplit_shape(graph_, node);
  }
  if (op.kind != StepKind::kTransfer && !op.split) {
    if (op.kind == StepKind::kKernel) call.kernel = &op.kernel;
    call.scratch = step.scratch;
  }
  if (step.parts == 1 && op.kind == StepKind::kKernel) {
    // The op may fork by itself.
    Device& device = *p_.devices[step.device];
    call.pool = options_.workers == 1 ? nullptr : device.pool();
    call.slices = slices_of(node, device);
  }
  if (op.split) {
    const int64_t length = built_.binder->cut_length(op.node, *op.split);
    const int64_t begin = part_begin(node, length, step.parts, part);
    call.kernel = &part_kernels_[static_cast<size_t>(index)]->of(
        part_begin(node, length, step.parts, part + 1) - begin);
    call.unsplit = unsplit_shape(graph_, node);
    if (op.num_out > 0 && op.split->outputs[0] >= 0) {
      call.slice_origin +=
          begin * (node.outputs[0].shape.num_elements() / length);
    }
    if (const auto it = scratch_slot_.find(index); it != scratch_slot_.end()) {
      call.scratch = step.scratch;
      call.scratch_offset = static_cast<size_t>(part) * step.private_bytes +
                            slots_[it->second].at.offset;
    }
  }
  const int8_t whole = SplitSignature::kWhole;
  for (int i = 0; i < op.num_in; ++i) {
    add_operand(step, node, value(node.inputs[i]), spec(node.inputs[i]),
                op.split ? op.split->inputs[i] : whole, part);
  }
  for (int o = 0; o < op.num_out; ++o) {
    add_operand(step, node, values_[op.node][o], node.outputs[o],
                op.split ? op.split->outputs[o] : whole, part);
  }
  if (op.op->random()) {
    p_.random_calls.push_back({static_cast<int>(p_.calls.size()), step.device});
  }
  p_.calls.push_back(call);
}

void PlanBuilder::add_operand(const PlanStep& step, const Node& node,
                              const Value& v, const OutSpec& s, int8_t axis,
                              int part) {
  Operand o;
  o.buffer = v.buffer;
  o.offset = v.offset;
  o.shape = &s.shape;
  o.dtype = s.dtype == resource ? s.variable : s.dtype;
  if (axis >= 0) {
    const int64_t length = s.shape[axis];
    const ViewCut cut(s.shape, axis, part_begin(node, length, step.parts, part),
                      part_begin(node, length, step.parts, part + 1));
    if (v.slot < 0) {
      o.offset += static_cast<size_t>(cut.offset) * size_of(o.dtype);
      o.run_axis = cut.run_axis;
      o.pitch = cut.pitch;
    }
    p_.part_shapes.push_back(cut.shape);
    o.shape = &p_.part_shapes.back();
  }
  if (v.slot >= 0) {
    o.buffer = step.scratch;
    o.offset = static_cast<size_t>(part) * step.private_bytes +
               slots_[v.slot].at.offset;
  }
  p_.operands.push_back(o);
}

// Partial sums: slice 0 writes where the sum will be, the others after each
// other; then one addition per sum and node of the tree.
void PlanBuilder::add_sums(PlanStep& step) {
  static const OpDef& add = op_named("AddV2");
  step.first_node = p_.tree_nodes;
  p_.tree_nodes += step.parts;
  struct Sum {
    int view;  // of slice 0's
    int call;  // of slice 0, among the calls of a part
    BoundKernel* kernel;
    size_t bytes;
  };
  std::vector<Sum> sums;
  for (int c = 0; c < step.calls_per_part; ++c) {
    const PlanCall& call = p_.calls[step.first_call + c];
    const PlanOp& op = p_.ops[call.op];
    for (int o = 0; o < op.num_out; ++o) {
      if (op.split->outputs[o] != SplitSignature::kPartialSum) continue;
      const OutSpec& s = node_of(op).outputs[o];
      BoundKernel& kernel = p_.sum_kernels.emplace_back();
      const SpecView both[2] = {s.view(), s.view()};
      kernel = bind_kernel(p_.devices[step.device]->kernels(),
                           {.op = &add, .in = both, .out = {&s, 1}});
      if (kernel.def == nullptr) {
        throw errors::Internal(
            fmt::format("{}: no kernel of AddV2 takes its partial sums, {} {}",
                        op.name, name_of(s.dtype), s.shape.str()));
      }
      sums.push_back({call.num_in + o, c, &kernel, aligned(bytes_of(s))});
    }
  }
  // The operand in which slice `part` leaves sum `s`.
  auto operand = [&](const Sum& s, int part) -> Operand& {
    const int call = step.first_call + part * step.calls_per_part + s.call;
    return p_.operands[p_.calls[call].first_view + s.view];
  };
  size_t offset = 0;
  for (const Sum& s : sums) {
    for (int part = 1; part < step.parts; ++part, offset += s.bytes) {
      operand(s, part).buffer = step.partials;
      operand(s, part).offset = offset;
    }
  }
  step.first_add = static_cast<int>(p_.calls.size());
  for (int right = 1; right < step.parts; ++right) {
    const int left = right - (right & -right);
    for (const Sum& s : sums) {
      PlanCall call;
      call.kernel = s.kernel;
      call.first_view = static_cast<int>(p_.operands.size());
      call.num_in = 2;
      call.num_out = 1;
      const Operand a = operand(s, left), b = operand(s, right);
      p_.operands.insert(p_.operands.end(), {a, b, a});
      p_.calls.push_back(call);
    }
  }
}

// Arguments and outputs lie elsewhere in every run.
void PlanBuilder::patch_operands() {
  for (size_t i = 0; i < p_.operands.size(); ++i) {
    const int b = p_.operands[i].buffer;
    const Where where = p_.buffers[b].where;
    if (where == Where::kArg || where == Where::kOutput) {
      p_.patches.push_back({static_cast<int>(i), b});
    }
  }
}

}  // namespace berth
