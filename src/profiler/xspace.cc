// Timeline::xspace(): what TensorBoard's profile plug-in (XProf) reads:
// xplane.proto of tsl.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/wire_message.h"
#include "profiler/event_index.h"
#include "profiler/layout.h"

namespace berth::profiler {

namespace {

// Fields, by number.
struct XSpaceField {
  static constexpr int kPlanes = 1, kHostnames = 4;
};
struct XPlaneField {
  static constexpr int kId = 1, kName = 2, kLines = 3, kEventMetadata = 4,
                       kStatMetadata = 5;
};
struct XLineField {
  static constexpr int kId = 1, kName = 2, kTimestampNs = 3, kEvents = 4;
};
struct XEventField {
  static constexpr int kMetadata = 1, kOffsetPs = 2, kDurationPs = 3,
                       kStats = 4;
};
struct XStatField {
  static constexpr int kMetadata = 1, kDouble = 2, kInt = 4, kText = 5;
};

// Texts of these messages are UTF-8.
std::string utf8_of(std::string_view text) {
  using nlohmann::json;
  return json::parse(
      json(text).dump(-1, ' ', false, json::error_handler_t::replace));
}

// Names that messages have numbers of.
class Metadata {
 public:
  int64_t number(std::string_view name) {
    return numbers_
        .try_emplace(std::string(name),
                     static_cast<int64_t>(numbers_.size()) + 1)
        .first->second;
  }
  // map<int64, Metadata {1: id, 2: name}>
  void put(int field, WireMessage* plane) const {
    for (const auto& [name, id] : numbers_) {
      WireMessage value, entry;
      value.number(1, id).bytes(2, utf8_of(name));
      plane->message(field, entry.number(1, id).message(2, value));
    }
  }

 private:
  std::map<std::string, int64_t> numbers_;
};

struct Plane {
  Metadata events, stats;
  std::map<std::pair<int32_t, int32_t>, WireMessage> lines;  // of row, lane
};

class XEvent {
 public:
  XEvent(Plane* plane, std::string_view name, int64_t begin_ns, int64_t ns)
      : plane_(plane) {
    event_.number(XEventField::kMetadata, plane->events.number(name))
        .number(XEventField::kOffsetPs, begin_ns * 1000)
        .number(XEventField::kDurationPs, ns * 1000);
  }
  XEvent& stat(const char* name, int64_t value) {
    return stat(stat_of(name).number(XStatField::kInt, value));
  }
  XEvent& stat(const char* name, double value) {
    return stat(stat_of(name).real(XStatField::kDouble, value));
  }
  XEvent& stat(const char* name, std::string_view text) {
    return stat(stat_of(name).bytes(XStatField::kText, utf8_of(text)));
  }
  const WireMessage& message() const { return event_; }

 private:
  WireMessage stat_of(const char* name) {
    return WireMessage().number(XStatField::kMetadata,
                                plane_->stats.number(name));
  }
  XEvent& stat(const WireMessage& stat) {
    event_.message(XEventField::kStats, stat);
    return *this;
  }
  Plane* plane_;
  WireMessage event_;
};

// All rows that compare are of the host: XProf looks for steps of its own on
// planes of GPUs. What is simulated has a clock that compares with none.
const char* plane_of(const Row& row) {
  return row.simulated ? "/device:CUSTOM:simulated time" : "/host:CPU";
}

bool is_op(const TimelineEvent& e) {
  return e.run > 0 && e.kind != "copy" && e.kind != "region" &&
         e.kind != "launch" && e.kind != "slice";
}

class XSpaceWriter {
 public:
  explicit XSpaceWriter(const Timeline& t)
      : events_(t.events()), layout_(events_), index_(t, StepClock::kHost) {
    for (auto k = layout_.order.rbegin(); k != layout_.order.rend(); ++k) {
      origin_[layout_.rows[layout_.row[*k]].simulated] = layout_.begin_ns[*k];
    }
    add_steps();
    for (const int32_t k : layout_.order) add_event(k);
  }
  std::string text();

 private:
  WireMessage& line_of(Plane* plane, int32_t row, int32_t lane,
                       std::string_view name);
  void add_steps();
  void add_event(int32_t k);
  void add_memory(int32_t k);
  // From 0, as XProf numbers them; -1: between steps.
  int64_t step_of(int32_t k) const { return index_.step[k]; }

