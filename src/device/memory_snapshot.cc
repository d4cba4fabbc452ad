// Snapshots of memory as text, as files, and added up by line.

#include "device/memory_snapshot.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>

#include "base/environment.h"
#include "base/immortal.h"
#include "berth/errors.h"
#include "device/device.h"

namespace berth {

int64_t room_for_step(Allocator& allocator, int64_t own_bytes) {
  const MemorySnapshot now = memory_snapshot(allocator);
  const size_t limit = now.info.limit_bytes;
  if (limit == 0) return 0;
  size_t kept = std::min(limit / 8, Segments::kSegmentBytes);
  for (const MemorySnapshot::Segment& s : now.segments) {
    for (const MemorySnapshot::Piece& p : s.pieces) {
      if (p.state == MemorySnapshot::State::kFree) continue;
      if (p.state == MemorySnapshot::State::kIdle) continue;
      kept += s.bytes;
      break;
    }
  }
  return std::max<int64_t>(
      static_cast<int64_t>(limit) + own_bytes - static_cast<int64_t>(kept), 1);
}

namespace {

using State = MemorySnapshot::State;
using Json = nlohmann::ordered_json;
constexpr const char* kStates[] = {"free", "pending", "idle", "live"};

template <class Fn>
void for_each_piece(const MemorySnapshot& s, const Fn& fn) {
  for (const MemorySnapshot::Segment& segment : s.segments) {
    for (const MemorySnapshot::Piece& piece : segment.pieces) fn(piece);
  }
}

std::string line_of(Site site) {
  return site.file ? fmt::format("{}:{}", site.file, site.line) : "";
}

// Invalid UTF-8 of names is replaced.
std::string dumped(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

struct SnapshotPath {
  std::mutex mutex;
  std::string path;  // as the program said
};
SnapshotPath& chosen_path() {
  static auto& path = immortal<SnapshotPath>();
  return path;
}

// Where errors write: as the program says, else the environment, else beside
// the profile of the process; "": nowhere.
std::string path_for_errors() {
  {
    std::lock_guard lock(chosen_path().mutex);
    if (!chosen_path().path.empty()) return chosen_path().path;
  }
  const std::string asked = environment("BERTH_MEMORY_SNAPSHOT");
  const std::string profile = environment("BERTH_PROFILE");
  if (!asked.empty() || profile.empty()) return asked;
  return std::filesystem::path(profile)
      .replace_extension(".memory.json")
      .string();
}

}  // namespace

namespace {

MemorySnapshot::Piece piece_of(const HeldBlock& b, size_t offset,
                               size_t bytes) {
  constexpr auto kRelaxed = std::memory_order_relaxed;
  const bool is_held = b.block.references.load(kRelaxed) > 0;
  return {offset, bytes,
          !is_held                ? State::kPending
          : b.idle.load(kRelaxed) ? State::kIdle
                                  : State::kLive,
          b.holder.load(kRelaxed),
          Site{b.file.load(kRelaxed), b.line.load(kRelaxed)}};
}

void add_chunk(const Chunk& chunk, const Slab* slab,
               MemorySnapshot::Segment* to) {
  size_t used = 0;  // of a slab, by its blocks
  for (size_t i = 0; slab != nullptr && i < slab->count; ++i) {
    const HeldBlock& b = slab->blocks[i];
    to->pieces.push_back(piece_of(b, to->bytes + used, b.block.bytes));
    State& state = to->pieces.back().state;
    if (state == State::kPending) state = State::kFree;
    used += b.block.bytes;
  }
  if (slab == nullptr && !chunk.free) {
    to->pieces.push_back(piece_of(chunk, to->bytes, chunk.bytes));
  } else if (used < chunk.bytes) {
    to->pieces.push_back({to->bytes + used, chunk.bytes - used});
  }
  to->bytes += chunk.bytes;
}

}  // namespace

void add_pieces(const Segments& segments, const std::vector<Slab>& slabs,
                MemorySnapshot* snapshot) {
  std::map<const Chunk*, const Slab*> by_chunk;
  for (const Slab& slab : slabs) by_chunk[slab.chunk] = &slab;
  for (const Chunk* c : segments.firsts()) {
    snapshot->segments.emplace_back();
    for (; c != nullptr; c = c->after) {
      const auto slab = by_chunk.find(c);
      add_chunk(*c, slab == by_chunk.end() ? nullptr : slab->second,
                &snapshot->segments.back());
    }
  }
}

size_t MemorySnapshot::free_bytes() const {
  size_t bytes = 0;
  for_each_piece(*this, [&](const Piece& p) {
    if (p.state == State::kFree) bytes += p.bytes;
  });
  return bytes;
}

size_t MemorySnapshot::largest_free_bytes() const {
  size_t bytes = 0;
  for_each_piece(*this, [&](const Piece& p) {
    if (p.state == State::kFree) bytes = std::max(bytes, p.bytes);
  });
  return bytes;
}

double MemorySnapshot::fragmentation() const {
  const auto free = static_cast<double>(free_bytes());
  if (free == 0) return 0;
  return 1 - static_cast<double>(largest_free_bytes()) / free;
}

std::vector<config::MemoryHolder> holders_of(const MemorySnapshot& snapshot) {
  std::map<std::pair<std::string, std::string>, config::MemoryHolder> sums;
  const auto add = [&](const std::string& name, Site site, size_t bytes) {
    config::MemoryHolder& h = sums[{name, line_of(site)}];
    h.name = name;
    h.site = site;
    h.bytes += bytes;
    ++h.blocks;
  };
  for_each_piece(snapshot, [&](const MemorySnapshot::Piece& p) {
    if (p.state != State::kLive) return;
    const std::vector<HolderPart> parts = holder_parts(p.holder);
    size_t rest = p.bytes;
    for (const HolderPart& part : parts) {
      const size_t bytes = std::min(part.bytes, rest);
      add(part.name, part.site, bytes);
      rest -= bytes;
    }
    if (rest > 0) add(p.holder ? p.holder : "other tensors", p.site, rest);
  });
  std::vector<config::MemoryHolder> all;
  for (const auto& [key, holder] : sums) all.push_back(holder);
  std::stable_sort(all.begin(), all.end(), [](const auto& a, const auto& b) {
    return a.bytes > b.bytes;
  });
  return all;
}

std::string snapshot_json(const MemorySnapshot& snapshot, const Device& device,
                          size_t asked) {
  Json segments = Json::array();
  for (const MemorySnapshot::Segment& segment : snapshot.segments) {
    Json blocks = Json::array();
    for (const MemorySnapshot::Piece& p : segment.pieces) {
      Json block = {{"offset", p.offset},
                    {"bytes", p.bytes},
                    {"state", kStates[static_cast<size_t>(p.state)]}};
      if (p.state != State::kFree && p.holder != nullptr) {
        block["holder"] = p.holder;
        block["line"] = line_of(p.site);
        Json parts = Json::array();
        for (const HolderPart& part : holder_parts(p.holder)) {
          parts.push_back({{"offset", part.offset},
                           {"bytes", part.bytes},
                           {"holder", part.name},
                           {"line", line_of(part.site)}});
        }
        if (!parts.empty()) block["parts"] = std::move(parts);
      }
      blocks.push_back(std::move(block));
    }
    segments.push_back({{"bytes", segment.bytes}, {"blocks", blocks}});
  }
  const MemoryInfo& i = snapshot.info;
  return dumped({{"memory_snapshot", device.short_name()},
                 {"asked_bytes", asked},
                 {"current_bytes", i.current_bytes},
                 {"peak_bytes", i.peak_bytes},
                 {"reserved_bytes", i.reserved_bytes},
                 {"limit_bytes", i.limit_bytes},
                 {"free_bytes", snapshot.free_bytes()},
                 {"largest_free_bytes", snapshot.largest_free_bytes()},
                 {"fragmentation", snapshot.fragmentation()},
                 {"segments", std::move(segments)}}) +
         "\n";
}

void write_snapshot(const MemorySnapshot& snapshot, const Device& device,
                    size_t asked, const std::string& path) {
  std::ofstream out(path, std::ios::binary);
  out << snapshot_json(snapshot, device, asked);
  out.close();
  if (out) return;
  throw errors::InvalidArgument(fmt::format(
      "memory snapshot: \"{}\" cannot be written; expected a path in a folder "
      "that exists, with room",
      path));
}

void snapshot_path(const std::string& path) {
  std::lock_guard lock(chosen_path().mutex);
  chosen_path().path = path;
}

std::string snapshot_note(const MemorySnapshot& snapshot, const Device& device,
                          size_t asked) {
  const std::string path = path_for_errors();
  if (path.empty()) {
    return "\n  BERTH_MEMORY_SNAPSHOT=FILE.json writes every block with its "
           "line";
  }
  try {
    write_snapshot(snapshot, device, asked, path);
    return fmt::format("\n  every block with its line: berth report {}", path);
  } catch (const errors::Error& e) {
    return fmt::format("\n  {}", e.what());
  }
}

}  // namespace berth
