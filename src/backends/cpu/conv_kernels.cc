// Convolutions: each call uses a ConvPlan.

#include <algorithm>

#include "backends/cpu/dnnl_math.h"
#include "backends/cpu/kernels.h"
#include "op/window.h"

namespace berth::cpu {

namespace {

// Returns the pixels of padding after the last pixel of an axis.
int64_t pad_after(const WindowAxis& a) {
  const int64_t extent = (a.window - 1) * a.dilation + 1;
  return std::max<int64_t>((a.out - 1) * a.stride + extent - a.in - a.pad, 0);
}

ConvShape conv_shape(const PrepareArgs& args, const Shape& image,
                     const Shape& filter) {
  const WindowAxes at = conv_windows(*args.op, args.attrs, image, filter);
  ConvShape s;
  s.batch = image[0];
  s.in_h = image[1];
  s.in_w = image[2];
  s.in_c = image[3];
  s.out_c = filter[3];
  s.groups = conv_groups(*args.op, args.attrs, image, filter);
  s.kernel_h = filter[0];
  s.kernel_w = filter[1];
  s.stride_h = at.h.stride;
  s.stride_w = at.w.stride;
  s.dilation_h = at.h.dilation;
  s.dilation_w = at.w.dilation;
  s.pad_top = at.h.pad;
  s.pad_bottom = pad_after(at.h);
  s.pad_left = at.w.pad;
  s.pad_right = pad_after(at.w);
  return s;
}

// Returns whether a window can lie entirely in the padding.
bool hidden(int64_t before, int64_t after, int64_t window, int64_t dilation) {
  return std::max(before, after) > (window - 1) * dilation;
}

// Maps operands to their roles, which depend on the pass.
class ConvKernel : public Prepared {
 public:
  ConvKernel(ConvPass pass, std::unique_ptr<ConvPlan> plan)
      : pass_(pass), plan_(std::move(plan)) {}

  size_t scratch_bytes() const override { return plan_->scratch_bytes(); }

  void run(const KernelCall& c) const override {
    const float *first = c.in[0].as<float>(), *second = c.in[1].as<float>();
    ConvBuffers b;
    b.result = c.out[0].as<float>();
    b.scratch = c.context->scratch;
    switch (pass_) {
      case ConvPass::kForward:
        b.input = first;
        b.filter = second;
        break;
      case ConvPass::kBackwardData:
        b.filter = first;
        b.grad = second;
        break;
      case ConvPass::kBackwardWeights:
        b.input = first;
        b.grad = second;
        break;
    }
    plan_->run(b, c.context->pool);
  }

 private:
  const ConvPass pass_;
  const std::unique_ptr<ConvPlan> plan_;
};

template <ConvPass kPass>
std::unique_ptr<Prepared> conv(const PrepareArgs& args) {
  const bool data = kPass == ConvPass::kBackwardData;
  const Shape& image = data ? args.out[0].shape : *args.in[0].shape;
  const Shape& filter = data                          ? *args.in[0].shape
                        : kPass == ConvPass::kForward ? *args.in[1].shape
                                                      : args.out[0].shape;
  const Shape& y =
      kPass == ConvPass::kForward ? args.out[0].shape : *args.in[1].shape;
  const ConvShape shape = conv_shape(args, image, filter);
  // oneDNN does not handle windows that lie entirely in the padding.
  const bool empty_windows =
      hidden(shape.pad_top, shape.pad_bottom, shape.kernel_h,
             shape.dilation_h) ||
      hidden(shape.pad_left, shape.pad_right, shape.kernel_w, shape.dilation_w);
  if (!shape.problem().empty() || empty_windows || shape.out_h() != y[1] ||
      shape.out_w() != y[2]) {
    return nullptr;
  }
  ConvChoice options;
  options.slices = std::min(args.slices, ThreadPool::kMaxChunks);
  auto plan = ConvPlan::make(shape, kPass, options, nullptr);
  if (!plan) return nullptr;
  return std::make_unique<ConvKernel>(kPass, std::move(plan));
}

}  // namespace

void add_conv(KernelTable& t) {
  t.prepared("Conv2D", kFloat32, &conv<ConvPass::kForward>, "conv");
  t.prepared("Conv2DBackpropInput", kFloat32, &conv<ConvPass::kBackwardData>,
             "conv");
  t.prepared("Conv2DBackpropFilter", kFloat32,
             &conv<ConvPass::kBackwardWeights>, "conv");
}

}  // namespace berth::cpu
