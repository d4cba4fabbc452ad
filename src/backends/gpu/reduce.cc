// Reductions over axes.

#include <algorithm>

#include "backends/gpu/kernels.h"
#include "backends/gpu/rows.h"
#include "op/reduce_axes.h"

namespace berth::gpu {

namespace {
namespace reduction {

constexpr DTypeSet kRing = kEveryNumber;

// Elements of a piece: the order of a sum depends only on its length.
struct Pieces {
  int64_t length = 0, piece = 0, count = 1;
  Pieces(int64_t n, int64_t each)
      : length(n),
        piece(each),
        count(std::max<int64_t>(1, ceil_div(n, each))) {}
};

// The walks over kept and reduced axes. `columns`: outputs to which neighbours
// in memory belong; 0: neighbours belong to one output. Kept axes count even
// with one element, so that a part of x, split along a kept axis, is summed in
// the order of the whole.
struct Walks {
  Strided kept, reduced;
  int64_t outer = 1, columns = 0, length = 1;
  Arg x = {}, y = {};
  DType type = DType::kInvalid;  // of x
};

Walks walks_over(const Shape& x, const bool* reduced) {
  int64_t strides[kMaxRank] = {};
  int64_t stride = 1;
  int last = -1;  // reduced axis
  for (int d = x.rank() - 1; d >= 0; --d) {
    strides[d] = stride;
    stride *= x[d];
    if (reduced[d] && x[d] != 1) last = std::max(last, d);
  }
  Walks w;
  Shape outer, sums;
  int64_t outer_strides[kMaxRank] = {}, sum_strides[kMaxRank] = {};
  int64_t columns = 1;
  bool behind = last < 0;
  for (int d = 0; d < x.rank(); ++d) {
    if (reduced[d]) {
      sum_strides[sums.rank()] = strides[d];
      sums.push_back(x[d]);
      w.length *= x[d];
    } else if (d > last) {
      columns *= x[d];
      behind = true;
    } else {
      outer_strides[outer.rank()] = strides[d];
      outer.push_back(x[d]);
      w.outer *= x[d];
    }
  }
  w.kept = strided(outer, outer_strides);
  w.reduced = strided(sums, sum_strides);
  w.columns = behind ? columns : 0;
  return w;
}

void fold(Recipe& r, const KernelSource& source, const std::string& kind,
          const Walks& w, const Arg& partial, int64_t outputs,
          int64_t output_stride, int64_t pieces, int64_t piece_stride,
          double divisor) {
  const int32_t lanes = row_lanes(r.features(), pieces);
  launch_rows(
      r, source, (kind + "_fold").c_str(), outputs, lanes,
      {partial, w.y, value(outputs), value(output_stride), value(pieces),
       value(piece_stride), value(lanes), real_value(w.type, divisor)});
}

// Returns the size of the type that pieces are kept in.
size_t bytes_of_partial(DType type) {
  return type == bfloat16 || type == float16 ? 4 : size_of(type);
}

void by_rows(Recipe& r, const KernelSource& source, const std::string& kind,
             const Walks& w, double divisor) {
  const Features& f = r.features();
  const Pieces p(w.length, int64_t{32} * f.group_size);
  const int32_t lanes = row_lanes(f, std::min(p.length, p.piece));
  const DType type = w.type;
  const int64_t rows = w.outer * p.count;
  const Arg partial =
      p.count > 1
          ? r.scratch(static_cast<size_t>(rows) * bytes_of_partial(type))
          : no_buffer();
  const int32_t dense =
      w.reduced.rank == 0 || (w.reduced.rank == 1 && w.reduced.stride[0] == 1);
  launch_rows(r, source, (kind + "_rows").c_str(), rows, lanes,
              {w.x, w.y, partial, value(w.kept), value(w.reduced),
               value(w.outer), value(p.length), value(p.piece), value(p.count),
               value(lanes), value(dense), real_value(type, divisor)});
  if (p.count > 1) {
    fold(r, source, kind, w, partial, w.outer, p.count, p.count, 1, divisor);
  }
}

void by_columns(Recipe& r, const KernelSource& source, const std::string& kind,
                const Walks& w, double divisor) {
  const Pieces p(w.length, 64);
  const DType type = w.type;
  const int64_t outputs = w.outer * w.columns;
  const Arg partial = p.count > 1
                          ? r.scratch(static_cast<size_t>(outputs * p.count) *
                                      bytes_of_partial(type))
                          : no_buffer();
  const int64_t items = w.outer * p.count * w.columns;
  launch_rows(r, source, (kind + "_columns").c_str(), items, 1,
              {w.x, w.y, partial, value(w.kept), value(w.reduced),
               value(w.outer), value(w.columns), value(p.length),
               value(p.piece), value(p.count), real_value(type, divisor)});
  if (p.count > 1) {
    fold(r, source, kind, w, partial, outputs, 1, p.count, outputs, divisor);
  }
}

bool reduce_op(Recipe& r, const char* kind, double divisor = 1) {
  const auto reduced =
      reduced_axes(*r.args().op, r.args().attrs, r.in_shape(0).rank());
  return reduce_axes(r, kind, reduced.data(), divisor);
}

bool sum(Recipe& r) { return reduce_op(r, "sum"); }
bool prod(Recipe& r) { return reduce_op(r, "prod"); }
bool max(Recipe& r) { return reduce_op(r, "max"); }
bool min(Recipe& r) { return reduce_op(r, "min"); }
bool mean(Recipe& r) {
  const Shape* unsplit = r.args().unsplit;
  return reduce_op(r, "sum",
                   reduced_count(*r.args().op, r.args().attrs,
                                 unsplit ? *unsplit : r.in_shape(0)));
}

// Sums over all axes but the last.
bool bias_add_grad(Recipe& r) {
  bool reduced[kMaxRank] = {};
  for (int d = 0; d + 1 < r.in_shape(0).rank(); ++d) reduced[d] = true;
  return reduce_axes(r, "sum", reduced);
}

// Sums over the axes that broadcasting added.
bool sum_like(Recipe& r) {
  const Shape &x = r.in_shape(0), &y = r.out_shape(0);
  bool reduced[kMaxRank] = {};
  const int added = x.rank() - y.rank();
  for (int d = 0; d < x.rank(); ++d) {
    reduced[d] = d < added || x[d] != y[d - added];
  }
  return reduce_axes(r, "sum", reduced);
}

bool arg_extreme(Recipe& r, bool largest) {
  const Shape& x = r.in_shape(0);
  const int axis = normalize_axis(r.args().attr<int64_t>("axis"), x.rank(),
                                  r.args().op->name().c_str());
  int64_t inner = 1;
  for (int i = axis + 1; i < x.rank(); ++i) inner *= x[i];
  const int64_t n = x[axis], outputs = r.out_shape(0).num_elements();
  // Unless the axis is the last one, its neighbours are not adjacent.
  const bool enough = inner > 1 && outputs >= 1 << 14;
  const int32_t lanes = enough ? 1 : row_lanes(r.features(), n);
  launch_rows(r, row_source(r.in_type(0), {"arg_extreme.cl"}), "arg_extreme",
              outputs, lanes,
              {in(0), out(0), out(0), value(outputs), value(n), value(inner),
               value(lanes), value(static_cast<int32_t>(largest)),
               value(static_cast<int32_t>(r.out_type(0) == int64))});
  return true;
}
bool arg_max(Recipe& r) { return arg_extreme(r, true); }
bool arg_min(Recipe& r) { return arg_extreme(r, false); }

}  // namespace reduction
}  // namespace

bool reduce_axes(Recipe& r, const char* kind, const bool* reduced,
                 double divisor, int x, int y) {
  reduction::Walks w = reduction::walks_over(r.in_shape(x), reduced);
  w.x = in(x);
  w.y = out(y);
  w.type = r.in_type(x);
  const KernelSource source = row_source(w.type, {"reduce.cl"});
  if (r.out_shape(y).num_elements() == 0) return true;
  if (w.columns > 0) {
    reduction::by_columns(r, source, kind, w, divisor);
  } else {
    reduction::by_rows(r, source, kind, w, divisor);
  }
  return true;
}

void add_reduce(Kernels& k) {
  using namespace reduction;  // NOLINT: the functions of this file
  k.add("Sum", kRing, &sum);
  k.add("Prod", kRing, &prod);
  k.add("Mean", kInexactTypes, &mean);
  k.add("Max", kRealNumbers, &max);
  k.add("Min", kRealNumbers, &min);
  k.add("All", kBoolType, &prod);
  k.add("Any", kBoolType, &sum);
  k.add("ArgMax", kRealNumbers, &arg_max);
  k.add("ArgMin", kRealNumbers, &arg_min);
  k.add("BiasAddGrad", kRealNumbers, &bias_add_grad);
  k.add("SumLike", kRing, &sum_like);
}

}  // namespace berth::gpu
