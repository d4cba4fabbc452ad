#include "base/intern.h"

#include <mutex>
#include <unordered_set>

#include "base/immortal.h"

namespace berth {

const char* intern(std::string name) {
  static std::mutex mutex;
  static auto& names = immortal<std::unordered_set<std::string>>();
  std::lock_guard lock(mutex);
  return names.insert(std::move(name)).first->c_str();
}

}  // namespace berth
