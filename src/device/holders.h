// Holders: names for what holds memory, for the error of a device that has no
// more and for reports.
//
// Blocks can be given the name of the op, the variable or the plan that they
// belong to, and the user's line. The error of a full device lists the names
// that hold most; snapshots list all (memory_snapshot.h). Naming a block is a
// comparison and three stores. Thread-safe.

#ifndef BERTH_DEVICE_HOLDERS_H_
#define BERTH_DEVICE_HOLDERS_H_

#include <atomic>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "berth/site.h"
#include "device/block.h"

namespace berth {

// What allocators hand out: their Block* is this. The owner writes the names,
// anybody reads them.
struct HeldBlock {
  Block block;
  std::atomic<const char*> holder{nullptr};  // null: no name was given
  std::atomic<const char*> file{nullptr};    // of the holder's site
  std::atomic<int> line{0};
  std::atomic<bool> idle{false};  // kept for later, nothing is alive in it
};

// Says what holds `block` until it is given back, and which line of the user
// made it; nothing for memory of somebody else. `name` is never freed.
inline void name_holder(Block* block, const char* name, Site site = {}) {
  if (block->allocator == nullptr) return;
  auto* held = reinterpret_cast<HeldBlock*>(block);
  held->file.store(site.file, std::memory_order_relaxed);
  held->line.store(site.line, std::memory_order_relaxed);
  held->holder.store(name, std::memory_order_relaxed);
}

// Returns `text` as a name that is never freed. The process keeps a few
// thousand of them, each once; then it is `otherwise`.
const char* lasting_name(std::string_view text, const char* otherwise);

// What lives in a block of several tensors, an arena's.
struct HolderPart {
  std::string name;
  Site site = {};
  size_t offset = 0, bytes = 0;
};
// Says what lives under a lasting name; the last call counts.
void set_holder_parts(const char* name, std::vector<HolderPart> parts);
std::vector<HolderPart> holder_parts(const char* name);

// So many bytes in so many blocks of one name; null: no name was given.
struct Holder {
  const char* name = nullptr;
  size_t bytes = 0;
  int blocks = 1;
};

// Returns lines for an error, each with a line break before it: the names that
// hold most, at most six, the others together; "" when nothing is held.
std::string holders_text(const std::vector<Holder>& blocks);

}  // namespace berth

#endif  // BERTH_DEVICE_HOLDERS_H_
