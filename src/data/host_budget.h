// The cores and bytes that the stages of all pipelines of the process share.
//
// Cores are those of the host's threads (device/engine_thread.h), never those
// of another device; bytes are config::set_host_memory_budget(). A stage that
// AUTOTUNE sizes asks before it grows; one that was told its size counts, but
// is not refused. Thread-safe; a claim belongs to one stage.

#ifndef BERTH_DATA_HOST_BUDGET_H_
#define BERTH_DATA_HOST_BUDGET_H_

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>

namespace berth::data {

// Threads of one stage that compute.
class CoreClaim {
 public:
  // told > 0: so many. 0: AUTOTUNE, which begins with one.
  explicit CoreClaim(int told);
  ~CoreClaim();
  CoreClaim(const CoreClaim&) = delete;
  CoreClaim& operator=(const CoreClaim&) = delete;

  // Takes one more; false when all cores are taken.
  bool grow();
  void shrink();
  int held() const { return held_; }
  // Whether another stage was refused a core since one was given back.
  static bool wanted();
  static int in_use();
  static int available();

 private:
  int held_;
};

// Bytes of one stage that are ready to be read.
class ByteClaim {
 public:
  ByteClaim() = default;
  ~ByteClaim() { set(0); }
  ByteClaim(const ByteClaim&) = delete;
  ByteClaim& operator=(const ByteClaim&) = delete;

  void set(size_t bytes);
  // False, and no change, when the budget has no room for more.
  bool try_set(size_t bytes);
  static size_t in_use();

 private:
  size_t held_ = 0;
};

// What the passes of one node have done: for explain(). Relaxed counters.
struct StageStats {
  std::atomic<int64_t> elements{0};
  std::atomic<int64_t> waits{0};  // of the reader
  std::atomic<int64_t> wait_ns{0};
  std::atomic<int64_t> timed{0};  // calls of the function that were timed
  std::atomic<int64_t> timed_ns{0};
  std::atomic<int64_t> size{0};         // threads, or depth, last chosen
  std::atomic<int64_t> bytes{0};        // of one element
  std::atomic<const char*> why{""};     // the size is not larger; static
  std::atomic<const char*> manner{""};  // how the function runs; static
};

// Says how the function runs that this thread calls for a map.
void note_manner(const char* manner);

inline int64_t stage_clock_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

// "1.5 MiB", "12 us".
std::string bytes_text(size_t bytes);
std::string time_text(double seconds);
// ", 12 elements, the reader waited 3 times, 1.2 ms".
std::string stats_text(const StageStats& stats);

}  // namespace berth::data

#endif  // BERTH_DATA_HOST_BUDGET_H_
