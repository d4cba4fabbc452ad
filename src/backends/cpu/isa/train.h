// Batch norm, optimizer updates and random tensors; included once per
// instruction set.

#ifndef BERTH_BACKENDS_CPU_ISA_TRAIN_H_
#define BERTH_BACKENDS_CPU_ISA_TRAIN_H_

#include "backends/cpu/isa/arch.h"
#include "base/rng.h"

namespace berth::cpu::BERTH_ISA_LEVEL {

// Sums term(row, part) over all rows, in blocks so that long columns keep their
// low digits.
template <class Term>
BERTH_INLINE F sum_rows(int64_t rows, Term&& term) {
  F total = {};
  for (int64_t at = 0; at < rows; at += 256) {
    const int64_t end = at + 256 < rows ? at + 256 : rows;
    F acc[2] = {};
    int64_t r = at;
    for (; r + 2 <= end; r += 2) {
      acc[0] += term(r);
      acc[1] += term(r + 1);
    }
    if (r < end) acc[0] += term(r);
    total += acc[0] + acc[1];
  }
  return total;
}

inline void moments(const float* x, int64_t rows, int64_t channels, float* mean,
                    float* square_sum) {
  const F count = A::set(static_cast<float>(rows));
  for_vectors(channels, [=](int64_t c, auto part) {
    const float* p = x + c;
    // Distances from the first row have few digits and add exactly enough.
    const F origin = rows > 0 ? part.load(p) : F{};
    const F away = sum_rows(
        rows, [=](int64_t r) { return part.load(p + r * channels) - origin; });
    const F center = origin + away / count;
    part.store(mean + c, center);
    part.store(square_sum + c, sum_rows(rows, [=](int64_t r) {
                 const F d = part.load(p + r * channels) - center;
                 return d * d;
               }));
  });
}

inline void scale_shift(const float* x, const float* scale, const float* shift,
                        float* y, int64_t rows, int64_t channels) {
  for (int64_t r = 0; r < rows; ++r) {
    const float* in = x + r * channels;
    float* out = y + r * channels;
    for_vectors(channels, [=](int64_t c, auto part) {
      part.store(out + c, A::madd(part.load(in + c), part.load(scale + c),
                                  part.load(shift + c)));
    });
  }
}

inline void norm_grad_sums(const float* x, const float* dy, const float* mean,
                           int64_t rows, int64_t channels, float* sum_dy,
                           float* sum_dy_x) {
  for_vectors(channels, [=](int64_t c, auto part) {
    const F center = part.load(mean + c);
    part.store(sum_dy + c, sum_rows(rows, [=](int64_t r) {
                 return part.load(dy + r * channels + c);
               }));
    part.store(sum_dy_x + c, sum_rows(rows, [=](int64_t r) {
                 return part.load(dy + r * channels + c) *
                        (part.load(x + r * channels + c) - center);
               }));
  });
}

inline void norm_grad(const float* x, const float* dy, const float* mean,
                      const float* k_dy, const float* k_x, const float* k_one,
                      float* dx, int64_t rows, int64_t channels) {
  for (int64_t r = 0; r < rows; ++r) {
    const float *in = x + r * channels, *d = dy + r * channels;
    float* out = dx + r * channels;
    for_vectors(channels, [=](int64_t c, auto part) {
      const F offset = A::madd(part.load(in + c) - part.load(mean + c),
                               part.load(k_x + c), part.load(k_one + c));
      part.store(out + c,
                 A::madd(part.load(d + c), part.load(k_dy + c), -offset));
    });
  }
}

template <bool kNesterov>
BERTH_INLINE void adam_loop(float* w, const float* g, float* m, float* v,
                            int64_t n, const AdamParams& params) {
  const F rate = A::set(params.rate), epsilon = A::set(params.epsilon);
  const F beta1 = A::set(params.beta1), keep = A::set(params.keep);
  const F gain1 = A::set(1.0f - params.beta1);
  const F gain2 = A::set(1.0f - params.beta2);
  for_vectors(n, [=](int64_t i, auto part) {
    const F grad = part.load(g + i);
    F mean = part.load(m + i), square = part.load(v + i);
    mean = A::madd(grad - mean, gain1, mean);
    square = A::madd(A::madd(grad, grad, -square), gain2, square);
    part.store(m + i, mean);
    part.store(v + i, square);
    const F top = kNesterov ? A::madd(gain1, grad, mean * beta1) : mean;
    part.store(w + i, part.load(w + i) * keep -
                          rate * top / (A::sqrt(square) + epsilon));
  });
}

inline void adam(float* w, const float* g, float* m, float* v, int64_t n,
                 const AdamParams& params) {
  if (params.nesterov) {
    adam_loop<true>(w, g, m, v, n, params);
  } else {
    adam_loop<false>(w, g, m, v, n, params);
  }
}

template <bool kCentered>
BERTH_INLINE void rms_prop_loop(float* w, const float* g, float* mg, float* ms,
                                float* mom, int64_t n,
                                const RmsPropParams& params) {
  const F rate = A::set(params.rate), epsilon = A::set(params.epsilon);
  const F gain = A::set(1.0f - params.rho), momentum = A::set(params.momentum);
  for_vectors(n, [=](int64_t i, auto part) {
    const F grad = part.load(g + i);
    F square = part.load(ms + i);
    square = A::madd(A::madd(grad, grad, -square), gain, square);
    part.store(ms + i, square);
    F spread = square;
    if constexpr (kCentered) {
      F mean = part.load(mg + i);
      mean = A::madd(grad - mean, gain, mean);
      part.store(mg + i, mean);
      spread = A::madd(-mean, mean, square);
    }
    const F move = A::madd(part.load(mom + i), momentum,
                           rate * grad / A::sqrt(spread + epsilon));
    part.store(mom + i, move);
    part.store(w + i, part.load(w + i) - move);
  });
}

inline void rms_prop(float* w, const float* g, float* mg, float* ms, float* mom,
                     int64_t n, const RmsPropParams& params) {
  if (mg != nullptr) {
    rms_prop_loop<true>(w, g, mg, ms, mom, n, params);
  } else {
    rms_prop_loop<false>(w, g, mg, ms, mom, n, params);
  }
}

inline void adagrad(float* w, const float* g, float* accum, int64_t n,
                    float rate, float epsilon) {
  const F factor = A::set(rate), least = A::set(epsilon);
  for_vectors(n, [=](int64_t i, auto part) {
    const F grad = part.load(g + i);
    const F sum = A::madd(grad, grad, part.load(accum + i));
    part.store(accum + i, sum);
    part.store(w + i,
               part.load(w + i) - factor * grad / (A::sqrt(sum) + least));
  });
}

inline void sgd(float* w, const float* g, int64_t n, float rate) {
  const F step = A::set(-rate);
  for_vectors(n, [=](int64_t i, auto part) {
    part.store(w + i, A::madd(part.load(g + i), step, part.load(w + i)));
  });
}

inline void momentum(float* w, const float* g, float* v, int64_t n, float rate,
                     float momentum, bool nesterov) {
  const F keep = A::set(momentum), step = A::set(-rate);
  for_vectors(n, [=](int64_t i, auto part) {
    const F grad = part.load(g + i);
    const F velocity = A::madd(part.load(v + i), keep, grad);
    part.store(v + i, velocity);
    const F move = nesterov ? A::madd(velocity, keep, grad) : velocity;
    part.store(w + i, A::madd(move, step, part.load(w + i)));
  });
}

inline void keras_momentum(float* w, const float* g, float* v, int64_t n,
                           float rate, float momentum, bool nesterov) {
  const F keep = A::set(momentum), step = A::set(-rate);
  for_vectors(n, [=](int64_t i, auto part) {
    const F push = part.load(g + i) * step;
    const F velocity = A::madd(part.load(v + i), keep, push);
    part.store(v + i, velocity);
    const F move = nesterov ? A::madd(velocity, keep, push) : velocity;
    part.store(w + i, part.load(w + i) + move);
  });
}

// Random words of consecutive elements, a batch of blocks at a time; the loops
// over `b` are vectorised.
class Words {
 public:
  static constexpr int kBlocks = 32;
  static constexpr int kWords = 4 * kBlocks;

