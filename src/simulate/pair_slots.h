// PairSlots: numbers for pairs of a value and a device.
//
// As in a table of all pairs; but of 100,000 values and 1,000 devices that has
// gigabytes, so many pairs are numbered as they come up. One thread at a time.

#ifndef BERTH_SIMULATE_PAIR_SLOTS_H_
#define BERTH_SIMULATE_PAIR_SLOTS_H_

#include <algorithm>
#include <bit>
#include <cstdint>
#include <vector>

#include "simulate/simulate.h"

namespace berth {

class PairSlots {
 public:
  // So many pairs may have a table.
  static constexpr size_t kMostInTable = size_t{1} << 23;

  PairSlots(const SimulatedGraph& graph, size_t num_devices)
      : num_devices_(num_devices),
        most_(std::max<size_t>(graph.reads.num_items(), 16)),
        count_(graph.producer.size() * num_devices) {
    if (count_ <= kMostInTable) return;
    count_ = 0;
    entries_.resize(std::bit_ceil(4 * most_));
  }

  // Slots so far: in a table, of all pairs.
  size_t size() const { return count_; }

  // Returns the number of a pair: those of other pairs are others.
  size_t slot(int32_t value, int32_t device) {
    if (entries_.empty()) return value * num_devices_ + device;
    const uint64_t key =
        static_cast<uint64_t>(value + 1) << 32 | static_cast<uint32_t>(device);
    const size_t mask = entries_.size() - 1;
    size_t at = static_cast<size_t>(key * 0x9E3779B97F4A7C15ULL >> 20) & mask;
    while (entries_[at].key != key) {
      if (entries_[at].key == 0) {
        entries_[at] = {key, count_++};
        break;
      }
      at = (at + 1) & mask;
    }
    return entries_[at].slot;
  }

  // Whether clear() is due before the next plan.
  bool is_full() const { return !entries_.empty() && count_ > 2 * most_; }
  void clear() {
    std::fill(entries_.begin(), entries_.end(), Entry{});
    count_ = 0;
  }

 private:
  struct Entry {
    uint64_t key = 0;  // 0: none
    size_t slot = 0;
  };
  size_t num_devices_, most_;  // `most_`: copies in a plan
  size_t count_;
  std::vector<Entry> entries_;  // empty: a table
};

}  // namespace berth

#endif  // BERTH_SIMULATE_PAIR_SLOTS_H_
