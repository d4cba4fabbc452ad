// Timeline::perfetto(): tracks, slices, flows and counters for ui.perfetto.dev,
// and what read() needs beside them.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <unordered_map>
#include <utility>

#include "base/wire_message.h"
#include "profiler/layout.h"
#include "profiler/perfetto_fields.h"

namespace berth::profiler {

namespace {

using namespace perfetto_fields;  // NOLINT: they are the words of this file

// Numbers texts from 1; a new one is written into `interned`. Views are of the
// events.
class Numbers {
 public:
  explicit Numbers(int field) : field_(field) {}
  int64_t of(std::string_view text, WireMessage* interned) {
    const auto next = static_cast<int64_t>(numbers_.size()) + 1;
    const auto [it, is_new] = numbers_.try_emplace(text, next);
    if (is_new) {
      interned->message(field_, WireMessage().number(1, next).bytes(2, text));
    }
    return it->second;
  }

 private:
  int field_;
  std::unordered_map<std::string_view, int64_t> numbers_;
};

// A task's rows of one clock: a process and a sequence of packets.
struct Process {
  int64_t id = 0;
  Numbers categories{Interned::kCategories}, names{Interned::kNames},
      texts{Interned::kTexts};
};

// Edges from row to row by the events that they leave: (place, number).
using Flows = std::vector<std::pair<int32_t, int64_t>>;

class PerfettoWriter {
 public:
  explicit PerfettoWriter(const Timeline& t)
      : events_(t.events()), layout_(t.events()) {
    for (const int32_t k : layout_.order) {
      const bool simulated = layout_.rows[layout_.row[k]].simulated;
      if (!has_origin_[simulated]) origin_[simulated] = layout_.begin_ns[k];
      has_origin_[simulated] = true;
    }
    find_flows();
    trace_.reserve(events_.size() * 96 + 4096);
    own_.number(Own::kVersion, kVersion)
        .number(Own::kEvents, static_cast<int64_t>(events_.size()))
        .number(Own::kDropped, t.dropped());
    end_packet();
    for (size_t r = 0; r < layout_.rows.size(); ++r) add_row(r);
    for (const int32_t k : layout_.order) add_event(k);
  }
  std::string take() { return std::move(trace_); }

 private:
  bool crosses(int32_t from, int32_t to) const {
    return from >= 0 && static_cast<size_t>(from) < events_.size() &&
           layout_.row[from] != layout_.row[to] && layout_.lane[from] >= 0 &&
           layout_.lane[to] >= 0;
  }
  void find_flows() {
    first_flow_.reserve(events_.size());
    for (size_t k = 0; k < events_.size(); ++k) {
      first_flow_.push_back(static_cast<int64_t>(flows_.size()) + 1);
      for (const int32_t a : events_[k].after) {
        if (!crosses(a, static_cast<int32_t>(k))) continue;
        flows_.emplace_back(a, static_cast<int64_t>(flows_.size()) + 1);
      }
    }
    std::sort(flows_.begin(), flows_.end());
  }

  // Writes packet_ with what else was put together for it.
  void end_packet() {
    if (!interned_.empty()) packet_.message(Packet::kInternedData, interned_);
    if (!own_.empty()) packet_.message(Packet::kOwn, own_);
    WireMessage& whole = annotation_;
    whole.clear();
    whole.message(kTracePacket, packet_);
    trace_ += whole.text();
    for (WireMessage* m : {&packet_, &interned_, &own_, &event_}) m->clear();
  }

  Process& process_of(const Row& row);
  void add_track(int64_t id, int64_t parent, const std::string& name,
                 bool counts_bytes);
  void add_row(size_t r);
  void add_event(int32_t k);
  void describe(const TimelineEvent& e, Process& process);
  void describe_own(int32_t k);
  void begin_packet(const Process& process, int64_t ns);
  void add_flows(int32_t k);
  void annotate(AnnotationName name, std::string_view text, Process& process);
  void annotate(AnnotationName name, int64_t value);
  void annotate(AnnotationName name, double value);

