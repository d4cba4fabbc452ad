// The plan as text (docs/graph-format.md, "Plans").

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "exec/plan_impl.h"

namespace berth {

namespace {

const char* where_name(Where where) {
  switch (where) {
    case Where::kArena:
      return "arena";
    case Where::kArg:
      return "arg";
    case Where::kConst:
      return "const";
    case Where::kVariable:
      return "variable";
    case Where::kOutput:
      return "output";
  }
  return "?";
}

using Out = std::back_insert_iterator<std::string>;

void print_replica(const PlanOp& op, Out out) {
  if (op.replica >= 0) fmt::format_to(out, " replica {}", op.replica);
}

void print_waits(const PlanStep& step, Out out) {
  if (!step.waits.empty()) {
    fmt::format_to(out, " waits {}", fmt::join(step.waits, ","));
  }
  *out++ = '\n';
}

// The buffers that `calls` calls read and write, each once.
void print_operands(const Program& p, int first, int calls, Out out) {
  std::vector<int> in, res;
  for (int c = first; c < first + calls; ++c) {
    const PlanCall& call = p.calls[c];
    for (int k = 0; k < call.num_in + call.num_out; ++k) {
      const int b = p.operands[call.first_view + k].buffer;
      std::vector<int>& list = k < call.num_in ? in : res;
      const bool seen = std::find(list.begin(), list.end(), b) != list.end();
      // What slices have for themselves stands after "private".
      if ((calls > 1 && seen) || p.buffers[b].scratch) continue;
      list.push_back(b);
    }
  }
  fmt::format_to(out, " in {} out {}", fmt::join(in, ","), fmt::join(res, ","));
}

// "0", "1", "-" for whole, "+" for a partial sum.
std::string cuts(const std::vector<int8_t>& axes) {
  std::string s;
  for (int8_t axis : axes) {
    if (!s.empty()) s += ',';
    s += axis == SplitSignature::kWhole        ? "-"
         : axis == SplitSignature::kPartialSum ? "+"
                                               : std::to_string(axis);
  }
  return s;
}

void print_region(const Program& p, const PlanStep& step, int at, Out out) {
  int computing = 0;
  for (int k = 0; k < step.num_ops; ++k) {
    computing += p.ops[step.first_op + k].kind != StepKind::kNothing;
  }
  fmt::format_to(out, "step {} stream {} region ops {}", at, step.stream,
                 computing);
  print_operands(p, step.first_call, step.calls_per_part, out);
  fmt::format_to(out, " slices {}", step.parts);
  if (step.scratch >= 0) {
    fmt::format_to(out, " scratch {} private {}", step.scratch,
                   step.private_bytes);
  }
  if (step.partials >= 0) fmt::format_to(out, " partials {}", step.partials);
  print_waits(step, out);
  for (int k = 0; k < step.num_ops; ++k) {
    const PlanOp& op = p.ops[step.first_op + k];
    fmt::format_to(out, "  op {} {} cut {} to {}", op.name, op.op->name(),
                   cuts(op.split->inputs), cuts(op.split->outputs));
    if (op.def()) fmt::format_to(out, " kernel {}", op.def()->label);
    print_replica(op, out);
    *out++ = '\n';
  }
}

// Several transfers that are launched as one.
void print_batch(const Program& p, const PlanStep& step, int at, Out out) {
  fmt::format_to(out, "step {} stream {} transfers {}", at, step.stream,
                 step.num_ops);
  print_operands(p, step.first_call, step.num_ops, out);
  print_waits(step, out);
  for (int k = 0; k < step.num_ops; ++k) {
    const PlanOp& op = p.ops[step.first_op + k];
    fmt::format_to(out, "  op {} {}\n", op.name, op.op->name());
  }
}

}  // namespace

std::string Plan::str() const {
  const Program& p = *impl_->program;
  const PlanInfo& info = impl_->info;
  std::string s = "berth-plan 1\n";
  auto out = std::back_inserter(s);
  fmt::format_to(out, "plan \"{}\" ops {} regions {} transfers {} waits {}\n",
                 p.name, info.ops, info.regions, info.transfers, info.waits);
  for (size_t d = 0; d < p.devices.size(); ++d) {
    fmt::format_to(out, "device {} {} arena {}\n", d, p.devices[d]->str(),
                   p.arena_bytes[d]);
  }
  for (size_t i = 0; i < p.streams.size(); ++i) {
    const PlanStream& stream = p.streams[i];
    const bool copy = stream.stream == &stream.device->copy_stream() &&
                      stream.stream != &stream.device->compute_stream();
    fmt::format_to(out, "stream {} {} {}", i, stream.device->short_name(),
                   copy ? "copy" : "compute");
    if (!stream.final_waits.empty()) {
      fmt::format_to(out, " finally-waits {}",
                     fmt::join(stream.final_waits, ","));
    }
    s += '\n';
  }
  for (size_t i = 0; i < p.buffers.size(); ++i) {
    const PlanBuffer& b = p.buffers[i];
    fmt::format_to(out, "buffer {} {} device {} bytes {}", i,
                   b.scratch ? "scratch" : where_name(b.where), b.device,
                   b.bytes);
    if (b.where == Where::kArena) {
      fmt::format_to(out, " offset {} life {}-{}", b.offset, b.begin, b.end);
    } else {
      fmt::format_to(out, " index {}", b.index);
    }
    s += '\n';
  }
  for (size_t i = 0; i < p.steps.size(); ++i) {
    const PlanStep& step = p.steps[i];
    const PlanOp& first = p.ops[step.first_op];
    if (step.parts > 1) {
      print_region(p, step, static_cast<int>(i), out);
      continue;
    }
    if (step.kind == StepKind::kTransfer && step.num_ops > 1) {
      print_batch(p, step, static_cast<int>(i), out);
      continue;
    }
    fmt::format_to(out, "step {} stream {} {} {}", i, step.stream, first.name,
                   first.op->name());
    if (step.kind != StepKind::kNothing) {
      print_operands(p, step.first_call, 1, out);
    }
    if (first.kernel.def) {
      fmt::format_to(out, " kernel {}", first.kernel.def->label);
    }
    if (step.scratch >= 0) fmt::format_to(out, " scratch {}", step.scratch);
    print_replica(first, out);
    print_waits(step, out);
  }
  s += impl_->runner->describe();
  return s;
}

}  // namespace berth
