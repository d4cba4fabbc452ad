#include "backends/cpu/conv_small.h"

#include <algorithm>
#include <cstring>

#include "backends/cpu/loops.h"

namespace berth::cpu {
namespace {

int64_t round_up(int64_t floats) { return (floats + 31) / 32 * 32; }

}  // namespace

bool SmallChannelConv::takes(const ConvShape& s, ConvPass pass) {
  const int64_t padded = (s.in_h + s.pad_top + s.pad_bottom) *
                         (s.in_w + s.pad_left + s.pad_right) * s.in_c;
  return pass != ConvPass::kBackwardData && s.groups == 1 && s.in_c < 8 &&
         padded < (int64_t{1} << 28) &&
         s.kernel_h * s.kernel_w * s.in_c <= kMaxTaps;
}

SmallChannelConv::SmallChannelConv(const ConvShape& shape, ConvPass pass,
                                   const ConvChoice& options)
    : shape_(shape), pass_(pass), options_(options) {
  batch_ = shape.batch;
  slices_ = static_cast<int>(
      std::max<int64_t>(1, std::min<int64_t>(options.slices, batch_)));
  implementation_ = "berth:taps";
  filter_stride_ =
      pass == ConvPass::kForward ? 0 : round_up(shape.filter_size());
  image_stride_ = round_up(padded_h() * padded_w() * shape.in_c);
  scratch_bytes_ = slices_ * (filter_stride_ + image_stride_) * sizeof(float);
}

int64_t SmallChannelConv::padded_h() const {
  return shape_.in_h + shape_.pad_top + shape_.pad_bottom;
}

int64_t SmallChannelConv::padded_w() const {
  return shape_.in_w + shape_.pad_left + shape_.pad_right;
}

float* SmallChannelConv::partial(int index, const ConvBuffers& b) const {
  return static_cast<float*>(b.scratch) + index * filter_stride_;
}

void SmallChannelConv::begin(const ConvBuffers&) const {}

void SmallChannelConv::slice(int index, const ConvBuffers& b) const {
  const ConvShape& s = shape_;
  const int taps = static_cast<int>(s.kernel_h * s.kernel_w * s.in_c);
  const int64_t row = padded_w() * s.in_c;
  int32_t offsets[kMaxTaps];
  for (int t = 0; t < taps; ++t) {
    const int64_t c = t % s.in_c, kx = t / s.in_c % s.kernel_w,
                  ky = t / s.in_c / s.kernel_w;
    offsets[t] = static_cast<int32_t>(ky * s.dilation_h * row +
                                      kx * s.dilation_w * s.in_c + c);
  }
  float* filter = partial(index, b);
  if (pass_ == ConvPass::kBackwardWeights) {
    std::memset(filter, 0, s.filter_size() * sizeof(float));
  }
  float* image = static_cast<float*>(b.scratch) + slices_ * filter_stride_ +
                 index * image_stride_;
  std::memset(image, 0, padded_h() * row * sizeof(float));
  for (int64_t n = first_image(index); n < first_image(index + 1); ++n) {
    for (int64_t y = 0; y < s.in_h; ++y) {
      std::memcpy(image + (y + s.pad_top) * row + s.pad_left * s.in_c,
                  b.input + n * s.image_in() + y * s.in_w * s.in_c,
                  s.in_w * s.in_c * sizeof(float));
    }
    if (pass_ == ConvPass::kForward) {
      loops().conv_pixels(image, s.stride_h * row, s.stride_w * s.in_c, offsets,
                          taps, b.filter, options_.bias ? b.bias : nullptr,
                          options_.relu, s.out_h(), s.out_w(), s.out_c,
                          b.result + n * s.image_out());
    } else {
      loops().conv_taps(image, s.stride_h * row, s.stride_w * s.in_c, offsets,
                        taps, b.grad + n * s.image_out(), s.out_h(), s.out_w(),
                        s.out_c, filter);
    }
  }
}

void SmallChannelConv::finish(const ConvBuffers& b, ThreadPool* pool) const {
  if (pass_ == ConvPass::kForward) return;
  tree_sum(static_cast<float*>(b.scratch), slices_, shape_.filter_size(),
           filter_stride_, pool);
  std::memcpy(b.result, b.scratch, shape_.filter_size() * sizeof(float));
}

}  // namespace berth::cpu
