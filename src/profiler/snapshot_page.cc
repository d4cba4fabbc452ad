#include "profiler/snapshot_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <vector>

#include "base/bytes_text.h"
#include "berth/errors.h"

namespace berth::profiler {

namespace {

using SnapshotJson = nlohmann::json;

constexpr double kBarWidth = 1000;  // of the largest segment
constexpr size_t kListedHolders = 50;
// For the holders that have most; letters say the same without colour.
constexpr const char* kHolderColours[] = {"#0072B2", "#E69F00", "#009E73",
                                          "#CC79A7", "#D55E00", "#56B4E9",
                                          "#F0E442"};

constexpr const char* kSnapshotFrame = R"(<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>{0}</title><style>
:root{{color-scheme:light dark;--ink:#222;--page:#fff;--free:#eee}}
@media(prefers-color-scheme:dark){{:root{{--ink:#e6e6e6;--page:#16181d;--free:#2a2d35}}}}
body{{font:14px sans-serif;margin:2em;color:var(--ink);background:var(--page)}}
svg{{display:block;margin:2px 0;max-width:100%}} text{{font:10px sans-serif}}
.free{{fill:var(--free)}} .idle,.pending{{opacity:.35}} td,th{{padding:2px 12px 2px 0;text-align:left}}
</style></head><body><h1>{0}</h1><p>{1}</p>
<p>A bar is a segment; letters are those of the table, pale blocks are kept for the next run, empty ones are free.</p>
)";

std::string escaped_html(const std::string& text) {
  std::string out;
  for (const char c : text) {
    out += c == '&'   ? "&amp;"
           : c == '<' ? "&lt;"
           : c == '>' ? "&gt;"
           : c == '"' ? "&quot;"
                      : std::string(1, c);
  }
  return out;
}

// A block, or what lives in one.
struct Drawn {
  int64_t offset = 0, bytes = 0;
  std::string state, holder;  // "MatMul (/home/me/train.py:7)"
};

std::string holder_of(const SnapshotJson& block) {
  const std::string line = block.value("line", "");
  const std::string name = block.value("holder", "other tensors");
  return line.empty() ? name : name + " (" + line + ")";
}

// Blocks of a segment; parts come after the block that they are in.
std::vector<Drawn> drawn_of(const SnapshotJson& segment) {
  std::vector<Drawn> all;
  for (const SnapshotJson& b : segment.at("blocks")) {
    all.push_back({b.at("offset"), b.at("bytes"), b.at("state"), holder_of(b)});
    const Drawn whole = all.back();
    for (const SnapshotJson& p : b.value("parts", SnapshotJson::array())) {
      const int64_t from = p.at("offset"), bytes = p.at("bytes");
      if (from + bytes > whole.bytes) continue;  // of a larger plan
      all.push_back({whole.offset + from, bytes, whole.state, holder_of(p)});
    }
  }
  return all;
}

// Bytes of live blocks by holder, the largest first.
std::vector<std::pair<int64_t, std::string>> held_in(const SnapshotJson& s) {
  std::map<std::string, int64_t> sums;
  for (const SnapshotJson& segment : s.at("segments")) {
    std::string block;
    int64_t end = 0;
    for (const Drawn& d : drawn_of(segment)) {
      if (d.state != "live") continue;
      sums[d.holder] += d.bytes;
      if (d.offset < end) sums[block] -= d.bytes;  // a part of it
      if (d.offset >= end) {
        block = d.holder;
        end = d.offset + d.bytes;
      }
    }
  }
  std::vector<std::pair<int64_t, std::string>> held;
  for (const auto& [holder, bytes] : sums) held.emplace_back(-bytes, holder);
  std::sort(held.begin(), held.end());
  return held;
}

std::string bar_of(const SnapshotJson& segment, double px,
                   const std::map<std::string, size_t>& ranks) {
  const auto bytes = segment.at("bytes").get<int64_t>();
  std::string svg = fmt::format(
      "<svg width=\"{:.1f}\" height=\"22\" role=\"img\" aria-label=\"{}\">",
      static_cast<double>(bytes) * px, bytes_text(bytes));
  double drawn_to = 0;
  for (const Drawn& d : drawn_of(segment)) {
    const double x = static_cast<double>(d.offset) * px;
    const double width = std::max(static_cast<double>(d.bytes) * px, 1.0);
    if (width < 1.5 && x < drawn_to) continue;  // nobody would see it
    drawn_to = x + width;
    const bool is_free = d.state == "free";
    const auto rank = ranks.find(d.holder);
    const bool ranked = !is_free && rank != ranks.end();
    svg += fmt::format(
        "<rect class=\"{}\" fill=\"{}\" x=\"{:.2f}\" width=\"{:.2f}\" "
        "height=\"20\"><title>{} at {}, {}{}</title></rect>",
        d.state, ranked ? kHolderColours[rank->second] : "#999", x, width - 0.4,
        bytes_text(d.bytes), d.offset, d.state,
        is_free ? "" : ": " + escaped_html(d.holder));
    if (!ranked || width < 12) continue;
    svg += fmt::format("<text x=\"{:.1f}\" y=\"14\">{}</text>", x + 3,
                       static_cast<char>('A' + rank->second));
  }
  return svg + "</svg>\n";
}

std::string summary_of(const SnapshotJson& s) {
  const auto bytes = [&](const char* field) {
    return bytes_text(s.at(field).get<int64_t>());
  };
  return fmt::format(
      "{} were asked for. {} in use, at most {} so far, {} reserved, limit {}. "
      "{} free, the largest hole {}: fragmentation {:.0f} %.",
      bytes("asked_bytes"), bytes("current_bytes"), bytes("peak_bytes"),
      bytes("reserved_bytes"),
      s.at("limit_bytes") == 0 ? "none" : bytes("limit_bytes"),
      bytes("free_bytes"), bytes("largest_free_bytes"),
      100 * s.at("fragmentation").get<double>());
}

}  // namespace

bool is_memory_snapshot(const std::string& path) {
  constexpr std::string_view kBegin = "{\"memory_snapshot\":";
  std::string begin(kBegin.size(), '\0');
  std::ifstream file(path, std::ios::binary);
  return file.read(begin.data(), static_cast<std::streamsize>(begin.size())) &&
         begin == kBegin;
}

std::string snapshot_page(const std::string& json, const std::string& title) {
  try {
    const SnapshotJson s = SnapshotJson::parse(json);
    const auto held = held_in(s);
    std::map<std::string, size_t> ranks;
    std::string table;
    for (size_t i = 0; i < std::min(held.size(), kListedHolders); ++i) {
      const auto& [bytes, holder] = held[i];
      const bool ranked = i < std::size(kHolderColours);
      if (ranked) ranks[holder] = i;
      table +=
          fmt::format("<tr><td>{}</td><td>{}</td><td>{}</td></tr>\n",
                      ranked ? std::string(1, static_cast<char>('A' + i)) : "",
                      bytes_text(-bytes), escaped_html(holder));
    }
    std::string page =
        fmt::format(kSnapshotFrame,
                    escaped_html(title + ": memory of " +
                                 s.at("memory_snapshot").get<std::string>()),
                    summary_of(s));
    double largest = 1;
    for (const SnapshotJson& segment : s.at("segments")) {
      largest = std::max(largest, segment.at("bytes").get<double>());
    }
    for (const SnapshotJson& segment : s.at("segments")) {
      page += bar_of(segment, kBarWidth / largest, ranks);
    }
    return page +
           "<table><tr><th></th><th>bytes</th><th>who holds them</th>"
           "</tr>\n" +
           table + "</table></body></html>\n";
  } catch (const SnapshotJson::exception& e) {
    throw errors::InvalidArgument(fmt::format(
        "report: no memory snapshot: {}; expected a file that a device without "
        "room or config::write_memory_snapshot() wrote",
        e.what()));
  }
}

}  // namespace berth::profiler
