// Ring: a queue of numbered items that reuses its memory.
//
// Numbers begin at 1; each pushed item gets the next one. One thread at a time.

#ifndef BERTH_BACKENDS_GPU_RING_H_
#define BERTH_BACKENDS_GPU_RING_H_

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace berth::gpu {

template <class T>
class Ring {
 public:
  uint64_t first() const { return popped_ + 1; }
  uint64_t last() const { return pushed_; }
  uint64_t size() const { return pushed_ - popped_; }
  bool empty() const { return pushed_ == popped_; }
  T& operator[](uint64_t number) {
    return items_[number & (items_.size() - 1)];
  }
  T& front() { return (*this)[first()]; }

  void push(T item) {
    if (size() == items_.size()) grow();
    (*this)[++pushed_] = std::move(item);
  }
  void pop() {
    front() = {};
    ++popped_;
  }

 private:
  void grow() {
    std::vector<T> larger(2 * items_.size());
    for (uint64_t i = first(); i <= last(); ++i) {
      larger[i & (larger.size() - 1)] = std::move((*this)[i]);
    }
    items_ = std::move(larger);
  }

  std::vector<T> items_ = std::vector<T>(64);  // its size is a power of two
  uint64_t pushed_ = 0, popped_ = 0;
};

}  // namespace berth::gpu

#endif  // BERTH_BACKENDS_GPU_RING_H_
