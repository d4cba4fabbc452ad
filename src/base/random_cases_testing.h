// How many random cases a test draws. Tests only.

#ifndef BERTH_BASE_RANDOM_CASES_TESTING_H_
#define BERTH_BASE_RANDOM_CASES_TESTING_H_

#include <algorithm>

extern "C" __attribute__((weak)) void __asan_init();

namespace berth::testing {

// Returns how many of `count` random cases to try: under AddressSanitizer,
// where each takes twenty times as long and runs the same code, a tenth.
inline int random_cases(int count) {
  return &__asan_init == nullptr ? count : std::max(1, count / 10);
}

}  // namespace berth::testing

#endif  // BERTH_BASE_RANDOM_CASES_TESTING_H_
