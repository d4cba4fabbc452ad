#include "exec/arena_guard.h"

#include <algorithm>

namespace berth {

ArenaGuard::ArenaGuard(const Program& program) {
  if constexpr (!kPoisons) return;
  for (const PlanBuffer& b : program.buffers) {
    if (b.where != Where::kArena || b.bytes == 0) continue;
    if (!program.runs_here(*program.devices[b.device])) continue;
    changes_.push_back({b.begin, true, b.device, b.offset, b.bytes});
    changes_.push_back({b.end, false, b.device, b.offset, b.bytes});
  }
  std::stable_sort(
      changes_.begin(), changes_.end(), [](const Change& a, const Change& b) {
        return a.step != b.step ? a.step < b.step : a.begins < b.begins;
      });
}

void ArenaGuard::before(ProgramRun& run, int32_t step) const {
  for (; run.guarded < changes_.size(); ++run.guarded) {
    const Change& c = changes_[run.guarded];
    if (c.step > step) return;
    const std::byte* data = run.arena_base[c.device] + c.offset;
    c.begins ? unpoison(data, c.bytes) : poison(data, c.bytes);
  }
}

}  // namespace berth
