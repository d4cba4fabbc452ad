#include "io/checksum.h"

#include <array>
#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>
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

// The product of two polynomials modulo Castagnoli's; the highest bit is the
// constant term.
uint32_t product_of(uint32_t a, uint32_t b) {
  uint32_t p = 0;
  for (uint32_t bit = 1u << 31; bit != 0; bit >>= 1) {
    if (a & bit) p ^= b;
    b = (b >> 1) ^ (b & 1 ? kCastagnoli : 0);
  }
  return p;
}

#if defined(__x86_64__)

// The instruction takes three cycles, and one can start in each: three parts
// of a block go side by side.
constexpr size_t kPart = 1360;  // bytes; a multiple of 8

// x to the n, as product_of() has polynomials.
constexpr uint32_t power_of_x(size_t n) {
  uint32_t p = 1u << 31;
  for (size_t i = 0; i < n; ++i) p = (p >> 1) ^ (p & 1 ? kCastagnoli : 0);
  return p;
}

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

// Factors for the lower and the upper half of 128 bits that move `bits` on.
struct Factors {
  explicit Factors(size_t bits)
      : low(power_of_x(bits + 31)), high(power_of_x(bits - 33)) {}
  const long long low, high;
};

constexpr size_t kLeastToFold = 1024;

// 256 bytes at a time: what is ahead is multiplied to where the next ones are,
// and added. It takes at least that many bytes and is about three times as fast
// as the instruction.
__attribute__((target("avx512f,avx512vl,vpclmulqdq,pclmul,sse4.2"))) uint32_t
crc_by_folding(const uint8_t* p, size_t n, uint32_t crc) {
  static const Factors by_2048(2048), by_512(512), by_128(128);
  __m512i x[4];
  for (int i = 0; i < 4; ++i) x[i] = _mm512_loadu_si512(p + 64 * i);
  x[0] = _mm512_xor_si512(
      x[0], _mm512_inserti32x4(_mm512_setzero_si512(),
                               _mm_cvtsi32_si128(static_cast<int>(crc)), 0));
  __m512i by =
      _mm512_set4_epi64(by_2048.high, by_2048.low, by_2048.high, by_2048.low);
  for (n -= 256, p += 256; n >= 256; n -= 256, p += 256) {
    for (int i = 0; i < 4; ++i) {
      x[i] = _mm512_ternarylogic_epi64(_mm512_clmulepi64_epi128(x[i], by, 0x00),
                                       _mm512_clmulepi64_epi128(x[i], by, 0x11),
                                       _mm512_loadu_si512(p + 64 * i), 0x96);
    }
  }
  by = _mm512_set4_epi64(by_512.high, by_512.low, by_512.high, by_512.low);
  for (int i = 1; i < 4; ++i) {
    x[i] = _mm512_ternarylogic_epi64(
        _mm512_clmulepi64_epi128(x[i - 1], by, 0x00),
        _mm512_clmulepi64_epi128(x[i - 1], by, 0x11), x[i], 0x96);
  }
  const __m128i last = _mm_set_epi64x(by_128.high, by_128.low);
  __m128i lane[4];
  _mm512_storeu_si512(lane, x[3]);
  for (int i = 1; i < 4; ++i) {
    lane[i] = _mm_xor_si128(
        lane[i], _mm_xor_si128(_mm_clmulepi64_si128(lane[i - 1], last, 0x00),
                               _mm_clmulepi64_si128(lane[i - 1], last, 0x11)));
  }
  uint64_t word[2];
  std::memcpy(word, &lane[3], sizeof word);
  crc =
      static_cast<uint32_t>(_mm_crc32_u64(_mm_crc32_u64(0, word[0]), word[1]));
  return crc_by_instruction(p, n, crc);
}

#endif

}  // namespace

uint32_t checksum(const void* bytes, size_t size, uint32_t before) {
  const auto* p = static_cast<const uint8_t*>(bytes);
#if defined(__x86_64__)
  static const bool has = __builtin_cpu_supports("sse4.2");
  static const bool folds = has && __builtin_cpu_supports("avx512f") &&
                            __builtin_cpu_supports("avx512vl") &&
                            __builtin_cpu_supports("vpclmulqdq") &&
                            __builtin_cpu_supports("pclmul");
  if (folds && size >= kLeastToFold) return ~crc_by_folding(p, size, ~before);
  if (has) return ~crc_by_instruction(p, size, ~before);
#endif
  return ~crc_of_bytes(p, size, ~before);
}

uint32_t joined_checksum(uint32_t first, uint32_t second,
                         uint64_t second_bytes) {
  uint32_t zeros = 1u << 31, power = 1u << 23;  // x^0; x^8: one zero byte
  for (uint64_t n = second_bytes; n > 0; n >>= 1) {
    if (n & 1) zeros = product_of(power, zeros);
    power = product_of(power, power);
  }
  return product_of(zeros, first) ^ second;
}

}  // namespace berth::io
