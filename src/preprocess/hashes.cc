// Buckets of texts: FarmHash's Fingerprint64, and MurmurHash64A.

#include <bit>
#include <cstring>
#include <utility>

#include "berth/errors.h"
#include "berth/strings.h"
#include "data/row_source.h"
#include "io/text_input.h"
#include "tensor/tensor_impl.h"

namespace berth::strings {

namespace {

constexpr uint64_t kFarm0 = 0xc3a5c85c97cb3127;
constexpr uint64_t kFarm1 = 0xb492b66fbe98f273;
constexpr uint64_t kFarm2 = 0x9ae16a3b2f90404f;

template <class T = uint64_t>
uint64_t bytes_at(const char* s) {
  T out;
  std::memcpy(&out, s, sizeof out);
  return out;
}

uint64_t right(uint64_t v, int n) { return std::rotr(v, n); }
uint64_t mixed(uint64_t v) { return v ^ (v >> 47); }

uint64_t of_two(uint64_t u, uint64_t v, uint64_t mul) {
  const uint64_t b = (v ^ mixed((u ^ v) * mul)) * mul;
  return mixed(b) * mul;
}

uint64_t farm_to_16(const char* s, uint64_t n) {
  const uint64_t mul = kFarm2 + n * 2;
  if (n >= 8) {
    const uint64_t a = bytes_at(s) + kFarm2;
    const uint64_t b = bytes_at(s + n - 8);
    return of_two(right(b, 37) * mul + a, (right(a, 25) + b) * mul, mul);
  }
  if (n >= 4) {
    const uint64_t a = bytes_at<uint32_t>(s);
    return of_two(n + (a << 3), bytes_at<uint32_t>(s + n - 4), mul);
  }
  if (n == 0) return kFarm2;
  const auto at = [&](uint64_t i) { return static_cast<unsigned char>(s[i]); };
  const uint32_t y = at(0) + (static_cast<uint32_t>(at(n >> 1)) << 8);
  const uint32_t z =
      static_cast<uint32_t>(n) + (static_cast<uint32_t>(at(n - 1)) << 2);
  return mixed(y * kFarm2 ^ z * kFarm0) * kFarm2;
}

uint64_t farm_to_32(const char* s, uint64_t n) {
  const uint64_t mul = kFarm2 + n * 2;
  const uint64_t a = bytes_at(s) * kFarm1;
  const uint64_t b = bytes_at(s + 8);
  const uint64_t c = bytes_at(s + n - 8) * mul;
  const uint64_t d = bytes_at(s + n - 16) * kFarm2;
  return of_two(right(a + b, 43) + right(c, 30) + d,
                a + right(b + kFarm2, 18) + c, mul);
}

uint64_t farm_to_64(const char* s, uint64_t n) {
  const uint64_t mul = kFarm2 + n * 2;
  const uint64_t a = bytes_at(s) * kFarm2;
  const uint64_t b = bytes_at(s + 8);
  const uint64_t c = bytes_at(s + n - 8) * mul;
  const uint64_t d = bytes_at(s + n - 16) * kFarm2;
  const uint64_t y = right(a + b, 43) + right(c, 30) + d;
  const uint64_t z = of_two(y, a + right(b + kFarm2, 18) + c, mul);
  const uint64_t e = bytes_at(s + 16) * mul;
  const uint64_t f = bytes_at(s + 24);
  const uint64_t g = (y + bytes_at(s + n - 32)) * mul;
  const uint64_t h = (z + bytes_at(s + n - 24)) * mul;
  return of_two(right(e + f, 43) + right(g, 30) + h, e + right(f + a, 18) + g,
                mul);
}

using Pair = std::pair<uint64_t, uint64_t>;

Pair weak(const char* s, uint64_t a, uint64_t b) {
  a += bytes_at(s);
  b = right(b + a + bytes_at(s + 24), 21);
  const uint64_t c = a;
  a += bytes_at(s + 8) + bytes_at(s + 16);
  return {a + bytes_at(s + 24), b + right(a, 44) + c};
}

uint64_t farm_fingerprint(std::string_view text) {
  const char* s = text.data();
  const uint64_t n = text.size();
  if (n <= 16) return farm_to_16(s, n);
  if (n <= 32) return farm_to_32(s, n);
  if (n <= 64) return farm_to_64(s, n);
  uint64_t x = 81;
  uint64_t y = x * kFarm1 + 113;
  uint64_t z = mixed(y * kFarm2 + 113) * kFarm2;
  Pair v, w;
  x = x * kFarm2 + bytes_at(s);
  uint64_t mul = kFarm1;
  uint64_t by_w = 1;  // 9 in the last turn
  const auto turn = [&](const char* p) {
    x = right(x + y + v.first + bytes_at(p + 8), 37) * mul;
    y = right(y + v.second + bytes_at(p + 48), 42) * mul;
    x ^= w.second * by_w;
    y += v.first * by_w + bytes_at(p + 40);
    z = right(z + w.first, 33) * mul;
    v = weak(p, v.second * mul, x + w.first);
    w = weak(p + 32, z + w.second, y + bytes_at(p + 16));
    std::swap(z, x);
  };
  const char* end = s + (n - 1) / 64 * 64;
  for (; s != end; s += 64) turn(s);
  mul = kFarm1 + ((z & 0xff) << 1);
  by_w = 9;
  w.first += (n - 1) & 63;
  v.first += w.first;
  w.first += v.first;
  turn(end + ((n - 1) & 63) - 63);
  return of_two(of_two(v.first, w.first, mul) + mixed(y) * kFarm0 + z,
                of_two(v.second, w.second, mul) + x, mul);
}

uint64_t murmur(std::string_view text) {
  constexpr uint64_t kMul = 0xc6a4a7935bd1e995;
  uint64_t h = 0xDECAFCAFFE ^ (text.size() * kMul);
  for (; text.size() >= 8; text.remove_prefix(8)) {
    uint64_t k = bytes_at(text.data()) * kMul;
    k = mixed(k) * kMul;
    h = (h ^ k) * kMul;
  }
  if (!text.empty()) {
    uint64_t rest = 0;
    std::memcpy(&rest, text.data(), text.size());
    h = (h ^ rest) * kMul;
  }
  h = mixed(h) * kMul;
  return mixed(h);
}

Tensor buckets(const Tensor& input, int64_t num_buckets, const char* function,
               uint64_t (*hash)(std::string_view), Site site) {
  const auto texts = io::texts_of(input, function, site);
  return io::named_call(function, site, [&] {
    if (num_buckets < 1) {
      throw errors::InvalidArgument("num_buckets is " +
                                    std::to_string(num_buckets) +
                                    "; expected 1 or more");
    }
    Tensor t = data::make_batch(int64, input.shape());
    auto* to = reinterpret_cast<int64_t*>(t.impl()->data());
    for (const std::string_view s : texts) {
      *to++ =
          static_cast<int64_t>(hash(s) % static_cast<uint64_t>(num_buckets));
    }
    return t;
  });
}

}  // namespace

Tensor to_hash_bucket_fast(const Tensor& input, int64_t num_buckets,
                           Site site) {
  return buckets(input, num_buckets, "to_hash_bucket_fast", farm_fingerprint,
                 site);
}

Tensor to_hash_bucket(const Tensor& input, int64_t num_buckets, Site site) {
  return buckets(input, num_buckets, "to_hash_bucket", murmur, site);
}

}  // namespace berth::strings
