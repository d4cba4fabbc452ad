// Timeline::read(): the timeline of a file of Perfetto's format that write()
// wrote. The bytes may be anybody's.

#include "profiler/read_perfetto.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <fstream>
#include <map>
#include <optional>
#include <set>
#include <unordered_map>
#include <utility>

#include "base/intern.h"
#include "base/wire_reader.h"
#include "berth/errors.h"
#include "profiler/perfetto_fields.h"

namespace berth::profiler {

namespace {

namespace fields = perfetto_fields;
using fields::Annotation;
using fields::Descriptor;
using fields::Interned;
using fields::Own;
using fields::Packet;
using fields::TrackEvent;

// A field: of varints and fixed numbers `number`, of all others `bytes`.
struct Field {
  int id = 0;
  uint64_t number = 0;
  std::string_view bytes = {};
};

// What was read of a packet before it is known what it is.
struct PacketParts {
  uint64_t time = 0, sequence = 0;
  std::string_view event, descriptor, interned, own;
};

struct OwnParts {
  std::optional<uint64_t> version, events, place;
  uint64_t dropped = 0, duration = 0;
  std::string_view task, after;
  bool simulated = false;
  std::optional<int64_t> origin;
};

// By number, from 1.
using Texts = std::vector<std::string_view>;

struct Sequence {
  std::string task;
  bool simulated = false;
  int64_t origin = 0;
  Texts categories, names, annotations, texts;
  std::map<uint64_t, Site> lines;  // by number of the text
};

class PerfettoFile {
 public:
  PerfettoFile(std::string_view bytes, const std::string& path)
      : path_(path), size_(bytes.size()) {
    each(bytes, [&](const Field& f) {
      if (f.id != fields::kTracePacket) fail("a field that is no packet");
      read_packet(f.bytes);
      ++packets_;
    });
    if (!expected_) fail("it is empty");
    if (events_.size() != *expected_ || num_open_ > 0) {
      fail(fmt::format("{} of {} events, {} of them without an end",
                       events_.size(), *expected_, num_open_));
    }
    put_in_place();
  }
  TaskEvents take() { return {"", std::move(events_), dropped_}; }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw errors::InvalidArgument(fmt::format(
        "profiler: \"{}\" is no timeline: packet {}: {}; expected a file that "
        "Timeline::write() wrote to a path that ends in \".pftrace\"",
        path_, packets_, what));
  }

  // Calls fn(field) for each field of a message.
  template <class Fn>
  void each(std::string_view message, const Fn& fn) const {
    WireReader reader(message);
    while (const uint32_t tag = reader.tag()) {
      Field f{static_cast<int>(tag >> 3)};
      bool ok = false;
      switch (tag & 7) {
        case wire::kVarint:
          ok = reader.varint(&f.number);
          break;
        case wire::kFixed64:
          ok = reader.fixed64(&f.number);
          break;
        case wire::kDelimited:
          ok = reader.view(&f.bytes);
          break;
        default:
          break;
      }
      if (!ok) fail(fmt::format("field {} is cut or malformed", f.id));
      fn(f);
    }
    if (!reader.finished()) fail("it is cut or malformed");
  }

  std::string_view text_of(const Texts& texts, uint64_t number,
                           const char* what) const {
    if (number == 0 || number > texts.size()) {
      fail(fmt::format("{} {} was not named before", what, number));
    }
    return texts[number - 1];
  }

  void read_packet(std::string_view bytes);
  OwnParts read_own(std::string_view bytes) const;
  void read_interned(std::string_view bytes, Sequence* sequence) const;
  void read_descriptor(std::string_view bytes);
  void read_event(const PacketParts& packet, const OwnParts& own);
  void read_annotation(std::string_view bytes, Sequence* sequence,
                       TimelineEvent* e) const;
  std::string_view track_of(uint64_t uuid) const;
  static double us_of(int64_t origin, uint64_t ns);
  Site line_of(uint64_t number, Sequence* sequence) const;
  void read_after(std::string_view packed, int64_t place,
                  std::vector<int32_t>* after) const;
  void put_in_place();

