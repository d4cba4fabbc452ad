// Ops that move elements: layout, slices, joining, padding, broadcasting.

#include <algorithm>

#include "backends/gpu/kernels.h"
#include "backends/gpu/moves.h"
#include "op/slice_spec.h"

namespace berth::gpu {

namespace {
namespace movement {

using Ints = std::vector<int64_t>;

Walk dense(const Arg& memory, const Shape& shape) {
  return {memory, row_strides(shape), 0};
}

bool transpose(Recipe& r) {
  const auto& perm = r.args().attr<Ints>("perm");
  const Ints own = row_strides(r.in_shape(0));
  Walk from{in(0), Ints(own.size()), 0};
  for (size_t i = 0; i < perm.size(); ++i) {
    from.strides[i] = own[static_cast<size_t>(perm[i])];
  }
  move_elements(r, r.in_type(0), r.out_shape(0), dense(out(0), r.out_shape(0)),
                from);
  return true;
}

bool broadcast_to(Recipe& r) {
  const Shape &small = r.in_shape(0), &large = r.out_shape(0);
  const Ints own = row_strides(small);
  Walk from{in(0), Ints(static_cast<size_t>(large.rank())), 0};
  const int missing = large.rank() - small.rank();
  for (int d = 0; d < small.rank(); ++d) {
    if (small[d] == 1) continue;
    from.strides[static_cast<size_t>(d + missing)] =
        own[static_cast<size_t>(d)];
  }
  move_elements(r, r.in_type(0), large, dense(out(0), large), from);
  return true;
}

// Blocks of joined arrays: `rows` of them one after the other, in `whole` one
// of every part in turn.
struct Blocks {
  int64_t rows;
  int64_t step;  // elements of a row of the whole
  int64_t at = 0;

  Blocks(const Recipe& r, const Shape& whole) {
    const int axis = normalize_axis(r.args().attr<int64_t>("axis"),
                                    whole.rank(), r.args().op->name().c_str());
    rows = elements_between(whole, 0, axis);
    step = elements_between(whole, axis, whole.rank());
  }
  int64_t block(const Shape& part) const {
    return rows == 0 ? 0 : part.num_elements() / rows;
  }
};

bool join(Recipe& r) {
  Blocks b(r, r.out_shape(0));
  for (int p = 0; p < r.num_in(); ++p) {
    const int64_t n = b.block(r.in_shape(p));
    move_elements(r, r.in_type(0), Shape{b.rows, n},
                  {out(0), {b.step, 1}, b.at}, {in(p), {n, 1}, 0});
    b.at += n;
  }
  return true;
}

bool separate(Recipe& r) {
  Blocks b(r, r.in_shape(0));
  for (int p = 0; p < r.num_out(); ++p) {
    const int64_t n = b.block(r.out_shape(p));
    move_elements(r, r.in_type(0), Shape{b.rows, n}, {out(p), {n, 1}, 0},
                  {in(0), {b.step, 1}, b.at});
    b.at += n;
  }
  return true;
}

bool concat_grad(Recipe& r) {
  Blocks b(r, r.in_shape(0));
  const int64_t index = r.args().attr<int64_t>("index");
  for (int p = 1; p <= index; ++p) b.at += b.block(r.in_shape(p));
  const int64_t n = b.block(r.out_shape(0));
  move_elements(r, r.in_type(0), Shape{b.rows, n}, {out(0), {n, 1}, 0},
                {in(0), {b.step, 1}, b.at});
  return true;
}

bool slice(Recipe& r) {
  const auto& begin = r.args().attr<Ints>("begin");
  Walk from = dense(in(0), r.in_shape(0));
  for (size_t i = 0; i < begin.size(); ++i) {
    from.start += begin[i] * from.strides[i];
  }
  move_elements(r, r.in_type(0), r.out_shape(0), dense(out(0), r.out_shape(0)),
                from);
  return true;
}

// The places of a strided slice inside `full`; *shape: with the axes that an
// index drops.
Walk slice_places(const Recipe& r, const Arg& memory, const Shape& full,
                  Shape* shape) {
  const auto axes = slice_axes(*r.args().op, r.args().attrs, full);
  Walk w = dense(memory, full);
  for (int d = 0; d < full.rank(); ++d) {
    const SliceAxis& a = axes[static_cast<size_t>(d)];
    int64_t& stride = w.strides[static_cast<size_t>(d)];
    w.start += a.begin * stride;
    stride *= a.stride;
    shape->push_back(a.size);
  }
  return w;
}

bool strided_slice(Recipe& r) {
  Shape shape;
  const Walk from = slice_places(r, in(0), r.in_shape(0), &shape);
  move_elements(r, r.in_type(0), shape, dense(out(0), shape), from);
  return true;
}

void put_slice(Recipe& r, int part) {
  Shape shape;
  const Walk to = slice_places(r, out(0), r.out_shape(0), &shape);
  move_elements(r, r.in_type(part), shape, to, dense(in(part), shape));
}

size_t out_bytes(const Recipe& r) {
  return static_cast<size_t>(r.out_shape(0).num_elements()) *
         size_of(r.out_type(0));
}

bool strided_slice_grad(Recipe& r) {
  r.fill(out(0), 0, out_bytes(r));
  put_slice(r, 0);
  return true;
}

bool slice_update(Recipe& r) {
  r.copy(out(0), in(0), out_bytes(r));
  put_slice(r, 1);
  return true;
}

// SHOW_... of kernels/move.cl.
enum How : int32_t { kShifted, kReflected, kSymmetric, kReversed, kWrapped };

// `Places` of kernels/move.cl.
struct Places {
  int64_t n[kMaxRank] = {};
  int64_t in[kMaxRank] = {};
  int64_t stride[kMaxRank] = {};
  int64_t shift[kMaxRank] = {};
  int32_t how[kMaxRank] = {};
  int64_t runs = 0;
  int32_t rank = 0;
  int32_t narrow = 0;

