// Transpose, Concat, Unpack, Tile and their gradients.

#include <cstring>

#include "backends/reference/loops.h"
#include "backends/reference/reference.h"
#include "backends/reference/scratch.h"

namespace berth::reference {

namespace {

using Ints = std::vector<int64_t>;

void transpose(const KernelCall& c) {
  const Ints& perm = c.attr<Ints>("perm");
  const auto own = dense_strides(*c.in[0].shape);
  std::array<int64_t, kMaxRank> strides{};
  for (size_t i = 0; i < perm.size(); ++i) strides[i] = own[perm[i]];
  with_storage(c.in[0].dtype, [&]<class T>(T) {
    const T* x = c.in[0].as<T>();
    T* y = c.out[0].as<T>();
    for_each_strided(*c.out[0].shape, strides, 0,
                     [&](int64_t i, int64_t from) { y[i] = x[from]; });
  });
}

// Copies rows of `bytes` between two arrays with these row strides.
void copy_rows(std::byte* to, size_t to_step, const std::byte* from,
               size_t from_step, size_t bytes, int64_t rows) {
  if (bytes == 0) return;
  for (int64_t r = 0; r < rows; ++r) {
    std::memcpy(to + static_cast<size_t>(r) * to_step,
                from + static_cast<size_t>(r) * from_step, bytes);
  }
}

// The layout of the parts of a joined array: `rows` rows, each holding one
// block of every part after the other.
struct Rows {
  int64_t count;
  size_t bytes;
};
Rows rows_of(const View& whole, int axis) {
  const Shape& s = *whole.shape;
  return {product_of(s, 0, axis),
          static_cast<size_t>(product_of(s, axis, s.rank())) *
              size_of(whole.dtype)};
}
size_t block_bytes(const View& part, const Rows& rows) {
  return rows.count == 0 ? 0
                         : static_cast<size_t>(part.size() / rows.count) *
                               size_of(part.dtype);
}

int joined_axis(const KernelCall& c, const View& whole) {
  return normalize_axis(c.attr<int64_t>("axis"), whole.shape->rank(),
                        c.op->name().c_str());
}

void join(const KernelCall& c) {
  const Rows rows = rows_of(c.out[0], joined_axis(c, c.out[0]));
  auto* to = c.out[0].as<std::byte>();
  for (int p = 0; p < c.num_in; ++p) {
    const size_t bytes = block_bytes(c.in[p], rows);
    copy_rows(to, rows.bytes, c.in[p].as<std::byte>(), bytes, bytes,
              rows.count);
    to += bytes;
  }
}

void unpack(const KernelCall& c) {
  const Rows rows = rows_of(c.in[0], joined_axis(c, c.in[0]));
  const auto* from = c.in[0].as<std::byte>();
  for (int p = 0; p < c.num_out; ++p) {
    const size_t bytes = block_bytes(c.out[p], rows);
    copy_rows(c.out[p].as<std::byte>(), bytes, from, rows.bytes, bytes,
              rows.count);
    from += bytes;
  }
}

void concat_grad(const KernelCall& c) {
  const Rows rows = rows_of(c.in[0], joined_axis(c, c.in[0]));
  const auto* from = c.in[0].as<std::byte>();
  const int64_t index = c.attr<int64_t>("index");
  for (int p = 1; p <= index; ++p) {
    from += rows.count == 0 ? 0
                            : static_cast<size_t>(c.in[p].size() / rows.count) *
                                  size_of(c.in[0].dtype);
  }
  const size_t bytes = block_bytes(c.out[0], rows);
  copy_rows(c.out[0].as<std::byte>(), bytes, from, rows.bytes, bytes,
            rows.count);
}

// Calls fn(i, o): element i of the tiled array repeats element o of `one`.
template <class Fn>
void for_each_tiled(const Shape& tiled, const Shape& one, Fn&& fn) {
  const auto strides = dense_strides(one);
  for (int64_t i = 0, n = tiled.num_elements(); i < n; ++i) {
    int64_t rest = i, o = 0;
    for (int d = tiled.rank() - 1; d >= 0; --d) {
      o += rest % tiled[d] % one[d] * strides[d];
      rest /= tiled[d];
    }
    fn(i, o);
  }
}

void tile(const KernelCall& c) {
  with_storage(c.in[0].dtype, [&]<class T>(T) {
    const T* x = c.in[0].as<T>();
    T* y = c.out[0].as<T>();
    for_each_tiled(*c.out[0].shape, *c.in[0].shape,
                   [&](int64_t i, int64_t o) { y[i] = x[o]; });
  });
}

void tile_grad(const KernelCall& c) {
  with_ring(c.in[0].dtype, [&]<class T>(T) {
    const T* dy = c.in[0].as<T>();
    Scratch<Wide<T>> sums(static_cast<size_t>(c.out[0].size()));
    for_each_tiled(*c.in[0].shape, *c.out[0].shape, [&](int64_t i, int64_t o) {
      sums[o] += static_cast<Wide<T>>(dy[i]);
    });
    T* dx = c.out[0].as<T>();
    for (size_t o = 0; o < sums.size(); ++o) dx[o] = static_cast<T>(sums[o]);
  });
}

}  // namespace

void add_layout(KernelTable& t) {
  t.direct("Transpose", kEveryType, &transpose, "reference");
  t.direct("ConcatV2", kEveryType, &join, "reference");
  t.direct("ConcatGrad", kEveryType, &concat_grad, "reference");
  t.direct("Pack", kEveryType, &join, "reference");
  t.direct("Unpack", kEveryType, &unpack, "reference");
  t.direct("Split", kEveryType, &unpack, "reference");
  t.direct("SplitV", kEveryType, &unpack, "reference");
  t.direct("Tile", kEveryType, &tile, "reference");
  t.direct("TileGrad", kRingTypes, &tile_grad, "reference");
  t.direct("TileGradLike", kRingTypes, &tile_grad, "reference");
}

}  // namespace berth::reference
