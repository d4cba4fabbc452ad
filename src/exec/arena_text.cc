#include "exec/arena_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "base/bytes_text.h"

namespace berth {

namespace {

constexpr size_t kListed = 4;

bool is_in(const PlanBuffer& b, int device) {
  return b.where == Where::kArena && b.device == device && b.bytes > 0;
}

bool lives(const PlanBuffer& b, int32_t step) {
  return b.begin <= step && step < b.end;
}

// The step at which buffers of the arena have most bytes together.
int32_t fullest_step(const Program& p, int device) {
  int32_t best = 0;
  size_t most = 0;
  for (const PlanBuffer& at : p.buffers) {
    if (!is_in(at, device)) continue;
    size_t sum = 0;
    for (const PlanBuffer& b : p.buffers) {
      if (is_in(b, device) && lives(b, at.begin)) sum += b.bytes;
    }
    if (sum > most) {
      most = sum;
      best = at.begin;
    }
  }
  return best;
}

// The writer of a buffer: the first op that has it as an output, or as scratch;
// null: none has.
const PlanOp* writer_of(const Program& p, int buffer) {
  for (const PlanStep& step : p.steps) {
    if (step.scratch == buffer || step.partials == buffer) {
      return &p.ops[step.first_op];
    }
  }
  for (const PlanCall& call : p.calls) {
    if (call.op < 0) continue;
    bool writes = call.scratch == buffer;
    const int first = call.first_view + call.num_in;
    for (int v = first; v < first + call.num_out; ++v) {
      writes |= p.operands[v].buffer == buffer;
    }
    if (writes) return &p.ops[call.op];
  }
  return nullptr;
}

}  // namespace

std::vector<HolderPart> arena_parts(const Program& p, int device) {
  const int32_t step = fullest_step(p, device);
  std::vector<HolderPart> live;
  for (size_t b = 0; b < p.buffers.size(); ++b) {
    const PlanBuffer& buffer = p.buffers[b];
    if (!is_in(buffer, device) || !lives(buffer, step)) continue;
    const PlanOp* writer = writer_of(p, static_cast<int>(b));
    live.push_back({writer ? writer->name : "a result",
                    writer ? writer->site : Site{}, buffer.offset,
                    buffer.bytes});
  }
  return live;
}

std::string arena_text(const Program& p, int device) {
  std::vector<HolderPart> live = arena_parts(p, device);
  std::stable_sort(live.begin(), live.end(),
                   [](const HolderPart& a, const HolderPart& b) {
                     return a.bytes > b.bytes;
                   });
  std::string text = fmt::format("plan '{}'", p.name);
  for (size_t i = 0; i < std::min(live.size(), kListed); ++i) {
    text += fmt::format("{} {} {}", i == 0 ? ":" : ",", live[i].name,
                        bytes_text(static_cast<int64_t>(live[i].bytes)));
  }
  if (live.size() > kListed) {
    text += fmt::format(", {} more", live.size() - kListed);
  }
  return text;
}

}  // namespace berth
