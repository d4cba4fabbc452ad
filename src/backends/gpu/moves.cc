#include "backends/gpu/moves.h"

#include "tensor/visit_dtype.h"

namespace berth::gpu {

namespace {
namespace moves {

constexpr int64_t kTile = 32;  // TILE of kernels/move.cl
// Shorter axes do not pay for a tile.
constexpr int64_t kLeastTiled = 8;

// `Move` of kernels/move.cl.
struct Move {
  int64_t n[kMaxRank] = {};
  int64_t to[kMaxRank] = {};
  int64_t from[kMaxRank] = {};
  int64_t to_start = 0;
  int64_t from_start = 0;
  int32_t rank = 0;
  int32_t narrow = 0;

  void add(int64_t size, int64_t to_step, int64_t from_step) {
    n[rank] = size;
    to[rank] = to_step;
    from[rank++] = from_step;
  }
};

// Drops axes of 1 and merges neighbours that both arrays step through alike.
Move merged(const Shape& shape, const StridedView& to,
            const StridedView& from) {
  Move m;
  m.to_start = to.start;
  m.from_start = from.start;
  m.narrow = narrow_walk(shape.num_elements());
  for (int d = 0; d < shape.rank(); ++d) {
    const auto k = static_cast<size_t>(d);
    const int64_t n = shape[d], a = to.strides[k], b = from.strides[k];
    const int last = m.rank - 1;
    if (n == 1) continue;
    if (last >= 0 && m.to[last] == a * n && m.from[last] == b * n) {
      m.n[last] *= n;
      m.to[last] = a;
      m.from[last] = b;
    } else {
      m.add(n, a, b);
    }
  }
  if (m.rank == 0) m.add(1, 1, 1);
  return m;
}

// Returns the axis that is dense in the source, if tiles of it and of the last
// axis pay; else -1.
int tiled_axis(const Move& m) {
  const int last = m.rank - 1;
  if (m.to[last] != 1 || m.n[last] < kLeastTiled) return -1;
  for (int d = 0; d < last; ++d) {
    if (m.from[d] == 1 && m.n[d] >= kLeastTiled) return d;
  }
  return -1;
}

int64_t tiles(int64_t n) { return (n + kTile - 1) / kTile; }

void move_tiles(Recipe& r, const KernelSource& source, const Move& m, int axis,
                const Arg& to, const Arg& from) {
  Move t;
  t.to_start = m.to_start;
  t.from_start = m.from_start;
  t.narrow = m.narrow;
  int64_t count = tiles(m.n[axis]) * tiles(m.n[m.rank - 1]);
  for (int d = 0; d + 1 < m.rank; ++d) {
    if (d == axis) continue;
    t.add(m.n[d], m.to[d], m.from[d]);
    count *= m.n[d];
  }
  t.add(m.n[axis], m.to[axis], m.from[axis]);
  t.add(m.n[m.rank - 1], m.to[m.rank - 1], m.from[m.rank - 1]);
  r.groups(source, "transpose_tiles", count, {to, from, value(t)});
}

}  // namespace moves
}  // namespace

ElementBits bits_of(DType dtype, double x) {
  ElementBits bits;
  visit_dtype(dtype, "an element", [&](auto type) {
    const auto v = convert_element<decltype(type)>(x);
    std::memcpy(static_cast<void*>(&bits), &v, sizeof v);
  });
  return bits;
}

KernelSource storage_source(DType dtype, std::vector<std::string> files) {
  KernelSource s;
  s.files = {"index.cl", "storage.cl", "quotient.cl"};
  s.files.insert(s.files.end(), files.begin(), files.end());
  s.defines = {{"E_SIZE", std::to_string(size_of(dtype))}};
  return s;
}

int64_t elements_between(const Shape& shape, int from, int to) {
  int64_t n = 1;
  for (int d = from; d < to; ++d) n *= shape[d];
  return n;
}

std::vector<int64_t> row_strides(const Shape& shape) {
  std::vector<int64_t> strides(static_cast<size_t>(shape.rank()));
  int64_t stride = 1;
  for (int d = shape.rank() - 1; d >= 0; --d) {
    strides[static_cast<size_t>(d)] = stride;
    stride *= shape[d];
  }
  return strides;
}

int32_t narrow_walk(int64_t n) { return n < INT32_MAX ? 1 : 0; }

void move_elements(Recipe& r, DType dtype, const Shape& shape,
                   const StridedView& to, const StridedView& from) {
  const int64_t n = shape.num_elements();
  if (n == 0) return;
  const auto size = static_cast<size_t>(size_of(dtype));
  const moves::Move m = moves::merged(shape, to, from);
  if (m.rank == 1 && m.to[0] == 1 && m.from[0] == 1) {
    return r.copy(to.memory + static_cast<size_t>(to.start) * size,
                  from.memory + static_cast<size_t>(from.start) * size,
                  static_cast<size_t>(n) * size);
  }
  const KernelSource source = storage_source(dtype, {"move.cl"});
  if (const int axis = moves::tiled_axis(m); axis >= 0) {
    return moves::move_tiles(r, source, m, axis, to.memory, from.memory);
  }
  r.flat(source, "move_elements", n,
         {to.memory, from.memory, value(m), value(n)});
}

void fill_elements(Recipe& r, DType dtype, const Arg& target, ElementBits bits,
                   int64_t n) {
  r.flat(storage_source(dtype, {"move.cl"}), "fill_elements", n,
         {target, value(bits), value(n)});
}

}  // namespace berth::gpu
