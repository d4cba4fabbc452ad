// Writes the page: its frame, and the events as deflated columns.
//
// The data: base64 of a zlib stream of the length of a JSON text (4 bytes,
// little endian), the text, and the columns of each track of its "tracks", one
// after the other: begins since the one before and durations, both in units of
// 0.1 us, then types, bytes in use for tracks of memory. All are varints
// (LEB128).

#include "profiler/report_page.h"

#include <profiler_page_files.h>
#include <zlib.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "berth/errors.h"
#include "profiler/event_index.h"

namespace berth::profiler {

using Json = nlohmann::ordered_json;

namespace {

constexpr double kUnitsPerUs = 10;

void add_varint(std::string* to, uint64_t value) {
  for (; value >= 128; value >>= 7)
    to->push_back(static_cast<char>(value | 128));
  to->push_back(static_cast<char>(value));
}

std::string deflated(const std::string& bytes) {
  uLongf length = compressBound(bytes.size());
  std::string out(length, '\0');
  if (compress2(reinterpret_cast<Bytef*>(out.data()), &length,
                reinterpret_cast<const Bytef*>(bytes.data()), bytes.size(),
                3) != Z_OK) {
    throw errors::Internal("report: the events could not be compressed");
  }
  out.resize(length);
  return out;
}

std::string base64(const std::string& bytes) {
  constexpr char kDigits[] =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  out.reserve(bytes.size() / 3 * 4 + 4);
  for (size_t i = 0; i < bytes.size(); i += 3) {
    uint32_t word = 0;
    for (size_t k = 0; k < 3; ++k) {
      const bool is_there = i + k < bytes.size();
      word = word << 8 | (is_there ? static_cast<uint8_t>(bytes[i + k]) : 0u);
    }
    for (size_t k = 0; k < 4; ++k) {
      const bool is_there = i + k < bytes.size() + 1;
      out.push_back(is_there ? kDigits[word >> (18 - 6 * k) & 63] : '=');
    }
  }
  return out;
}

// What events of a type share, and which track's.
class Columns {
 public:
  explicit Columns(const EventIndex& x) : x_(x), tracks_(x.tracks.size()) {
    for (size_t e = 0; e < x.events.size(); ++e) {
      const bool memory = x.classes[e] == EventClass::kMemory;
      (memory ? memory_[x.track[e]] : tracks_[x.track[e]]).push_back(e);
    }
  }
  // Adds the columns to `bytes`; returns "tracks" and "types".
  void write(std::string* bytes, Json* to) {
    Json tracks = Json::array();
    for (size_t t = 0; t < tracks_.size(); ++t) {
      if (!tracks_[t].empty())
        tracks.push_back(track(tracks_[t], false, bytes));
    }
    for (const auto& [t, events] : memory_) {
      tracks.push_back(track(events, true, bytes));
    }
    (*to)["tracks"] = tracks;
    (*to)["types"] = types_;
  }

 private:
  Json track(const std::vector<int32_t>& events, bool memory,
             std::string* bytes) {
    const int32_t first = events[0];
    // Each clock begins at 0.
    double& origin = origin_[x_.counts[first] ? 1 : 0];
    if (origin < 0) origin = origin_of(first);
    uint64_t before = 0;
    const auto units = [](double us) {
      return us > 0 ? static_cast<uint64_t>(std::llround(us * kUnitsPerUs)) : 0;
    };
    std::vector<uint64_t> begins;
    for (const int32_t e : events) {
      begins.push_back(std::max(before, units(x_.events[e].begin_us - origin)));
      add_varint(bytes, begins.back() - before);
      before = begins.back();
    }
    for (const int32_t e : events) {
      add_varint(bytes, units(x_.events[e].end_us - x_.events[e].begin_us));
    }
    for (const int32_t e : events) add_varint(bytes, type_of(e));
    for (const int32_t e : events) {
      if (memory) add_varint(bytes, std::max<int64_t>(x_.events[e].bytes, 0));
    }
    return {{"name", x_.tracks[x_.track[first]]},
            {"count", events.size()},
            {"memory", memory},
            {"other_clock", x_.counts[first] == 0},
            {"origin_us", origin}};
  }

  double origin_of(int32_t e) const {
    double least = x_.events[e].begin_us;
    for (size_t k = 0; k < x_.events.size(); ++k) {
      if (x_.counts[k] == x_.counts[e]) {
        least = std::min(least, x_.events[k].begin_us);
      }
    }
    return least;
  }