  Words(const StreamKey& key, uint64_t first_block) {
    uint32_t c0[kBlocks], c1[kBlocks], c2[kBlocks], c3[kBlocks];
    for (int b = 0; b < kBlocks; ++b) {
      const uint64_t block = first_block + b;
      c0[b] = static_cast<uint32_t>(block);
      c1[b] = static_cast<uint32_t>(block >> 32);
      c2[b] = static_cast<uint32_t>(key.step);
      c3[b] = static_cast<uint32_t>(key.step >> 32);
    }
    uint32_t k0 = key.key[0], k1 = key.key[1];
    for (int round = 0; round < kPhiloxRounds; ++round) {
      for (int b = 0; b < kBlocks; ++b) {
        const uint64_t p0 = uint64_t{kPhiloxMul0} * c0[b];
        const uint64_t p1 = uint64_t{kPhiloxMul1} * c2[b];
        c0[b] = static_cast<uint32_t>(p1 >> 32) ^ c1[b] ^ k0;
        c1[b] = static_cast<uint32_t>(p1);
        c2[b] = static_cast<uint32_t>(p0 >> 32) ^ c3[b] ^ k1;
        c3[b] = static_cast<uint32_t>(p0);
      }
      k0 += kPhiloxKey0;
      k1 += kPhiloxKey1;
    }
    for (int b = 0; b < kBlocks; ++b) {
      words_[4 * b] = c0[b];
      words_[4 * b + 1] = c1[b];
      words_[4 * b + 2] = c2[b];
      words_[4 * b + 3] = c3[b];
    }
  }

