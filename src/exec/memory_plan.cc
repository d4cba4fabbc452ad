#include "exec/memory_plan.h"

#include <algorithm>
#include <numeric>

namespace berth {

size_t plan_arena(std::vector<ArenaBuffer>& buffers) {
  std::vector<size_t> order(buffers.size());
  std::iota(order.begin(), order.end(), size_t{0});
  auto padded = [&](size_t i) { return aligned(buffers[i].bytes); };
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return padded(a) > padded(b); });
  size_t total = 0;
  std::vector<size_t> placed;  // by offset
  for (size_t i : order) {
    ArenaBuffer& b = buffers[i];
    const size_t bytes = padded(i);
    if (bytes == 0) continue;
    size_t best = 0, best_gap = SIZE_MAX, end = 0;
    bool found = false;
    for (size_t j : placed) {
      const ArenaBuffer& other = buffers[j];
      if (other.end <= b.begin || b.end <= other.begin) continue;
      if (other.offset > end && other.offset - end >= bytes &&
          other.offset - end < best_gap) {
        best = end;
        best_gap = other.offset - end;
        found = true;
      }
      end = std::max(end, other.offset + padded(j));
    }
    b.offset = found ? best : end;
    total = std::max(total, b.offset + bytes);
    placed.insert(std::upper_bound(placed.begin(), placed.end(), i,
                                   [&](size_t x, size_t y) {
                                     return buffers[x].offset <
                                            buffers[y].offset;
                                   }),
                  i);
  }
  return total;
}

size_t liveness_bound(const std::vector<ArenaBuffer>& buffers) {
  std::vector<std::pair<int32_t, int64_t>> changes;
  for (const ArenaBuffer& b : buffers) {
    changes.push_back({b.begin, static_cast<int64_t>(b.bytes)});
    changes.push_back({b.end, -static_cast<int64_t>(b.bytes)});
  }
  std::sort(changes.begin(), changes.end());
  int64_t now = 0, most = 0;
  for (const auto& [step, bytes] : changes) {
    now += bytes;
    most = std::max(most, now);
  }
  return static_cast<size_t>(most);
}

HappensBefore::HappensBefore(const Schedule& schedule)
    : schedule_(schedule),
      num_streams_(schedule.streams.size()),
      position_(schedule.steps.size()),
      clock_(schedule.steps.size() * schedule.streams.size(), 0),
      by_stream_(schedule.streams.size()) {
  for (size_t i = 0; i < schedule.steps.size(); ++i) {
    const ScheduleStep& step = schedule.steps[i];
    int32_t* clock = &clock_[i * num_streams_];
    auto join = [&](int32_t other) {
      const int32_t* c = &clock_[static_cast<size_t>(other) * num_streams_];
      for (size_t s = 0; s < num_streams_; ++s) {
        clock[s] = std::max(clock[s], c[s]);
      }
    };
    auto& mine = by_stream_[step.stream];
    if (!mine.empty()) join(mine.back());
    for (int32_t wait : step.waits) join(wait);
    mine.push_back(static_cast<int32_t>(i));
    position_[i] = static_cast<int32_t>(mine.size());
    clock[step.stream] = position_[i];
  }
}

bool HappensBefore::before(int32_t a, int32_t b) const {
  const auto stream = static_cast<size_t>(schedule_.steps[a].stream);
  return a != b &&
         clock_[static_cast<size_t>(b) * num_streams_ + stream] >= position_[a];
}

int32_t HappensBefore::free_from(int32_t use,
                                 const std::vector<int32_t>& writers) const {
  int32_t from = use + 1;
  for (int32_t w : writers) {
    const auto& steps = by_stream_[w];
    auto it = std::upper_bound(steps.begin(), steps.end(), use);
    if (it == steps.end()) continue;
    // Clocks only grow along a stream.
    it = std::partition_point(it, steps.end(),
                              [&](int32_t step) { return !before(use, step); });
    const auto n = static_cast<int32_t>(schedule_.steps.size());
    from = std::max(from, it == steps.end() ? n : *it);
  }
  return from;
}

}  // namespace berth
