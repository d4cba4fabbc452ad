#include "exec/memory_plan.h"

#include <algorithm>
#include <numeric>

namespace berth {

namespace {

using Range = std::pair<size_t, size_t>;  // of bytes: begin, end

// Adds a range to a union of ranges: sorted, apart, none touching the next.
void unite(std::vector<Range>& all, Range r) {
  auto first = std::lower_bound(
      all.begin(), all.end(), r.first,
      [](const Range& x, size_t begin) { return x.second < begin; });
  auto last = first;
  for (; last != all.end() && last->first <= r.second; ++last) {
    r = {std::min(r.first, last->first), std::max(r.second, last->second)};
  }
  if (first == last) {
    all.insert(first, r);
  } else {
    *first = r;
    all.erase(first + 1, last);
  }
}

// Which bytes are taken at some step of a span of steps. A binary tree over the
// steps: buffers that fill the same bytes without a gap cost as much as one.
class TakenBytes {
 public:
  TakenBytes(int32_t first, int32_t end) : first_(first) {
    while (first + leaves_ < end) leaves_ *= 2;
    nodes_.resize(2 * static_cast<size_t>(leaves_));
  }

  void take(int32_t begin, int32_t end, Range bytes) {
    visit_parts(begin, end, [&](Node& n) {
      unite(n.throughout, bytes);
      unite(n.within, bytes);
    });
    visit_paths(begin, end, [&](Node& n) { unite(n.within, bytes); });
  }

  // Appends what is taken from step `begin` until `end`, some of it twice.
  void find(int32_t begin, int32_t end, std::vector<Range>& taken) {
    auto add = [&](const std::vector<Range>& ranges) {
      taken.insert(taken.end(), ranges.begin(), ranges.end());
    };
    visit_parts(begin, end, [&](Node& n) { add(n.within); });
    visit_paths(begin, end, [&](Node& n) { add(n.throughout); });
  }

 private:
  struct Node {
    std::vector<Range> throughout;  // during all of its steps
    std::vector<Range> within;      // during some of them
  };

  // The nodes that a life consists of.
  template <class F>
  void visit_parts(int32_t begin, int32_t end, F&& f) {
    int32_t l = begin - first_ + leaves_, r = end - first_ + leaves_;
    for (; l < r; l /= 2, r /= 2) {
      if (l % 2 == 1) f(nodes_[l++]);
      if (r % 2 == 1) f(nodes_[--r]);
    }
  }

  // The nodes above its first and above its last step, and these.
  template <class F>
  void visit_paths(int32_t begin, int32_t end, F&& f) {
    int32_t l = begin - first_ + leaves_, r = end - 1 - first_ + leaves_;
    for (; l != r; l /= 2, r /= 2) {
      f(nodes_[l]);
      f(nodes_[r]);
    }
    for (; l > 0; l /= 2) f(nodes_[l]);
  }

  const int32_t first_;
  int32_t leaves_ = 1;
  std::vector<Node> nodes_;  // nodes_[i] is above 2 i and 2 i + 1
};

// The lowest of the smallest gaps that have room, else the end of all.
size_t place_of(size_t bytes, std::vector<Range>& taken) {
  std::sort(taken.begin(), taken.end());
  size_t best = 0, best_gap = SIZE_MAX, end = 0;
  for (const auto& [from, to] : taken) {
    if (from > end && from - end >= bytes && from - end < best_gap) {
      best = end;
      best_gap = from - end;
    }
    end = std::max(end, to);
  }
  return best_gap < SIZE_MAX ? best : end;
}

}  // namespace

size_t plan_arena(std::vector<ArenaBuffer>& buffers) {
  if (buffers.empty()) return 0;
  std::vector<size_t> order(buffers.size());
  std::iota(order.begin(), order.end(), size_t{0});
  auto padded = [&](size_t i) { return aligned(buffers[i].bytes); };
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return padded(a) > padded(b); });
  int32_t first = buffers[0].begin, end = buffers[0].end;
  size_t streams = 1;
  for (const ArenaBuffer& b : buffers) {
    first = std::min(first, b.begin);
    streams = std::max(streams, b.ends.size());
    for (size_t s = 0; s < streams; ++s) end = std::max(end, b.end_for(s));
  }
  // By stream: lives until it may write there, and where what it writes begins.
  std::vector<TakenBytes> lives(streams, TakenBytes(first, end));
  std::vector<TakenBytes> begins = lives;
  size_t total = 0;
  std::vector<Range> taken;
  for (size_t i : order) {
    ArenaBuffer& b = buffers[i];
    const size_t bytes = padded(i);
    if (bytes == 0) continue;
    taken.clear();
    lives[b.stream].find(b.begin, b.begin + 1, taken);
    for (size_t s = 0; s < streams; ++s) {
      begins[s].find(b.begin, b.end_for(s), taken);
    }
    b.offset = place_of(bytes, taken);
    const Range range{b.offset, b.offset + bytes};
    for (size_t s = 0; s < streams; ++s) {
      lives[s].take(b.begin, b.end_for(s), range);
    }
    begins[b.stream].take(b.begin, b.begin + 1, range);
    total = std::max(total, b.offset + bytes);
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

int32_t HappensBefore::free_from(int32_t use, int32_t writer) const {
  const auto& steps = by_stream_[writer];
  auto it = std::upper_bound(steps.begin(), steps.end(), use);
  if (it == steps.end()) return use + 1;
  // Clocks only grow along a stream.
  it = std::partition_point(it, steps.end(),
                            [&](int32_t step) { return !before(use, step); });
  const auto n = static_cast<int32_t>(schedule_.steps.size());
  return it == steps.end() ? n : *it;
}

}  // namespace berth
