// MemorySnapshot: every block of a device's memory, what holds it and the
// user's line.
//
// A full device writes one where config::set_memory_snapshot() or
// BERTH_MEMORY_SNAPSHOT says; `berth report` draws it. docs/json.md, "Memory
// snapshots". Thread-safe.

#ifndef BERTH_DEVICE_MEMORY_SNAPSHOT_H_
#define BERTH_DEVICE_MEMORY_SNAPSHOT_H_

#include <cstddef>
#include <string>
#include <vector>

#include "berth/config_memory.h"
#include "device/allocator.h"
#include "device/holders.h"
#include "device/segments.h"
#include "device/slabs.h"

namespace berth {

struct MemorySnapshot {
  enum class State : uint8_t {
    kFree,     // a hole between others, or kept for the next small blocks
    kPending,  // freed, but work that waits in a queue uses it
    kIdle,     // kept for the next run of a plan
    kLive,
  };
  struct Piece {
    size_t offset = 0, bytes = 0;
    State state = State::kFree;
    const char* holder = nullptr;  // null: no name was given
    Site site = {};
  };
  struct Segment {
    size_t bytes = 0;
    std::vector<Piece> pieces;  // by offset, without gaps
  };
  MemoryInfo info;
  std::vector<Segment> segments;

  size_t free_bytes() const;
  size_t largest_free_bytes() const;
  // Share of the free bytes that the largest hole lacks: 0 is one hole.
  double fragmentation() const;
};

MemorySnapshot memory_snapshot(Allocator& allocator);
// Adds what `segments` have; `slabs`: those of any segments.
void add_pieces(const Segments& segments, const std::vector<Slab>& slabs,
                MemorySnapshot* snapshot);

// What the limit leaves for a step beside segments that others use a part of,
// less the segment that what it is given may take; 0: there is no limit.
//   own_bytes  of the step's variables, which are in use already
int64_t room_for_step(Allocator& allocator, int64_t own_bytes);

// What is alive, by holder and line, the largest first; arenas by what lives in
// them when most is needed.
std::vector<config::MemoryHolder> holders_of(const MemorySnapshot& snapshot);

// While true, allocators note who held memory when most was in use.
void track_memory_peaks(bool on);
// What was alive then: as of the first time that memory was freed after it.
std::vector<config::MemoryHolder> holders_at_peak(Allocator& allocator);

// docs/json.md, "Memory snapshots". `asked`: bytes that were not to be had; 0:
// nothing was.
std::string snapshot_json(const MemorySnapshot& snapshot, const Device& device,
                          size_t asked);
// Writes the file. Throws errors::InvalidArgument.
void write_snapshot(const MemorySnapshot& snapshot, const Device& device,
                    size_t asked, const std::string& path);
// Where errors write from now on; "": as the environment says.
void snapshot_path(const std::string& path);
// The end of a full device's error: where its snapshot is, or how to get one.
std::string snapshot_note(const MemorySnapshot& snapshot, const Device& device,
                          size_t asked);

}  // namespace berth

#endif  // BERTH_DEVICE_MEMORY_SNAPSHOT_H_
