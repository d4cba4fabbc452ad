// Memory of a plan: values given to buffers, in place where kernels allow; the
// lives of buffers; arenas; what is private to the slices of a region.

#include <algorithm>

#include "device/device_manager.h"
#include "exec/plan_builder.h"
#include "graph/node_part.h"

namespace berth {

int PlanBuilder::new_buffer(Where where, int device, size_t bytes, int index) {
  PlanBuffer b;
  b.where = where;
  b.device = device;
  b.bytes = bytes;
  b.index = index;
  p_.buffers.push_back(b);
  uses_.emplace_back();
  stream_of_.push_back(kNoUse);
  return static_cast<int>(p_.buffers.size()) - 1;
}

void PlanBuilder::use(int buffer, int32_t step) {
  uses_[buffer].push_back(step);
  int& stream = stream_of_[buffer];
  const int now = p_.steps[step].stream;
  stream = stream == kNoUse || stream == now ? now : kSeveral;
}

int PlanBuilder::new_slot(int32_t at, size_t bytes, int member) {
  slots_.push_back({at, {bytes, member, member + 1, 0}});
  return static_cast<int>(slots_.size()) - 1;
}

// True when only members of region `at` look at a value, each at its part.
bool PlanBuilder::is_private(ValueRef v, int32_t at) const {
  if (escaping_.contains(v)) return false;
  for (int32_t user : users_[v.node]) {
    const Node& n = graph_[user];
    if (step_of_node_[user] == at && n.op->kind() != OpKind::kAlias) continue;
    if (std::find(n.inputs.begin(), n.inputs.end(), v) == n.inputs.end()) {
      continue;
    }
    if (step_of_node_[user] != at) return false;
    if (!is_private({user, 0}, at)) return false;
  }
  return true;
}

void PlanBuilder::add_outputs_of(PlanStep& step, int32_t at, int index) {
  const PlanOp& op = p_.ops[index];
  const Node& node = node_of(op);
  for (int o = 0; o < op.num_out; ++o) {
    const int8_t axis =
        op.split ? op.split->outputs[o] : SplitSignature::kWhole;
    Value result;
    if (o > 0 || !in_place(step, at, index, &result)) {
      if (axis >= 0 && is_private({op.node, o}, at)) {
        const int64_t n = node.outputs[o].shape[axis];
        const int64_t longest = longest_part(node, n, step.parts);
        result.slot =
            new_slot(at,
                     bytes_of(node.outputs[o]) / static_cast<size_t>(n) *
                         static_cast<size_t>(longest),
                     index - step.first_op);
      } else {
        result.buffer =
            new_buffer(Where::kArena, step.device, bytes_of(node.outputs[o]));
      }
    }
    values_[op.node][o] = result;
    if (result.slot < 0) use(result.buffer, at);
    if (op.split) touch(op, {op.node, o}, axis);
    if (axis == SplitSignature::kPartialSum) ++step.num_sums;
  }
}

// An elementwise kernel may write over an operand that nobody reads again.
// Sets `result` to where output 0 of the op then is.
bool PlanBuilder::in_place(const PlanStep& step, int32_t at, int index,
                           Value* result) {
  const PlanOp& op = p_.ops[index];
  if (op.kind != StepKind::kKernel || !op.def()->in_place) return false;
  const Node& node = node_of(op);
  // A result that escapes gets memory of its own.
  if (escaping_.contains({op.node, 0})) return false;
  const int8_t axis = op.split ? op.split->outputs[0] : SplitSignature::kWhole;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    const ValueRef v = node.inputs[i];
    const Value& in = value(v);
    const OutSpec& s = spec(v);
    if (!(s.shape == node.outputs[0].shape) || in.offset != 0 ||
        size_of(s.dtype) != size_of(node.outputs[0].dtype) ||
        (op.split && op.split->inputs[i] != axis)) {
      continue;
    }
    ValueRef root = v;
    while (graph_[root.node].op->kind() == OpKind::kAlias) {
      root = graph_[root.node].inputs[0];
    }
    if (last_read_[root.node] != index) continue;
    if (in.slot >= 0) {
      if (!is_private({op.node, 0}, at)) continue;
      *result = in;
      return true;
    }
    const PlanBuffer& b = p_.buffers[in.buffer];
    if (b.where != Where::kArena || b.device != step.device) continue;
    // All uses so far are earlier on this stream, and none comes later; those
    // in this region look at the same parts.
    if (stream_of_[in.buffer] != step.stream) continue;
    if (op.split && !same_borders(op, in.buffer, s.shape, axis)) continue;
    *result = {in.buffer, 0};
    return true;
  }
  return false;
}

// Notes how a member of a region looks at a value, split along `axis`.
void PlanBuilder::touch(const PlanOp& op, ValueRef v, int8_t axis) {
  const Value& at = value(v);
  if (at.slot >= 0) return;
  const Shape& s = spec(v).shape;
  const NodePart* slices = node_of(op).part.get();
  const int64_t length = axis >= 0 && cut_is_dense(s, axis) ? s[axis] : -1;
  const auto [it, fresh] =
      touched_.try_emplace(at.buffer, Touched{length, slices});
  Touched& t = it->second;
  if (!fresh && (t.length != length || !same_slices(t.slices, slices))) {
    t.length = -1;
  }
}

