// PairSlots: numbers for pairs of a value and a device, as they come up.
//
// A table of all pairs is quicker, but of 100,000 values and 1,000 devices it
// has gigabytes. One thread at a time.

#ifndef BERTH_SIMULATE_PAIR_SLOTS_H_
#define BERTH_SIMULATE_PAIR_SLOTS_H_

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace berth {

class PairSlots {
 public:
  // So many pairs may have a table.
  static constexpr size_t kMostInTable = size_t{1} << 23;

  // For up to `most` pairs beside those that were numbered before is_full().
  explicit PairSlots(size_t most) : most_(std::max<size_t>(most, 16)) {
    entries_.resize(std::bit_ceil(4 * most_));
  }

  // Returns the number of a pair: those of other pairs are others.
  int32_t slot(int32_t value, int32_t device) {
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

  int32_t count() const { return count_; }
  // Whether clear() is due before `most` more are asked for.
  bool is_full() const { return static_cast<size_t>(count_) > 2 * most_; }
  void clear() {
    std::fill(entries_.begin(), entries_.end(), Entry{});
    count_ = 0;
  }

 private:
  struct Entry {
    uint64_t key = 0;  // 0: none
    int32_t slot = 0;
  };
  std::vector<Entry> entries_;
  size_t most_;
  int32_t count_ = 0;
};

}  // namespace berth

#endif  // BERTH_SIMULATE_PAIR_SLOTS_H_