  bool whole(int d) const {
    return how[d] == kShifted && shift[d] == 0 && n[d] == in[d];
  }
  // Neighbours that are shown as they are become one axis.
  void add(int64_t out, int64_t inside, int64_t step, How h, int64_t by) {
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

// Appends output 0 as `how(d, &shift)` says of each axis.
template <class Fn>
void show(Recipe& r, Fn&& how, ElementBits none = {}) {
  const Shape &to = r.out_shape(0), &from = r.in_shape(0);
  const Ints strides = row_strides(from);
  Places p;
  for (int d = 0; d < to.rank(); ++d) {
    int64_t shift = 0;
    const How h = how(d, &shift);
    p.add(to[d], from[d], strides[static_cast<size_t>(d)], h, shift);
  }
  if (p.rank == 0) p.add(1, 1, 1, kShifted, 0);
  const int64_t n = to.num_elements(), inner = p.n[p.rank - 1];
  if (n == 0) return;
  p.runs = runs_of(r.features(), inner);
  p.narrow = narrow_walk(std::max(n, from.num_elements()));
  const int64_t items = n / inner * p.runs;
  r.flat(storage_source(r.in_type(0), {"move.cl"}), "show_elements", items,
         {out(0), in(0), value(p), value(none), value(items)});
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

// Bytes that are known now.
template <class T>
void put(Recipe& r, const std::vector<T>& numbers) {
  struct {
    unsigned char b[64];
  } bytes = {};
  const auto n = static_cast<int64_t>(numbers.size() * sizeof(T));
  if (n > 0) std::memcpy(bytes.b, numbers.data(), static_cast<size_t>(n));
  r.flat(storage_source(uint8, {"move.cl"}), "put_bytes", n,
         {out(0), value(bytes), value(n)});
}

void put_indices(Recipe& r, const Ints& numbers) {
  if (r.out_type(0) == int64) return put(r, numbers);
  put(r, std::vector<int32_t>(numbers.begin(), numbers.end()));
}

bool shape_of(Recipe& r) {
  put_indices(r, Ints(r.in_shape(0).begin(), r.in_shape(0).end()));
  return true;
}
bool size_of_input(Recipe& r) {
  put_indices(r, {r.in_shape(0).num_elements()});
  return true;
}
bool rank_of(Recipe& r) {
  put_indices(r, {r.in_shape(0).rank()});
  return true;
}

bool size_ratio(Recipe& r) {
  const double ratio = static_cast<double>(r.in_shape(0).num_elements()) /
                       static_cast<double>(r.in_shape(1).num_elements());
  fill_elements(r, r.out_type(0), out(0), bits_of(r.out_type(0), ratio), 1);
  return true;
}

}  // namespace movement
}  // namespace

void add_tile_grads(Kernels& k);  // repeats.cc

void add_movement(Kernels& k) {
  k.add("Transpose", kEveryType, &movement::transpose);
  k.add("BroadcastTo", kEveryType, &movement::broadcast_to);
  k.add("BroadcastLike", kEveryType, &movement::broadcast_to);
  k.add("ConcatV2", kEveryType, &movement::join);
  k.add("ConcatGrad", kEveryType, &movement::concat_grad);
  k.add("Pack", kEveryType, &movement::join);
  k.add("Unpack", kEveryType, &movement::separate);
  k.add("Split", kEveryType, &movement::separate);
  k.add("SplitV", kEveryType, &movement::separate);
  k.add("Slice", kEveryType, &movement::slice);
  k.add("StridedSlice", kEveryType, &movement::strided_slice);
  k.add("StridedSliceGrad", kEveryType, &movement::strided_slice_grad);
  k.add("StridedSliceGradLike", kEveryType, &movement::strided_slice_grad);
  k.add("TensorStridedSliceUpdate", kEveryType, &movement::slice_update);
  k.add("Pad", kEveryType, &movement::pad);
  k.add("PadV2", kEveryType, &movement::pad_value);
  k.add("MirrorPad", kEveryType, &movement::mirror_pad);
  k.add("ReverseV2", kEveryType, &movement::reverse);
  k.add("Roll", kEveryType, &movement::roll);
  k.add("Tile", kEveryType, &movement::tile);
  const DTypeSet known = kAllTypes | kHalfTypes | kInt8Type;
  k.add("Shape", known, &movement::shape_of);
  k.add("Size", known, &movement::size_of_input);
  k.add("Rank", known, &movement::rank_of);
  k.add("SizeRatio", kRealFloats | kComplexTypes, &movement::size_ratio);
  add_tile_grads(k);
}

}  // namespace berth::gpu
