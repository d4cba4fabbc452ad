// Ops whose output shows positions of the input axis by axis: padding, tiling,
// reversing, rolling.

#include <algorithm>

#include "backends/gpu/kernels.h"
#include "backends/gpu/moves.h"

namespace berth::gpu {

namespace {
namespace moved {

using Ints = std::vector<int64_t>;

// SHOW_... of kernels/move.cl.
enum AxisMap : int32_t {
  kShifted,
  kReflected,
  kSymmetric,
  kReversed,
  kWrapped
};

// `Places` of kernels/move.cl.
struct Places {
  int64_t n[kMaxRank] = {};
  int64_t in[kMaxRank] = {};
  int64_t stride[kMaxRank] = {};
  int64_t shift[kMaxRank] = {};
  int32_t how[kMaxRank] = {};
  int32_t rank = 0;
  int32_t narrow = 0;

  bool whole(int d) const {
    return how[d] == kShifted && shift[d] == 0 && n[d] == in[d];
  }
  // Merges neighbouring axes that are shown unchanged into one.
  void add(int64_t out, int64_t inside, int64_t step, AxisMap h, int64_t by) {
    const int last = rank - 1;
    if (h == kShifted && by == 0 && out == inside && last >= 0 && whole(last)) {
      n[last] *= out;
      in[last] *= out;
      stride[last] = step;
      return;
    }
    n[rank] = out;
    in[rank] = inside;
    stride[rank] = step;
    how[rank] = h;
    shift[rank++] = by;
  }
};

// Appends output 0, showing each axis as `how(d, &shift)` says.
template <class Fn>
void show(Recipe& r, Fn&& how, ElementBits none = {}) {
  const Shape &to = r.out_shape(0), &from = r.in_shape(0);
  const Ints strides = row_strides(from);
  Places p;
  for (int d = 0; d < to.rank(); ++d) {
    int64_t shift = 0;
    const AxisMap h = how(d, &shift);
    p.add(to[d], from[d], strides[static_cast<size_t>(d)], h, shift);
  }
  if (p.rank == 0) p.add(1, 1, 1, kShifted, 0);
  const int64_t n = to.num_elements();
  if (n == 0) return;
  p.narrow = narrow_walk(std::max(n, from.num_elements()));
  r.flat(storage_source(r.in_type(0), {"move.cl"}), "show_elements", n,
         {out(0), in(0), value(p), value(none), value(n)});
}

void pad_with(Recipe& r, ElementBits none) {
  const auto& paddings = r.args().attr<Ints>("paddings");
  if (r.in_shape(0).num_elements() == 0) {
    return fill_elements(r, r.out_type(0), out(0), none,
                         r.out_shape(0).num_elements());
  }
  show(
      r,
      [&](int d, int64_t* shift) {
        *shift = -paddings[static_cast<size_t>(2 * d)];
        return kShifted;
      },
      none);
}

bool pad(Recipe& r) {
  pad_with(r, {});
  return true;
}
bool pad_value(Recipe& r) {
  pad_with(r, bits_of(r.in_type(0), r.args().attr<double>("constant_values")));
  return true;
}

bool mirror_pad(Recipe& r) {
  const auto& paddings = r.args().attr<Ints>("paddings");
  const bool reflect = r.args().attr<std::string>("mode") == "REFLECT";
  show(r, [&](int d, int64_t* shift) {
    *shift = -paddings[static_cast<size_t>(2 * d)];
    if (r.in_shape(0)[d] == r.out_shape(0)[d]) return kShifted;
    return reflect ? kReflected : kSymmetric;
  });
  return true;
}

bool reverse(Recipe& r) {
  const Shape& shape = r.out_shape(0);
  bool named[kMaxRank] = {};
  for (const int64_t a : r.args().attr<Ints>("axis")) {
    named[normalize_axis(a, shape.rank(), "ReverseV2")] = true;
  }
  show(r, [&](int d, int64_t*) { return named[d] ? kReversed : kShifted; });
  return true;
}

bool roll(Recipe& r) {
  const Shape& shape = r.out_shape(0);
  const auto& shift = r.args().attr<Ints>("shift");
  const auto& axis = r.args().attr<Ints>("axis");
  int64_t by[kMaxRank] = {};
  for (size_t i = 0; i < axis.size(); ++i) {
    const int d = normalize_axis(axis[i], shape.rank(), "Roll");
    if (shape[d] > 0) by[d] = (by[d] + shift[i] % shape[d]) % shape[d];
  }
  show(r, [&](int d, int64_t* to) {
    *to = by[d] > 0 ? shape[d] - by[d] : -by[d];
    return *to == 0 ? kShifted : kWrapped;
  });
  return true;
}

bool tile(Recipe& r) {
  show(r, [&](int d, int64_t*) {
    return r.in_shape(0)[d] == r.out_shape(0)[d] ? kShifted : kWrapped;
  });
  return true;
}

}  // namespace moved
}  // namespace

void add_pad_tile_reverse(Kernels& k) {
  k.add("Pad", kEveryType, &moved::pad);
  k.add("PadV2", kEveryType, &moved::pad_value);
  k.add("MirrorPad", kEveryType, &moved::mirror_pad);
  k.add("ReverseV2", kEveryType, &moved::reverse);
  k.add("Roll", kEveryType, &moved::roll);
  k.add("Tile", kEveryType, &moved::tile);
}

}  // namespace berth::gpu
