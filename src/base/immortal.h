// Static objects that are never destroyed, and objects that each thread has.
//
// Threads of the engine and of the program run on while exit() destroys what
// is static: nothing that they may touch can have a destructor. So everything
// static in libberth that has one is made by immortal(), and every object of a
// thread by of_this_thread(). Any thread.

#ifndef BERTH_BASE_IMMORTAL_H_
#define BERTH_BASE_IMMORTAL_H_

#include <memory>
#include <utility>

namespace berth {

// Makes an object that is never destroyed, for the initializer of a static
// reference: `static auto& table = immortal<Table>();`.
template <class T, class... Args>
T& immortal(Args&&... args) {
  return *std::make_unique<T>(std::forward<Args>(args)...).release();
}

// Calls `end` when the calling thread ends, the last that was given first.
void at_thread_end(void (*end)());

// The calling thread's object of type T, made when it is first asked for and
// destroyed when the thread ends. A later request, as by a static object that
// exit() destroys on the main thread, makes a new one that stays. The thread's
// own block of memory, which is small when a program opens the library at run
// time, holds a pointer alone.
template <class T>
T& of_this_thread() {
  static constinit thread_local T* object = nullptr;
  if (object != nullptr) [[likely]]
    return *object;
  object = &immortal<T>();
  at_thread_end(
      [] { std::default_delete<T>()(std::exchange(object, nullptr)); });
  return *object;
}

}  // namespace berth

#endif  // BERTH_BASE_IMMORTAL_H_
