#include "base/timeline.h"

#include <algorithm>
#include <mutex>
#include <utility>

#include "base/immortal.h"

namespace berth::timeline {

namespace {

struct State {
  std::mutex sources_mutex;  // held while a source drains
  std::vector<TimelineSource*> sources;
  std::mutex mutex;
  std::vector<RecordedEvent> events;
};

State& state() {
  static State& s = immortal<State>();
  return s;
}

}  // namespace

TimelineSource::~TimelineSource() = default;

void TimelineSource::note() {
  if (noted_.exchange(true)) return;
  State& s = state();
  std::lock_guard lock(s.sources_mutex);
  s.sources.push_back(this);
}

void TimelineSource::forget() {
  if (!noted_.load()) return;
  State& s = state();
  std::lock_guard lock(s.sources_mutex);
  std::erase(s.sources, this);
}

bool start() {
  State& s = state();
  if (is_on()) return false;
  {
    std::lock_guard lock(s.mutex);
    s.events.clear();
  }
  return !g_is_on.exchange(true);
}

std::vector<RecordedEvent> stop() {
  State& s = state();
  g_is_on.store(false);
  {
    std::lock_guard lock(s.sources_mutex);
    for (TimelineSource* source : s.sources) {
      source->drain();
      source->noted_.store(false);
    }
    s.sources.clear();
  }
  std::lock_guard lock(s.mutex);
  std::vector<RecordedEvent> all = std::exchange(s.events, {});
  std::stable_sort(all.begin(), all.end(),
                   [](const RecordedEvent& a, const RecordedEvent& b) {
                     return a.begin_us < b.begin_us;
                   });
  return all;
}

void add(RecordedEvent event) {
  State& s = state();
  std::lock_guard lock(s.mutex);
  s.events.push_back(std::move(event));
}

}  // namespace berth::timeline