  const std::vector<TimelineEvent>& events_;
  const Layout layout_;
  Flows flows_;
  std::vector<int64_t> first_flow_;  // into an event, by its place
  bool has_origin_[2] = {false, false};
  int64_t origin_[2] = {0, 0};  // of the clocks: real, simulated
  std::map<std::pair<std::string_view, bool>, Process> processes_;
  std::vector<Process*> process_;  // by row
  std::vector<int64_t> track_;     // by row; those of more lanes follow
  std::vector<int64_t> memory_track_;
  int64_t tracks_ = 0;
  std::map<std::pair<const char*, int>, std::string> lines_;
  int32_t next_place_ = 0;
  std::string trace_;
  WireMessage packet_, interned_, own_, event_, annotation_, after_;
};

Process& PerfettoWriter::process_of(const Row& row) {
  const auto [it, is_new] = processes_.try_emplace({row.task, row.simulated});
  Process& process = it->second;
  if (!is_new) return process;
  process.id = ++tracks_;
  for (size_t a = 0; a < kAnnotationNames.size(); ++a) {
    interned_.message(Interned::kAnnotations,
                      WireMessage()
                          .number(1, static_cast<int64_t>(a) + 1)
                          .bytes(2, kAnnotationNames[a]));
  }
  // Both clocks begin where the real one does: they are not compared.
  const int64_t common = has_origin_[0] ? std::max<int64_t>(origin_[0], 0) : 0;
  WireMessage clocks;
  for (const auto& [clock, time] :
       {std::pair<int, int64_t>{kClock, 0}, {kCommonClock, common}}) {
    clocks.message(1, WireMessage().number(1, clock).number(2, time));
  }
  std::string name(row.task.empty() ? "Berth" : row.task);
  if (row.simulated) name += " (simulated time)";
  packet_.number(Packet::kSequence, process.id)
      .number(Packet::kFlags, Packet::kCleared)
      .message(Packet::kDefaults,
               WireMessage().number(Packet::kTimestampClock, kClock))
      .message(Packet::kClockSnapshot, clocks);
  own_.bytes(Own::kTask, row.task)
      .number(Own::kSimulated, row.simulated)
      .number(Own::kOrigin, origin_[row.simulated]);
  end_packet();
  packet_.message(Packet::kTrackDescriptor,
                  WireMessage()
                      .number(Descriptor::kUuid, process.id)
                      .message(Descriptor::kProcess,
                               WireMessage()
                                   .number(Descriptor::kPid, process.id)
                                   .bytes(Descriptor::kProcessName, name)));
  end_packet();
  return process;
}

void PerfettoWriter::add_track(int64_t id, int64_t parent,
                               const std::string& name, bool counts_bytes) {
  WireMessage track;
  track.number(Descriptor::kUuid, id).bytes(Descriptor::kName, name);
  track.number(Descriptor::kParent, parent);
  if (counts_bytes) {
    track.message(
        Descriptor::kCounter,
        WireMessage().number(Descriptor::kUnit, Descriptor::kUnitBytes));
  }
  packet_.message(Packet::kTrackDescriptor, track);
  end_packet();
}

void PerfettoWriter::add_row(size_t r) {
  const Row& row = layout_.rows[r];
  Process& process = process_of(row);
  process_.push_back(&process);
  const int64_t first = ++tracks_;
  track_.push_back(first);
  const std::string name(row.track);
  add_track(first, process.id, name, false);
  for (int32_t lane = 1; lane < row.lanes; ++lane) {
    add_track(++tracks_, first, fmt::format("{} ({})", name, lane + 1), false);
  }
  memory_track_.push_back(row.has_memory ? ++tracks_ : 0);
  if (row.has_memory) add_track(tracks_, first, name + " memory", true);
}

void PerfettoWriter::annotate(AnnotationName name, std::string_view text,
                              Process& process) {
  if (text.empty()) return;
  annotation_.clear();
  annotation_.number(Annotation::kName, name);
  annotation_.number(Annotation::kText, process.texts.of(text, &interned_));
  event_.message(Event::kAnnotation, annotation_);
}

void PerfettoWriter::annotate(AnnotationName name, int64_t value) {
  if (value == 0) return;
  annotation_.clear();
  annotation_.number(Annotation::kName, name).number(Annotation::kInt, value);
  event_.message(Event::kAnnotation, annotation_);
}

void PerfettoWriter::annotate(AnnotationName name, double value) {
  constexpr double kMost = int64_t{1} << 53;
  if (value >= 1 && value < kMost && std::trunc(value) == value) {
    annotate(name, static_cast<int64_t>(value));  // takes fewer bytes
    return;
  }
  annotation_.clear();
  annotation_.number(Annotation::kName, name).real(Annotation::kDouble, value);
  event_.message(Event::kAnnotation, annotation_);
}

// Name, kind and annotations.
void PerfettoWriter::describe(const TimelineEvent& e, Process& process) {
  event_.number(Event::kCategory, process.categories.of(e.kind, &interned_));
  event_.number(Event::kName, process.names.of(e.name, &interned_));
  if (e.site.file != nullptr) {
    std::string& line = lines_[{e.site.file, e.site.line}];
    if (line.empty()) line = fmt::format("{}:{}", e.site.file, e.site.line);
    annotate(kLine, line, process);
  }
  if (e.site.frame != nullptr) annotate(kFrame, e.site.frame, process);
  annotate(kDetail, e.detail, process);
  annotate(kBytes, e.bytes);
  if (e.flops != 0) annotate(kFlops, e.flops);
  if (e.predicted_us != -1) annotate(kPredicted, e.predicted_us);
  annotate(kRun, e.run);
}

// What only read() reads of an event.
void PerfettoWriter::describe_own(int32_t k) {
  if (k != next_place_) own_.number(Own::kPlace, k);
  next_place_ = k + 1;
  after_.clear();
  for (const int32_t a : events_[k].after) {
    if (a < 0 || static_cast<size_t>(a) >= events_.size()) continue;
    const int64_t back = int64_t{k} - a;
    after_.packed(static_cast<uint64_t>(back * 2 ^ back >> 63));
  }
  if (!after_.empty()) own_.message(Own::kAfter, after_);
}

void PerfettoWriter::begin_packet(const Process& process, int64_t ns) {
  packet_.number(Packet::kTimestamp, ns);
  packet_.number(Packet::kSequence, process.id);
  packet_.number(Packet::kFlags, Packet::kNeedsState);
}

void PerfettoWriter::add_event(int32_t k) {
  const int32_t r = layout_.row[k], lane = layout_.lane[k];
  Process& process = *process_[r];
  const int64_t origin = origin_[layout_.rows[r].simulated];
  const int64_t begin = layout_.begin_ns[k], end = layout_.end_ns[k];
  const int64_t track = lane < 0 ? memory_track_[r] : track_[r] + lane;
  begin_packet(process, begin - origin);
  event_.number(Event::kType, lane < 0 ? Event::kCounter : Event::kBegin);
  event_.number(Event::kTrack, track);
  describe(events_[k], process);
  describe_own(k);
  if (lane < 0) {
    event_.number(Event::kCounterValue, events_[k].bytes);
    if (end > begin) own_.number(Own::kDuration, end - begin);
  } else {
    add_flows(k);
  }
  packet_.message(Packet::kTrackEvent, event_);
  end_packet();
  if (lane < 0) return;
  begin_packet(process, end - origin);
  event_.number(Event::kType, Event::kEnd).number(Event::kTrack, track);
  packet_.message(Packet::kTrackEvent, event_);
  end_packet();
}

void PerfettoWriter::add_flows(int32_t k) {
  int64_t number = first_flow_[k];
  for (const int32_t a : events_[k].after) {
    if (!crosses(a, k)) continue;
    event_.fixed64(Event::kTerminatingFlow, static_cast<uint64_t>(number++));
  }
  auto out =
      std::lower_bound(flows_.begin(), flows_.end(), std::pair(k, int64_t{0}));
  for (; out != flows_.end() && out->first == k; ++out) {
    event_.fixed64(Event::kFlow, static_cast<uint64_t>(out->second));
  }
}

}  // namespace

std::string Timeline::perfetto() const { return PerfettoWriter(*this).take(); }

}  // namespace berth::profiler
