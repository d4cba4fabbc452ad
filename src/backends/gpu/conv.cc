// Convolutions and their gradients as products.

#include <algorithm>

#include "backends/gpu/kernels.h"
#include "backends/gpu/moves.h"
#include "backends/gpu/product.h"
#include "op/window.h"

namespace berth::gpu {

namespace conv {

// `Problem` of kernels/product_conv.cl.
struct Problem {
  ProductFields fields;
  int64_t h, w, c, oh, ow, o;
  int64_t kh, kw, sh, sw, dh, dw, ph, pw;
  int64_t cg, og;
};

// CONV of kernels/product_conv.cl.
enum class What { kResult, kImage, kFilter };

Problem geometry(const Recipe& r, const Shape& x, const Shape& filter,
                 const Shape& y) {
  const PrepareArgs& args = r.args();
  const WindowAxes at = conv_windows(*args.op, args.attrs, x, filter);
  Problem p{};
  p.fields.batches = conv_groups(*args.op, args.attrs, x, filter);
  p.h = x[1], p.w = x[2], p.c = x[3];
  p.oh = y[1], p.ow = y[2], p.o = y[3];
  p.kh = filter[0], p.kw = filter[1];
  p.sh = at.h.stride, p.sw = at.w.stride;
  p.dh = at.h.dilation, p.dw = at.w.dilation;
  p.ph = at.h.pad, p.pw = at.w.pad;
  p.cg = filter[2], p.og = p.o / p.fields.batches;
  return p;
}

// True when positions, pixels and taps fit in 32 bits.
bool fits_i32(const Problem& p, const Shape& x, const Shape& filter,
              const Shape& y) {
  constexpr int64_t kMost = int64_t{1} << 28;
  const int64_t far = std::max({p.h, p.w, p.oh * p.sh, p.ow * p.sw, p.kh * p.dh,
                                p.kw * p.dw, p.ph, p.pw});
  return far < kMost && x.num_elements() <= INT32_MAX &&
         filter.num_elements() <= INT32_MAX && y.num_elements() <= INT32_MAX;
}

// Libraries count elements in 32 bits. The kernels here handle convolutions of
// each channel, since they read everything once.
bool suits_library(const Problem& p, const Shape& x, const Shape& filter,
                   const Shape& y) {
  const int64_t most =
      std::max({x.num_elements(), filter.num_elements(), y.num_elements()});
  return x.num_elements() > 0 && filter.num_elements() > 0 &&
         y.num_elements() > 0 && p.cg > 0 &&
         !(p.cg == 1 && p.og == 1 && p.fields.batches > 1) &&
         fits_i32(p, x, filter, y) && most <= INT32_MAX;
}

// Transposes, as a matrix, a filter [kh, kw, c, o] to [o, kh, kw, c], or back.
void transpose_filter(Recipe& r, const Arg& to, const Arg& from, int64_t rows,
                      int64_t columns) {
  move_elements(r, r.out_type(0), {columns, rows}, {to, {rows, 1}},
                {from, {1, columns}});
}

// Gives it to the card's library, if it has one; a and b are as below, own()
// appends the kernels of this folder.
bool by_library(Recipe& r, What what, const Problem& p, const Shape& x,
                const Shape& filter, const Shape& y, const Arg& a, const Arg& b,
                const std::function<void()>& own) {
  // Filters are whole.
  const Arg& image = what == What::kImage ? out(0) : a;
  const Arg& result = what == What::kResult  ? out(0)
                      : what == What::kImage ? a
                                             : b;
  if (!suits_library(p, x, filter, y) || !r.is_aligned({image, result})) {
    return false;
  }
  using Op = LibraryOp::What;
  constexpr Op kOps[] = {Op::kConv, Op::kConvImageGrad, Op::kConvFilterGrad};
  LibraryOp op{kOps[static_cast<int>(what)], r.out_type(0)};
  op.conv = {x[0],         p.h,          p.w,         p.c, p.kh,
             p.kw,         p.oh,         p.ow,        p.o, p.fields.batches,
             {p.sh, p.sw}, {p.dh, p.dw}, {p.ph, p.pw}};
  LibraryKernel kernel = r.library(op);
  if (!kernel.kernel) return false;
  const int64_t taps = p.kh * p.kw * p.cg;
  const Arg turned =
      r.scratch(static_cast<size_t>(filter.num_elements()) * size_of(op.dtype));
  if (what == What::kFilter) {
    r.launch(
        std::move(kernel), {a, b, turned},
        [&] { transpose_filter(r, out(0), turned, p.o, taps); }, own);
    return true;
  }
  transpose_filter(r, turned, b, taps, p.o);
  if (what == What::kResult) {
    r.launch(std::move(kernel), {a, turned, out(0)}, {}, own);
  } else {
    r.launch(std::move(kernel), {turned, a, out(0)}, {}, own);
  }
  return true;
}

// `a` is the image, or the result's gradient when computing the image's; `b` is
// the filter, or that gradient when computing the filter's.
void append_own(Recipe& r, What what, Problem p, const Shape& x,
                const Shape& filter, const Shape& y, const Arg& a,
                const Arg& b) {
  ProductFields& f = p.fields;
  f.batch_inner = 1;
  f.b_col = 1;
  const int64_t taps = p.kh * p.kw, windows = x[0] * p.oh * p.ow;
  if (what == What::kResult) {
    f.m = windows, f.n = p.og, f.k = taps * p.cg;
  } else if (what == What::kImage) {
    f.m = x[0] * p.h * p.w, f.n = p.cg, f.k = taps * p.og;
    f.b_col = p.o;
  } else {
    f.m = taps * p.cg, f.n = p.og, f.k = windows;
    f.rows_fast = 1;
  }
  f.c_row = what == What::kImage ? p.c : p.o;
  f.c_batch = f.n;
  const char* index = fits_i32(p, x, filter, y) ? "i32" : "i64";
  ProductCall call{f, value(p), "product_conv.cl"};
  call.defines = {{"CONV", std::to_string(static_cast<int>(what))},
                  {"INDEX", index}};
  call.dtype = r.out_type(0);
  call.a = a;
  call.b = b;
  call.c = out(0);
  append_product(r, call);
}

void append(Recipe& r, What what, const Shape& x, const Shape& filter,
            const Shape& y, const Arg& a, const Arg& b) {
  const Problem p = geometry(r, x, filter, y);
  const auto own = [&] { append_own(r, what, p, x, filter, y, a, b); };
  if (!by_library(r, what, p, x, filter, y, a, b, own)) own();
}

bool conv2d(Recipe& r) {
  append(r, What::kResult, r.in_shape(0), r.in_shape(1), r.out_shape(0), in(0),
         in(1));
  return true;
}

bool backprop_input(Recipe& r) {
  append(r, What::kImage, r.out_shape(0), r.in_shape(0), r.in_shape(1), in(1),
         in(0));
  return true;
}

bool backprop_filter(Recipe& r) {
  append(r, What::kFilter, r.in_shape(0), r.out_shape(0), r.in_shape(1), in(0),
         in(1));
  return true;
}

}  // namespace conv

void add_conv(Kernels& k) {
  k.add("Conv2D", kRealFloats, &conv::conv2d);
  k.add("Conv2DBackpropInput", kRealFloats, &conv::backprop_input);
  k.add("Conv2DBackpropFilter", kRealFloats, &conv::backprop_filter);
}

}  // namespace berth::gpu
