#include "exec/arena_guard.h"

#include <algorithm>

#include "base/poison.h"
#include "exec/plan_impl.h"

namespace berth {

void ArenaGuard::watch(const Plan::Impl& plan) {
  if constexpr (!kPoisons) return;
  for (const PlanBuffer& b : plan.buffers) {
    if (b.where != Where::kArena || b.bytes == 0) continue;
    if (!plan.runs_here(*plan.devices[b.device])) continue;
    changes_.push_back({b.begin, true, b.device, b.offset, b.bytes});
    changes_.push_back({b.end, false, b.device, b.offset, b.bytes});
  }
  std::stable_sort(
      changes_.begin(), changes_.end(), [](const Change& a, const Change& b) {
        return a.step != b.step ? a.step < b.step : a.begins < b.begins;
      });
}

void ArenaGuard::before(Instance& run, int32_t step) const {
  for (; run.guarded < changes_.size(); ++run.guarded) {
    const Change& c = changes_[run.guarded];
    if (c.step > step) return;
    const std::byte* data = run.arena_base[c.device] + c.offset;
    c.begins ? unpoison(data, c.bytes) : poison(data, c.bytes);
  }
}

}  // namespace berth
