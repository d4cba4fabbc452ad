// Gradients of Tile and MirrorPad: sums over copies.

#include "backends/gpu/kernels.h"
#include "backends/gpu/moves.h"

namespace berth::gpu {

namespace {
namespace tile_gradients {

using Ints = std::vector<int64_t>;

// With more copies than this, a group sums them.
constexpr int64_t kManyCopies = 64;

KernelSource fold_source(DType dtype) {
  KernelSource s;
  s.files = {"index.cl", "fold.cl"};
  s.types = {{"T", dtype}};
  return s;
}

bool tile_grad(Recipe& r) {
  const Shape &tiled = r.in_shape(0), &one = r.out_shape(0);
  const Ints strides = row_strides(tiled);
  Shape copies;
  Ints steps;
  for (int d = 0; d < one.rank(); ++d) {
    copies.push_back(one[d] == 0 ? 0 : tiled[d] / one[d]);
    steps.push_back(one[d] * strides[static_cast<size_t>(d)]);
  }
  const int64_t n = one.num_elements(), m = copies.num_elements();
  const Strided places = strided(one, strides.data());
  const Strided walk = strided(copies, steps.data());
  const KernelSource source = fold_source(r.in_type(0));
  if (m > kManyCopies) {
    r.groups(source, "sum_many_copies", n,
             {out(0), in(0), value(places), value(walk), value(m)});
  } else {
    r.flat(source, "sum_copies", n,
           {out(0), in(0), value(places), value(walk), value(n), value(m)});
  }
  return true;
}

// `Mirrors` of kernels/fold.cl.
struct Mirrors {
  int64_t n[kMaxRank] = {};
  int64_t before[kMaxRank] = {};
  int64_t padded[kMaxRank] = {};
  int64_t stride[kMaxRank] = {};
  int32_t rank = 0;
  int32_t edge = 0;
};

bool mirror_pad_grad(Recipe& r) {
  const auto& paddings = r.args().attr<Ints>("paddings");
  const Shape &padded = r.in_shape(0), &inside = r.out_shape(0);
  const Ints strides = row_strides(padded);
  Mirrors m;
  m.edge = r.args().attr<std::string>("mode") == "REFLECT" ? 0 : 1;
  bool last_whole = false;
  for (int d = 0; d < inside.rank(); ++d) {
    const auto k = static_cast<size_t>(d);
    const bool whole = inside[d] == padded[d];
    if (whole && last_whole) {
      m.n[m.rank - 1] *= inside[d];
      m.padded[m.rank - 1] *= inside[d];
      m.stride[m.rank - 1] = strides[k];
      continue;
    }
    m.n[m.rank] = inside[d];
    m.before[m.rank] = paddings[2 * k];
    m.padded[m.rank] = padded[d];
    m.stride[m.rank++] = strides[k];
    last_whole = whole;
  }
  const int64_t n = inside.num_elements();
  r.flat(fold_source(r.in_type(0)), "sum_mirrored", n,
         {out(0), in(0), value(m), value(n)});
  return true;
}

}  // namespace tile_gradients
}  // namespace

void add_tile_grads(Kernels& k) {
  k.add("TileGrad", kEveryNumber, &tile_gradients::tile_grad);
  k.add("TileGradLike", kEveryNumber, &tile_gradients::tile_grad);
  k.add("MirrorPadGrad", kRealNumbers, &tile_gradients::mirror_pad_grad);
}

}  // namespace berth::gpu
