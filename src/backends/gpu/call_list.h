// CallList: a Recording for drivers without one: it keeps the calls with their
// arguments and makes them again one by one. For tests of replays.
//
// A queue that records gives its commands to a list instead of its driver.
// Kernels must outlive it. One thread at a time.

#ifndef BERTH_BACKENDS_GPU_CALL_LIST_H_
#define BERTH_BACKENDS_GPU_CALL_LIST_H_

#include <cstddef>
#include <functional>
#include <vector>

#include "backends/gpu/card.h"

namespace berth::gpu {

class CallList final : public Recording {
 public:
  void add_launch(Kernel& kernel, const Grid& grid, const KernelArg* args,
                  int num_args);
  void add_copy(const Copy& copy);
  void add_fill(void* target, int value, size_t bytes);

  void launch(Queue& queue) override {
    for (const auto& call : calls_) call(queue);
  }

 private:
  std::vector<std::function<void(Queue&)>> calls_;
};

}  // namespace berth::gpu

#endif  // BERTH_BACKENDS_GPU_CALL_LIST_H_
