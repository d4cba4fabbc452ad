// The plan as text (docs/graph-format.md, "Plans").

#include <fmt/format.h>

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

}  // namespace

std::string Plan::str() const {
  const Impl& p = *impl_;
  std::string s = "berth-plan 1\n";
  auto out = std::back_inserter(s);
  fmt::format_to(out, "plan \"{}\" ops {} regions {} transfers {} waits {}\n",
                 p.graph.name, p.info.ops, p.info.regions, p.info.transfers,
                 p.info.waits);
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
    const Node& node = p.graph[step.node];
    fmt::format_to(out, "step {} stream {} {} {}", i, step.stream, node.name,
                   node.op->name());
    if (step.kind != StepKind::kNothing) {
      const Operand* o = &p.operands[step.first_view];
      std::vector<int> in, res;
      for (int k = 0; k < step.num_in; ++k) in.push_back(o[k].buffer);
      for (int k = 0; k < step.num_out; ++k) {
        res.push_back(o[step.num_in + k].buffer);
      }
      fmt::format_to(out, " in {} out {}", fmt::join(in, ","),
                     fmt::join(res, ","));
    }
    if (step.kernel.def)
      fmt::format_to(out, " kernel {}", step.kernel.def->label);
    if (step.parts > 1) fmt::format_to(out, " slices {}", step.parts);
    if (step.scratch >= 0) fmt::format_to(out, " scratch {}", step.scratch);
    if (!step.waits.empty()) {
      fmt::format_to(out, " waits {}", fmt::join(step.waits, ","));
    }
    s += '\n';
  }
  return s;
}

}  // namespace berth
