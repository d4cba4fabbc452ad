// profiler::start, stop, Trace, and the timeline as a file.

#include "berth/profiler.h"

#include <fmt/format.h>

#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "base/timeline.h"
#include "base/where.h"
#include "berth/errors.h"

namespace berth::profiler {

namespace {

constexpr const char* kAnnotations = "annotations";

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
  std::vector<TimelineEvent> events;
  for (timeline::Event& e : timeline::stop()) {
    events.push_back({std::move(e.track), std::move(e.name), std::move(e.kind),
                      e.site, e.begin_us, e.end_us});
  }
  return Timeline(std::move(events));
}

Trace::Trace(std::string name, Site site)
    : name_(std::move(name)),
      site_(site),
      begin_us_(timeline::is_on() ? host_clock_us() : -1) {}

Trace::~Trace() {
  if (begin_us_ < 0 || !timeline::is_on()) return;
  timeline::add({kAnnotations, std::move(name_), "annotation", site_, begin_us_,
                 host_clock_us()});
}

std::string Timeline::json() const {
  using nlohmann::json;
  json all = json::array();
  std::map<std::string, int> rows;
  double first = events_.empty() ? 0 : events_.front().begin_us;
  for (const TimelineEvent& e : events_) {
    const auto [row, is_new] =
        rows.try_emplace(e.track, static_cast<int>(rows.size()) + 1);
    if (is_new) {
      all.push_back({{"ph", "M"},
                     {"pid", row->second},
                     {"name", "process_name"},
                     {"args", {{"name", e.track}}}});
    }
    json args = {{"kind", e.kind}};
    if (e.site.file != nullptr) {
      args["line"] = fmt::format("{}:{}", e.site.file, e.site.line);
    }
    all.push_back({{"ph", "X"},
                   {"pid", row->second},
                   {"tid", 1},
                   {"name", e.name},
                   {"ts", e.begin_us - first},
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
