#include "gil.h"

#include <unistd.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "berth/errors.h"

namespace berth::python {

namespace {

std::atomic<bool> g_closed{false}, g_stranded{false};
std::atomic<int> g_inside{0};  // threads that run Python, or are about to
// The thread that ends the interpreter goes on with it and may enter again.
constinit thread_local bool t_ends = false;
constinit thread_local int t_depth = 0;

bool enter() {
  ++g_inside;
  if (!g_closed || t_ends || t_depth > 0) return true;
  --g_inside;
  return false;
}

[[noreturn]] void sleep_for_ever() {
  for (;;) pause();
}

// CPython ends a thread that wants the lock too late by pthread_exit(), which
// unwinds. It gets no further than here: locks of C++ stay as they are, and no
// frame that must not be unwound is.
template <class Fn>
[[gnu::noinline]] auto not_unwound(const Fn& fn) noexcept(false) {
  struct Barrier {
    bool passed = false;
    ~Barrier() noexcept(false) {
      if (!passed) sleep_for_ever();
    }
  } barrier;
  const auto result = fn();
  barrier.passed = true;
  return result;
}

// Whether this thread, whose state is `own`, has the lock.
bool has_lock(PyThreadState* own) {
#ifdef Py_LIMITED_API
  if (!g_closed || t_ends) return true;  // nothing is unwound before the end
  if (PyThreadState_Swap(nullptr) == nullptr) return false;
  PyThreadState_Swap(own);
  return true;
#else
  return _PyThreadState_UncheckedGet() == own;
#endif
}

}  // namespace

Gil::Gil() : Gil(std::nothrow) {
  if (thread_ != nullptr) return;
  throw errors::Cancelled("the Python interpreter is ending");
}

Gil::Gil(std::nothrow_t) noexcept {
  // An interpreter that ends says at once that it is not initialized.
  if (!Py_IsInitialized() || !enter()) return;
  ++t_depth;
  state_ = not_unwound([] { return PyGILState_Ensure(); });
  thread_ = PyThreadState_Get();
}

Gil::~Gil() {
  if (thread_ == nullptr) return;
  // Unwound by CPython: the lock is another thread's.
  if (!has_lock(thread_)) sleep_for_ever();
  not_unwound([this] {
    PyGILState_Release(state_);
    return 0;
  });
  --t_depth;
  --g_inside;
}

Free::Free() : thread_(PyEval_SaveThread()) {}

Free::~Free() {
  if (g_closed.load(std::memory_order_relaxed) && !t_ends && t_depth == 0) {
    sleep_for_ever();
  }
  not_unwound([this] {
    PyEval_RestoreThread(thread_);
    return 0;
  });
}

void begin_to_end() {
  g_closed = true;
  t_ends = true;
  const Free free;
  // A thread in user code that lasts longer is stopped by not_unwound().
  constexpr auto kMost = std::chrono::milliseconds(100);
  const auto until = std::chrono::steady_clock::now() + kMost;
  while (g_inside > 0 && std::chrono::steady_clock::now() < until) {
    std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
}

void strand() {
  g_stranded = true;
  g_inside = t_depth;
}
bool is_stranded() { return g_stranded.load(std::memory_order_relaxed); }
bool is_left() { return g_closed || g_stranded; }

}  // namespace berth::python
