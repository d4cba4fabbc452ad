// Size classes of small blocks: multiples of 64 B up to 256 B, then four per
// doubling up to Allocator::kSmallLimit. Pure functions.

#ifndef BERTH_DEVICE_SIZE_CLASSES_H_
#define BERTH_DEVICE_SIZE_CLASSES_H_

#include <bit>
#include <cstddef>
#include <cstdint>

namespace berth {

inline constexpr int kLargeClass = -1;
inline constexpr int kNumSizeClasses = 4 + 12 * 4;  // up to 1 MiB

// Returns the class whose blocks hold `bytes` (1 <= bytes <= 1 MiB).
inline int size_class_of(size_t bytes) {
  const uint64_t units = (bytes + 63) / 64;
  if (units <= 4) return units == 0 ? 0 : static_cast<int>(units) - 1;
  const int log = 63 - std::countl_zero(units - 1);   // 2^log < units
  const uint64_t quarter = (units - 1) >> (log - 2);  // 4..7
  return 4 + (log - 2) * 4 + static_cast<int>(quarter - 4);
}

// Returns the bytes of a block of class `c`.
inline size_t size_class_bytes(int c) {
  if (c < 4) return static_cast<size_t>(c + 1) * 64;
  const int log = (c - 4) / 4 + 2;
  const uint64_t quarter = static_cast<uint64_t>((c - 4) % 4) + 5;
  return (quarter << (log - 2)) * 64;
}

}  // namespace berth

#endif  // BERTH_DEVICE_SIZE_CLASSES_H_
