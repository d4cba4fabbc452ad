// Scratch: memory of one run of a kernel, kept for the next.
//
// A warm run makes no system allocation: a thread gets back what it returned.
// Each thread keeps at most 64 MiB. Thread-safe; another thread may return the
// memory.

#ifndef BERTH_BACKENDS_REFERENCE_SCRATCH_H_
#define BERTH_BACKENDS_REFERENCE_SCRATCH_H_

#include <cstddef>
#include <vector>

namespace berth::reference {

// Returns at least `bytes`, aligned for any element type; throws
// std::bad_alloc.
void* take_scratch(size_t bytes);
// `bytes` must be the size requested.
void return_scratch(void* memory, size_t bytes) noexcept;

// For a kernel's containers.
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

// n uninitialised elements.
template <class T>
class ScratchArray {
 public:
  explicit ScratchArray(size_t n)
      : bytes_(n * sizeof(T)), data_(static_cast<T*>(take_scratch(bytes_))) {}
  ~ScratchArray() { return_scratch(data_, bytes_); }
  ScratchArray(const ScratchArray&) = delete;
  ScratchArray& operator=(const ScratchArray&) = delete;
  T* get() const { return data_; }

 private:
  const size_t bytes_;
  T* const data_;
};

}  // namespace berth::reference

#endif  // BERTH_BACKENDS_REFERENCE_SCRATCH_H_
