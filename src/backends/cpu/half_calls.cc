// bfloat16 and float16 in ops whose float32 kernel needs its whole arrays:
// inputs are widened into scratch memory, outputs are rounded.

#include <algorithm>
#include <array>

#include "backends/cpu/half.h"

namespace berth::cpu {

namespace {

constexpr size_t kMostCallOperands = 10;

class HalfCall final : public Prepared {
 public:
  HalfCall(BoundKernel kernel, const PrepareArgs& args)
      : kernel_(std::move(kernel)), slices_(args.slices) {
    for (size_t i = 0; i < args.in.size(); ++i) {
      // Only the shape of these operands is read.
      const bool like =
          args.op->input(static_cast<int>(i)).name.ends_with("like");
      add(args.in[i].dtype, like ? Shape{0} : *args.in[i].shape);
    }
    for (const OutSpec& o : args.out) add(o.dtype, o.shape);
  }
  size_t scratch_bytes() const override {
    return total_ + (kernel_.state ? kernel_.state->scratch_bytes() : 0);
  }
  void run(const KernelCall& c) const override {
    auto* memory = static_cast<std::byte*>(c.context->scratch);
    std::array<View, kMostCallOperands> views;
    std::copy_n(c.in, c.num_in, views.begin());
    std::copy_n(c.out, c.num_out, views.begin() + c.num_in);
    const int n = c.num_in + c.num_out;
    for (int k = 0; k < n; ++k) {
      if (!is_half(views[k].dtype)) continue;
      views[k].data = memory + rooms_[k].offset;
      views[k].dtype = float32;
      if (k < c.num_in && rooms_[k].floats > 0)
        convert<true>(c, c.in[k], views[k]);
    }
    KernelContext context = *c.context;
    context.scratch = memory + total_;
    kernel_.run({c.op, c.attrs, views.data(), views.data() + c.num_in, c.num_in,
                 c.num_out, &context});
    for (int k = c.num_in; k < n; ++k) {
      const View& y = c.out[k - c.num_in];
      if (is_half(y.dtype)) convert<false>(c, y, views[k]);
    }
  }

 private:
  struct Room {
    size_t offset = 0;
    int64_t floats = 0;
  };
  void add(DType dtype, const Shape& shape) {
    Room& room = rooms_[operands_++];
    if (!is_half(dtype)) return;
    room = {total_, shape.num_elements()};
    total_ += (float_bytes(room.floats) + 63) / 64 * 64;
  }
  // Converts an array to float32, or back.
  template <bool kWiden>
  void convert(const KernelCall& c, const View& half, const View& wide) const {
    const int64_t n = half.size();
    const int parts = cut_parts(n, n, slices_);
    run_parts(c, parts, n, [&](int part) {
      const int64_t at = part_begin(n, parts, part);
      const int64_t count = part_begin(n, parts, part + 1) - at;
      auto* const x = half.as<uint16_t>() + at;
      float* const y = wide.as<float>() + at;
      if constexpr (kWiden) {
        widen_half(half.dtype, x, y, count);
      } else {
        round_half(half.dtype, y, x, count);
      }
    });
  }

  BoundKernel kernel_;
  const int slices_;
  std::array<Room, kMostCallOperands> rooms_;
  size_t operands_ = 0;
  size_t total_ = 0;
};

std::unique_ptr<Prepared> prepare_half_call(const PrepareArgs& args) {
  if (args.in.size() + args.out.size() > kMostCallOperands) return nullptr;
  std::vector<SpecView> in(args.in.begin(), args.in.end());
  std::vector<OutSpec> out(args.out.begin(), args.out.end());
  for (SpecView& s : in) s.dtype = is_half(s.dtype) ? float32 : s.dtype;
  for (OutSpec& o : out) o.dtype = is_half(o.dtype) ? float32 : o.dtype;
  PrepareArgs wide = args;
  wide.in = in;
  wide.out = out;
  BoundKernel kernel = bind_kernel(kernels(), wide);
  if (!kernel.def) return nullptr;
  return std::make_unique<HalfCall>(std::move(kernel), args);
}

}  // namespace

void add_half_calls(KernelTable& t) {
  for (const char* op :
       {"Conv2D", "Conv2DBackpropInput", "Conv2DBackpropFilter"}) {
    t.prepared(op, kHalfTypes, &prepare_half_call, "conv");
  }
  for (const char* op :
       {"MatMul", "MaxPool", "MaxPoolGrad", "AvgPool", "AvgPoolGrad",
        "FusedBatchNormV3", "FusedBatchNormGradV3", "Sum", "Mean", "Max", "Min",
        "SumLike", "BiasAddGrad"}) {
    t.prepared(op, kHalfTypes, &prepare_half_call, "in float32");
  }
  // The executor splits these.
  for (const char* op : {"GatherGrad", "GatherGradLike"}) {
    t.prepared(op, kHalfTypes, &prepare_half_call, "in float32", false);
  }
}

}  // namespace berth::cpu
