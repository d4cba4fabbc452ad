// Recycled: objects that are made and destroyed all the time, without asking
// the system for memory each time: what work that is queued carries along.
//
// Thread-safe: one thread may take what another gave back. Keeps at most
// kMost of a type.

#ifndef BERTH_BASE_RECYCLED_H_
#define BERTH_BASE_RECYCLED_H_

#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "base/immortal.h"

namespace berth {

// T has a default constructor and is moved into place.
template <class T>
class Recycled {
 public:
  // Returns an object with that value; the caller gives it back.
  static T* take(T value) {
    Pool& pool = of_process();
    std::unique_ptr<T> object;
    {
      std::lock_guard lock(pool.mutex);
      if (!pool.free.empty()) {
        object = std::move(pool.free.back());
        pool.free.pop_back();
      }
    }
    if (!object) object = std::make_unique<T>();
    *object = std::move(value);
    return object.release();
  }

  // Ends the value, on the calling thread, and keeps the memory.
  static void give_back(T* object) {
    std::unique_ptr<T> owned(object);
    *owned = T();
    Pool& pool = of_process();
    std::lock_guard lock(pool.mutex);
    if (pool.free.size() < kMost) pool.free.push_back(std::move(owned));
  }

 private:
  static constexpr size_t kMost = 256;
  struct Pool {
    Pool() { free.reserve(kMost); }
    std::mutex mutex;
    std::vector<std::unique_ptr<T>> free;
  };
  static Pool& of_process() {
    static auto& pool = immortal<Pool>();
    return pool;
  }
};

}  // namespace berth

#endif  // BERTH_BASE_RECYCLED_H_
