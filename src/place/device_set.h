// DeviceSet: a set of devices by number, of any size.
//
// Up to 64 devices are one word and need no allocation; ~ of a set contains all
// larger numbers. A value; one thread at a time.

#ifndef BERTH_PLACE_DEVICE_SET_H_
#define BERTH_PLACE_DEVICE_SET_H_

#include <bit>
#include <compare>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

namespace berth {

// The maximum number of devices in one placing or planning problem.
inline constexpr int kMaxPlaceDevices = 4096;

class DeviceSet {
 public:
  DeviceSet() = default;
  // The devices below 64 whose bits are set.
  DeviceSet(uint64_t bits) : word_(bits) {}  // NOLINT: DeviceSet none = 0
  static DeviceSet of(int32_t device);
  static DeviceSet below(int32_t count);  // 0 to count - 1

  DeviceSet(const DeviceSet& o)
      : word_(o.word_),
        rest_(o.rest_),
        more_(o.more_ ? std::make_unique<Words>(*o.more_) : nullptr) {}
  DeviceSet(DeviceSet&&) noexcept = default;
  DeviceSet& operator=(const DeviceSet& o) { return *this = DeviceSet(o); }
  DeviceSet& operator=(DeviceSet&&) noexcept = default;

  bool has(int32_t device) const {
    return word(static_cast<size_t>(device) / 64) >> device % 64 & 1;
  }
  explicit operator bool() const { return word_ != 0 || has_more(); }
  // The lowest device; the set must not be empty.
  int32_t first() const {
    return word_ != 0 ? std::countr_zero(word_) : first_of_more();
  }
  // Whether it has more than one device.
  bool several() const {
    return more_ || rest_ ? count() > 1 : (word_ & (word_ - 1)) != 0;
  }
  // Removes the lowest device.
  void drop_first() {
    if (word_ != 0) {
      word_ &= word_ - 1;
    } else {
      drop_first_of_more();
    }
  }
  // The number of devices; INT32_MAX for an infinite set.
  int32_t count() const {
    return std::popcount(word_) + (more_ || rest_ ? count_more() : 0);
  }

  DeviceSet& operator&=(const DeviceSet& o) {
    if (!more_ && !o.more_) {
      word_ &= o.word_;
      rest_ = rest_ && o.rest_;
      return *this;
    }
    return combine(o, [](uint64_t a, uint64_t b) { return a & b; });
  }
  DeviceSet& operator|=(const DeviceSet& o) {
    if (!more_ && !o.more_) {
      word_ |= o.word_;
      rest_ = rest_ || o.rest_;
      return *this;
    }
    return combine(o, [](uint64_t a, uint64_t b) { return a | b; });
  }
  DeviceSet operator~() const;
  friend DeviceSet operator&(DeviceSet a, const DeviceSet& b) {
    a &= b;
    return a;
  }
  friend DeviceSet operator|(DeviceSet a, const DeviceSet& b) {
    a |= b;
    return a;
  }
  bool operator==(const DeviceSet& o) const {
    if (!more_ && !o.more_) return word_ == o.word_ && rest_ == o.rest_;
    return (*this <=> o) == 0;
  }
  // Compares as numbers with a bit per device.
  std::strong_ordering operator<=>(const DeviceSet& o) const;

 private:
  using Words = std::vector<uint64_t>;

  uint64_t word(size_t i) const {
    if (i == 0) return word_;
    return more_ && i <= more_->size() ? (*more_)[i - 1]
                                       : (rest_ ? ~uint64_t{0} : 0);
  }
  size_t num_words() const { return 1 + (more_ ? more_->size() : 0); }
  bool has_more() const;
  int32_t first_of_more() const;
  void drop_first_of_more();
  int32_t count_more() const;
  DeviceSet& combine(const DeviceSet& o, uint64_t (*fn)(uint64_t, uint64_t));

  uint64_t word_ = 0;
  bool rest_ = false;            // contains all numbers beyond the words
  std::unique_ptr<Words> more_;  // the devices from 64 on
};

inline DeviceSet device_bit(int32_t device) {
  return device < 64 ? DeviceSet(uint64_t{1} << device) : DeviceSet::of(device);
}

}  // namespace berth

#endif  // BERTH_PLACE_DEVICE_SET_H_
