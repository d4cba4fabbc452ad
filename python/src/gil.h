// gil: the lock of the interpreter and the threads of the engine.
//
// Nothing waits for a thread of the engine with the lock held, and nothing of
// the engine runs Python once the interpreter ends: Gil is how the engine takes
// the lock and Free how a call gives it up (nanobind's own would be unwound
// through, which aborts). Both pass one gate, which closes when the interpreter
// begins to end. From then on Gil throws errors::Cancelled, a thread that comes
// back to Python sleeps for ever, and handles are left to the end of the
// process, as they are in the child of a fork, which lacks the threads.

#ifndef BERTH_PYTHON_GIL_H_
#define BERTH_PYTHON_GIL_H_

#include <nanobind/nanobind.h>

#include <memory>
#include <new>
#include <utility>

namespace berth::python {

class Gil {
 public:
  Gil();
  // False, and without the lock, after the end has begun: for destructors.
  explicit Gil(std::nothrow_t) noexcept;
  ~Gil();
  Gil(const Gil&) = delete;
  Gil& operator=(const Gil&) = delete;
  explicit operator bool() const { return thread_ != nullptr; }

 private:
  PyGILState_STATE state_ = PyGILState_UNLOCKED;
  PyThreadState* thread_ = nullptr;
};

class Free {
 public:
  Free();
  ~Free();
  Free(const Free&) = delete;
  Free& operator=(const Free&) = delete;

 private:
  PyThreadState* thread_;
};

template <class Fn>
auto freely(const Fn& fn) {
  const Free free;
  return fn();
}

// Closes the gate; waits a moment for threads inside. Holds the GIL.
void begin_to_end();
// In the child of a fork: the threads of the engine are the parent's.
void strand();
bool is_stranded();
// True when nothing may be waited for.
bool is_left();

// Destroys what a handle holds. `always`: what has to be written, also at the
// end.
template <class T>
void end_handle(T& handle, bool always = false) noexcept {
  if (is_left() && !always) return;
  const Free free;
  handle.~T();
}

// A member of a class of its own that nanobind destroys.
template <class T>
class Handle {
 public:
  template <class... Args>
  explicit Handle(Args&&... args) {
    new (&value_) T(std::forward<Args>(args)...);
  }
  ~Handle() { end_handle(value_); }
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;
  T& operator*() { return value_; }
  T* operator->() { return &value_; }

 private:
  union {
    T value_;
  };
};

}  // namespace berth::python

// Has nanobind destroy a class of the engine so.
#define BERTH_PYTHON_HANDLE(T, always)                               \
  template <>                                                        \
  inline void nanobind::detail::wrap_destruct<T>(void* p) noexcept { \
    berth::python::end_handle(*static_cast<T*>(p), always);          \
  }

#endif  // BERTH_PYTHON_GIL_H_
