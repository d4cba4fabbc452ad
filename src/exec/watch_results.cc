// Reads what a step wrote, op by op.

#include "exec/watch_results.h"

#include <fmt/format.h>

#include <vector>

#include "base/checksum.h"
#include "base/diagnostics.h"
#include "base/where.h"
#include "berth/errors.h"
#include "device/memory_space.h"
#include "tensor/numbers_found.h"

namespace berth {

namespace {

// One result of an op; of a region part by part.
struct Result {
  int op = -1, number = 0;
  uint64_t sum = 0;
  NumbersFound numbers;
  DType dtype = DType::kInvalid;
};

std::string name_of(const ProgramRun& run, const Result& r) {
  const std::string& name = run.program.ops[r.op].name;
  return r.number == 0 ? name : fmt::format("{}:{}", name, r.number);
}

// Adds the elements of a view, run by run where it is pitched.
void add_view(const View& view, Device& device, Result* r) {
  const size_t width = size_of(view.dtype);
  if (width == 0 || view.size() == 0) return;  // strings are of the host
  size_t values = static_cast<size_t>(view.size()), runs = 1;
  if (view.pitch != 0) {
    for (int a = 0; a < view.run_axis; ++a) {
      runs *= static_cast<size_t>(view.dim(a));
    }
    values /= runs;
  }
  std::vector<std::byte> copy;
  const auto* at = static_cast<const std::byte*>(view.data);
  for (size_t k = 0; k < runs; ++k) {
    const std::byte* data = at + k * static_cast<size_t>(view.pitch) * width;
    if (!device.memory().host_addressable) {
      copy.resize(values * width);
      device.copy_to_host(copy.data(), data, copy.size());
      data = copy.data();
    }
    r->sum = checksum(data, values * width, r->sum);
    r->numbers.add(data, values, view.dtype);
  }
}

[[noreturn]] void raise_bad(const ProgramRun& run, const PlanCall& planned,
                            const KernelCall& call, Device& device,
                            const Result& r) {
  const PlanOp& op = run.program.ops[r.op];
  std::string ranges;
  for (int i = 0; i < planned.num_in; ++i) {
    if (!is_floating(call.in[i].dtype)) continue;
    Result input;
    add_view(call.in[i], device, &input);
    ranges += fmt::format("{}input {} has {}", ranges.empty() ? "; " : ", ", i,
                          input.numbers.range());
  }
  throw errors::InvalidArgument(
      fmt::format("{} \"{}\"{}: its result {} has {} among {} values{} "
                  "(enable_check_numerics)",
                  op.op->name(), op.name, where_text(nullptr, op.site),
                  r.number, r.numbers.found(), r.numbers.count, ranges));
}

}  // namespace

bool watches_results() {
  return g_check_numerics.load(std::memory_order_relaxed) ||
         g_checksums.load(std::memory_order_relaxed);
}

void watch_results(const PlanStep& step, const ProgramRun& run) {
  const Program& p = run.program;
  if (step.kind == StepKind::kNothing || step.kind == StepKind::kControl) {
    return;  // bodies look by themselves
  }
  const PlanStream& stream = p.streams[step.stream];
  if (!stream.here) synchronize(stream.stream->record());
  std::vector<Result> results;
  const auto result_of = [&](int op, int number) -> Result& {
    for (Result& r : results) {
      if (r.op == op && r.number == number) return r;
    }
    results.emplace_back();
    results.back().op = op;
    results.back().number = number;
    return results.back();
  };
  const int calls = step.calls_per_part * step.parts;
  for (int c = step.first_call; c < step.first_call + calls; ++c) {
    const PlanCall& planned = p.calls[c];
    const int op = planned.op < 0 ? step.first_op : planned.op;
    for (int o = 0; o < planned.num_out; ++o) {
      const Operand& operand =
          p.operands[planned.first_view + planned.num_in + o];
      const PlanBuffer& buffer = p.buffers[operand.buffer];
      if (buffer.scratch || operand.buffer == step.partials) continue;
      Device& device = *p.devices[buffer.device];
      Result& r = result_of(op, o);
      r.dtype = operand.dtype;
      add_view(run.calls[c].out[o], device, &r);
      if (r.numbers.bad() && g_check_numerics.load()) {
        raise_bad(run, planned, run.calls[c], device, r);
      }
    }
  }
  if (!g_checksums.load(std::memory_order_relaxed)) return;
  for (const Result& r : results) {
    record_checksum(name_of(run, r), p.ops[r.op].site, r.sum, r.numbers.least,
                    r.numbers.most);
  }
}

}  // namespace berth
