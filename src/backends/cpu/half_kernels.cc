// bfloat16 and float16: by way of the float32 kernels, in blocks that stay in
// cache where the op is elementwise. Outputs may be an operand's bytes.

#include <algorithm>
#include <array>

#include "backends/cpu/kernels.h"
#include "backends/cpu/loops.h"
#include "backends/reference/reference.h"

namespace berth::cpu {

namespace {

constexpr int64_t kBlock = 1024;
constexpr int kMostInputs = 3;
constexpr size_t kMostOperands = 8;

bool is_half(DType d) { return (kHalfTypes & dtype_bit(d)) != 0; }

void widen(DType dtype, const uint16_t* x, float* y, int64_t n) {
  const Loops& l = loops();
  (dtype == bfloat16 ? l.widen_bfloat16 : l.widen_float16)(x, y, n);
}
void round(DType dtype, const float* x, uint16_t* y, int64_t n) {
  const Loops& l = loops();
  (dtype == bfloat16 ? l.round_bfloat16 : l.round_float16)(x, y, n);
}

void run_plain(const KernelCall& c) {
  reference::kernels().fast(c.op->id(), c.in[0].dtype)(c);
}

// True when each operand is one number or has the shape of the result.
bool is_simple(const KernelCall& c) {
  if (c.num_in > kMostInputs || c.num_out != 1) return false;
  for (int i = 0; i < c.num_in; ++i) {
    const View& v = c.in[i];
    if (!is_half(v.dtype)) return false;
    if (!(*v.shape == *c.out[0].shape) && v.size() != 1) return false;
  }
  return true;
}

void elementwise(const KernelCall& c) {
  if (!is_simple(c)) return run_plain(c);
  const View& out = c.out[0];
  const int64_t n = out.size();
  float memory[kMostInputs + 1][kBlock];
  float* result = memory[kMostInputs];
  const Shape one;
  std::array<View, kMostInputs> in;
  for (int i = 0; i < c.num_in; ++i) {
    in[i] = {memory[i], &one, float32};
    if (n > 0 && c.in[i].size() == 1) {
      widen(c.in[i].dtype, c.in[i].as<uint16_t>(), memory[i], 1);
    }
  }
  const DirectKernel kernel = kernels().fast(c.op->id(), float32);
  const size_t out_size = size_of(out.dtype);
  for (int64_t at = 0; at < n; at += kBlock) {
    const Shape shape{std::min(kBlock, n - at)};
    for (int i = 0; i < c.num_in; ++i) {
      if (c.in[i].size() == 1) continue;
      in[i].shape = &shape;
      widen(c.in[i].dtype, c.in[i].as<uint16_t>() + at, memory[i], shape[0]);
    }
    const bool half = is_half(out.dtype);
    void* const there =
        out.as<std::byte>() + static_cast<size_t>(at) * out_size;
    const View y =
        half ? View{result, &shape, float32} : View{there, &shape, out.dtype};
    KernelCall call = c;
    call.in = in.data();
    call.out = &y;
    kernel(call);
    if (half) {
      round(out.dtype, result, static_cast<uint16_t*>(there), shape[0]);
    }
  }
}

void cast(const KernelCall& c) {
  const View &x = c.in[0], &y = c.out[0];
  if (is_half(x.dtype) && y.dtype == float32) {
    widen(x.dtype, x.as<uint16_t>(), y.as<float>(), x.size());
  } else if (x.dtype == float32 && is_half(y.dtype)) {
    round(y.dtype, x.as<float>(), y.as<uint16_t>(), x.size());
  } else {
    run_plain(c);
  }
}

// A whole call in float32, its arrays in scratch memory.
class Widened final : public Prepared {
 public:
  Widened(BoundKernel kernel, const PrepareArgs& args)
      : kernel_(std::move(kernel)) {
    for (const SpecView& s : args.in) add(*s.shape);
    for (const OutSpec& o : args.out) add(o.shape);
  }
  size_t scratch_bytes() const override {
    return total_ + (kernel_.state ? kernel_.state->scratch_bytes() : 0);
  }
  void run(const KernelCall& c) const override {
    auto* memory = static_cast<std::byte*>(c.context->scratch);
    std::array<View, kMostOperands> views;
    std::copy_n(c.in, c.num_in, views.begin());
    std::copy_n(c.out, c.num_out, views.begin() + c.num_in);
    for (size_t i = 0; i < offsets_.size(); ++i) {
      views[i].data = memory + offsets_[i];
      views[i].dtype = float32;
    }
    for (int i = 0; i < c.num_in; ++i) {
      widen(c.in[i].dtype, c.in[i].as<uint16_t>(), views[i].as<float>(),
            c.in[i].size());
    }
    KernelContext context = *c.context;
    context.scratch = memory + total_;
    kernel_.run({c.op, c.attrs, views.data(), views.data() + c.num_in, c.num_in,
                 c.num_out, &context});
    for (int i = 0; i < c.num_out; ++i) {
      round(c.out[i].dtype, views[c.num_in + i].as<float>(),
            c.out[i].as<uint16_t>(), c.out[i].size());
    }
  }

 private:
  void add(const Shape& shape) {
    offsets_.push_back(total_);
    total_ += (float_bytes(shape.num_elements()) + 63) / 64 * 64;
  }
  BoundKernel kernel_;
  std::vector<size_t> offsets_;
  size_t total_ = 0;
};

// For ops whose operands all have one dtype.
std::unique_ptr<Prepared> prepare_widened(const PrepareArgs& args) {
  if (args.in.size() + args.out.size() > kMostOperands) return nullptr;
  std::vector<SpecView> in(args.in.begin(), args.in.end());
  std::vector<OutSpec> out(args.out.begin(), args.out.end());
  for (SpecView& s : in) s.dtype = float32;
  for (OutSpec& o : out) o.dtype = float32;
  BoundKernel kernel =
      bind_kernel(kernels(), {args.op, args.attrs, in, out, args.slices});
  if (!kernel.def) return nullptr;
  return std::make_unique<Widened>(std::move(kernel), args);
}

}  // namespace

void add_half(KernelTable& t) {
  for (const OpDef* op : OpRegistry::get().all()) {
    if (!op->elementwise() || op->inputs().empty()) continue;
    if (op->name() == "Cast") continue;  // below
    const DTypeSet halves = op->inputs()[0].types & kHalfTypes;
    if (halves && t.fast(op->id(), float32)) {
      t.direct(op->name(), halves, &elementwise, "loops in float32", true);
    }
  }
  t.direct("Cast", kHalfTypes | kFloat32, &cast, "loops");
  t.prepared("MatMul", kHalfTypes, &prepare_widened, "gemm in float32");
}

}  // namespace berth::cpu
