// Scratch: memory of one run of a kernel, kept for the next.
//
// A warm run asks no system allocator: what a thread gives back it gets again.
// Each thread keeps at most 64 MiB. Thread-safe; memory may be given back by
// another thread.

#ifndef BERTH_BACKENDS_REFERENCE_SCRATCH_H_
#define BERTH_BACKENDS_REFERENCE_SCRATCH_H_

#include <cstddef>
#include <vector>

namespace berth::reference {

// Returns at least `bytes`, aligned for any element type; throws
// std::bad_alloc.
void* take_scratch(size_t bytes);
// `bytes` as asked for.
void return_scratch(void* memory, size_t bytes) noexcept;

// For containers of a kernel.
template <class T>
struct ScratchAllocator {
  using value_type = T;
  ScratchAllocator() = default;
  template <class U>
  ScratchAllocator(const ScratchAllocator<U>&) {}  // NOLINT: as containers do

  T* allocate(size_t n) { return static_cast<T*>(take_scratch(n * sizeof(T))); }
  void deallocate(T* p, size_t n) noexcept { return_scratch(p, n * sizeof(T)); }
  template <class U>
  bool operator==(const ScratchAllocator<U>&) const {
    return true;
  }
};

template <class T>
using Scratch = std::vector<T, ScratchAllocator<T>>;

}  // namespace berth::reference

#endif  // BERTH_BACKENDS_REFERENCE_SCRATCH_H_
