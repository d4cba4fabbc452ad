// Sums, maxima, softmax and cross-entropy rows; included once per
// instruction set.

#ifndef BERTH_BACKENDS_CPU_ISA_REDUCE_H_
#define BERTH_BACKENDS_CPU_ISA_REDUCE_H_

#include "backends/cpu/isa/arch.h"

namespace berth::cpu::BERTH_ISA_LEVEL {

// Sums term(i, part) over n with four accumulators in a fixed order; term must
// yield 0 in lanes past the end.
template <class Term>
BERTH_INLINE float sum_terms(int64_t n, Term&& term) {
  F acc[4] = {};
  int64_t i = 0;
  for (; i + 4 * kLanes <= n; i += 4 * kLanes) {
    for (int j = 0; j < 4; ++j) acc[j] += term(i + j * kLanes, Full{});
  }
  for (; i + kLanes <= n; i += kLanes) acc[0] += term(i, Full{});
  if (i < n) acc[1] += term(i, Part{n - i});
  return sum_lanes((acc[0] + acc[1]) + (acc[2] + acc[3]));
}

BERTH_INLINE float max_of(const float* x, int64_t n) {
  F acc[2] = {A::set(-kInfinity), A::set(-kInfinity)};
  int64_t i = 0;
  for (; i + 2 * kLanes <= n; i += 2 * kLanes) {
    acc[0] = max_nan(acc[0], A::load(x + i));
    acc[1] = max_nan(acc[1], A::load(x + i + kLanes));
  }
  for_vectors(n - i, [&](int64_t j, auto part) {
    acc[0] = max_nan(acc[0], part.load(x + i + j, -kInfinity));
  });
  return max_lanes(max_nan(acc[0], acc[1]));
}

inline double sum(const float* x, int64_t n) {
  constexpr int64_t kBlock = 4096;
  double total = 0;
  for (int64_t at = 0; at < n; at += kBlock) {
    const float* p = x + at;
    const int64_t size = n - at < kBlock ? n - at : kBlock;
    total +=
        sum_terms(size, [=](int64_t i, auto part) { return part.load(p + i); });
  }
  return total;
}

inline float max(const float* x, int64_t n) { return max_of(x, n); }

inline void row_sum(const float* x, float* y, int64_t rows, int64_t cols) {
  for (int64_t r = 0; r < rows; ++r) {
    y[r] = static_cast<float>(sum(x + r * cols, cols));
  }
}

// Sums kVectors vectors of columns. Blocks of rows are summed by themselves, so
// that long columns keep their low digits.
template <int kVectors, class Where>
BERTH_INLINE void col_sums(const float* x, float* y, int64_t rows, int64_t ldx,
                           Where part) {
  F total[kVectors] = {};
  for (int64_t at = 0; at < rows; at += 256) {
    const int64_t end = at + 256 < rows ? at + 256 : rows;
    F even[kVectors] = {}, odd[kVectors] = {};
    int64_t r = at;
    for (; r + 2 <= end; r += 2) {
      const float* row = x + r * ldx;
      for (int v = 0; v < kVectors; ++v) {
        even[v] += part.load(row + v * kLanes);
        odd[v] += part.load(row + ldx + v * kLanes);
      }
    }
    for (int v = 0; v < kVectors && r < end; ++v) {
      even[v] += part.load(x + r * ldx + v * kLanes);
    }
    for (int v = 0; v < kVectors; ++v) total[v] += even[v] + odd[v];
  }
  for (int v = 0; v < kVectors; ++v) part.store(y + v * kLanes, total[v]);
}

// As many vectors at once as registers hold: a row gives whole cache lines, of
// which rows at a distance of 4 KiB would push out the rest.
inline void col_sum(const float* x, float* y, int64_t rows, int64_t cols,
                    int64_t ldx) {
  constexpr int kWide = 4;
  int64_t c = 0;
  for (; c + kWide * kLanes <= cols; c += kWide * kLanes) {
    col_sums<kWide>(x + c, y + c, rows, ldx, Full{});
  }
  for_vectors(cols - c, [=](int64_t i, auto part) {
    col_sums<1>(x + c + i, y + c + i, rows, ldx, part);
  });
}

// Writes exp(x - top) to y and returns the sum.
BERTH_INLINE float exp_row(const float* x, float* y, int64_t n, float top) {
  const F shift = A::set(top);
  return sum_terms(n, [=](int64_t i, auto part) {
    const F e = poly::exp<A>(part.load(x + i, top) - shift);
    part.store(y + i, e);
    return part.keep(e);
  });
}

// A row of at most one vector stays in its register: reading back a masked
// store would stall. Returns exp(x - top), zero past the end.
template <class Where>
BERTH_INLINE F exp_short(const float* x, Where part, float* top) {
  const F row = part.load(x, -kInfinity);
  *top = max_lanes(row);
  return part.keep(poly::exp<A>(row - *top));
}

inline void softmax(const float* x, float* y, int64_t rows, int64_t cols) {
  if (cols < kLanes) {
    const Part part{cols};
    for (int64_t r = 0; r < rows; ++r, x += cols, y += cols) {
      float top;
      const F e = exp_short(x, part, &top);
      part.store(y, e * (1.0f / sum_lanes(e)));
    }
    return;
  }
  for (int64_t r = 0; r < rows; ++r, x += cols, y += cols) {
    const F scale = A::set(1.0f / exp_row(x, y, cols, max_of(x, cols)));
    float* out = y;
    for_vectors(cols, [=](int64_t i, auto part) {
      part.store(out + i, part.load(out + i) * scale);
    });
  }
}

BERTH_INLINE float log_one(float x) { return poly::log<A>(A::set(x))[0]; }

// Computes log(sum(exp(x - top))) without storing the exponentials.
BERTH_INLINE float log_sum_exp(const float* x, int64_t n, float top) {
  const F shift = A::set(top);
  return log_one(sum_terms(n, [=](int64_t i, auto part) {
    return part.keep(poly::exp<A>(part.load(x + i, top) - shift));
  }));
}

inline void log_softmax(const float* x, float* y, int64_t rows, int64_t cols) {
  for (int64_t r = 0; r < rows; ++r, x += cols, y += cols) {
    const float top = max_of(x, cols);
    const F shift = A::set(top), norm = A::set(log_sum_exp(x, cols, top));
    const float* in = x;
    float* out = y;
    for_vectors(cols, [=](int64_t i, auto part) {
      part.store(out + i, part.load(in + i) - shift - norm);
    });
  }
}

inline void softmax_grad(const float* y, const float* dy, float* dx,
                         int64_t rows, int64_t cols) {
  for (int64_t r = 0; r < rows; ++r, y += cols, dy += cols, dx += cols) {
    const float *p = y, *d = dy;
    float* out = dx;
    const F dot = A::set(sum_terms(cols, [=](int64_t i, auto part) {
      return part.load(p + i) * part.load(d + i);
    }));
    for_vectors(cols, [=](int64_t i, auto part) {
      part.store(out + i, part.load(p + i) * (part.load(d + i) - dot));
    });
  }
}

inline void log_softmax_grad(const float* y, const float* dy, float* dx,
                             int64_t rows, int64_t cols) {
  for (int64_t r = 0; r < rows; ++r, y += cols, dy += cols, dx += cols) {
    const float *p = y, *d = dy;
    float* out = dx;
    const F total = A::set(sum_terms(
        cols, [=](int64_t i, auto part) { return part.load(d + i); }));
    for_vectors(cols, [=](int64_t i, auto part) {
      part.store(out + i,
                 part.load(d + i) - poly::exp<A>(part.load(p + i)) * total);
    });
  }
}

// loss = sum(labels) * log(sum(exp(x - top))) - sum(labels * (x - top)). Terms
// with label zero do not count, whatever their logit.
inline void xent_dense(const float* logits, const float* labels, float* loss,
                       float* backprop, int64_t rows, int64_t cols) {
  for (int64_t r = 0; r < rows; ++r) {
    const float *x = logits + r * cols, *t = labels + r * cols;
    const float top = max_of(x, cols);
    const F shift = A::set(top);
    const float total = sum_terms(cols, [=](int64_t i, auto part) {
      return part.keep(poly::exp<A>(part.load(x + i, top) - shift));
    });
    const F norm = A::set(log_one(total));
    loss[r] = sum_terms(cols, [=](int64_t i, auto part) {
      const F label = part.load(t + i);
      const F term = label * (norm - (part.load(x + i) - shift));
      return A::select(label == 0.0f, F{}, term);
    });
    if (backprop == nullptr) continue;
    float* out = backprop + r * cols;
    const F scale = A::set(1.0f / total);
    for_vectors(cols, [=](int64_t i, auto part) {
      const F e = poly::exp<A>(part.load(x + i) - shift);
      part.store(out + i, A::madd(e, scale, -part.load(t + i)));
    });
  }
}

// One row of sparse cross-entropy: returns sum(exp(x - top)) and sets
// *margin = x[label] - top, so that loss = log(sum) - margin.
BERTH_INLINE float xent_row(const float* x, int64_t label, float* backprop,
                            int64_t cols, float* margin) {
  if (label < 0 || label >= cols) {
    for (int64_t i = 0; backprop != nullptr && i < cols; ++i) {
      backprop[i] = __builtin_nanf("");
    }
    *margin = __builtin_nanf("");
    return 1.0f;
  }
  if (cols < kLanes) {
    float top;
    const F e = exp_short(x, Part{cols}, &top);
    *margin = x[label] - top;
    const float total = sum_lanes(e);
    if (backprop != nullptr) {
      const F one = A::select(lane_numbers() == static_cast<int32_t>(label),
                              A::set(1.0f), F{});
      Part{cols}.store(backprop, e * (1.0f / total) - one);
    }
    return total;
  }
  const float top = max_of(x, cols);
  *margin = x[label] - top;
  if (backprop == nullptr) {
    const F shift = A::set(top);
    return sum_terms(cols, [=](int64_t i, auto part) {
      return part.keep(poly::exp<A>(part.load(x + i, top) - shift));
    });
  }
  const float total = exp_row(x, backprop, cols, top);
  const F scale = A::set(1.0f / total);
  for_vectors(cols, [=](int64_t i, auto part) {
    part.store(backprop + i, part.load(backprop + i) * scale);
  });
  backprop[label] -= 1.0f;
  return total;
}

template <class Label>
void xent_sparse(const float* logits, const Label* labels, float* loss,
                 float* backprop, int64_t rows, int64_t cols) {
  // Blocks of rows whose logarithms are computed together.
  constexpr int64_t kBlock = 64;
  float totals[kBlock], margins[kBlock];
  for (int64_t at = 0; at < rows; at += kBlock) {
    const int64_t count = rows - at < kBlock ? rows - at : kBlock;
    for (int64_t r = 0; r < count; ++r) {
      const int64_t begin = (at + r) * cols;
      totals[r] = xent_row(logits + begin, static_cast<int64_t>(labels[at + r]),
                           backprop != nullptr ? backprop + begin : nullptr,
                           cols, margins + r);
    }
    for_vectors(count, [&](int64_t r, auto part) {
      part.store(loss + at + r, poly::log<A>(part.load(totals + r, 1.0f)) -
                                    part.load(margins + r));
    });
  }
}

}  // namespace berth::cpu::BERTH_ISA_LEVEL

#endif  // BERTH_BACKENDS_CPU_ISA_REDUCE_H_
