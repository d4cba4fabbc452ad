#include "profiler/event_index.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <tuple>
#include <unordered_map>

#include "base/immortal.h"
#include "device/virtual_clock.h"

namespace berth::profiler {

EventClass class_of(const TimelineEvent& e) {
  using enum EventClass;
  using Kinds = std::unordered_map<std::string_view, EventClass>;
  static const Kinds& kinds = immortal<Kinds>(Kinds{{"copy", kTransfer},
                                                    {"sum", kSum},
                                                    {"call", kCall},
                                                    {"input", kInput},
                                                    {"stage", kStage},
                                                    {"python", kHost},
                                                    {"memory", kMemory},
                                                    {"checkpoint", kHost},
                                                    {"host", kHost},
                                                    {"launch", kHost},
                                                    {"annotation", kAnnotation},
                                                    {"slice", kSlice}});
  if (e.kind == "wait") {
    const bool memory = e.name.find("memory") != e.name.npos ||
                        e.detail.find("memory") != e.detail.npos;
    return memory ? kMemoryWait : kWait;
  }
  const auto found = kinds.find(e.kind);
  return found == kinds.end() ? kCompute : found->second;
}

std::string line_of(const TimelineEvent& e) {
  if (e.site.file == nullptr) return "";
  return fmt::format("{}:{}", e.site.file, e.site.line);
}

EventIndex::EventIndex(const Timeline& timeline, StepClock clock)
    : events(timeline.events()), dropped(timeline.dropped()) {
  classify();
  find_clock(clock);
  previous_.assign(events.size(), -1);
  std::vector<int32_t> last(tracks.size(), -1);
  for (int32_t e = 0; e < static_cast<int32_t>(events.size()); ++e) {
    if (!is_work(e)) continue;
    int32_t& before = last[track[e]];
    previous_[e] = before;
    if (before < 0 || events[e].end_us >= events[before].end_us) before = e;
  }
  find_steps();
}

void EventIndex::classify() {
  std::map<std::pair<std::string_view, std::string_view>, int32_t> rows;
  using Key = std::tuple<int32_t, std::string_view, std::string_view>;
  struct Hash {
    size_t operator()(const Key& k) const {
      const std::hash<std::string_view> h;
      return h(std::get<1>(k)) * 31 + h(std::get<2>(k)) * 7 +
             static_cast<size_t>(std::get<0>(k));
    }
  };
  std::unordered_map<Key, int32_t, Hash> ops;
  for (std::vector<int32_t>* all : {&track, &op}) all->reserve(events.size());
  classes.reserve(events.size());
  const TimelineEvent* before = nullptr;  // often of the same row
  for (const TimelineEvent& e : events) {
    const bool is_same =
        before != nullptr && before->track == e.track && before->task == e.task;
    before = &e;
    int32_t row = is_same ? track.back() : 0;
    if (!is_same) {
      const auto [it, is_new] = rows.try_emplace(
          {e.task, e.track}, static_cast<int32_t>(rows.size()));
      if (is_new) {
        tracks.push_back(e.task.empty() ? e.track : e.task + " " + e.track);
        tasks.push_back(e.task);
      }
      row = it->second;
    }
    track.push_back(row);
    const auto [it, is_new] = ops.try_emplace({row, e.name, e.kind},
                                              static_cast<int32_t>(ops.size()));
    if (is_new) first_of_op.push_back(static_cast<int32_t>(op.size()));
    op.push_back(it->second);
    // The class of a wait is that of its name and detail.
    const int32_t first = first_of_op[it->second];
    classes.push_back(is_new || e.kind == "wait" ? class_of(e)
                                                 : classes[first]);
  }
}

void EventIndex::find_clock(StepClock clock) {
  std::vector<char> is_virtual;
  for (size_t t = 0, e = 0; t < tracks.size(); ++t) {
    while (track[e] != static_cast<int32_t>(t)) ++e;
    is_virtual.push_back(events[e].simulated ||
                         on_virtual_clock(events[e].track));
  }
  double us[2] = {0, 0};
  for (size_t e = 0; e < events.size(); ++e) {
    if (classes[e] != EventClass::kCompute) continue;
    us[is_virtual[track[e]] ? 1 : 0] += events[e].end_us - events[e].begin_us;
  }
  simulated = clock == StepClock::kMost && us[1] > us[0];
  std::vector<char> computes(tracks.size(), 0);
  counts.resize(events.size());
  for (size_t e = 0; e < events.size(); ++e) {
    counts[e] = (is_virtual[track[e]] != 0) == simulated;
    if (counts[e] && classes[e] == EventClass::kCompute) computes[track[e]] = 1;
  }
  // What the host spends on eager ops is not a device, unless it is all there
  // is.
  for (const bool eager : {false, true}) {
    for (size_t t = 0; t < tracks.size(); ++t) {
      if (!computes[t] || tracks[t].ends_with("eager ops") != eager) continue;
      if (!eager || devices.empty()) devices.push_back(static_cast<int32_t>(t));
    }
  }
}

int32_t EventIndex::last_before(int32_t e) const {
  int32_t last = previous_[e];
  const auto later = [&](int32_t a) {
    return last < 0 || events[a].end_us > events[last].end_us;
  };
  for (const int32_t a : events[e].after) {
    if (a >= 0 && a < static_cast<int32_t>(events.size()) && a != e &&
        counts[a] && events[a].begin_us <= events[e].begin_us && later(a)) {
      last = a;
    }
  }
  return last;
}

Intervals EventIndex::of_class(EventClass c, int32_t on_track) const {
  Intervals all;
  for (size_t e = 0; e < events.size(); ++e) {
    if (classes[e] == c && counts[e] &&
        (on_track < 0 || track[e] == on_track)) {
      all.push_back({events[e].begin_us, events[e].end_us});
    }
  }
  return union_of(std::move(all));
}

}  // namespace berth::profiler
