// machine_memory: how much memory the machine, or the control groups that this
// process is in, have left. Reads files of the system. Thread-safe.

#ifndef BERTH_DEVICE_MACHINE_MEMORY_H_
#define BERTH_DEVICE_MACHINE_MEMORY_H_

#include <cstddef>
#include <string>
#include <string_view>

namespace berth {

// Returns the bytes that can still be taken before the system ends processes:
// the least of what the machine and each control group has left; page cache
// that can go counts as left. 0: nobody knows. `root` stands for "/" (tests).
size_t memory_left_bytes(const std::string& root = "");

class Allocator;

// Remembers that the limit of `a` is the default one, and asks whether that is
// still so of its `limit` bytes.
void note_default_limit(const Allocator& a);
bool has_default_limit(const Allocator& a, size_t limit);

// What a CPU device may take by itself of `left` bytes: all but a margin of a
// sixteenth, at least 128 MiB, for the program itself, in whole MiB. 0 of 0.
size_t default_cpu_limit_bytes(size_t left);

// No limit at all, where 0 means the default one.
inline constexpr size_t kNoMemoryLimit = ~size_t{0};

// Returns what BERTH_CPU_MEMORY says: "12GiB", "512MiB", "1048576", or "none",
// which is kNoMemoryLimit; 0 for "". Throws errors::InvalidArgument.
size_t parse_memory_limit(std::string_view what, std::string_view text);

}  // namespace berth

#endif  // BERTH_DEVICE_MACHINE_MEMORY_H_
