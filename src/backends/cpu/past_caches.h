// Writes past the caches, for memory that other cores read next.
//
// Writing a line through the caches costs ten times as much when other cores
// hold a copy of it: each store waits until all have dropped theirs. Any
// thread.

#ifndef BERTH_BACKENDS_CPU_PAST_CACHES_H_
#define BERTH_BACKENDS_CPU_PAST_CACHES_H_

#if defined(__x86_64__)
#include <emmintrin.h>
#endif

#include <cstdint>

namespace berth::cpu {

// Copies n floats to `to`, bypassing the caches.
inline void copy_past_caches(float* to, const float* from, int64_t n) {
  int64_t i = 0;
#if defined(__x86_64__)
  constexpr int64_t kLane = 4;
  for (; i < n && reinterpret_cast<uintptr_t>(to + i) % 16 != 0; ++i) {
    to[i] = from[i];
  }
  for (; i + kLane <= n; i += kLane) {
    _mm_stream_ps(to + i, _mm_loadu_ps(from + i));
  }
#endif
  for (; i < n; ++i) to[i] = from[i];
}

// Makes earlier copies visible to other threads before anything written later.
inline void end_past_caches() {
#if defined(__x86_64__)
  _mm_sfence();
#endif
}

}  // namespace berth::cpu

#endif  // BERTH_BACKENDS_CPU_PAST_CACHES_H_
