// Ops that move elements: layout, slices, joins, broadcasts.

#include "backends/gpu/kernels.h"
#include "backends/gpu/moves.h"
#include "op/slice_spec.h"

namespace berth::gpu {

namespace {
namespace movement {

using Ints = std::vector<int64_t>;

StridedView dense(const Arg& memory, const Shape& shape) {
  return {memory, row_strides(shape), 0};
}

bool transpose(Recipe& r) {
  const auto& perm = r.args().attr<Ints>("perm");
  const Ints own = row_strides(r.in_shape(0));
  StridedView from{in(0), Ints(own.size()), 0};
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
  StridedView from{in(0), Ints(static_cast<size_t>(large.rank())), 0};
  const int missing = large.rank() - small.rank();
  for (int d = 0; d < small.rank(); ++d) {
    if (small[d] == 1) continue;
    from.strides[static_cast<size_t>(d + missing)] =
        own[static_cast<size_t>(d)];
  }
  move_elements(r, r.in_type(0), large, dense(out(0), large), from);
  return true;
}

// Blocks of joined arrays: a part holds `rows` of them in a row, and `whole`
// alternates between the blocks of all parts.
struct Blocks {
  int64_t rows;
  int64_t step;  // elements per row of the whole
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
  StridedView from = dense(in(0), r.in_shape(0));
  for (size_t i = 0; i < begin.size(); ++i) {
    from.start += begin[i] * from.strides[i];
  }
  move_elements(r, r.in_type(0), r.out_shape(0), dense(out(0), r.out_shape(0)),
                from);
  return true;
}

// Returns the positions of a strided slice in `full`; *shape includes the axes
// that an index drops.
StridedView slice_places(const Recipe& r, const Arg& memory, const Shape& full,
                         Shape* shape) {
  const auto axes = slice_axes(*r.args().op, r.args().attrs, full);
  StridedView w = dense(memory, full);
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
  const StridedView from = slice_places(r, in(0), r.in_shape(0), &shape);
  move_elements(r, r.in_type(0), shape, dense(out(0), shape), from);
  return true;
}

void put_slice(Recipe& r, int part) {
  Shape shape;
  const StridedView to = slice_places(r, out(0), r.out_shape(0), &shape);
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

}  // namespace movement
}  // namespace

void add_pad_tile_reverse(Kernels& k);  // pad_tile_reverse.cc
void add_known_shapes(Kernels& k);      // known_shapes.cc
void add_tile_grads(Kernels& k);        // tile_gradients.cc

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
  add_pad_tile_reverse(k);
  add_known_shapes(k);
  add_tile_grads(k);
}

}  // namespace berth::gpu
