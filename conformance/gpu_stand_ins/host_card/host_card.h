// HostCard: a card for tests. Its kernels are functions of the processor,
// compiled with sanitizers from the text that GPUs get (IS_CPU is 0).
//
// Commands end before they return. A process runs one launch or copy at a time.
// BERTH_GPU_HOST_SEED seeds a random order of items and groups; 0: in order.

#ifndef BERTH_BACKENDS_GPU_HOST_HOST_CARD_H_
#define BERTH_BACKENDS_GPU_HOST_HOST_CARD_H_

#include <memory>
#include <string>

#include "backends/gpu/card.h"
#include "conformance/gpu_stand_ins/host_card/host_memory.h"
#include "conformance/gpu_stand_ins/host_card/item_runner.h"
#include "conformance/gpu_stand_ins/host_card/race_watch.h"

namespace berth::gpu {

class HostCard final : public Card {
 public:
  explicit HostCard(uint64_t seed, HostCheck check = host_check());
  ~HostCard() override { forget_modules(); }

  std::unique_ptr<Queue> make_queue() override;
  std::unique_ptr<MemorySource> memory_source() override {
    return host_memory_source_of(memory_);
  }

  // Calls a kernel for every item. Throws errors::Internal when arguments or
  // groups do not match the kernel, and as ItemRunner does.
  void run(const HostCode& code, const Grid& grid, const KernelArg* args,
           int num_args);
  void copy(const Copy& copy);
  void fill(void* target, int value, size_t bytes);

 protected:
  std::unique_ptr<Module> compile(const std::string& text) override;

 private:
  const HostCheck check_;
  HostMemory memory_;
  ItemRunner items_;
  RaceWatch races_;
};

}  // namespace berth::gpu

#endif  // BERTH_BACKENDS_GPU_HOST_HOST_CARD_H_
