// profiler::start, stop and Trace.

#include "berth/profiler.h"

#include <fmt/format.h>

#include <unordered_map>

#include "base/checksum.h"
#include "base/timeline.h"
#include "base/where.h"
#include "berth/errors.h"
#include "device/virtual_clock.h"

namespace berth::profiler {

namespace {

constexpr const char* kAnnotations = "annotations";

// Places of the events of one run of a plan, by place of their type.
class PlacesOfRuns {
 public:
  explicit PlacesOfRuns(const timeline::RecordedEvents& r) : r_(r) {
    for (size_t k = 0; k < r.events.size(); ++k) {
      const timeline::RecordedEvent& e = r.events[k];
      if (e.run == 0) continue;
      std::vector<int32_t>& places = places_[key(e)];
      const size_t at = e.type - r.first[e.type];
      if (places.size() <= at) places.resize(at + 1, -1);
      places[at] = static_cast<int32_t>(k);
    }
  }
  std::vector<int32_t> after(const timeline::RecordedEvent& e) const {
    std::vector<int32_t> found;
    if (e.run == 0) return found;
    const std::vector<int32_t>& places = places_.at(key(e));
    for (const int32_t a : r_.types[e.type].after) {
      const bool ran = static_cast<size_t>(a) < places.size() && places[a] >= 0;
      if (ran) found.push_back(places[a]);
    }
    return found;
  }

 private:
  uint64_t key(const timeline::RecordedEvent& e) const {
    return uint64_t{r_.first[e.type]} << 32 | e.run;
  }
  const timeline::RecordedEvents& r_;
  std::unordered_map<uint64_t, std::vector<int32_t>> places_;
};

Timeline resolved(const timeline::RecordedEvents& r) {
  const PlacesOfRuns places(r);
  std::vector<bool> simulated;  // by type
  for (const timeline::EventType& t : r.types) {
    simulated.push_back(on_virtual_clock(t.track));
  }
  std::vector<TimelineEvent> events;
  events.reserve(r.events.size());
  for (const timeline::RecordedEvent& e : r.events) {
    const timeline::EventType& t = r.types[e.type];
    events.push_back({t.track,
                      t.name,
                      t.kind,
                      t.site,
                      e.begin_us,
                      e.end_us,
                      t.detail,
                      e.bytes != 0 ? e.bytes : t.bytes,
                      t.flops,
                      t.predicted_us,
                      e.run,
                      places.after(e),
                      {},
                      simulated[e.type]});
  }
  return Timeline(std::move(events), r.dropped);
}

}  // namespace

void start(Site site) {
  if (timeline::start()) return;
  throw errors::AlreadyExists(
      fmt::format("{}: a recording is open; expected profiler::stop() first",
                  call_text("profiler::start", site)));
}

void start(const StartOptions& options, Site site) {
  start(site);
  g_checksums = options.checksums;
}

Timeline stop(Site site) {
  if (!timeline::is_on()) {
    throw errors::FailedPrecondition(
        fmt::format("{}: nothing is recorded; expected profiler::start() first",
                    call_text("profiler::stop", site)));
  }
  g_checksums = false;
  return resolved(timeline::stop());
}

Trace::Trace(std::string name, Site site)
    : name_(std::move(name)),
      site_(site),
      begin_us_(timeline::is_on() ? host_clock_us() : -1) {}

Trace::~Trace() {
  if (begin_us_ < 0 || !timeline::is_on()) return;
  timeline::add({begin_us_, host_clock_us(),
                 timeline::type_of(kAnnotations, name_, "annotation", site_),
                 0});
}

}  // namespace berth::profiler
