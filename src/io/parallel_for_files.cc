#include "io/parallel_for_files.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

#include "base/core_set.h"

namespace berth::io {

namespace {

constexpr size_t kBytesPerThread = size_t{4} << 20;
constexpr size_t kMostThreads = 4;

}  // namespace

void parallel_for(size_t items, size_t bytes,
                  const std::function<void(size_t)>& fn) {
  if (items <= 1 || bytes < kBytesPerThread) {
    for (size_t i = 0; i < items; ++i) fn(i);
    return;
  }
  std::atomic<size_t> next{0};
  std::mutex mutex;
  std::exception_ptr error;
  const auto work = [&] {
    try {
      for (size_t i; (i = next.fetch_add(1)) < items;) fn(i);
    } catch (...) {
      next = items;
      const std::lock_guard lock(mutex);
      if (!error) error = std::current_exception();
    }
  };
  const size_t cores = static_cast<size_t>(CoreSet::allowed().size());
  const size_t count =
      std::min({kMostThreads, cores, items, bytes / kBytesPerThread + 1});
  std::vector<std::thread> others;
  try {
    for (size_t i = 1; i < count; ++i) others.emplace_back(work);
  } catch (const std::system_error&) {
    // The existing threads do it.
  }
  work();
  for (std::thread& t : others) t.join();
  if (error) std::rethrow_exception(error);
}

}  // namespace berth::io
