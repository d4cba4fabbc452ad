#include "place/device_set.h"

#include <algorithm>

namespace berth {

DeviceSet DeviceSet::of(int32_t device) {
  DeviceSet s;
  const auto at = static_cast<size_t>(device) / 64;
  const uint64_t bit = uint64_t{1} << device % 64;
  if (at == 0) {
    s.word_ = bit;
  } else {
    s.more_ = std::make_unique<Words>(at, 0);
    s.more_->back() = bit;
  }
  return s;
}

DeviceSet DeviceSet::below(int32_t count) {
  const auto ones = [](int32_t n) {
    return n >= 64 ? ~uint64_t{0} : (uint64_t{1} << n) - 1;
  };
  DeviceSet s = ones(count);
  if (count <= 64) return s;
  s.more_ = std::make_unique<Words>();
  for (int32_t left = count - 64; left > 0; left -= 64) {
    s.more_->push_back(ones(left));
  }
  return s;
}

bool DeviceSet::has_more() const {
  return rest_ || (more_ && std::any_of(more_->begin(), more_->end(),
                                        [](uint64_t w) { return w != 0; }));
}

int32_t DeviceSet::first_of_more() const {
  for (size_t i = 1;; ++i) {
    const uint64_t w = word(i);
    if (w != 0) return static_cast<int32_t>(i) * 64 + std::countr_zero(w);
  }
}

void DeviceSet::drop_first_of_more() {
  const auto at = static_cast<size_t>(first_of_more()) / 64;
  if (!more_) more_ = std::make_unique<Words>();
  if (more_->size() < at) more_->resize(at, ~uint64_t{0});  // those of rest_
  uint64_t& word = (*more_)[at - 1];
  word &= word - 1;
}

int32_t DeviceSet::count_more() const {
  if (rest_) return INT32_MAX - 64;
  int32_t n = 0;
  for (const uint64_t w : *more_) n += std::popcount(w);
  return n;
}

DeviceSet DeviceSet::operator~() const {
  DeviceSet s = *this;
  s.word_ = ~word_;
  s.rest_ = !rest_;
  for (size_t i = 0; s.more_ && i < s.more_->size(); ++i) {
    (*s.more_)[i] = ~(*s.more_)[i];
  }
  return s;
}

DeviceSet& DeviceSet::combine(const DeviceSet& o,
                              uint64_t (*fn)(uint64_t, uint64_t)) {
  const size_t words = std::max(num_words(), o.num_words());
  Words more;
  for (size_t i = 1; i < words; ++i) more.push_back(fn(word(i), o.word(i)));
  word_ = fn(word_, o.word_);
  rest_ = fn(rest_, o.rest_) != 0;
  more_ = std::make_unique<Words>(std::move(more));
  return *this;
}

std::strong_ordering DeviceSet::operator<=>(const DeviceSet& o) const {
  if (rest_ != o.rest_) return rest_ <=> o.rest_;
  for (size_t i = std::max(num_words(), o.num_words()); i-- > 0;) {
    if (word(i) != o.word(i)) return word(i) <=> o.word(i);
  }
  return std::strong_ordering::equal;
}

}  // namespace berth
