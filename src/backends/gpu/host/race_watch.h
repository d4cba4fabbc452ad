// RaceWatch: finds two items of a launch that touch the same byte, one of them
// writing, where nothing orders them.
//
// What orders items is a barrier of their group, and that for memory of the
// group alone: BARRIER is a fence of no other memory in OpenCL. So no order of
// execution is needed to find a race, and none can hide it. Atomic operations
// are not watched. One launch at a time in a process.

#ifndef BERTH_BACKENDS_GPU_HOST_RACE_WATCH_H_
#define BERTH_BACKENDS_GPU_HOST_RACE_WATCH_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "backends/gpu/host/host_code.h"

namespace berth::gpu {

class RaceWatch {
 public:
  // Starts a launch of `code`.
  void begin(const HostCode& code);
  // Watches the memory of argument `index`, which may overlap others'.
  void add(int index, const void* begin, size_t bytes);
  // What it found; "": nothing. Ends the launch.
  std::string end();

  // What the kernel calls (host_words.h). Of a watch that has begun.
  static void touch(const void* p, unsigned bytes, int writes);
  static void see_local(const void* begin, unsigned bytes, const char* name);
  // Items of a group have met; or another group begins.
  static void new_section();

 private:
  // Who has touched a byte since `epoch` began.
  struct Cell {
    uint32_t epoch = 0;
    uint32_t writer = 0, reader = 0;  // number of the item; 0: none
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
  std::string found_;  // the first
};

}  // namespace berth::gpu

#endif  // BERTH_BACKENDS_GPU_HOST_RACE_WATCH_H_