  // Events of one op have one type, unless bytes, lines or details differ.
  uint64_t type_of(int32_t e) {
    const TimelineEvent& event = x_.events[e];
    const bool memory = x_.classes[e] == EventClass::kMemory;
    Last& last = last_[x_.op[e]];
    const TimelineEvent& before = x_.events[last.event];
    if (last.is_there && (memory || before.bytes == event.bytes) &&
        before.site.file == event.site.file &&
        before.site.line == event.site.line && before.detail == event.detail) {
      return last.type;
    }
    const auto key = std::make_tuple(x_.op[e], memory ? 0 : event.bytes,
                                     std::string_view(event.detail),
                                     event.site.file, event.site.line);
    const auto [found, is_new] = place_.try_emplace(key, types_.size());
    if (is_new) {
      types_.push_back({event.name, event.kind, static_cast<int>(x_.classes[e]),
                        line_of(event), event.detail, memory ? 0 : event.bytes,
                        event.flops, event.predicted_us});
    }
    last = {true, e, found->second};
    return found->second;
  }

  struct Last {
    bool is_there = false;
    int32_t event = 0;
    uint64_t type = 0;
  };
  const EventIndex& x_;
  std::vector<Last> last_{x_.first_of_op.size()};  // by op
  std::vector<std::vector<int32_t>> tracks_;       // events of each
  std::map<int32_t, std::vector<int32_t>> memory_;
  double origin_[2] = {-1, -1};
  std::map<std::tuple<int32_t, int64_t, std::string_view, const char*, int>,
           uint64_t>
      place_;
  Json types_ = Json::array();
};

constexpr size_t kMostNodes = 400;  // of the graph that the page draws

// Ops of the median step: [name, track, duration, line, class], and edges
// [from, to] with the bytes of those that are copies.
Json graph_of(const EventIndex& x, const Analysis& a) {
  Json nodes = Json::array(), edges = Json::array();
  if (a.path.empty()) return {{"nodes", nodes}, {"edges", edges}};
  const double begin = a.path.front().begin_us, end = a.path.back().end_us;
  std::map<int32_t, size_t> place;
  for (size_t k = 0; k < x.events.size(); ++k) {
    const int32_t e = static_cast<int32_t>(k);
    const TimelineEvent& event = x.events[k];
    if (!x.is_work(e) || event.begin_us < begin || event.begin_us >= end)
      continue;
    if (nodes.size() == kMostNodes) break;
    place[e] = nodes.size();
    nodes.push_back({event.name, x.tracks[x.track[k]],
                     event.end_us - event.begin_us, line_of(event),
                     static_cast<int>(x.classes[k]), event.bytes,
                     event.detail});
    for (const int32_t before : event.after) {
      const auto found = place.find(before);
      if (found == place.end()) continue;
      edges.push_back({found->second, place[e]});
    }
  }
  return {{"nodes", nodes}, {"edges", edges}};
}

std::string escaped(const std::string& text) {
  std::string s;
  for (const char c : text) {
    switch (c) {
      case '&':
        s += "&amp;";
        break;
      case '<':
        s += "&lt;";
        break;
      case '>':
        s += "&gt;";
        break;
      case '"':
        s += "&quot;";
        break;
      default:
        s += static_cast<unsigned char>(c) < 32 ? ' ' : c;
    }
  }
  return s;
}

void replace(std::string* text, const std::string& mark,
             const std::string& value) {
  size_t at = text->find(mark);
  for (; at != text->npos; at = text->find(mark, at + value.size())) {
    text->replace(at, mark.size(), value);
  }
}

}  // namespace

std::string report_page(const EventIndex& x, const Analysis& analysis,
                        const std::string& title,
                        const std::vector<OpDifference>& compared) {
  Json head = {{"title", title},
               {"analysis", to_json(analysis)},
               {"graph", graph_of(x, analysis)},
               {"compared", to_json(compared)}};
  Json spans = Json::array();
  for (const auto& [begin, end] : analysis.step_spans) {
    if (spans.size() < 100'000) spans.push_back({begin, end});
  }
  head["steps"] = spans;
  std::string columns;
  Columns(x).write(&columns, &head);
  const std::string text =
      head.dump(-1, ' ', false, Json::error_handler_t::replace);
  std::string blob;
  for (int shift = 0; shift < 32; shift += 8) {
    blob.push_back(static_cast<char>(text.size() >> shift));
  }
  blob += text + columns;
  std::string page = kPageHtml;
  replace(&page, "{{title}}", escaped(title));
  replace(&page, "{{css}}", kPageCss);
  replace(&page, "{{js}}", kPageScript);
  replace(&page, "{{data}}", base64(deflated(blob)));
  return page;
}

}  // namespace berth::profiler
