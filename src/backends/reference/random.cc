// Random numbers.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "backends/reference/indices.h"
#include "backends/reference/reference.h"
#include "backends/reference/scratch.h"
#include "backends/reference/stream.h"

namespace berth::reference {

namespace {

RandomStream own_stream(const KernelCall& c) {
  return stream_of(c, 0, c.attr<bool>("stateless"));
}

// Element i of the output is fn(words, place), where word `place` of the block
// belongs to it.
template <class Fn>
void for_each_block(const KernelCall& c, Fn&& fn) {
  const RandomStream stream = own_stream(c);
  const auto origin = static_cast<uint64_t>(c.context->slice_origin);
  PhiloxBlock words{};
  for (int64_t i = 0, n = c.out[0].size(); i < n; ++i) {
    const uint64_t index = origin + static_cast<uint64_t>(i);
    if (i == 0 || index % 4 == 0) words = stream.block(index / 4);
    fn(i, words, static_cast<int>(index % 4));
  }
}

void uniform(const KernelCall& c) {
  const double low = c.attr<double>("minval"), high = c.attr<double>("maxval");
  with_floating(c.out[0].dtype, [&]<class T>(T) {
    T* y = c.out[0].as<T>();
    const float from = static_cast<float>(low);
    const float span = static_cast<float>(high - low);
    // Rounding must not reach maxval.
    const float top =
        std::max(from, std::nextafter(static_cast<float>(high), from));
    for_each_block(c, [&](int64_t i, const PhiloxBlock& words, int place) {
      y[i] = std::min(from + unit_float(words[place]) * span, top);
    });
  });
}

void normal(const KernelCall& c) {
  const auto mean = static_cast<float>(c.attr<double>("mean"));
  const auto stddev = static_cast<float>(c.attr<double>("stddev"));
  with_floating(c.out[0].dtype, [&]<class T>(T) {
    T* y = c.out[0].as<T>();
    for_each_block(c, [&](int64_t i, const PhiloxBlock& words, int place) {
      const int pair = place & 2;
      y[i] =
          mean + stddev * normal_pair(words[pair], words[pair + 1])[place & 1];
    });
  });
}

// Draws again for a number beyond two standard deviations; attempt k takes the
// numbers k * 2^58 elements further on. 16 attempts fail once in 10^21.
float truncated(const RandomStream& stream, uint64_t index) {
  for (uint64_t attempt = 0; attempt < 16; ++attempt) {
    const float x = stream.normal(index + (attempt << 58));
    if (x >= -2.0f && x <= 2.0f) return x;
  }
  return 0.0f;
}

void truncated_normal(const KernelCall& c) {
  const auto mean = static_cast<float>(c.attr<double>("mean"));
  const auto stddev = static_cast<float>(c.attr<double>("stddev"));
  const RandomStream stream = own_stream(c);
  const auto origin = static_cast<uint64_t>(c.context->slice_origin);
  with_floating(c.out[0].dtype, [&]<class T>(T) {
    T* y = c.out[0].as<T>();
    for (int64_t i = 0, n = c.out[0].size(); i < n; ++i) {
      y[i] =
          mean + stddev * truncated(stream, origin + static_cast<uint64_t>(i));
    }
  });
}

// Scales words to the range by multiplication; the bias is below
// range / 2^32, or range / 2^64 for wide ranges, which take two words.
uint64_t scaled(const RandomStream& stream, uint64_t index, uint64_t range) {
  if (range <= uint64_t{1} << 32) return (stream.word(index) * range) >> 32;
  const uint64_t word =
      uint64_t{stream.word(2 * index)} << 32 | stream.word(2 * index + 1);
  return static_cast<uint64_t>(static_cast<unsigned __int128>(word) * range >>
                               64);
}

void uniform_int(const KernelCall& c) {
  const auto low = static_cast<uint64_t>(c.attr<int64_t>("minval"));
  const uint64_t range = static_cast<uint64_t>(c.attr<int64_t>("maxval")) - low;
  const RandomStream stream = own_stream(c);
  const auto origin = static_cast<uint64_t>(c.context->slice_origin);
  with_exact_number(c.out[0].dtype, [&]<class T>(T) {
    T* y = c.out[0].as<T>();
    for (int64_t i = 0, n = c.out[0].size(); i < n; ++i) {
      const uint64_t at = origin + static_cast<uint64_t>(i);
      y[i] =
          static_cast<T>(static_cast<int64_t>(low + scaled(stream, at, range)));
    }
  });
}

// Returns the class in whose share of [0, total) the number lies.
template <class T>
void multinomial(const KernelCall& c, const T* logits) {
  const int64_t classes = c.in[0].dim(1), samples = c.out[0].dim(1);
  // Its logits come first: it has no key.
  const RandomStream stream = stream_of(c, 1, c.attr<bool>("stateless"));
  const auto origin = static_cast<uint64_t>(c.context->slice_origin);
  Scratch<double> shares(static_cast<size_t>(classes));
  for (int64_t b = 0; b < c.in[0].dim(0) && samples > 0; ++b) {
    const T* row = logits + b * classes;
    const double top = static_cast<double>(*std::max_element(
        row, row + classes, [](T x, T y) { return x < y || y != y; }));
    if (!std::isfinite(top)) {
      throw errors::InvalidArgument(
          fmt::format("Multinomial: the largest logit of row {} is {}; "
                      "expected a finite one",
                      b, top));
    }
    double total = 0;
    for (int64_t k = 0; k < classes; ++k) {
      total += std::exp(static_cast<double>(row[k]) - top);
      shares[k] = total;
    }
    for (int64_t s = 0; s < samples; ++s) {
      const int64_t i = b * samples + s;
      const double u =
          (stream.word(origin + static_cast<uint64_t>(i)) + 0.5) * 0x1p-32;
      const auto at = std::upper_bound(shares.begin(), shares.end(), u * total);
      set_index(c.out[0], i,
                std::min<int64_t>(at - shares.begin(), classes - 1));
    }
  }
}

void multinomial(const KernelCall& c) {
  with_floating(c.in[0].dtype, [&](auto type) {
    multinomial(c, c.in[0].as<decltype(type)>());
  });
}

}  // namespace

void add_random(KernelTable& t) {
  // What outputs and keys may have.
  const DTypeSet types = kFloatingTypes | kIndexTypes;
  t.direct("RandomUniform", types, &uniform, "reference");
  t.direct("RandomStandardNormal", types, &normal, "reference");
  t.direct("TruncatedNormal", types, &truncated_normal, "reference");
  t.direct("Multinomial", kFloatingTypes, &multinomial, "reference");
  t.direct("RandomUniformInt", kEveryInteger, &uniform_int, "reference");
}

}  // namespace berth::reference
