// Random numbers and dropout, with the numbers of base/rng.h.

#include <algorithm>
#include <bit>
#include <cmath>

#include "backends/cpu/kernels.h"
#include "backends/cpu/loops.h"
#include "backends/reference/stream.h"
#include "base/rng.h"

namespace berth::cpu {

namespace {

// `key`: the input that may stand for seed and op_id.
StreamKey key_of(const KernelCall& c, int key, bool stateless) {
  const RandomStream stream = reference::stream_of(c, key, stateless);
  return {{stream.key()[0], stream.key()[1]}, stream.step()};
}

uint64_t origin_of(const KernelCall& c) {
  return static_cast<uint64_t>(c.context->slice_origin);
}

// y = y * factor + offset, rounded twice like the reference kernel.
void scale_and_add(float* y, int64_t n, float factor, float offset) {
  binary_loops(BinaryOp::kMul).scalar_right(y, factor, y, n);
  binary_loops(BinaryOp::kAdd).scalar_right(y, offset, y, n);
}

// Fills y[0, n) with elements origin, origin + 1, ... of the whole tensor.
void uniform_part(const KernelCall& c, uint64_t origin, float* y, int64_t n) {
  const double low = c.attr<double>("minval"), high = c.attr<double>("maxval");
  const auto from = static_cast<float>(low);
  // Rounding must not reach maxval.
  const float top =
      std::max(from, std::nextafter(static_cast<float>(high), from));
  loops().uniform(key_of(c, 0, c.attr<bool>("stateless")), origin, y, n);
  scale_and_add(y, n, static_cast<float>(high - low), from);
  binary_loops(BinaryOp::kMin).scalar_right(y, top, y, n);
}

void normal_part(const KernelCall& c, uint64_t origin, float* y, int64_t n) {
  loops().normal(key_of(c, 0, c.attr<bool>("stateless")), origin, y, n);
  scale_and_add(y, n, static_cast<float>(c.attr<double>("stddev")),
                static_cast<float>(c.attr<double>("mean")));
}

using Part = void (*)(const KernelCall&, uint64_t, float*, int64_t);

template <Part kPart>
void draw(const KernelCall& c) {
  kPart(c, origin_of(c), c.out[0].as<float>(), c.out[0].size());
}

// float64 holds the same numbers, widened.
template <Part kPart>
void draw_wide(const KernelCall& c) {
  constexpr int64_t kBlock = 512;
  float numbers[kBlock];
  double* y = c.out[0].as<double>();
  const int64_t n = c.out[0].size();
  for (int64_t at = 0; at < n; at += kBlock) {
    const int64_t count = std::min(kBlock, n - at);
    kPart(c, origin_of(c) + static_cast<uint64_t>(at), numbers, count);
    std::copy_n(numbers, count, y + at);
  }
}

// With a key, whose dtype selects the kernel.
template <Part kPart>
void draw_by_key(const KernelCall& c) {
  c.out[0].dtype == float64 ? draw_wide<kPart>(c) : draw<kPart>(c);
}

float scale_of(const KernelCall& c) {
  return static_cast<float>(1 / (1 - c.attr<double>("rate")));
}

// Floats of at least 0 are ordered like their bits; selecting by bits avoids
// branches that may be mispredicted.
int32_t bits_of(float x) { return std::bit_cast<int32_t>(x); }
float float_if(bool keep, float x) {
  return std::bit_cast<float>(bits_of(x) & -static_cast<int32_t>(keep));
}

void dropout(const KernelCall& c) {
  constexpr int64_t kBlock = 512;
  float numbers[kBlock];
  const StreamKey key = key_of(c, 1, false);
  // Adding 0 removes the sign of a rate of -0.
  const int32_t rate =
      bits_of(static_cast<float>(c.attr<double>("rate")) + 0.0f);
  const float scale = scale_of(c);
  const float* x = c.in[0].as<float>();
  float* y = c.out[0].as<float>();
  auto* mask = c.out[1].as<uint8_t>();
  const int64_t n = c.out[0].size();
  for (int64_t at = 0; at < n; at += kBlock) {
    const int64_t count = std::min(kBlock, n - at);
    loops().uniform(key, origin_of(c) + static_cast<uint64_t>(at), numbers,
                    count);
    // Two loops, because storing bytes would keep the first from vectors.
    for (int64_t i = 0; i < count; ++i) {
      y[at + i] = float_if(bits_of(numbers[i]) >= rate, x[at + i] * scale);
    }
    for (int64_t i = 0; i < count; ++i) {
      mask[at + i] = bits_of(numbers[i]) >= rate;
    }
  }
}

void dropout_grad(const KernelCall& c) {
  if (!(*c.in[0].shape == *c.in[1].shape)) return run_reference(c);
  const float scale = scale_of(c);
  const float* dy = c.in[0].as<float>();
  const auto* mask = c.in[1].as<uint8_t>();
  float* dx = c.out[0].as<float>();
  const int64_t n = c.out[0].size();
  for (int64_t i = 0; i < n; ++i) dx[i] = float_if(mask[i] != 0, dy[i] * scale);
}

}  // namespace

void add_random(KernelTable& t) {
  const DTypeSet wide = dtype_bit(float64);
  t.direct("RandomUniform", kFloat32, &draw<&uniform_part>, "loops");
  t.direct("RandomUniform", wide, &draw_wide<&uniform_part>, "loops");
  t.direct("RandomStandardNormal", kFloat32, &draw<&normal_part>, "loops");
  t.direct("RandomStandardNormal", wide, &draw_wide<&normal_part>, "loops");
  t.direct("RandomUniform", kIndexTypes, &draw_by_key<&uniform_part>, "loops");
  t.direct("RandomStandardNormal", kIndexTypes, &draw_by_key<&normal_part>,
           "loops");
  t.direct("Dropout", kFloat32, &dropout, "loops", true);
  t.direct("DropoutGrad", kFloat32, &dropout_grad, "loops", true);
}

}  // namespace berth::cpu
