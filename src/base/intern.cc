#include "base/intern.h"

#include <memory>
#include <mutex>
#include <unordered_set>

namespace berth {

const char* intern(std::string name) {
  static std::mutex& mutex = *std::make_unique<std::mutex>().release();
  static auto& names =
      *std::make_unique<std::unordered_set<std::string>>().release();
  std::lock_guard lock(mutex);
  return names.insert(std::move(name)).first->c_str();
}

}  // namespace berth
