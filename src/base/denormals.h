// FlushDenormals: CPU arithmetic that takes denormal numbers for 0.
//
// Moments of a parameter whose gradient stays 0 decay to denormal numbers and
// stay there; each operation on one takes over a hundred cycles. TensorFlow's
// kernels run so too. It is a state of the calling thread.

#ifndef BERTH_BASE_DENORMALS_H_
#define BERTH_BASE_DENORMALS_H_

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace berth {

// From here to the end of the scope; false: denormal numbers are numbers.
class FlushDenormals {
 public:
  explicit FlushDenormals(bool flush = true) : before_(state()) {
    const unsigned wanted = flush ? before_ | kFlush : before_ & ~kFlush;
    changed_ = wanted != before_;
    if (changed_) set(wanted);
  }
  ~FlushDenormals() {
    if (changed_) set(before_);
  }
  FlushDenormals(const FlushDenormals&) = delete;
  FlushDenormals& operator=(const FlushDenormals&) = delete;

  static void for_this_thread() { set(state() | kFlush); }

 private:
#if defined(__x86_64__)
  static constexpr unsigned kFlush = 0x8040;  // results and operands
  static unsigned state() { return _mm_getcsr(); }
  static void set(unsigned state) { _mm_setcsr(state); }
#else
  static constexpr unsigned kFlush = 0;
  static unsigned state() { return 0; }
  static void set(unsigned) {}
#endif

  const unsigned before_;
  bool changed_;
};

}  // namespace berth

#endif  // BERTH_BASE_DENORMALS_H_
