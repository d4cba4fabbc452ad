// Runs one kernel, given as text, on a HostCard.

#ifndef BERTH_BACKENDS_GPU_HOST_HOST_TESTING_H_
#define BERTH_BACKENDS_GPU_HOST_HOST_TESTING_H_

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "conformance/gpu_stand_ins/host_card/host_card.h"

namespace berth::gpu {

// An array in a card's memory, exactly as long as its elements.
template <class T>
class CardArray {
 public:
  CardArray(HostCard& card, std::vector<T> values)
      : queue_(card.make_queue()),
        source_(card.memory_source()),
        size_(values.size()),
        data_(source_->reserve(bytes())) {
    queue_->copy({data_, &card_space(), values.data(), &host_space(), bytes()});
  }
  ~CardArray() { source_->release(data_, bytes()); }
  CardArray(const CardArray&) = delete;
  CardArray& operator=(const CardArray&) = delete;

  std::vector<T> values() const {
    std::vector<T> v(size_);
    queue_->copy({v.data(), &host_space(), data_, &card_space(), bytes()});
    return v;
  }
  size_t bytes() const { return size_ * sizeof(T); }
  KernelArg arg() const { return {&data_, 0, bytes()}; }

 private:
  static const MemorySpace& host_space() {
    static const MemorySpace space;
    return space;
  }
  static const MemorySpace& card_space() {
    static const MemorySpace space{.host_addressable = false};
    return space;
  }
  const std::unique_ptr<Queue> queue_;
  const std::unique_ptr<MemorySource> source_;
  const size_t size_;
  std::byte* const data_;
};

// Launches KERNEL(GROUP_SIZE, f) of `text` with this many groups.
inline void launch_f(HostCard& card, const std::string& text, uint32_t groups,
                     const std::vector<KernelArg>& args) {
  KernelSource source;
  source.generated = text;
  const auto queue = card.make_queue();
  card.module(source)->kernel("f")->launch(*queue, {{groups, 1, 1}, 256},
                                           args.data(),
                                           static_cast<int>(args.size()));
}

template <class T>
KernelArg value_arg(const T& x) {
  return {&x, sizeof(T)};
}

}  // namespace berth::gpu

#endif  // BERTH_BACKENDS_GPU_HOST_HOST_TESTING_H_
