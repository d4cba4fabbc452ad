// Pooling, split by images.

#include "backends/cpu/kernels.h"
#include "backends/cpu/loops.h"
#include "op/window.h"

namespace berth::cpu {

namespace {

PoolShape pool_shape(const PrepareArgs& args, const Shape& image) {
  const WindowAxes at = pool_windows(*args.op, args.attrs, image);
  PoolShape s;
  s.batch = image[0];
  s.in_h = image[1];
  s.in_w = image[2];
  s.channels = image[3];
  s.window_h = at.h.window;
  s.window_w = at.w.window;
  s.stride_h = at.h.stride;
  s.stride_w = at.w.stride;
  s.pad_top = at.h.pad;
  s.pad_left = at.w.pad;
  s.out_h = at.h.out;
  s.out_w = at.w.out;
  return s;
}

using PoolLoop = void (*)(const PoolShape& s, const KernelCall& c,
                          int64_t first, int64_t last);

class PoolKernel : public Prepared {
 public:
  PoolKernel(const PoolShape& shape, int slices, PoolLoop loop)
      : shape_(shape),
        floats_(shape.batch * shape.in_h * shape.in_w * shape.channels),
        parts_(cut_parts(shape.batch, floats_, slices)),
        loop_(loop) {}

  void run(const KernelCall& c) const override {
    run_parts(c, parts_, floats_, [&](int part) {
      loop_(shape_, c, part_begin(shape_.batch, parts_, part),
            part_begin(shape_.batch, parts_, part + 1));
    });
  }

 private:
  const PoolShape shape_;
  const int64_t floats_;
  const int parts_;
  const PoolLoop loop_;
};

void max_pool(const PoolShape& s, const KernelCall& c, int64_t first,
              int64_t last) {
  loops().max_pool(s, c.in[0].as<float>(), c.out[0].as<float>(), first, last);
}

void max_pool_grad(const PoolShape& s, const KernelCall& c, int64_t first,
                   int64_t last) {
  loops().max_pool_grad(s, c.in[0].as<float>(), c.in[1].as<float>(),
                        c.in[2].as<float>(), c.out[0].as<float>(), first, last);
}

void avg_pool(const PoolShape& s, const KernelCall& c, int64_t first,
              int64_t last) {
  loops().avg_pool(s, c.in[0].as<float>(), c.out[0].as<float>(), first, last);
}

void avg_pool_grad(const PoolShape& s, const KernelCall& c, int64_t first,
                   int64_t last) {
  loops().avg_pool_grad(s, c.in[0].as<float>(), c.out[0].as<float>(), first,
                        last);
}

// The gradients' result has the image's shape.
template <PoolLoop kLoop, bool kGrad>
std::unique_ptr<Prepared> pool(const PrepareArgs& args) {
  const Shape& image = kGrad ? args.out[0].shape : *args.in[0].shape;
  if (image.num_elements() == 0) return nullptr;
  return std::make_unique<PoolKernel>(pool_shape(args, image), args.slices,
                                      kLoop);
}

}  // namespace

void add_pool(KernelTable& t) {
  t.prepared("MaxPool", kFloat32, &pool<&max_pool, false>, "loops");
  t.prepared("MaxPoolGrad", kFloat32, &pool<&max_pool_grad, true>, "loops");
  t.prepared("AvgPool", kFloat32, &pool<&avg_pool, false>, "loops");
  t.prepared("AvgPoolGrad", kFloat32, &pool<&avg_pool_grad, true>, "loops");
}

}  // namespace berth::cpu
