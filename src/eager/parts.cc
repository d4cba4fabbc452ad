#include "eager/parts.h"

#include <algorithm>
#include <array>

#include "base/thread_pool.h"
#include "eager/kernel_cache.h"
#include "op/op_def.h"
#include "op/view_cut.h"

namespace berth {

namespace {

constexpr double kWorthUs = 30;
constexpr double kBytesPerUs = 10e3;
constexpr size_t kMostOperands = 8;

double bytes_of(const KernelCall& call) {
  double bytes = 0;
  for (int i = 0; i < call.num_in + call.num_out; ++i) {
    const View& v = call.in[i];
    bytes +=
        static_cast<double>(v.size()) * static_cast<double>(size_of(v.dtype));
  }
  return bytes;
}

// The length of the first axes that `s` cuts; 0 when it cuts others, leaves
// sums, or cuts nothing.
int64_t length_of(const SplitSignature& s, const KernelCall& call) {
  int64_t length = -1;
  auto fits = [&](int8_t axis, const View& v) {
    if (axis == SplitSignature::kWhole) return true;
    if (axis != 0 || (length >= 0 && length != v.dim(0))) return false;
    length = v.dim(0);
    return true;
  };
  for (int i = 0; i < call.num_in; ++i) {
    if (!fits(s.inputs[i], call.in[i])) return 0;
  }
  for (int o = 0; o < call.num_out; ++o) {
    if (s.outputs[o] != 0 || !fits(0, call.out[o])) return 0;
  }
  return std::max<int64_t>(length, 0);
}

struct Cut {
  DirectKernel kernel;
  const KernelCall& call;
  const SplitSignature& split;
  int64_t length;
  int parts;

  void run(int part) const {
    const int64_t begin = part_begin(length, parts, part);
    const int64_t end = part_begin(length, parts, part + 1);
    std::array<View, kMostOperands> views;
    std::array<Shape, kMostOperands> shapes;
    KernelContext context;
    auto set = [&](int at, const View& whole, int8_t axis) {
      views[at] = whole;
      if (axis != 0) return;
      const ViewCut cut(*whole.shape, axis, begin, end);
      shapes[at] = cut.shape;
      views[at].shape = &shapes[at];
      views[at].data = static_cast<std::byte*>(whole.data) +
                       static_cast<size_t>(cut.offset) * size_of(whole.dtype);
    };
    for (int i = 0; i < call.num_in; ++i) set(i, call.in[i], split.inputs[i]);
    for (int o = 0; o < call.num_out; ++o) set(call.num_in + o, call.out[o], 0);
    context.slice_origin = begin * (call.out[0].size() / length);
    if (call.num_in > 0) context.unsplit = call.in[0].shape;
    kernel({call.op, call.attrs, views.data(), views.data() + call.num_in,
            call.num_in, call.num_out, &context});
  }
};

}  // namespace

bool run_in_parts(Device& device, DirectKernel kernel, const KernelCall& call,
                  const InferContext& c) {
  ThreadPool* pool = device.pool();
  const int slices = default_slices(device);
  const double us = bytes_of(call) / kBytesPerUs;
  if (us < kWorthUs || !pool || slices < 2 || !call.op->split() ||
      call.num_out == 0 ||
      static_cast<size_t>(call.num_in + call.num_out) > kMostOperands) {
    return false;
  }
  for (const SplitSignature& s : call.op->split()(c)) {
    const int64_t length = length_of(s, call);
    const int parts = static_cast<int>(
        std::min<int64_t>({slices, length, ThreadPool::kMaxChunks}));
    if (parts < 2) continue;
    const Cut cut{kernel, call, s, length, parts};
    pool->parallel_for(
        parts, [&](int part) { cut.run(part); }, us);
    return true;
  }
  return false;
}

}  // namespace berth
