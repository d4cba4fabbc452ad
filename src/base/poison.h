// Poisoning: tells AddressSanitizer which bytes of ours nobody may touch.
//
// Memory that the engine keeps for later (cached blocks, dead ranges of an
// arena) is mapped, so only this shows who still reads it. In other builds
// the functions do nothing and cost nothing. Thread-safe.

#ifndef BERTH_BASE_POISON_H_
#define BERTH_BASE_POISON_H_

#include <cstddef>

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define BERTH_POISONS 1
#endif
#elif defined(__SANITIZE_ADDRESS__)
#define BERTH_POISONS 1
#endif

#ifdef BERTH_POISONS
#include <sanitizer/asan_interface.h>
#endif

namespace berth {

#ifdef BERTH_POISONS

inline constexpr bool kPoisons = true;

inline void poison(const void* data, size_t bytes) {
  __asan_poison_memory_region(data, bytes);
}
inline void unpoison(const void* data, size_t bytes) {
  __asan_unpoison_memory_region(data, bytes);
}
inline bool is_poisoned(const void* byte) {
  return __asan_address_is_poisoned(byte) != 0;
}

#else

// True in builds that check: guard work that only prepares for poisoning.
inline constexpr bool kPoisons = false;

inline void poison(const void*, size_t) {}
inline void unpoison(const void*, size_t) {}
inline bool is_poisoned(const void*) { return false; }

#endif

}  // namespace berth

#endif  // BERTH_BASE_POISON_H_
