#include "backends/gpu/call_list.h"

#include <cstring>

namespace berth::gpu {

namespace {

// Copies of the arguments.
struct KeptArgs {
  struct Kept {
    size_t offset;
    uint32_t bytes;  // 0: an address
  };
  std::vector<std::byte> values;
  std::vector<Kept> list;

  void add(const KernelArg& arg) {
    constexpr size_t kAlignment = 16;
    const size_t size = arg.bytes == 0 ? sizeof(void*) : arg.bytes;
    const size_t offset =
        (values.size() + kAlignment - 1) / kAlignment * kAlignment;
    values.resize(offset + size);
    std::memcpy(values.data() + offset, arg.value, size);
    list.push_back({offset, arg.bytes});
  }
};

}  // namespace

void CallList::add_launch(Kernel& kernel, const Grid& grid,
                          const KernelArg* args, int num_args) {
  KeptArgs kept;
  for (int i = 0; i < num_args; ++i) kept.add(args[i]);
  calls_.emplace_back([&kernel, grid, kept = std::move(kept)](Queue& queue) {
    std::vector<KernelArg> again;
    for (const auto& k : kept.list) {
      again.push_back({kept.values.data() + k.offset, k.bytes});
    }
    kernel.launch(queue, grid, again.data(), static_cast<int>(again.size()));
  });
}

void CallList::add_copy(const Copy& copy) {
  calls_.emplace_back([copy](Queue& queue) { queue.copy(copy); });
}

void CallList::add_fill(void* target, int value, size_t bytes) {
  calls_.emplace_back([target, value, bytes](Queue& queue) {
    queue.fill(target, value, bytes);
  });
}

}  // namespace berth::gpu
