// profiler::start, stop, Trace, and the timeline as a file.

#include "berth/profiler.h"

#include <fmt/format.h>

#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <unordered_map>

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
  explicit PlacesOfRuns(const timeline::Recording& r) : r_(r) {
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
  const timeline::Recording& r_;
  std::unordered_map<uint64_t, std::vector<int32_t>> places_;
};

Timeline resolved(const timeline::Recording& r) {
  const PlacesOfRuns places(r);
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
                      t.bytes,
                      t.flops,
                      t.predicted_us,
                      e.run,
                      places.after(e),
                      {}});
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

Timeline stop(Site site) {
  if (!timeline::is_on()) {
    throw errors::FailedPrecondition(
        fmt::format("{}: nothing is recorded; expected profiler::start() first",
                    call_text("profiler::stop", site)));
  }
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

namespace {

// What the rows of one clock have in common.
struct Clock {
  const char* mark;
  std::optional<double> first = {};  // they begin at 0
};

}  // namespace

std::string Timeline::json() const {
  using nlohmann::json;
  json all = json::array();
  struct Row {
    int id;
    const Clock& clock;
  };
  std::map<std::string, Row> rows;
  Clock clocks[2] = {{""}, {" (simulated time)"}};
  for (const TimelineEvent& e : events_) {
    auto row = rows.find(e.track);
    if (row == rows.end()) {
      Clock& clock = clocks[on_virtual_clock(e.track)];
      if (!clock.first) clock.first = e.begin_us;
      const int id = static_cast<int>(rows.size()) + 1;
      row = rows.emplace(e.track, Row{id, clock}).first;
      all.push_back({{"ph", "M"},
                     {"pid", id},
                     {"name", "process_name"},
                     {"args", {{"name", e.track + clock.mark}}}});
    }
    json args = {{"kind", e.kind}};
    if (e.site.file != nullptr) {
      args["line"] = fmt::format("{}:{}", e.site.file, e.site.line);
    }
    all.push_back({{"ph", "X"},
                   {"pid", row->second.id},
                   {"tid", 1},
                   {"name", e.name},
                   {"ts", e.begin_us - *row->second.clock.first},
                   {"dur", e.end_us - e.begin_us},
                   {"args", args}});
  }
  // Names of files and ops may be any bytes.
  return json({{"displayTimeUnit", "ms"}, {"traceEvents", all}})
      .dump(-1, ' ', false, json::error_handler_t::replace);
}

void Timeline::write(const std::string& path) const {
  std::ofstream out(path, std::ios::binary);
  out << json();
  out.close();
  if (out) return;
  throw errors::InvalidArgument(fmt::format(
      "profiler: \"{}\" cannot be written; expected a path in a folder that "
      "exists, with room",
      path));
}

}  // namespace berth::profiler
