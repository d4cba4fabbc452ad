// Counter-based random numbers: Philox4x32-10 (Salmon et al., SC 2011).
//
// A random op reads pure functions of (seed, op id, step, element index), so
// its numbers do not depend on how the tensor is split or on the order of
// evaluation. Element i takes word i % 4 of block i / 4. Value semantics;
// thread-safe.

#ifndef BERTH_BASE_RNG_H_
#define BERTH_BASE_RNG_H_

#include <array>
#include <cstdint>

#include "base/polynomial.h"

namespace berth {

using PhiloxBlock = std::array<uint32_t, 4>;
using PhiloxKey = std::array<uint32_t, 2>;

inline constexpr uint32_t kPhiloxMul0 = 0xD2511F53u;
inline constexpr uint32_t kPhiloxMul1 = 0xCD9E8D57u;
inline constexpr uint32_t kPhiloxKey0 = 0x9E3779B9u;
inline constexpr uint32_t kPhiloxKey1 = 0xBB67AE85u;
inline constexpr int kPhiloxRounds = 10;

// Returns the block of `counter` under `key`.
constexpr PhiloxBlock philox(PhiloxBlock counter, PhiloxKey key) {
  for (int round = 0; round < kPhiloxRounds; ++round) {
    const uint64_t p0 = uint64_t{kPhiloxMul0} * counter[0];
    const uint64_t p1 = uint64_t{kPhiloxMul1} * counter[2];
    counter = {static_cast<uint32_t>(p1 >> 32) ^ counter[1] ^ key[0],
               static_cast<uint32_t>(p1),
               static_cast<uint32_t>(p0 >> 32) ^ counter[3] ^ key[1],
               static_cast<uint32_t>(p0)};
    key = {key[0] + kPhiloxKey0, key[1] + kPhiloxKey1};
  }
  return counter;
}

// Returns a float in [0, 1) with 24 random bits.
constexpr float unit_float(uint32_t word) {
  return static_cast<float>(static_cast<int32_t>(word >> 8)) * 0x1p-24f;
}

// Returns two independent standard normals (Box-Muller) of two words.
inline std::array<float, 2> normal_pair(uint32_t a, uint32_t b) {
  const float u = unit_float(a) + 0x1p-24f;  // in (0, 1]: log is finite
  const float radius = ScalarArch::sqrt(-2.0f * poly::log<ScalarArch>(u));
  float sine, cosine;
  poly::sincos_turns<ScalarArch>(unit_float(b), &sine, &cosine);
  return {radius * cosine, radius * sine};
}

// The random numbers of one op in one step.
class RandomStream {
 public:
  constexpr RandomStream(uint64_t seed, uint32_t op_id, uint64_t step)
      : key_{static_cast<uint32_t>(seed),
             op_id ^ (static_cast<uint32_t>(seed >> 32) * 0x85EBCA6Bu)},
        step_(step) {}

  // Returns words 4 * block ... 4 * block + 3.
  constexpr PhiloxBlock block(uint64_t block) const {
    return philox(
        {static_cast<uint32_t>(block), static_cast<uint32_t>(block >> 32),
         static_cast<uint32_t>(step_), static_cast<uint32_t>(step_ >> 32)},
        key_);
  }
  constexpr uint32_t word(uint64_t index) const {
    return block(index / 4)[index % 4];
  }
  // Returns element `index` of a uniform tensor over [0, 1).
  constexpr float uniform(uint64_t index) const {
    return unit_float(word(index));
  }
  // Returns element `index` of a standard normal tensor.
  float normal(uint64_t index) const {
    const PhiloxBlock words = block(index / 4);
    const int pair = static_cast<int>(index % 4) & 2;
    return normal_pair(words[pair], words[pair + 1])[index % 2];
  }

  PhiloxKey key() const { return key_; }
  uint64_t step() const { return step_; }

 private:
  PhiloxKey key_;
  uint64_t step_;
};

}  // namespace berth

#endif  // BERTH_BASE_RNG_H_
