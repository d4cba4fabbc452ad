#include "io/checksum.h"

#include <array>
#include <cstring>

#if defined(__x86_64__)
#include <nmmintrin.h>
#endif

namespace berth::io {

namespace {

constexpr uint32_t kCastagnoli = 0x82F63B78u;  // reflected

constexpr std::array<uint32_t, 256> crc_table() {
  std::array<uint32_t, 256> table{};
  for (uint32_t i = 0; i < 256; ++i) {
    uint32_t c = i;
    for (int bit = 0; bit < 8; ++bit) c = (c >> 1) ^ (c & 1 ? kCastagnoli : 0);
    table[i] = c;
  }
  return table;
}

uint32_t crc_of_bytes(const uint8_t* p, size_t n, uint32_t crc) {
  static constexpr std::array<uint32_t, 256> kTable = crc_table();
  for (; n > 0; --n) crc = (crc >> 8) ^ kTable[(crc ^ *p++) & 0xFF];
  return crc;
}

#if defined(__x86_64__)

// The instruction takes three cycles, and one can start in each: three parts
// of a block go side by side.
constexpr size_t kPart = 1360;  // bytes; a multiple of 8

// What so many zero bytes do to a checksum, by its four bytes.
struct Shift {
  uint32_t table[4][256];
};

constexpr uint32_t times_zeros(uint32_t crc, size_t bytes) {
  for (size_t i = 0; i < 8 * bytes; ++i) {
    crc = (crc >> 1) ^ (crc & 1 ? kCastagnoli : 0);
  }
  return crc;
}

Shift make_shift(size_t bytes) {
  uint32_t of_bit[32];
  for (int b = 0; b < 32; ++b) of_bit[b] = times_zeros(1u << b, bytes);
  Shift s{};
  for (int k = 0; k < 4; ++k) {
    for (uint32_t v = 0; v < 256; ++v) {
      for (int b = 0; b < 8; ++b) {
        if (v >> b & 1) s.table[k][v] ^= of_bit[8 * k + b];
      }
    }
  }
  return s;
}

uint32_t shifted(const Shift& s, uint32_t crc) {
  return s.table[0][crc & 0xFF] ^ s.table[1][crc >> 8 & 0xFF] ^
         s.table[2][crc >> 16 & 0xFF] ^ s.table[3][crc >> 24];
}

uint64_t word_at(const uint8_t* p) {
  uint64_t word;
  std::memcpy(&word, p, sizeof word);
  return word;
}

__attribute__((target("sse4.2"))) uint32_t crc_by_instruction(const uint8_t* p,
                                                              size_t n,
                                                              uint32_t crc) {
  static const Shift part = make_shift(kPart);
  uint64_t a = crc;
  for (; n >= 3 * kPart; n -= 3 * kPart, p += 3 * kPart) {
    uint64_t b = 0, c = 0;
    for (size_t i = 0; i < kPart; i += 8) {
      a = _mm_crc32_u64(a, word_at(p + i));
      b = _mm_crc32_u64(b, word_at(p + kPart + i));
      c = _mm_crc32_u64(c, word_at(p + 2 * kPart + i));
    }
    b ^= shifted(part, static_cast<uint32_t>(a));
    a = c ^ shifted(part, static_cast<uint32_t>(b));
  }
  for (; n >= 8; n -= 8, p += 8) a = _mm_crc32_u64(a, word_at(p));
  crc = static_cast<uint32_t>(a);
  for (; n > 0; --n) crc = _mm_crc32_u8(crc, *p++);
  return crc;
}

#endif

}  // namespace

uint32_t checksum(const void* bytes, size_t size, uint32_t before) {
  const auto* p = static_cast<const uint8_t*>(bytes);
#if defined(__x86_64__)
  static const bool has = __builtin_cpu_supports("sse4.2");
  if (has) return ~crc_by_instruction(p, size, ~before);
#endif
  return ~crc_of_bytes(p, size, ~before);
}

}  // namespace berth::io
