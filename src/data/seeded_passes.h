// SeededPasses: the seed of a node that draws, and which pass begins.
//
// Every pass has random numbers of its own, or all have those of the first;
// they follow from the seed and the number of the pass. Thread-safe.

#ifndef BERTH_DATA_SEEDED_PASSES_H_
#define BERTH_DATA_SEEDED_PASSES_H_

#include <atomic>
#include <optional>
#include <random>

#include "data/node.h"
#include "ops/random_key.h"

namespace berth::data {

class SeededPasses {
 public:
  // No seed: one that follows from random::set_seed(), else nobody knows.
  SeededPasses(std::optional<uint64_t> seed, bool anew)
      : anew_(anew), seed_(seed ? *seed : drawn()) {}

  // Counts a pass; returns its number and seed.
  NodeMemory begin(const PassInfo& pass) const {
    const uint64_t number = !anew_      ? 0
                            : pass.peek ? passes_.load()
                                        : passes_.fetch_add(1);
    return {static_cast<int64_t>(number), static_cast<int64_t>(seed_.load())};
  }
  NodeMemory memory() const {
    return {static_cast<int64_t>(passes_.load()),
            static_cast<int64_t>(seed_.load())};
  }
  // Later passes are those of the run that was saved: a seed that was given may
  // have been drawn by the program, and differ now.
  void set(const NodeMemory& memory) const {
    passes_ = static_cast<uint64_t>(memory.passes);
    seed_ = static_cast<uint64_t>(memory.seed);
  }

 private:
  static uint64_t drawn() {
    if (const std::optional<uint64_t> seed = next_host_seed()) return *seed;
    std::random_device device;
    return uint64_t{device()} << 32 | device();
  }

  bool anew_;
  mutable std::atomic<uint64_t> seed_;
  mutable std::atomic<uint64_t> passes_{0};
};

}  // namespace berth::data

#endif  // BERTH_DATA_SEEDED_PASSES_H_
