// Pooling over windows of images, and its gradients.

#include <algorithm>

#include "backends/gpu/kernels.h"
#include "op/window.h"

namespace berth::gpu {

namespace pool {

// Matches kernels/pool.cl.
struct Pool {
  int64_t n, h, w, c, oh, ow;
  int64_t kh, kw, sh, sw, ph, pw;
};

// The launches of one op on images of shape x.
struct Writer {
  Recipe& r;
  const Shape& x;
  Pool p{};
  KernelSource source;

  Writer(Recipe& recipe, const Shape& image) : r(recipe), x(image) {
    const PrepareArgs& args = r.args();
    const WindowAxes at = pool_windows(*args.op, args.attrs, x);
    p = {x[0],        x[1],        x[2],        x[3],
         at.h.out,    at.w.out,    at.h.window, at.w.window,
         at.h.stride, at.w.stride, at.h.pad,    at.w.pad};
    constexpr int64_t kFar = int64_t{1} << 29;
    const bool near = std::max({p.h, p.w, p.kh, p.kw, p.sh, p.sw}) < kFar &&
                      x.num_elements() <= INT32_MAX &&
                      windows() * p.c <= INT32_MAX;
    source.files = {"pool.cl"};
    source.types = {{"T", r.in_type(0)}};
    source.defines = {{"INDEX", near ? "i32" : "i64"}};
  }

  int64_t windows() const { return p.n * p.oh * p.ow; }
  int64_t pixels() const { return p.n * p.h * p.w; }
  // Returns one item per channel of each pixel.
  int64_t items(int64_t pixels) const { return pixels * p.c; }
};

bool max_pool(Recipe& r) {
  const Writer w(r, r.in_shape(0));
  r.flat(w.source, "pool_max", w.items(w.windows()),
         {in(0), out(0), value(w.p)});
  return true;
}

bool max_pool_with_argmax(Recipe& r) {
  const Writer w(r, r.in_shape(0));
  r.flat(w.source, "pool_argmax", w.items(w.windows()),
         {in(0), out(0), out(1), value(w.p), value(int32_t{1})});
  return true;
}

bool max_pool_grad(Recipe& r) {
  const Writer w(r, r.in_shape(0));
  const Arg argmax =
      r.scratch(static_cast<size_t>(w.windows() * w.p.c) * sizeof(int64_t));
  r.flat(w.source, "pool_argmax", w.items(w.windows()),
         {in(0), no_buffer(), argmax, value(w.p), value(int32_t{0})});
  r.flat(w.source, "pool_max_grad", w.items(w.pixels()),
         {argmax, in(2), out(0), value(w.p)});
  return true;
}

bool max_pool_grad_grad(Recipe& r) {
  const Writer w(r, r.in_shape(0));
  r.flat(w.source, "pool_max_grad_grad", w.items(w.windows()),
         {in(0), in(2), out(0), value(w.p)});
  return true;
}

bool avg_pool(Recipe& r) {
  const Writer w(r, r.in_shape(0));
  r.flat(w.source, "pool_mean", w.items(w.windows()),
         {in(0), out(0), value(w.p)});
  return true;
}

bool avg_pool_grad(Recipe& r) {
  const Writer w(r, r.out_shape(0));
  r.flat(w.source, "pool_mean_grad", w.items(w.pixels()),
         {in(0), out(0), value(w.p)});
  return true;
}

}  // namespace pool

void add_pool(Kernels& k) {
  k.add("MaxPool", kRealFloats, &pool::max_pool);
  k.add("MaxPoolWithArgmax", kRealFloats, &pool::max_pool_with_argmax);
  k.add("MaxPoolGrad", kRealFloats, &pool::max_pool_grad);
  k.add("MaxPoolGradGrad", kRealFloats, &pool::max_pool_grad_grad);
  k.add("AvgPool", kRealFloats, &pool::avg_pool);
  k.add("AvgPoolGrad", kRealFloats, &pool::avg_pool_grad);
}

}  // namespace berth::gpu