  const std::string& path_;
  const uint64_t size_;
  int64_t packets_ = 0;
  std::optional<uint64_t> expected_;
  int64_t dropped_ = 0;
  std::map<uint64_t, Sequence> sequences_;
  std::set<uint64_t> processes_;                           // uuids
  std::unordered_map<uint64_t, std::string_view> tracks_;  // names of rows
  // By track, the events that have no end yet.
  std::unordered_map<uint64_t, std::vector<size_t>> open_;
  uint64_t num_open_ = 0, next_place_ = 0;
  std::vector<TimelineEvent> events_;
  std::vector<uint64_t> places_;  // of them
};

void PerfettoFile::read_packet(std::string_view bytes) {
  PacketParts p;
  each(bytes, [&](const Field& f) {
    if (f.id == Packet::kTimestamp) p.time = f.number;
    if (f.id == Packet::kSequence) p.sequence = f.number;
    if (f.id == Packet::kTrackEvent) p.event = f.bytes;
    if (f.id == Packet::kInternedData) p.interned = f.bytes;
    if (f.id == Packet::kTrackDescriptor) p.descriptor = f.bytes;
    if (f.id == Packet::kOwn) p.own = f.bytes;
  });
  const OwnParts own = read_own(p.own);
  if (packets_ == 0) {
    if (own.version != uint64_t{fields::kVersion}) {
      fail("it is of another program or version");
    }
    expected_ = own.events.value_or(0);
    constexpr uint64_t kLeastBytes = 16;  // of an event
    const auto most = std::min(*expected_, size_ / kLeastBytes);
    events_.reserve(most);
    places_.reserve(most);
    dropped_ = static_cast<int64_t>(own.dropped);
  }
  if (own.origin) {
    Sequence& sequence = sequences_[p.sequence];
    sequence = {std::string(own.task), own.simulated, *own.origin};
  }
  if (!p.interned.empty()) read_interned(p.interned, &sequences_[p.sequence]);
  if (!p.descriptor.empty()) read_descriptor(p.descriptor);
  if (!p.event.empty()) read_event(p, own);
}

OwnParts PerfettoFile::read_own(std::string_view bytes) const {
  OwnParts own;
  each(bytes, [&](const Field& f) {
    if (f.id == Own::kVersion) own.version = f.number;
    if (f.id == Own::kEvents) own.events = f.number;
    if (f.id == Own::kDropped) own.dropped = f.number;
    if (f.id == Own::kTask) own.task = f.bytes;
    if (f.id == Own::kSimulated) own.simulated = f.number != 0;
    if (f.id == Own::kOrigin) own.origin = static_cast<int64_t>(f.number);
    if (f.id == Own::kPlace) own.place = f.number;
    if (f.id == Own::kAfter) own.after = f.bytes;
    if (f.id == Own::kDuration) own.duration = f.number;
  });
  return own;
}

void PerfettoFile::read_interned(std::string_view bytes,
                                 Sequence* sequence) const {
  each(bytes, [&](const Field& f) {
    Texts* texts = f.id == Interned::kCategories    ? &sequence->categories
                   : f.id == Interned::kNames       ? &sequence->names
                   : f.id == Interned::kAnnotations ? &sequence->annotations
                   : f.id == Interned::kTexts       ? &sequence->texts
                                                    : nullptr;
    if (texts == nullptr) return;
    uint64_t number = 0;
    std::string_view text;
    each(f.bytes, [&](const Field& part) {
      if (part.id == 1) number = part.number;
      if (part.id == 2) text = part.bytes;
    });
    if (number != texts->size() + 1) {
      fail(fmt::format("text {} follows {}", number, texts->size()));
    }
    const bool is_annotation = f.id == Interned::kAnnotations;
    if (is_annotation && (number > fields::kAnnotationNames.size() ||
                          text != fields::kAnnotationNames[number - 1])) {
      fail(fmt::format("annotation {} is \"{}\"", number, text));
    }
    texts->push_back(text);
  });
}

void PerfettoFile::read_descriptor(std::string_view bytes) {
  uint64_t uuid = 0, parent = 0;
  std::string_view name;
  bool is_process = false;
  each(bytes, [&](const Field& f) {
    if (f.id == Descriptor::kUuid) uuid = f.number;
    if (f.id == Descriptor::kParent) parent = f.number;
    if (f.id == Descriptor::kName) name = f.bytes;
    if (f.id == Descriptor::kProcess) is_process = true;
  });
  if (is_process) {
    processes_.insert(uuid);
  } else if (processes_.count(parent) > 0) {
    tracks_[uuid] = name;
  } else {  // a lane, or bytes in use: of the row above it
    tracks_[uuid] = track_of(parent);
  }
}

std::string_view PerfettoFile::track_of(uint64_t uuid) const {
  const auto it = tracks_.find(uuid);
  if (it == tracks_.end()) fail(fmt::format("track {} is unknown", uuid));
  return it->second;
}

void PerfettoFile::read_event(const PacketParts& packet, const OwnParts& own) {
  const auto found = sequences_.find(packet.sequence);
  if (found == sequences_.end()) {
    fail(fmt::format("sequence {} has no clock", packet.sequence));
  }
  Sequence& sequence = found->second;
  uint64_t type = 0, track = 0;
  TimelineEvent e;
  each(packet.event, [&](const Field& f) {
    if (f.id == TrackEvent::kType) type = f.number;
    if (f.id == TrackEvent::kTrack) track = f.number;
    if (f.id == TrackEvent::kName) {
      e.name = text_of(sequence.names, f.number, "name");
    }
    if (f.id == TrackEvent::kCategory) {
      e.kind = text_of(sequence.categories, f.number, "category");
    }
    if (f.id == TrackEvent::kAnnotation)
      read_annotation(f.bytes, &sequence, &e);
  });
  const double us = us_of(sequence.origin, packet.time);
  if (type == TrackEvent::kEnd) {
    std::vector<size_t>& open = open_[track];
    if (open.empty()) fail("an end without a begin");
    events_[open.back()].end_us = us;
    open.pop_back();
    --num_open_;
    return;
  }
  if (type != TrackEvent::kBegin && type != TrackEvent::kCounter) {
    fail(fmt::format("an event of type {}", type));
  }
  e.track = track_of(track);
  e.task = sequence.task;
  e.simulated = sequence.simulated;
  e.begin_us = us;
  e.end_us = us_of(sequence.origin, packet.time + own.duration);
  const uint64_t place = own.place.value_or(next_place_);
  if (place >= *expected_) fail(fmt::format("place {} of an event", place));
  next_place_ = place + 1;
  read_after(own.after, static_cast<int64_t>(place), &e.after);
  if (type == TrackEvent::kBegin) {
    open_[track].push_back(events_.size());
    ++num_open_;
  }
  events_.push_back(std::move(e));
  places_.push_back(place);
}

double PerfettoFile::us_of(int64_t origin, uint64_t ns) {
  // Unsigned, for sums of anybody's numbers.
  return static_cast<double>(
             static_cast<int64_t>(static_cast<uint64_t>(origin) + ns)) /
         1000;
}

void PerfettoFile::read_annotation(std::string_view bytes, Sequence* sequence,
                                   TimelineEvent* e) const {
  uint64_t name = 0, text = 0;
  int64_t whole = 0;
  double real = 0;
  each(bytes, [&](const Field& f) {
    if (f.id == Annotation::kName) name = f.number;
    if (f.id == Annotation::kText) text = f.number;
    if (f.id == Annotation::kInt) {
      whole = static_cast<int64_t>(f.number);
      real = static_cast<double>(whole);
    }
    if (f.id == Annotation::kDouble) real = std::bit_cast<double>(f.number);
  });
  switch (name) {
    case fields::kLine: {
      const char* frame = e->site.frame;
      e->site = line_of(text, sequence);
      e->site.frame = frame;
      break;
    }
    case fields::kFrame:
      e->site.frame =
          intern(std::string(text_of(sequence->texts, text, "frame")));
      break;
    case fields::kDetail:
      e->detail = text_of(sequence->texts, text, "detail");
      break;
    case fields::kBytes:
      e->bytes = whole;
      break;
    case fields::kFlops:
      e->flops = real;
      break;
    case fields::kPredicted:
      e->predicted_us = real;
      break;
    case fields::kRun:
      e->run = whole;
      break;
    default:
      fail(fmt::format("annotation {} is unknown", name));
  }
}

// The line that a text "file:line" names.
Site PerfettoFile::line_of(uint64_t number, Sequence* sequence) const {
  const auto [it, is_new] = sequence->lines.try_emplace(number);
  if (!is_new) return it->second;
  const std::string_view text = text_of(sequence->texts, number, "line");
  const size_t colon = text.rfind(':');
  int line = 0;
  if (colon == std::string_view::npos ||
      std::from_chars(text.data() + colon + 1, text.data() + text.size(), line)
              .ptr != text.data() + text.size()) {
    fail(fmt::format("\"{}\" is no line of a file", text));
  }
  it->second.file = intern(std::string(text.substr(0, colon)));
  it->second.line = line;
  return it->second;
}

void PerfettoFile::read_after(std::string_view packed, int64_t place,
                              std::vector<int32_t>* after) const {
  WireReader reader(packed);
  while (!reader.at_end()) {
    uint64_t v = 0;
    if (!reader.varint(&v)) fail("what had to end before is cut");
    const auto back = static_cast<int64_t>(v >> 1 ^ (~(v & 1) + 1));
    const bool is_far = back > INT32_MAX || back < -INT32_MAX;
    const int64_t before = is_far ? -1 : place - back;
    if (before < 0 || before >= static_cast<int64_t>(*expected_)) {
      fail(
          fmt::format("event {} had to wait for one that is not there", place));
    }
    after->push_back(static_cast<int32_t>(before));
  }
}

// The packets are sorted by begin; the timeline may have had another order.
void PerfettoFile::put_in_place() {
  std::vector<bool> is_taken(events_.size());
  bool is_sorted = true;
  for (size_t k = 0; k < places_.size(); ++k) {
    if (is_taken[places_[k]]) {
      fail(fmt::format("two events have the place {}", places_[k]));
    }
    is_taken[places_[k]] = true;
    is_sorted = is_sorted && places_[k] == k;
  }
  if (is_sorted) return;
  std::vector<TimelineEvent> in_place(events_.size());
  for (size_t k = 0; k < places_.size(); ++k) {
    in_place[places_[k]] = std::move(events_[k]);
  }
  events_ = std::move(in_place);
}

}  // namespace

TaskEvents read_perfetto(std::string_view bytes, const std::string& path) {
  return PerfettoFile(bytes, path).take();
}

TaskEvents read_events(const std::string& path) {
  std::string bytes;
  std::ifstream in(path, std::ios::binary);
  for (std::string part(1 << 20, '\0');
       in.read(part.data(), 1 << 20), in.gcount() > 0;) {
    bytes.append(part, 0, static_cast<size_t>(in.gcount()));
  }
  if (!in.is_open() || in.bad()) {
    throw errors::InvalidArgument(
        fmt::format("profiler: \"{}\" cannot be read; expected a file that "
                    "Timeline::write() wrote",
                    path));
  }
  return read_perfetto(bytes, path);
}

Timeline Timeline::read(const std::string& path) {
  TaskEvents all = read_events(path);
  return Timeline(std::move(all.events), all.dropped);
}

}  // namespace berth::profiler
