// ItemRunner: runs the groups of a kernel launch. Each item is a function call;
// items that meet at a barrier are fibers of the calling thread.
//
// Between two barriers the items of a group run one after another, and so do
// the groups: in order with seed 0, else in a random order, which exposes
// results that depend on an order that cards do not guarantee. One run at a
// time in a process.

#ifndef BERTH_BACKENDS_GPU_HOST_ITEM_RUNNER_H_
#define BERTH_BACKENDS_GPU_HOST_ITEM_RUNNER_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "backends/gpu/card.h"
#include "conformance/gpu_stand_ins/host_card/host_code.h"

namespace berth::gpu {

class ItemRunner {
 public:
  explicit ItemRunner(uint64_t seed);
  ~ItemRunner();
  ItemRunner(const ItemRunner&) = delete;
  ItemRunner& operator=(const ItemRunner&) = delete;

  // Throws errors::Internal when items of a group wait at different barriers,
  // or some end while others wait; the group is then abandoned.
  void run(const HostCode& code, const Grid& grid, void* const* args);

 private:
  struct Fiber;
  static void enter();
  static void wait(int place);

  void run_group(const HostCode& code, void* const* args);
  // Runs items in the fiber until one waits or all are done.
  void resume(Fiber& fiber);
  void leave(Fiber& fiber);
  void fiber_loop(Fiber& fiber);
  void check_barrier(const HostCode& code, size_t items);
  Fiber& spare();
  void shuffle(std::vector<Fiber*>& fibers);
  uint64_t draw(uint64_t below);

  uint64_t state_;
  const bool shuffles_;
  const HostCode* code_ = nullptr;  // of the running group
  void* const* args_ = nullptr;
  std::vector<int> order_;  // of items
  size_t next_ = 0;
  std::vector<std::unique_ptr<Fiber>> fibers_;
  std::vector<Fiber*> spare_, waiting_;
  void* own_stack_ = nullptr;  // saved registers of the caller
  const void* own_bottom_ = nullptr;
  size_t own_bytes_ = 0;
};

}  // namespace berth::gpu

#endif  // BERTH_BACKENDS_GPU_HOST_ITEM_RUNNER_H_
