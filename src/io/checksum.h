// checksum: CRC-32C (Castagnoli, RFC 3720) of bytes. Pure.

#ifndef BERTH_IO_CHECKSUM_H_
#define BERTH_IO_CHECKSUM_H_

#include <cstddef>
#include <cstdint>

namespace berth::io {

// Returns the checksum of the bytes that `before` is the checksum of, then
// these.
uint32_t checksum(const void* bytes, size_t size, uint32_t before = 0);

// Returns the checksum of bytes that have the checksum `first`, then others,
// so many, that have `second`.
uint32_t joined_checksum(uint32_t first, uint32_t second,
                         uint64_t second_bytes);

}  // namespace berth::io

#endif  // BERTH_IO_CHECKSUM_H_
