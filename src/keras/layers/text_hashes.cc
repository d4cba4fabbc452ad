// TensorFlow's hashes of text: FarmHash's Fingerprint64, and SipHash-2-4
// (Aumasson and Bernstein 2012) with a key.

#include "keras/layers/text_hashes.h"

#include <farmhash.h>

#include <bit>

namespace berth::keras {

namespace {

struct SipState {
  uint64_t a, b, c, d;

  void round() {
    a += b;
    b = std::rotl(b, 13) ^ a;
    a = std::rotl(a, 32);
    c += d;
    d = std::rotl(d, 16) ^ c;
    a += d;
    d = std::rotl(d, 21) ^ a;
    c += b;
    b = std::rotl(b, 17) ^ c;
    c = std::rotl(c, 32);
  }
  void take(uint64_t word) {
    d ^= word;
    round();
    round();
    a ^= word;
  }
};

// Up to eight bytes, the first lowest.
uint64_t word_of(const char* at, size_t bytes) {
  uint64_t w = 0;
  for (size_t i = 0; i < bytes; ++i) {
    w |= static_cast<uint64_t>(static_cast<unsigned char>(at[i])) << (8 * i);
  }
  return w;
}

}  // namespace

uint64_t fast_hash(std::string_view text) {
  return util::Fingerprint64(text.data(), text.size());
}

uint64_t salted_hash(std::string_view text, const Salt& salt) {
  SipState s{
      salt.first ^ 0x736f6d6570736575u, salt.second ^ 0x646f72616e646f6du,
      salt.first ^ 0x6c7967656e657261u, salt.second ^ 0x7465646279746573u};
  size_t i = 0;
  for (; i + 8 <= text.size(); i += 8) s.take(word_of(text.data() + i, 8));
  const uint64_t last = word_of(text.data() + i, text.size() - i);
  s.take(last | static_cast<uint64_t>(text.size()) << 56);
  s.c ^= 0xff;
  for (int k = 0; k < 4; ++k) s.round();
  return s.a ^ s.b ^ s.c ^ s.d;
}

}  // namespace berth::keras
