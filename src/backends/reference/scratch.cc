#include "backends/reference/scratch.h"

#include <array>
#include <bit>
#include <memory>
#include <new>

namespace berth::reference {

namespace {

constexpr size_t kSmallest = 64;
constexpr size_t kMostKept = size_t{64} << 20;

// Free memory in sizes that are powers of two.
class Kept {
 public:
  ~Kept() {
    for (size_t i = 0; i < free_.size(); ++i) {
      while (void* memory = pop(i)) ::operator delete(memory);
    }
  }

  static size_t size_class(size_t bytes) {
    return static_cast<size_t>(
        std::bit_width((bytes - 1) / kSmallest));  // 64: 0, 128: 1
  }

  void* take(size_t bytes) {
    const size_t i = size_class(bytes);
    if (i >= free_.size()) return ::operator new(bytes);
    void* memory = pop(i);
    return memory ? memory : ::operator new(kSmallest << i);
  }

  void give(void* memory, size_t bytes) noexcept {
    const size_t i = size_class(bytes);
    if (i >= free_.size() || held_ + (kSmallest << i) > kMostKept) {
      return ::operator delete(memory);
    }
    held_ += kSmallest << i;
    free_[i] = new (memory) Free{free_[i]};
  }

 private:
  struct Free {
    Free* next;
  };

  void* pop(size_t i) {
    Free* first = free_[i];
    if (first == nullptr) return nullptr;
    free_[i] = first->next;
    held_ -= kSmallest << i;
    return first;
  }

  std::array<Free*, 21> free_{};  // up to 64 MiB
  size_t held_ = 0;
};

constinit thread_local Kept* t_kept = nullptr;
constinit thread_local bool t_ended = false;

// Null while the thread ends: a destructor may still run a kernel.
Kept* kept() {
  struct End {
    ~End() {
      t_ended = true;
      delete t_kept;
      t_kept = nullptr;
    }
  };
  if (t_kept == nullptr && !t_ended) {
    thread_local const End end;
    t_kept = std::make_unique<Kept>().release();
  }
  return t_kept;
}

}  // namespace

void* take_scratch(size_t bytes) {
  if (bytes == 0) bytes = 1;
  Kept* mine = kept();
  return mine ? mine->take(bytes) : ::operator new(bytes);
}

void return_scratch(void* memory, size_t bytes) noexcept {
  if (bytes == 0) bytes = 1;
  if (Kept* mine = kept()) return mine->give(memory, bytes);
  ::operator delete(memory);
}

}  // namespace berth::reference
