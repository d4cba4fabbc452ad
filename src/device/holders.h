// Holders: names for what holds memory, for the error of a device that has no
// more.
//
// Large blocks (above Allocator::kSmallLimit) can be given the name of the op,
// the variable or the plan that they belong to; the error of a full device
// lists the names that hold most. Naming a block is a comparison, and one
// store for large ones. Thread-safe.

#ifndef BERTH_DEVICE_HOLDERS_H_
#define BERTH_DEVICE_HOLDERS_H_

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "device/block.h"
#include "device/size_classes.h"

namespace berth {

// Says what holds `block` until it is given back; nothing for small blocks and
// memory of somebody else. `name` is never freed.
void name_large_block(Block* block, const char* name) noexcept;
inline void name_holder(Block* block, const char* name) noexcept {
  if (block->size_class == kLargeClass) [[unlikely]]
    name_large_block(block, name);
}

// Returns `text` as a name that is never freed. The process keeps a few
// thousand of them, each once; then it is `otherwise`.
const char* lasting_name(std::string_view text, const char* otherwise);

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
