#include <gtest/gtest.h>

#include <bit>
#include <cmath>

#include "backends/cpu/cpu_testing.h"
#include "backends/cpu/loops.h"
#include "berth/half.h"

namespace berth::cpu {
namespace {

std::vector<const Loops*> all_loops() {
  std::vector<const Loops*> found;
  for (Isa isa : {Isa::kV1, Isa::kV3, Isa::kV4}) {
    if (const Loops* loops = loops_for(isa)) found.push_back(loops);
  }
  return found;
}

class HalfLoops : public testing::TestWithParam<const Loops*> {};

INSTANTIATE_TEST_SUITE_P(Loops, HalfLoops, testing::ValuesIn(all_loops()),
                         [](const auto& info) {
                           return std::string(isa_name(info.param->isa));
                         });

// Checks every bit pattern, at every remainder of a vector's length.
template <class Half>
void expect_widened(void (*widen)(const uint16_t*, float*, int64_t)) {
  std::vector<uint16_t> x(65536);
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<uint16_t>(i);
  for (const size_t skip : {0, 1, 5, 11}) {
    std::vector<float> y(x.size() - skip);
    widen(x.data() + skip, y.data(), static_cast<int64_t>(y.size()));
    for (size_t i = 0; i < y.size(); ++i) {
      Half h;
      h.bits = x[i + skip];
      const float want = h;
      if (std::isnan(want)) {
        ASSERT_TRUE(std::isnan(y[i]));
      } else {
        ASSERT_EQ(std::bit_cast<uint32_t>(y[i]), std::bit_cast<uint32_t>(want));
      }
    }
  }
}

// Sweeps over the bit patterns of all floats and the neighbours of each half.
template <class Half>
void expect_rounded(void (*round)(const float*, uint16_t*, int64_t)) {
  std::vector<float> x;
  for (uint64_t u = 0; u < uint64_t{1} << 32; u += 40961) {
    x.push_back(std::bit_cast<float>(static_cast<uint32_t>(u)));
  }
  for (uint32_t u = 0; u < 65536; ++u) {
    Half h;
    h.bits = static_cast<uint16_t>(u);
    const float v = h;
    Half next;
    next.bits = static_cast<uint16_t>(u + 1);
    const float middle = v / 2 + static_cast<float>(next) / 2;
    for (const float f : {v, middle, std::nextafter(middle, INFINITY),
                          std::nextafter(middle, -INFINITY)}) {
      x.push_back(f);
    }
  }
  std::vector<uint16_t> y(x.size());
  round(x.data(), y.data(), static_cast<int64_t>(x.size()));
  for (size_t i = 0; i < x.size(); ++i) {
    Half got;
    got.bits = y[i];
    if (std::isnan(x[i])) {
      ASSERT_TRUE(std::isnan(static_cast<float>(got)));
    } else {
      ASSERT_EQ(got.bits, Half(x[i]).bits) << x[i];
    }
  }
}

TEST_P(HalfLoops, WidenAsTheElementsDo) {
  expect_widened<bfloat16_t>(GetParam()->widen_bfloat16);
  expect_widened<float16_t>(GetParam()->widen_float16);
}
TEST_P(HalfLoops, RoundAsTheElementsDo) {
  expect_rounded<bfloat16_t>(GetParam()->round_bfloat16);
  expect_rounded<float16_t>(GetParam()->round_float16);
}

}  // namespace
}  // namespace berth::cpu
