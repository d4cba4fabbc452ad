// Transposition and broadcasting.

#include <cstring>

#include "backends/cpu/kernels.h"
#include "backends/cpu/loops.h"
#include "backends/reference/loops.h"

namespace berth::cpu {

namespace {

// A permutation with axes of size 1 left out and neighbours that stay
// together merged into one axis.
struct Permutation {
  Shape in;                  // merged
  int order[kMaxRank] = {};  // output axis -> axis of `in`

  Permutation(const Shape& shape, const std::vector<int64_t>& perm) {
    int at_input[kMaxRank] = {};  // merged axis that begins at input axis
    bool begins[kMaxRank] = {};
    int64_t last = -2;
    for (const int64_t axis : perm) {
      if (shape[static_cast<int>(axis)] == 1) continue;
      int64_t next = last + 1;
      while (next >= 0 && next < axis && shape[static_cast<int>(next)] == 1) {
        ++next;
      }
      begins[axis] = last < 0 || next != axis;
      last = axis;
    }
    for (int i = 0; i < shape.rank(); ++i) {
      if (shape[i] == 1) continue;
      if (begins[i]) {
        at_input[i] = in.rank();
        in.push_back(shape[i]);
      } else {
        in[in.rank() - 1] *= shape[i];
      }
    }
    int out = 0;
    for (const int64_t axis : perm) {
      if (begins[axis]) order[out++] = at_input[axis];
    }
  }
};

void transpose(const KernelCall& c) {
  const Permutation p(*c.in[0].shape, c.attr<std::vector<int64_t>>("perm"));
  const float* x = c.in[0].as<float>();
  float* y = c.out[0].as<float>();
  const int64_t n = c.out[0].size();
  const int rank = p.in.rank();
  if (n == 0) return;
  if (rank <= 1) {
    std::memcpy(y, x, float_bytes(n));
    return;
  }
  if (p.order[rank - 1] == rank - 2 && p.order[rank - 2] == rank - 1 &&
      (rank == 2 || (rank == 3 && p.order[0] == 0))) {
    const int64_t rows = p.in[rank - 2], cols = p.in[rank - 1];
    for (int64_t at = 0; at < n; at += rows * cols) {
      loops().transpose(x + at, rows, cols, cols, y + at, rows);
    }
    return;
  }
  if (p.order[rank - 1] != rank - 1) return run_reference(c);
  // Runs of the last axis stay together.
  const auto own = reference::dense_strides(p.in);
  std::array<int64_t, kMaxRank> strides{};
  Shape outer;
  for (int i = 0; i + 1 < rank; ++i) {
    outer.push_back(p.in[p.order[i]]);
    strides[i] = own[p.order[i]];
  }
  const int64_t run = p.in[rank - 1];
  reference::for_each_strided(outer, strides, 0, [&](int64_t i, int64_t from) {
    std::memcpy(y + i * run, x + from, float_bytes(run));
  });
}

void broadcast(const KernelCall& c) {
  const float* x = c.in[0].as<float>();
  float* y = c.out[0].as<float>();
  const int64_t n = c.out[0].size();
  if (n == 0) return;
  const Spread s = spread_of(*c.in[0].shape, *c.out[0].shape);
  switch (s.kind) {
    case Spread::Kind::kSame:
      std::memcpy(y, x, float_bytes(n));
      return;
    case Spread::Kind::kScalar:
      loops().fill(*x, y, n);
      return;
    case Spread::Kind::kRows:
      for (int64_t o = 0; o < s.outer; ++o, x += s.cols) {
        for (int64_t r = 0; r < s.rows; ++r, y += s.cols) {
          std::memcpy(y, x, float_bytes(s.cols));
        }
      }
      return;
    case Spread::Kind::kCols:
      for (int64_t r = 0; r < s.rows; ++r) {
        loops().fill(x[r], y + r * s.cols, s.cols);
      }
      return;
    case Spread::Kind::kOther:
      return run_reference(c);
  }
}

}  // namespace

void add_layout(KernelTable& t) {
  t.direct("Transpose", kFloat32, &transpose, "loops");
  t.direct("BroadcastTo", kFloat32, &broadcast, "loops");
  t.direct("BroadcastLike", kFloat32, &broadcast, "loops");
}

}  // namespace berth::cpu
