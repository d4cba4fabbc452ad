// Timeline::json(): Chrome's trace event format.

#include <fmt/format.h>

#include <map>
#include <nlohmann/json.hpp>
#include <optional>

#include "berth/profiler.h"
#include "device/virtual_clock.h"

namespace berth::profiler {

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

}  // namespace berth::profiler
