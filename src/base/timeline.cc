// The threads' events, their types, and the sources that are drained.

#include "base/timeline.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <tuple>
#include <utility>

#include "base/immortal.h"

namespace berth::timeline {

namespace {

// The last type that a thread asked for: loops add the same again.
struct LastType {
  uint64_t recording = 0;
  const char *track = nullptr, *kind = nullptr;
  Site site;
  int64_t bytes = 0;
  std::string name;
  TypeId type = 0;
};

// What one thread added: a ring of the last ones. Never freed, but handed on to
// the next thread.
struct ThreadEvents {
  std::mutex mutex;  // of its thread and stop()
  uint64_t recording = 0;
  std::vector<RecordedEvent> events;
  size_t next = 0;  // the oldest, once the ring is full
  int64_t dropped = 0;
  LastType last;  // its thread's

  void add(const RecordedEvent& e, size_t most) {
    if (events.size() < most) {
      events.push_back(e);
      return;
    }
    events[next] = e;
    next = next + 1 == most ? 0 : next + 1;
    ++dropped;
  }
};

using Words = std::tuple<std::string, std::string, std::string, const char*,
                         int, int64_t>;

struct State {
  std::mutex sources_mutex;  // held while a source drains
  std::vector<TimelineSource*> sources;
  std::mutex mutex;
  std::vector<ThreadEvents*> threads, unused;
  std::vector<EventType> types;
  std::vector<TypeId> first;
  std::map<Words, TypeId> types_by_words;
  std::atomic<uint64_t> recording{0};  // counts them
  std::atomic<size_t> most{0};
};

State& state() {
  static State& s = immortal<State>();
  return s;
}

// A thread's hold of its events.
struct OwnEvents {
  OwnEvents() {
    State& s = state();
    std::lock_guard lock(s.mutex);
    if (s.unused.empty()) {
      s.unused.push_back(&immortal<ThreadEvents>());
      s.threads.push_back(s.unused.back());
    }
    events = s.unused.back();
    s.unused.pop_back();
  }
  ~OwnEvents() {
    State& s = state();
    std::lock_guard lock(s.mutex);
    s.unused.push_back(events);
  }
  OwnEvents(const OwnEvents&) = delete;
  OwnEvents& operator=(const OwnEvents&) = delete;

  ThreadEvents* events;
};

ThreadEvents& events_of_this_thread() {
  return *of_this_thread<OwnEvents>().events;
}

// Calls fn(events of this thread) if this recording still goes on.
template <class Fn>
void add_here(const Fn& fn) {
  State& s = state();
  ThreadEvents& mine = events_of_this_thread();
  std::lock_guard lock(mine.mutex);
  const uint64_t recording = s.recording.load(std::memory_order_acquire);
  if (mine.recording != recording) {
    mine.events.clear();
    mine.next = 0;
    mine.dropped = 0;
    mine.recording = recording;
  }
  fn(mine, s.most.load(std::memory_order_relaxed));
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

bool start(int64_t most_events) {
  State& s = state();
  std::lock_guard lock(s.mutex);
  if (is_on()) return false;
  s.types.clear();
  s.first.clear();
  s.types_by_words.clear();
  s.most.store(static_cast<size_t>(std::max<int64_t>(most_events, 1)));
  s.recording.fetch_add(1, std::memory_order_release);
  g_is_on.store(true);
  return true;
}

RecordedEvents stop() {
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
  RecordedEvents all;
  std::lock_guard lock(s.mutex);
  all.types = s.types;
  all.first = s.first;
  for (ThreadEvents* thread : s.threads) {
    std::lock_guard its(thread->mutex);
    if (thread->recording != s.recording.load()) continue;
    all.events.insert(all.events.end(), thread->events.begin(),
                      thread->events.end());
    all.dropped += thread->dropped;
    thread->recording = 0;
    thread->events = {};
  }
  // A late thread may name a type of the recording before.
  std::erase_if(all.events, [&](const RecordedEvent& e) {
    return e.type >= all.types.size();
  });
  std::stable_sort(all.events.begin(), all.events.end(),
                   [](const RecordedEvent& a, const RecordedEvent& b) {
                     return a.begin_us < b.begin_us;
                   });
  return all;
}

uint64_t recording() {
  return state().recording.load(std::memory_order_acquire);
}

TypeId add_types(std::vector<EventType> types) {
  State& s = state();
  std::lock_guard lock(s.mutex);
  const auto first = static_cast<TypeId>(s.types.size());
  s.first.resize(s.types.size() + types.size(), first);
  std::move(types.begin(), types.end(), std::back_inserter(s.types));
  return first;
}

TypeId type_of(const char* track, const std::string& name, const char* kind,
               Site site, int64_t bytes) {
  State& s = state();
  const uint64_t recording = s.recording.load(std::memory_order_acquire);
  LastType& last = events_of_this_thread().last;
  if (last.recording == recording && last.track == track && last.kind == kind &&
      last.site.file == site.file && last.site.line == site.line &&
      last.bytes == bytes && last.name == name) {
    return last.type;
  }
  std::lock_guard lock(s.mutex);
  const auto next = static_cast<TypeId>(s.types.size());
  const auto [it, is_new] = s.types_by_words.emplace(
      Words{track, name, kind, site.file, site.line, bytes}, next);
  if (is_new) {
    EventType type{track, name, kind, site, {}, bytes};
    s.types.push_back(std::move(type));
    s.first.push_back(next);
  }
  last = {recording, track, kind, site, bytes, name, it->second};
  return it->second;
}

void add(const RecordedEvent& event) {
  add_here([&](ThreadEvents& mine, size_t most) { mine.add(event, most); });
}

void add(const std::vector<RecordedEvent>& events) {
  add_here([&](ThreadEvents& mine, size_t most) {
    for (const RecordedEvent& e : events) mine.add(e, most);
  });
}

}  // namespace berth::timeline
