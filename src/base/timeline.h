// Timeline: what ran where and when, while somebody records.
//
// Modules that do work name their events once (EventType) and add what happened
// as numbers; the profiler starts, stops and writes. Off, it costs one load per
// step. Thread-safe: each thread adds to memory of its own.

#ifndef BERTH_BASE_TIMELINE_H_
#define BERTH_BASE_TIMELINE_H_

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "berth/site.h"

namespace berth::timeline {

// What the events of one instruction, stage or name have in common.
struct EventType {
  std::string track;  // device, or what else works: "eager ops", "input"
  std::string name;   // "dense/MatMul"
  std::string kind;   // type of the op; "region", "copy", "wait", "input", ...
  Site site = {};
  std::string detail;          // "/CPU:0 -> /GPU:0"; whom a wait is for
  int64_t bytes = 0;           // moved by one; allocated, or freed if negative
  double flops = 0;            // of one
  double predicted_us = -1;    // what the plan expects
  std::vector<int32_t> after;  // places in one add_types() that end before
};

using TypeId = uint32_t;

struct RecordedEvent {
  double begin_us = 0, end_us = 0;  // by the clock of the track
  TypeId type = 0;
  uint32_t run = 0;   // of the plan, from 1; 0: of none
  int64_t bytes = 0;  // 0: those of the type
};

struct RecordedEvents {
  std::vector<EventType> types;
  std::vector<TypeId> first;          // by type: that of its add_types()
  std::vector<RecordedEvent> events;  // by begin
  int64_t dropped = 0;                // the oldest, for want of room
};

inline std::atomic<bool> g_is_on{false};
inline bool is_on() { return g_is_on.load(std::memory_order_relaxed); }

// Keeps events until they are asked for: drain() adds them. Destroyed sources
// are forgotten.
class TimelineSource {
 public:
  TimelineSource() = default;
  virtual ~TimelineSource();
  TimelineSource(const TimelineSource&) = delete;
  TimelineSource& operator=(const TimelineSource&) = delete;
  virtual void drain() = 0;

 protected:
  // From now until the next stop(), this is drained. The derived class calls
  // forget() before it dies.
  void note();
  void forget();

 private:
  std::atomic<bool> noted_{false};
  friend RecordedEvents stop();
};

// Records from now on, the last `most_events` of each thread. False: it did
// already.
bool start(int64_t most_events = int64_t{1} << 22);
// Drains all sources; returns the events since start().
RecordedEvents stop();
// Counts the recordings: types of an earlier one are gone. 0: none yet.
uint64_t recording();

// Adds types, numbered one after the other; returns the first one's number.
// They last until the next start().
TypeId add_types(std::vector<EventType> types);
// The type of these words, added when it is new.
TypeId type_of(const char* track, const std::string& name, const char* kind,
               Site site = {}, int64_t bytes = 0);

// Adds events of this thread.
void add(const RecordedEvent& event);
void add(const std::vector<RecordedEvent>& events);

// Adds an event that lasts as long as this object.
class Span {
 public:
  // `track` and `kind` are static.
  Span(const char* track, const std::string& name, const char* kind,
       Site site = {}, int64_t bytes = 0)
      : event_{0, 0, type_of(track, name, kind, site, bytes), 0} {
    event_.begin_us = host_clock_us();
  }
  ~Span() {
    event_.end_us = host_clock_us();
    add(event_);
  }
  Span(const Span&) = delete;
  Span& operator=(const Span&) = delete;

 private:
  RecordedEvent event_;
};

// A span if somebody records when it begins: one load if nobody does.
class MaybeSpan {
 public:
  template <class... Args>
  explicit MaybeSpan(Args&&... args) {
    if (is_on()) [[unlikely]]
      span_.emplace(std::forward<Args>(args)...);
  }

 private:
  std::optional<Span> span_;
};

}  // namespace berth::timeline

#endif  // BERTH_BASE_TIMELINE_H_