  // Writes the uniform floats of all words.
  void uniforms(float* out) const {
    for (int i = 0; i < kWords; ++i) {
      out[i] =
          static_cast<float>(static_cast<int32_t>(words_[i] >> 8)) * 0x1p-24f;
    }
  }

 private:
  uint32_t words_[kWords];
};

// Calls body(values, element, count): `count` uniforms for the elements from
// `element` on, relative to begin; batches start at multiples of kWords.
template <class Body>
BERTH_INLINE void for_uniforms(const StreamKey& key, uint64_t begin, int64_t n,
                               Body&& body) {
  float values[Words::kWords];
  for (int64_t at = 0; at < n;) {
    const uint64_t batch = (begin + at) / Words::kWords;
    const int64_t skip = static_cast<int64_t>((begin + at) % Words::kWords);
    int64_t count = Words::kWords - skip;
    if (count > n - at) count = n - at;
    Words(key, batch * Words::kBlocks).uniforms(values);
    body(values, skip, at, count);
    at += count;
  }
}

inline void uniform(const StreamKey& key, uint64_t begin, float* y, int64_t n) {
  for_uniforms(
      key, begin, n,
      [=](const float* values, int64_t skip, int64_t at, int64_t count) {
        __builtin_memcpy(y + at, values + skip, count * 4);
      });
}

inline void normal(const StreamKey& key, uint64_t begin, float* y, int64_t n) {
  constexpr int kPairs = Words::kWords / 2;
  for_uniforms(
      key, begin, n,
      [=](const float* values, int64_t skip, int64_t at, int64_t count) {
        float u[kPairs], turns[kPairs], both[Words::kWords];
        for (int i = 0; i < kPairs; ++i) {
          u[i] = values[2 * i] + 0x1p-24f;
          turns[i] = values[2 * i + 1];
        }
        for (int i = 0; i < kPairs; i += kLanes) {
          F sine, cosine;
          const F radius = A::sqrt(-2.0f * poly::log<A>(A::load(u + i)));
          poly::sincos_turns<A>(A::load(turns + i), &sine, &cosine);
          A::store(u + i, radius * cosine);
          A::store(turns + i, radius * sine);
        }
        for (int i = 0; i < kPairs; ++i) {
          both[2 * i] = u[i];
          both[2 * i + 1] = turns[i];
        }
        __builtin_memcpy(y + at, both + skip, count * 4);
      });
}

inline void dropout(const StreamKey& key, uint64_t begin, const float* x,
                    float* y, int64_t n, float rate, float scale) {
  for_uniforms(
      key, begin, n,
      [=](const float* values, int64_t skip, int64_t at, int64_t count) {
        for_vectors(count, [=](int64_t i, auto part) {
          const F u = part.load(values + skip + i);
          part.store(y + at + i,
                     A::select(u >= rate, part.load(x + at + i) * scale, F{}));
        });
      });
}

}  // namespace berth::cpu::BERTH_ISA_LEVEL

#endif  // BERTH_BACKENDS_CPU_ISA_TRAIN_H_
