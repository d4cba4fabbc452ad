// Transposition and broadcasting of 32-bit and 16-bit elements; tiling.

#include <algorithm>
#include <cstring>

#include "backends/cpu/kernels.h"
#include "backends/cpu/loops.h"
#include "backends/reference/loops.h"
#include "backends/reference/reference.h"

namespace berth::cpu {

namespace {

// A permutation without axes of size 1, and with neighbours that stay together
// merged into one axis.
struct Permutation {
  Shape in;                  // merged
  int order[kMaxRank] = {};  // output axis -> axis of `in`

  Permutation(const Shape& shape, const std::vector<int64_t>& perm) {
    int at_input[kMaxRank] = {};  // merged axis that begins there
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

void transpose_matrix(const float* x, int64_t rows, int64_t cols, float* y) {
  loops().transpose(x, rows, cols, cols, y, rows);
}
// Works on blocks whose lines stay in the first-level cache.
template <class T>
void transpose_matrix(const T* x, int64_t rows, int64_t cols, T* y) {
  constexpr int64_t kSide = 32;
  for (int64_t r = 0; r < rows; r += kSide) {
    const int64_t r_end = std::min(r + kSide, rows);
    for (int64_t k = 0; k < cols; k += kSide) {
      const int64_t k_end = std::min(k + kSide, cols);
      for (int64_t j = k; j < k_end; ++j) {
        for (int64_t i = r; i < r_end; ++i) y[j * rows + i] = x[i * cols + j];
      }
    }
  }
}

void fill_run(float v, float* y, int64_t n) { loops().fill(v, y, n); }
void fill_run(uint16_t v, uint16_t* y, int64_t n) { std::fill_n(y, n, v); }

void run_plain_move(const KernelCall& c) {
  reference::kernels().fast(c.op->id(), c.in[0].dtype)(c);
}

template <class T>
size_t run_bytes(int64_t n) {
  return static_cast<size_t>(n) * sizeof(T);
}

template <class T>
void transpose(const KernelCall& c) {
  const Permutation p(*c.in[0].shape, c.attr<std::vector<int64_t>>("perm"));
  const T* x = c.in[0].as<T>();
  T* y = c.out[0].as<T>();
  const int64_t n = c.out[0].size();
  const int rank = p.in.rank();
  if (n == 0) return;
  if (rank <= 1) {
    std::memcpy(y, x, run_bytes<T>(n));
    return;
  }
  if (p.order[rank - 1] == rank - 2 && p.order[rank - 2] == rank - 1 &&
      (rank == 2 || (rank == 3 && p.order[0] == 0))) {
    const int64_t rows = p.in[rank - 2], cols = p.in[rank - 1];
    for (int64_t at = 0; at < n; at += rows * cols) {
      transpose_matrix(x + at, rows, cols, y + at);
    }
    return;
  }
  if (p.order[rank - 1] != rank - 1) return run_plain_move(c);
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
    std::memcpy(y + i * run, x + from, run_bytes<T>(run));
  });
}

template <class T>
void broadcast(const KernelCall& c) {
  const T* x = c.in[0].as<T>();
  T* y = c.out[0].as<T>();
  const int64_t n = c.out[0].size();
  if (n == 0) return;
  const Spread s = spread_of(*c.in[0].shape, *c.out[0].shape);
  switch (s.kind) {
    case Spread::Kind::kSame:
      std::memcpy(y, x, run_bytes<T>(n));
      return;
    case Spread::Kind::kScalar:
      fill_run(*x, y, n);
      return;
    case Spread::Kind::kRows:
      for (int64_t o = 0; o < s.outer; ++o, x += s.cols) {
        for (int64_t r = 0; r < s.rows; ++r, y += s.cols) {
          std::memcpy(y, x, run_bytes<T>(s.cols));
        }
      }
      return;
    case Spread::Kind::kCols:
      for (int64_t r = 0; r < s.rows; ++r) {
        fill_run(x[r], y + r * s.cols, s.cols);
      }
      return;
    case Spread::Kind::kOther:
      return run_plain_move(c);
  }
}

struct Tiling {
  const Shape& in;
  const Shape& out;
  int whole = 0;   // from this axis on nothing is repeated
  size_t run = 0;  // bytes of those axes
};

// Tiles axes from `axis` on: reads on from x, returns the bytes written to y.
size_t tile_axes(const Tiling& t, int axis, const std::byte*& x, std::byte* y) {
  if (axis == t.whole) {
    std::memcpy(y, x, t.run);
    x += t.run;
    return t.run;
  }
  size_t once = 0;
  if (axis + 1 == t.whole) {
    once = static_cast<size_t>(t.in[axis]) * t.run;
    std::memcpy(y, x, once);
    x += once;
  } else {
    for (int64_t i = 0; i < t.in[axis]; ++i) {
      once += tile_axes(t, axis + 1, x, y + once);
    }
  }
  // Copies what is there, ever more of it.
  const size_t all = static_cast<size_t>(t.out[axis] / t.in[axis]) * once;
  for (size_t done = once; done < all; done += std::min(done, all - done)) {
    std::memcpy(y + done, y, std::min(done, all - done));
  }
  return all;
}

void tile(const KernelCall& c) {
  if (c.out[0].size() == 0) return;
  Tiling t{*c.in[0].shape, *c.out[0].shape, c.in[0].shape->rank(),
           size_of(c.in[0].dtype)};
  while (t.whole > 0 && t.in[t.whole - 1] == t.out[t.whole - 1]) {
    t.run *= static_cast<size_t>(t.in[--t.whole]);
  }
  const auto* x = c.in[0].as<std::byte>();
  tile_axes(t, 0, x, c.out[0].as<std::byte>());
}

// Reverses the named axes from `axis` on.
template <class T>
void reverse_axes(const Shape& shape, const bool* named, int axis, int64_t size,
                  const T* x, T* y) {
  if (axis + 1 >= shape.rank()) {
    axis < shape.rank() && named[axis] ? std::reverse_copy(x, x + size, y)
                                       : std::copy(x, x + size, y);
    return;
  }
  const int64_t n = shape[axis], inner = size / n;
  for (int64_t i = 0; i < n; ++i) {
    const int64_t from = named[axis] ? n - 1 - i : i;
    reverse_axes(shape, named, axis + 1, inner, x + from * inner,
                 y + i * inner);
  }
}

void reverse(const KernelCall& c) {
  const Shape& shape = *c.out[0].shape;
  if (c.out[0].size() == 0) return;
  bool named[kMaxRank] = {};
  for (const int64_t a : c.attr<std::vector<int64_t>>("axis")) {
    named[a < 0 ? a + shape.rank() : a] = true;
  }
  reference::with_storage(c.out[0].dtype, [&]<class T>(T) {
    reverse_axes(shape, named, 0, c.out[0].size(), c.in[0].as<T>(),
                 c.out[0].as<T>());
  });
}

}  // namespace

void add_layout(KernelTable& t) {
  t.direct("Transpose", kFloat32, &transpose<float>, "loops");
  t.direct("Transpose", dtype_bit(int32), &transpose<float>, "loops");
  t.direct("Transpose", dtype_bit(int64) | dtype_bit(float64),
           &transpose<uint64_t>, "loops");
  t.direct("Transpose", kHalfTypes, &transpose<uint16_t>, "loops");
  t.direct("ReverseV2", kEveryType, &reverse, "loops");
  for (const char* op : {"BroadcastTo", "BroadcastLike"}) {
    t.direct(op, kFloat32, &broadcast<float>, "loops");
    t.direct(op, kHalfTypes, &broadcast<uint16_t>, "loops");
  }
  t.direct("Tile", kEveryType, &tile, "loops");
}

}  // namespace berth::cpu
