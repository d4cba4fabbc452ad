// FlushDenormals: CPU arithmetic that takes denormal numbers for 0, in a scope.
//
// Moments of a parameter whose gradient stays 0 decay to denormal numbers and
// stay there; each operation on one takes over a hundred cycles. It is a state
// of the calling thread.

#ifndef BERTH_BASE_DENORMALS_H_
#define BERTH_BASE_DENORMALS_H_

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace berth {

class FlushDenormals {
 public:
#if defined(__x86_64__)
  FlushDenormals() : before_(_mm_getcsr()) {
    constexpr unsigned kResultsAndOperands = 0x8040;
    _mm_setcsr(before_ | kResultsAndOperands);
  }
  ~FlushDenormals() { _mm_setcsr(before_); }
#else
  FlushDenormals() = default;
#endif
  FlushDenormals(const FlushDenormals&) = delete;
  FlushDenormals& operator=(const FlushDenormals&) = delete;

 private:
  [[maybe_unused]] const unsigned before_ = 0;
};

}  // namespace berth

#endif  // BERTH_BASE_DENORMALS_H_
