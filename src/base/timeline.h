// Timeline: what ran where and when, while somebody records.
//
// Modules that do work add events; the profiler starts, stops and writes. Off,
// it costs one load per step. Thread-safe.

#ifndef BERTH_BASE_TIMELINE_H_
#define BERTH_BASE_TIMELINE_H_

#include <atomic>
#include <string>
#include <vector>

#include "base/clock.h"
#include "berth/site.h"

namespace berth::timeline {

struct RecordedEvent {
  std::string track;  // device, or "eager ops"
  std::string name;   // "dense/MatMul"
  std::string kind;   // type of the op; "region", "copy"
  Site site = {};
  double begin_us = 0, end_us = 0;  // by the clock of the track
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
  friend std::vector<RecordedEvent> stop();
};

// Records from now on. False: it did already.
bool start();
// Drains all sources; returns the events since start().
std::vector<RecordedEvent> stop();
void add(RecordedEvent event);

// Adds an event that lasts as long as this object.
class Span {
 public:
  Span(const char* track, std::string name, const char* kind, Site site = {})
      : event_{track, std::move(name), kind, site, host_clock_us(), 0} {}
  ~Span() {
    event_.end_us = host_clock_us();
    add(std::move(event_));
  }
  Span(const Span&) = delete;
  Span& operator=(const Span&) = delete;

 private:
  RecordedEvent event_;
};

}  // namespace berth::timeline

#endif  // BERTH_BASE_TIMELINE_H_
