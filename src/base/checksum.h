// Checksums of what ops compute, while a recording wants them. Thread-safe.

#ifndef BERTH_BASE_CHECKSUM_H_
#define BERTH_BASE_CHECKSUM_H_

#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>

#include "base/timeline.h"

namespace berth {

// Set while the timeline is recorded with checksums.
inline std::atomic<bool> g_checksums{false};

// Adds bytes to a checksum; another order of the bytes gives another one.
inline uint64_t checksum(const void* data, size_t size, uint64_t before = 0) {
  constexpr uint64_t kFirst = 0x9e3779b97f4a7c15, kSecond = 0xbf58476d1ce4e5b9;
  uint64_t sum = before ^ (size * kFirst);
  const auto* at = static_cast<const char*>(data);
  while (size > 0) {
    uint64_t word = 0;
    const size_t n = size < sizeof word ? size : sizeof word;
    std::memcpy(&word, at, n);
    sum = std::rotl(sum ^ (word * kFirst), 29) * kSecond;
    at += n;
    size -= n;
  }
  return sum ^ (sum >> 32);
}

// Adds a result of an op to the timeline: its checksum, and from what to what
// its numbers go; least > most: it has none.
inline void record_checksum(const std::string& name, Site site, uint64_t sum,
                            double least, double most) {
  const double at = host_clock_us();
  const auto add = [&](const char* kind, uint64_t bits) {
    timeline::add({at, at, timeline::type_of("checksums", name, kind, site), 0,
                   static_cast<int64_t>(bits)});
  };
  add("checksum", sum);
  if (least > most) return;
  add("least", std::bit_cast<uint64_t>(least));
  add("most", std::bit_cast<uint64_t>(most));
}

}  // namespace berth

#endif  // BERTH_BASE_CHECKSUM_H_
