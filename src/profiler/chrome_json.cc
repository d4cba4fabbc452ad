// Timeline::json(): Chrome's trace event format.

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "profiler/layout.h"

namespace berth::profiler {

namespace {

using nlohmann::json;

class ChromeJson {
 public:
  explicit ChromeJson(const std::vector<TimelineEvent>& events)
      : events_(events), layout_(events), is_named_(layout_.rows.size()) {
    for (auto k = layout_.order.rbegin(); k != layout_.order.rend(); ++k) {
      first_[clock_of(*k)] = events[*k].begin_us;
    }
    text_ = "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[";
    for (size_t k = 0; k < events.size(); ++k) add_event(k);
    text_ += "]}";
  }
  std::string take() { return std::move(text_); }

 private:
  bool clock_of(size_t k) const {
    return layout_.rows[layout_.row[k]].simulated;
  }
  void put(const json& j) {
    if (text_.back() != '[') text_ += ',';
    // Names of files and ops may be any bytes.
    text_ += j.dump(-1, ' ', false, json::error_handler_t::replace);
  }
  json item(size_t k, const char* phase, const std::string& name,
            double at_us) const {
    return {{"ph", phase},
            {"pid", layout_.row[k] + 1},
            {"tid", std::max(layout_.lane[k], 0) + 1},
            {"name", name},
            {"ts", at_us - first_[clock_of(k)]}};
  }
  void name_row(size_t k) {
    const Row& row = layout_.rows[layout_.row[k]];
    std::string name(row.task);
    if (!name.empty()) name += ' ';
    name += row.track;
    if (row.simulated) name += " (simulated time)";
    put({{"ph", "M"},
         {"pid", layout_.row[k] + 1},
         {"name", "process_name"},
         {"args", {{"name", name}}}});
    is_named_[layout_.row[k]] = true;
  }
  static json args_of(const TimelineEvent& e) {
    json args = {{"kind", e.kind}};
    if (e.site.file != nullptr) {
      args["line"] = fmt::format("{}:{}", e.site.file, e.site.line);
    }
    if (!e.detail.empty()) args["detail"] = e.detail;
    if (e.bytes != 0) args["bytes"] = e.bytes;
    if (e.flops != 0) args["flops"] = e.flops;
    if (e.predicted_us != -1) args["predicted_us"] = e.predicted_us;
    if (e.run != 0) args["run"] = e.run;
    return args;
  }
  void add_event(size_t k) {
    const TimelineEvent& e = events_[k];
    if (!is_named_[layout_.row[k]]) name_row(k);
    if (is_memory(e)) {
      json counter = item(k, "C", "bytes in use", e.begin_us);
      counter["args"] = {{"bytes", e.bytes}};
      put(counter);
      return;
    }
    json slice = item(k, "X", e.name, e.begin_us);
    slice["dur"] = e.end_us - e.begin_us;
    slice["args"] = args_of(e);
    put(slice);
    for (const int32_t a : e.after) add_flow(a, k);
  }
  // An arrow to or from a copy.
  void add_flow(int32_t from, size_t to) {
    if (from < 0 || static_cast<size_t>(from) >= events_.size()) return;
    const bool is_arrow =
        (events_[from].kind == "copy" || events_[to].kind == "copy") &&
        layout_.row[from] != layout_.row[to] && layout_.lane[from] >= 0 &&
        clock_of(from) == clock_of(to);
    if (!is_arrow) return;
    json begin = item(from, "s", "copy", events_[from].begin_us);
    json end = item(to, "f", "copy", events_[to].begin_us);
    begin["cat"] = end["cat"] = "copy";
    begin["id"] = end["id"] = ++flows_;
    end["bp"] = "e";  // the slice that it lies in
    put(begin);
    put(end);
  }

  const std::vector<TimelineEvent>& events_;
  const Layout layout_;
  std::vector<bool> is_named_;  // by row
  double first_[2] = {0, 0};    // of the clocks: real, simulated
  int64_t flows_ = 0;
  std::string text_;
};

}  // namespace

std::string Timeline::json() const { return ChromeJson(events_).take(); }

}  // namespace berth::profiler
