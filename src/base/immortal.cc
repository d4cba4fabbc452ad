#include "base/immortal.h"

namespace berth {

namespace {

struct AtEnd {
  void (*call)();
  std::unique_ptr<AtEnd> before;
};

// Without a destructor: after the end of the thread it is a list for good.
constinit thread_local AtEnd* t_last = nullptr;

struct ThreadEnd {
  ~ThreadEnd() {
    while (t_last != nullptr) {
      const std::unique_ptr<AtEnd> last(t_last);
      t_last = last->before.release();
      last->call();
    }
  }
};

}  // namespace

void at_thread_end(void (*end)()) {
  t_last =
      std::make_unique<AtEnd>(end, std::unique_ptr<AtEnd>(t_last)).release();
  static thread_local ThreadEnd thread_end;
  static_cast<void>(&thread_end);
}

}  // namespace berth
