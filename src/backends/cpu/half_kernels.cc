// bfloat16 and float16 by way of the float32 kernels, rounded once. This file
// has the elementwise ops, computed in blocks that stay in cache. Outputs may
// share an operand's bytes.

#include <algorithm>
#include <array>

#include "backends/cpu/half.h"
#include "backends/reference/reference.h"

namespace berth::cpu {

void run_half_reference(const KernelCall& c) {
  reference::kernels().fast(c.op->id(), c.in[0].dtype)(c);
}

namespace {

constexpr int kMostElementwise = 5;  // operands

// Replaces the first `axes` axes of the shape by one of `length`.
Shape block_shape(const Shape& shape, int axes, int64_t length) {
  Shape s{length};
  for (int i = axes; i < shape.rank(); ++i) s.push_back(shape[i]);
  return s;
}

// How a call is split along its leading axes. Each operand either has them as
// the result does, or lacks them.
class HalfBlocks {
 public:
  explicit HalfBlocks(const KernelCall& c)
      : c_(c), n_(c.num_in + c.num_out), out_(*c.out[0].shape) {
    while (axes_ < out_.rank() && all_agree(axes_)) ++axes_;
    for (int i = 0; i < axes_; ++i) rows_ *= out_[i];
    const int64_t inner = rows_ > 0 ? out_.num_elements() / rows_ : 0;
    step_ = std::clamp<int64_t>(kHalfBlock / std::max<int64_t>(inner, 1), 1,
                                std::max<int64_t>(rows_, 1));
    for (int k = 0; k < n_; ++k) {
      const View& v = view(k);
      has_[k] = has_axes(*v.shape, axes_);
      each_[k] = has_[k] && rows_ > 0 ? v.size() / rows_ : v.size();
      room_[k] = (each_[k] * (has_[k] ? step_ : 1) + 15) / 16 * 16;
    }
  }
  int64_t rows() const { return rows_; }
  int64_t step() const { return step_; }
  bool is_cut(int k) const { return has_[k]; }
  int64_t each(int k) const { return each_[k]; }
  // Floats of scratch for operand k.
  int64_t room(int k) const { return is_half(view(k).dtype) ? room_[k] : 0; }
  int64_t room() const {
    int64_t sum = 0;
    for (int k = 0; k < n_; ++k) sum += room(k);
    return sum;
  }
  Shape shape(int k, int64_t rows) const {
    const Shape& s = *view(k).shape;
    if (has_[k]) return block_shape(s, axes_, rows);
    Shape rest;
    for (int i = std::max(0, axes_ - (out_.rank() - s.rank())); i < s.rank();
         ++i) {
      rest.push_back(s[i]);
    }
    return rest;
  }
  const View& view(int k) const {
    return k < c_.num_in ? c_.in[k] : c_.out[k - c_.num_in];
  }

 private:
  bool has_axes(const Shape& s, int axes) const {
    if (s.rank() < out_.rank()) return false;
    for (int i = 0; i < axes; ++i) {
      if (s[i] != out_[i]) return false;
    }
    return true;
  }
  bool lacks_axis(const Shape& s, int axis) const {
    const int at = axis - (out_.rank() - s.rank());
    return at < 0 || s[at] == 1;
  }
  // Returns whether all operands agree in the first `axes` + 1 axes.
  bool all_agree(int axes) const {
    for (int k = 0; k < n_; ++k) {
      const Shape& s = *view(k).shape;
      if (has_axes(s, axes + 1)) continue;
      for (int i = 0; i <= axes; ++i) {
        if (!lacks_axis(s, i)) return false;
      }
    }
    return true;
  }

  const KernelCall& c_;
  const int n_;
  const Shape& out_;
  int axes_ = 0;
  int64_t rows_ = 1, step_ = 1;
  std::array<bool, kMostElementwise> has_{};
  std::array<int64_t, kMostElementwise> each_{}, room_{};
};

void elementwise(const KernelCall& c) {
  const int n = c.num_in + c.num_out;
  if (n > kMostElementwise) return run_half_reference(c);
  if (c.out[0].size() == 0) return;
  const HalfBlocks cut(c);
  const HalfFloats room(cut.room());
  std::array<View, kMostElementwise> views;
  std::array<Shape, kMostElementwise> shapes;
  float* memory = room.get();
  for (int k = 0; k < n; ++k) {
    const View& v = cut.view(k);
    shapes[k] = cut.shape(k, cut.step());
    views[k] = {v.data, &shapes[k], v.dtype};
    if (!is_half(v.dtype)) continue;
    views[k].data = memory;
    views[k].dtype = float32;
    memory += cut.room(k);
    if (!cut.is_cut(k)) {
      widen_half(v.dtype, v.as<uint16_t>(), views[k].as<float>(), v.size());
    }
  }
  KernelContext context = c.context ? *c.context : KernelContext{};
  const int64_t origin = context.slice_origin;
  KernelCall call = c;
  call.in = views.data();
  call.out = views.data() + c.num_in;
  call.context = &context;
  const DirectKernel kernel = kernels().fast(c.op->id(), float32);
  for (int64_t at = 0; at < cut.rows(); at += cut.step()) {
    const int64_t rows = std::min(cut.step(), cut.rows() - at);
    for (int k = 0; k < n; ++k) {
      if (!cut.is_cut(k)) continue;
      const View& v = cut.view(k);
      shapes[k][0] = rows;
      void* const there = half_place(v, at * cut.each(k));
      if (!is_half(v.dtype)) {
        views[k].data = there;
      } else if (k < c.num_in) {
        widen_half(v.dtype, static_cast<uint16_t*>(there), views[k].as<float>(),
                   rows * cut.each(k));
      }
    }
    context.slice_origin = origin + at * cut.each(c.num_in);
    kernel(call);
    for (int k = c.num_in; k < n; ++k) {
      const View& v = cut.view(k);
      if (!is_half(v.dtype)) continue;
      round_half(v.dtype, views[k].as<float>(),
                 static_cast<uint16_t*>(half_place(v, at * cut.each(k))),
                 rows * cut.each(k));
    }
  }
}

void cast(const KernelCall& c) {
  const View &x = c.in[0], &y = c.out[0];
  if (is_half(x.dtype) && y.dtype == float32) {
    widen_half(x.dtype, x.as<uint16_t>(), y.as<float>(), x.size());
  } else if (x.dtype == float32 && is_half(y.dtype)) {
    round_half(y.dtype, x.as<float>(), y.as<uint16_t>(), x.size());
  } else {
    run_half_reference(c);
  }
}

}  // namespace

void add_half(KernelTable& t) {
  for (const OpDef* op : OpRegistry::get().all()) {
    if (!op->elementwise() || op->inputs().empty()) continue;
    // Its expression has dtypes of its own.
    if (op->name() == "_Fused") continue;
    if (op->name() == "Cast") continue;  // below
    const DTypeSet halves = op->inputs()[0].types & kHalfTypes;
    if (halves && t.fast(op->id(), float32)) {
      t.direct(op->name(), halves, &elementwise, "loops in float32", true);
    }
  }
  t.direct("Cast", kHalfTypes | kFloat32, &cast, "loops");
  t.direct("Dropout", kHalfTypes, &elementwise, "loops in float32", true);
  add_half_rows(t);
  add_half_calls(t);
}

}  // namespace berth::cpu
