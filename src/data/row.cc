// RowIn and RowOut: a row as the functions of map_rows see it.

#include <fmt/format.h>

#include "base/rng.h"
#include "berth/data_row.h"
#include "berth/errors.h"

namespace berth::data {

namespace {
// Marks the words of rows among those of other users of a seed.
constexpr uint32_t kRowOp = 0x5F0FF1E7u;
}  // namespace

void RowIn::raise(size_t component, std::span<const TensorSpec> specs,
                  const DType* dtype) {
  if (component >= specs.size()) {
    throw errors::InvalidArgument(fmt::format(
        "component {} was asked for; the row has {}", component, specs.size()));
  }
  throw errors::InvalidArgument(
      fmt::format("component {} was asked for as {}; it is {}", component,
                  name_of(*dtype), specs[component].str()));
}

uint32_t RowRandom::word() {
  if (at_ % 4 == 0) {
    const PhiloxBlock block =
        RandomStream(seed_, kRowOp, number_).block(at_ / 4);
    for (int i = 0; i < 4; ++i) block_[i] = block[i];
  }
  return block_[at_++ % 4];
}

// Lemire, "Fast Random Integer Generation in an Interval", 2019.
uint64_t RowRandom::below(uint64_t n) {
  if (n == 0) {
    throw errors::InvalidArgument(
        "RowRandom::below(0): expected at least 1, the number of values");
  }
  using Wide = unsigned __int128;
  const auto next = [&] { return uint64_t{word()} << 32 | word(); };
  Wide product = Wide{next()} * n;
  if (static_cast<uint64_t>(product) < n) {
    const uint64_t biased = (0 - n) % n;
    while (static_cast<uint64_t>(product) < biased) product = Wide{next()} * n;
  }
  return static_cast<uint64_t>(product >> 64);
}

float RowRandom::uniform(float low, float high) {
  return low + (high - low) * unit_float(word());
}

float RowRandom::normal(float mean, float stddev) {
  const uint32_t a = word();
  return mean + stddev * normal_pair(a, word())[0];
}

}  // namespace berth::data
