// RaceWatch: finds two items of a launch that access the same byte, at least
// one of them writing, without an order between them.
//
// Only a barrier of their group orders items, and only for the group's memory:
// in OpenCL, BARRIER is not a fence for other memory. So finding a race needs
// no particular order of execution, and no order can hide one. Atomic
// operations are not watched. One launch at a time in a process.

#ifndef BERTH_BACKENDS_GPU_HOST_RACE_WATCH_H_
#define BERTH_BACKENDS_GPU_HOST_RACE_WATCH_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "conformance/gpu_stand_ins/host_card/host_code.h"

namespace berth::gpu {

class RaceWatch {
 public:
  // Starts a launch of `code`.
  void begin(const HostCode& code);
  // Watches the memory of argument `index`, which may overlap that of others.
  void add(int index, const void* begin, size_t bytes);
  // Ends the launch and returns what was found; "": nothing.
  std::string end();

  // Called by the kernel (host_words.h), for the active watch.
  static void touch(const void* p, unsigned bytes, int writes);
  static void see_local(const void* begin, unsigned bytes, const char* name);
  // Called when the items of a group have met, or another group begins.
  static void new_section();

 private:
  // The items that have accessed a byte since `epoch` began.
  struct Cell {
    uint32_t epoch = 0;
    uint32_t writer = 0, reader = 0;  // item number; 0: none
  };
  struct Range {
    uintptr_t begin = 0;
    size_t bytes = 0;
    std::string name;
    bool local = false;
    std::vector<Cell> cells;
  };
  void see(Range& range, size_t first, size_t count, bool writes);
  std::string describe(const Range& range, size_t byte, uint32_t one,
                       uint32_t other, bool both_write) const;
  Range* find(uintptr_t at);

  const HostCode* code_ = nullptr;
  std::vector<std::unique_ptr<Range>> ranges_;
  uint32_t section_ = 1;
  std::string found_;  // the first race
};

}  // namespace berth::gpu

#endif  // BERTH_BACKENDS_GPU_HOST_RACE_WATCH_H_