// True when the members so far, the op among them, touch `buffer` only in the
// parts that a cut of `shape` along `axis` gives.
bool PlanBuilder::same_borders(const PlanOp& op, int buffer, const Shape& shape,
                               int8_t axis) const {
  if (axis < 0 || !cut_is_dense(shape, axis)) return false;
  const Touched& t = touched_.at(buffer);
  return t.length == shape[axis] &&
         same_slices(t.slices, node_of(op).part.get());
}

// What the slices of a region have for themselves: one small arena each.
void PlanBuilder::add_slices_memory(PlanStep& step, int32_t at) {
  std::vector<ArenaBuffer> lives;
  std::vector<size_t> which;
  for (size_t i = slots_.size(); i-- > 0 && slots_[i].step == at;) {
    which.push_back(i);
    lives.push_back(slots_[i].at);
  }
  step.private_bytes = plan_arena(lives);
  for (size_t i = 0; i < which.size(); ++i) slots_[which[i]].at = lives[i];
  const auto parts = static_cast<size_t>(step.parts);
  // Values without elements lie somewhere, too.
  auto add = [&](size_t bytes) {
    const int buffer =
        new_buffer(Where::kArena, step.device, std::max<size_t>(bytes, 1));
    p_.buffers[buffer].scratch = true;
    use(buffer, at);
    return buffer;
  };
  if (!lives.empty()) step.scratch = add(step.private_bytes * parts);
  // The first slice writes its partial sums where the sums will be.
  size_t sums = 0;
  for (int k = step.first_op; k < step.first_op + step.num_ops; ++k) {
    const PlanOp& op = p_.ops[k];
    for (int o = 0; o < op.num_out; ++o) {
      if (op.split->outputs[o] != SplitSignature::kPartialSum) continue;
      sums += aligned(bytes_of(node_of(op).outputs[o])) * (parts - 1);
    }
  }
  if (step.num_sums > 0) step.partials = add(sums);
}

void PlanBuilder::add_outputs() {
  for (const ValueRef& v : graph_.outputs) {
    const Value& at = value(v);
    PlanBuffer& b = p_.buffers[at.buffer];
    PlanOutput out;
    out.buffer = at.buffer;
    out.offset = at.offset;
    out.shape = spec(v).shape;
    out.dtype = spec(v).dtype;
    out.part = bytes_of(spec(v)) != b.bytes;
    const int index = static_cast<int>(p_.outputs.size());
    if (b.where == Where::kArena) {
      b.where = Where::kOutput;
      b.index = index;
      built_.info.output_bytes += b.bytes;
    } else if (b.where == Where::kOutput) {
      out.same_as = b.index;
    } else if (b.where == Where::kArg) {
      p_.arg_escapes[static_cast<size_t>(b.index)] = true;
    }
    p_.outputs.push_back(std::move(out));
  }
}

// The arena of a host is guarded by one life of each buffer (arena_guard.h).
void PlanBuilder::add_arenas() {
  const HappensBefore hb(schedule_);
  p_.arena_bytes.assign(p_.devices.size(), 0);
  for (size_t d = 0; d < p_.devices.size(); ++d) {
    std::vector<ArenaBuffer> lives;
    std::vector<size_t> which;
    std::vector<int32_t> writers;  // streams
    for (size_t i = 0; i < p_.buffers.size(); ++i) {
      const PlanBuffer& b = p_.buffers[i];
      if (b.where != Where::kArena || b.device != static_cast<int>(d)) continue;
      ArenaBuffer& life = lives.emplace_back(ArenaBuffer{b.bytes});
      which.push_back(i);
      life.begin = *std::min_element(uses_[i].begin(), uses_[i].end());
      const int32_t stream = p_.steps[life.begin].stream;
      const auto at = std::find(writers.begin(), writers.end(), stream);
      life.stream = static_cast<size_t>(at - writers.begin());
      if (at == writers.end()) writers.push_back(stream);
    }
    for (size_t k = 0; k < lives.size(); ++k) {
      ArenaBuffer& life = lives[k];
      for (const int32_t w : writers) {
        int32_t& end = life.ends.emplace_back(life.begin + 1);
        for (const int32_t u : uses_[which[k]]) {
          end = std::max(end, hb.free_from(u, w));
        }
      }
      const auto [least, most] =
          std::minmax_element(life.ends.begin(), life.ends.end());
      life.end = *least;
      if (p_.devices[d]->id().is_cpu()) {
        life.end = *most;
        std::fill(life.ends.begin(), life.ends.end(), life.end);
      }
      p_.buffers[which[k]].begin = life.begin;
      p_.buffers[which[k]].end = life.end;
    }
    p_.arena_bytes[d] = plan_arena(lives);
    for (size_t i = 0; i < lives.size(); ++i) {
      p_.buffers[which[i]].offset = lives[i].offset;
    }
    built_.info.arena_bytes += p_.arena_bytes[d];
    built_.info.bound_bytes += liveness_bound(lives);
    built_.info.arena_by_device.push_back(
        {p_.devices[d]->str(), p_.arena_bytes[d]});
  }
}

}  // namespace berth