  const std::vector<TimelineEvent>& events_;
  const Layout layout_;
  const EventIndex index_;
  int64_t origin_[2] = {0, 0};  // of the clocks: real, simulated
  std::map<std::string, Plane> planes_;
  struct InUse {
    int64_t bytes = 0, peak = 0, changes = 0;
  };
  std::map<int32_t, InUse> in_use_;  // by row
};

WireMessage& XSpaceWriter::line_of(Plane* plane, int32_t row, int32_t lane,
                                   std::string_view name) {
  const auto [it, is_new] = plane->lines.try_emplace({row, lane});
  if (is_new) {
    it->second
        .number(XLineField::kId, static_cast<int64_t>(plane->lines.size()))
        .bytes(XLineField::kName, utf8_of(name))
        .number(XLineField::kTimestampNs, std::max<int64_t>(origin_[0], 0));
  }
  return it->second;
}

void XSpaceWriter::add_steps() {
  Plane& host = planes_["/host:CPU"];
  int64_t number = 0;
  // XProf knows steps by the beginning of their names.
  const bool is_test = index_.step_name.find("test") != std::string::npos;
  for (const Interval& s : index_.steps) {
    XEvent event(&host, is_test ? "test" : "train",
                 std::llround(s.begin * 1000) - origin_[0],
                 std::llround(s.us() * 1000));
    event.stat("group_id", number).stat("step_num", number);
    event.stat("_r", int64_t{1});
    ++number;
    line_of(&host, -1, 0, "steps")
        .message(XLineField::kEvents, event.message());
  }
}

void XSpaceWriter::add_event(int32_t k) {
  const TimelineEvent& e = events_[k];
  const Row& row = layout_.rows[layout_.row[k]];
  if (is_memory(e)) return add_memory(k);
  Plane& plane = planes_[plane_of(row)];
  std::string name = e.name;
  if (is_op(e)) name = fmt::format("{}:{}", name, e.kind);
  if (e.kind == "input") name = "IteratorGetNext " + name;  // XProf's word
  XEvent event(&plane, name, layout_.begin_ns[k] - origin_[row.simulated],
               layout_.end_ns[k] - layout_.begin_ns[k]);
  if (const int64_t step = row.simulated ? -1 : step_of(k); step >= 0) {
    event.stat("group_id", step);
  }
  if (is_op(e)) event.stat("tf_op", name);
  if (e.site.file != nullptr) {
    event.stat("source", fmt::format("{}:{}", e.site.file, e.site.line));
  }
  if (!e.detail.empty()) event.stat("detail", e.detail);
  if (e.bytes != 0) event.stat("bytes_accessed", e.bytes);
  if (e.flops != 0) event.stat("flops", e.flops);
  line_of(&plane, layout_.row[k], layout_.lane[k], row.track)
      .message(XLineField::kEvents, event.message());
}

void XSpaceWriter::add_memory(int32_t k) {
  const TimelineEvent& e = events_[k];
  const Row& row = layout_.rows[layout_.row[k]];
  InUse& in_use = in_use_[layout_.row[k]];
  const int64_t more = e.bytes - in_use.bytes;
  in_use.bytes = e.bytes;
  in_use.peak = std::max(in_use.peak, e.bytes);
  Plane& host = planes_["/host:CPU"];  // where XProf looks for it
  XEvent event(&host, more < 0 ? "MemoryDeallocation" : "MemoryAllocation",
               layout_.begin_ns[k] - origin_[row.simulated], 0);
  event.stat("allocator_name", row.track)
      .stat("bytes_reserved", int64_t{0})
      .stat("bytes_allocated", e.bytes)
      .stat("bytes_available", int64_t{0})
      .stat("fragmentation", 0.0)
      .stat("peak_bytes_in_use", in_use.peak)
      .stat("requested_bytes", std::abs(more))
      .stat("allocation_bytes", std::abs(more))
      .stat("addr", ++in_use.changes)
      .stat("tf_op", e.name)
      .stat("region_type", "output")
      .stat("data_type", int64_t{1})
      .stat("shape", e.detail);
  if (const int64_t step = row.simulated ? -1 : step_of(k); step >= 0) {
    event.stat("group_id", step);
  }
  line_of(&host, layout_.row[k], -1, fmt::format("{} memory", row.track))
      .message(XLineField::kEvents, event.message());
}

std::string XSpaceWriter::text() {
  WireMessage space;
  int64_t id = 0;
  for (const auto& [name, plane] : planes_) {
    WireMessage message;
    message.number(XPlaneField::kId, ++id)
        .bytes(XPlaneField::kName, utf8_of(name));
    for (const auto& [key, line] : plane.lines) {
      message.message(XPlaneField::kLines, line);
    }
    plane.events.put(XPlaneField::kEventMetadata, &message);
    plane.stats.put(XPlaneField::kStatMetadata, &message);
    space.message(XSpaceField::kPlanes, message);
  }
  return space.bytes(XSpaceField::kHostnames, "localhost").text();
}

}  // namespace

std::string Timeline::xspace() const { return XSpaceWriter(*this).text(); }

}  // namespace berth::profiler
